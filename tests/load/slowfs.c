/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A disk that misbehaves on demand. It is a FUSE file system that shows the regular files of DIRECTORY at
 * MOUNTPOINT. Each line of standard input is a command. The program answers each command with "ok" and the
 * number of requests that wait:
 *
 *   only TEXT   rate, hold, hang and fail have an effect only on files with TEXT in their names;
 *               "only" without TEXT: on all files
 *   rate BYTES  write BYTES bytes a second, one write after the other; 0: no limit
 *   hold        do not answer writes
 *   hang        do not answer writes, reads, opens, requests for attributes and requests for lists of names
 *   step        serve the requests that wait; new requests wait as before
 *   fail        answer writes with EIO
 *   nosync      answer an fsync of the directory with EIO
 *   readonly    answer everything that would change a file with EROFS
 *   go          end the effects of all commands except "only", and serve the requests that wait
 *   count       do nothing: the answer has the number of requests that wait
 *
 * Usage: frtest-slowfs DIRECTORY MOUNTPOINT. Prints "ready" when the file system is mounted. Ends when its
 * input ends. Requests that wait at the end fail. Exit code 77: this machine has no FUSE.
 */

#define FUSE_USE_VERSION 312
#include "load.h"

#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>

#define SKIP 77
#define THREADS 256 /* each request that waits needs one thread */

/* An open file. If the file is renamed, .name does not change. */
struct file {
	int fd;
	char name[NAME_MAX + 1];
};

static int dir_fd;
/* A thread that serves a request holds this lock, so one request is served at a time, as by a disk. The lock
   also protects the variables below. */
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool hold, hang, fail, nosync, readonly;
static uint64_t rate, busy_until_ns;
static char only[NAME_MAX + 1];
static unsigned generation, n_waiting, n_released; /* each command "step" or "go" begins a new generation */

static bool is_concerned(const char *name)
{
	return strstr(name, only);
}

/* Lock the disk for a request on the file NAME. If a command ("hold" or "hang") holds this kind of request,
   first wait until another command releases it. */
static void begin(const char *name, bool is_write)
{
	pthread_mutex_lock(&disk);
	if (!(hang || (hold && is_write)) || !is_concerned(name))
		return;

	const unsigned mine = generation;

	n_waiting++;
	while (mine == generation)
		pthread_cond_wait(&changed, &disk);
	n_released--;
	pthread_cond_broadcast(&changed);
}

/* Unlock the disk. RESULT is the result of a system call. Returns RESULT, or a negative errno if the system
   call has failed. */
static int end(ssize_t result)
{
	const int r = result < 0 ? -errno : (int)result;

	pthread_mutex_unlock(&disk);
	return r;
}

/* Lock the disk for a request that changes a name. Returns -1 with EROFS after the command "readonly". */
static int begin_change(void)
{
	pthread_mutex_lock(&disk);
	errno = EROFS;
	return readonly ? -1 : 0;
}

static struct file *file_of(const struct fuse_file_info *info)
{
	return (struct file *)(uintptr_t)info->fh; /* NOLINT(performance-no-int-to-ptr) */
}

static int open_at(const char *path, int flags, mode_t mode, struct fuse_file_info *info)
{
	struct file *f = calloc(1, sizeof(*f));

	if (!f)
		err(1, "memory");
	snprintf(f->name, sizeof(f->name), "%s", path + 1);
	f->fd = openat(dir_fd, path + 1, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, mode);
	info->fh = (uintptr_t)f;
	if (f->fd >= 0)
		return 0;
	free(f);
	return -1;
}

static int on_getattr(const char *path, struct stat *st, struct fuse_file_info *info)
{
	begin(info ? file_of(info)->name : path + 1, false);
	if (info)
		return end(fstat(file_of(info)->fd, st));
	return end(path[1] ? fstatat(dir_fd, path + 1, st, AT_SYMLINK_NOFOLLOW) : fstat(dir_fd, st));
}

static int on_open(const char *path, struct fuse_file_info *info)
{
	begin(path + 1, false);
	return end(open_at(path, info->flags & O_TRUNC, 0, info));
}

static int on_create(const char *path, mode_t mode, struct fuse_file_info *info)
{
	begin("", false);
	errno = EROFS;
	return end(readonly ? -1 : open_at(path, O_CREAT | (info->flags & (O_EXCL | O_TRUNC)), mode, info));
}

static int on_release(const char *path, struct fuse_file_info *info)
{
	close(file_of(info)->fd);
	free(file_of(info));
	return 0;
}

static int on_read(const char *path, char *data, size_t size, off_t at, struct fuse_file_info *info)
{
	begin(file_of(info)->name, false);
	return end(pread(file_of(info)->fd, data, size, at));
}

static int on_write(const char *path, const char *data, size_t size, off_t at, struct fuse_file_info *info)
{
	const struct file *f = file_of(info);
	const uint64_t now = fr_load_now_ns();

	begin(f->name, true);
	errno = readonly ? EROFS : EIO;
	if ((fail || readonly) && is_concerned(f->name))
		return end(-1);
	if (rate && is_concerned(f->name)) {
		busy_until_ns = (busy_until_ns > now ? busy_until_ns : now) + size * 1000000000 / rate;
		fr_load_sleep_until(busy_until_ns);
	}
	return end(pwrite(f->fd, data, size, at));
}

static int on_truncate(const char *path, off_t size, struct fuse_file_info *info)
{
	struct fuse_file_info own = {0};

	pthread_mutex_lock(&disk);
	if (info)
		return end(ftruncate(file_of(info)->fd, size));
	if (open_at(path, 0, 0, &own) < 0)
		return end(-1);
	size = ftruncate(file_of(&own)->fd, size);
	on_release(path, &own);
	return end(size);
}

static int on_chmod(const char *path, mode_t mode, struct fuse_file_info *info)
{
	pthread_mutex_lock(&disk);
	return end(fchmodat(dir_fd, path + 1, mode & 07777, 0));
}

static int on_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *info)
{
	pthread_mutex_lock(&disk);
	return end(fchownat(dir_fd, path + 1, uid, gid, AT_SYMLINK_NOFOLLOW));
}

static int on_fsync(const char *path, int datasync, struct fuse_file_info *info)
{
	pthread_mutex_lock(&disk);
	return end(fsync(file_of(info)->fd));
}

static int on_fsyncdir(const char *path, int datasync, struct fuse_file_info *info)
{
	pthread_mutex_lock(&disk);
	errno = EIO;
	return end(nosync ? -1 : fsync(dir_fd));
}

static int on_unlink(const char *path)
{
	return end(begin_change() < 0 ? -1 : unlinkat(dir_fd, path + 1, 0));
}

static int on_rename(const char *from, const char *to, unsigned flags)
{
	return end(begin_change() < 0 ? -1 : renameat2(dir_fd, from + 1, dir_fd, to + 1, flags));
}

static int on_readdir(const char *path, void *out, fuse_fill_dir_t fill, off_t offset,
	struct fuse_file_info *info, enum fuse_readdir_flags flags)
{
	const struct dirent *e;
	DIR *dir;

	begin("", false);
	dir = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (!dir)
		return end(-1);
	while ((e = readdir(dir)))
		(void)fill(out, e->d_name, NULL, 0, 0);
	closedir(dir);
	return end(0);
}

static int on_statfs(const char *path, struct statvfs *v)
{
	begin("", false);
	return end(fstatvfs(dir_fd, v));
}

/* The kernel caches nothing, so that changes in DIRECTORY are visible at once. */
static void *on_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
	config->attr_timeout = config->entry_timeout = config->negative_timeout = 0;
	config->hard_remove = config->nullpath_ok = 1;
	return NULL;
}

static const struct fuse_operations operations = {
	.init = on_init,
	.getattr = on_getattr,
	.open = on_open,
	.create = on_create,
	.release = on_release,
	.read = on_read,
	.write = on_write,
	.truncate = on_truncate,
	.chmod = on_chmod,
	.chown = on_chown,
	.fsync = on_fsync,
	.fsyncdir = on_fsyncdir,
	.unlink = on_unlink,
	.rename = on_rename,
	.readdir = on_readdir,
	.statfs = on_statfs,
};

/* Serve the requests that wait. Returns when all of them are served. */
static void release_waiting(void)
{
	generation++;
	n_released += n_waiting;
	n_waiting = 0;
	pthread_cond_broadcast(&changed);
	while (n_released)
		pthread_cond_wait(&changed, &disk);
}

static void obey(char *line)
{
	const struct {
		const char *name;
		bool *flag;
	} flags[] = {{"hold", &hold}, {"hang", &hang}, {"fail", &fail}, {"nosync", &nosync},
		{"readonly", &readonly}};
	char *argument = strchr(line, ' ');
	bool known = !strcmp(line, "count");

	if (argument)
		*argument++ = '\0';
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (!strcmp(line, flags[i].name))
			known = *flags[i].flag = true;
	if (!strcmp(line, "only")) {
		snprintf(only, sizeof(only), "%s", argument ? argument : "");
	} else if (!strcmp(line, "rate")) {
		rate = argument ? strtoull(argument, NULL, 10) : 0;
	} else if (!strcmp(line, "step")) {
		release_waiting();
	} else if (!strcmp(line, "go")) {
		hold = hang = fail = nosync = readonly = false;
		rate = 0;
		release_waiting();
	} else if (!known) {
		errx(2, "\"%s\" is not a command", line);
	}
	printf("ok %u\n", n_waiting);
}

static void *serve(void *arg)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();

	fuse_loop_cfg_set_max_threads(config, THREADS);
	exit(fuse_loop_mt(arg, config) != 0);
}

int main(int argc, char *argv[])
{
	char *words[] = {argv[0], (char *)"-oallow_other,default_permissions,nosuid,nodev", NULL}, line[256];
	struct fuse_args args = FUSE_ARGS_INIT(2, words);
	struct fuse *fuse;
	pthread_t thread;

	if (argc != 3)
		errx(2, "usage: frtest-slowfs DIRECTORY MOUNTPOINT");
	dir_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		err(1, "%s", argv[1]);
	umask(0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	fuse = fuse_new(&args, &operations, sizeof(operations), NULL);
	if (!fuse || fuse_mount(fuse, argv[2]) < 0)
		return SKIP;
	if (pthread_create(&thread, NULL, serve, fuse) != 0)
		errx(1, "no thread");
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		pthread_mutex_lock(&disk);
		obey(line);
		pthread_mutex_unlock(&disk);
	}
	_exit(0);
}
