/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A disk that misbehaves on demand: a FUSE file system, spoken without a library, that shows the regular
 * files of one directory at another place and does with them what standard input says, a line each, answered
 * with "ok" and how many requests are being held:
 *
 *   only TEXT   what follows is for files with TEXT in their names (all: "only")
 *   rate BYTES  that many a second, one write after the other; 0: as fast as it goes
 *   hold        writes are not answered
 *   hang        nor is anything else: names, attributes, opens and reads
 *   step        what is held is done, and what comes is held as before
 *   fail        writes are answered with EIO
 *   nosync      fsyncs of the directory are answered with EIO
 *   readonly    what would change anything is answered with EROFS
 *   go          as if nothing had been, what was held included
 *   count       nothing but the answer
 *
 * Usage: frtest-slowfs DIRECTORY MOUNTPOINT. Prints "ready". Ends with its input, and everything that waits
 * for it then fails; exit code 77 where there is no FUSE.
 */

#include "load.h"

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define WRITE_MAX (1u << 20)
#define REQUEST_MAX (WRITE_MAX + 8192)
#define NODES 4096u /* files that the kernel knows at a time */
#define SKIP 77

/* A file is what it was when it was found, whatever its name becomes. */
struct node {
	int fd; /* 0: free */
	ino_t ino;
	uint64_t lookups;
	char name[NAME_MAX + 1];
};

struct held {
	struct held *next;
	_Alignas(8) uint8_t request[];
};

static int fuse_fd, dir_fd;
static struct node nodes[NODES]; /* by nodeid; FUSE_ROOT_ID, 1, is the directory */
static struct held *held, **held_last = &held;
static unsigned n_held;
static bool hold, hang, fail, nosync, readonly;
static uint64_t rate, busy_until_ns;
static char only[NAME_MAX + 1];
static uint8_t request[REQUEST_MAX];

static void reply(const struct fuse_in_header *in, int error, const void *data, size_t len)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + len), .error = error, .unique = in->unique};
	struct iovec v[] = {{&out, sizeof(out)}, {(void *)data, len}};

	/* ENOENT: whoever asked was killed meanwhile. */
	if (writev(fuse_fd, v, 2) < 0 && errno != ENOENT)
		err(1, "reply to a request of kind %u", in->opcode);
}

static void reply_errno(const struct fuse_in_header *in, int r)
{
	reply(in, r < 0 ? -errno : 0, NULL, 0);
}

static int fd_of(uint64_t nodeid)
{
	if (nodeid == FUSE_ROOT_ID)
		return dir_fd;
	if (nodeid >= NODES || !nodes[nodeid].fd)
		errx(1, "the kernel asks for a file that it was not told of");
	return nodes[nodeid].fd;
}

static struct fuse_attr attr_of(int fd, uint64_t nodeid)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		err(1, "fstat");
	return (struct fuse_attr){
		.ino = nodeid,
		.size = (uint64_t)st.st_size,
		.blocks = (uint64_t)st.st_blocks,
		.atime = (uint64_t)st.st_atim.tv_sec,
		.mtime = (uint64_t)st.st_mtim.tv_sec,
		.ctime = (uint64_t)st.st_ctim.tv_sec,
		.atimensec = (uint32_t)st.st_atim.tv_nsec,
		.mtimensec = (uint32_t)st.st_mtim.tv_nsec,
		.ctimensec = (uint32_t)st.st_ctim.tv_nsec,
		.mode = st.st_mode,
		.nlink = (uint32_t)st.st_nlink,
		.uid = st.st_uid,
		.gid = st.st_gid,
		.blksize = 4096,
	};
}

/* The node of FD, which is taken over: one that there is already, or a new one. */
static uint64_t node_of(int fd, const char *name)
{
	uint64_t empty = 0;
	struct stat st;

	if (fstat(fd, &st) < 0)
		err(1, "fstat");
	for (uint64_t i = FUSE_ROOT_ID + 1; i < NODES; i++) {
		if (nodes[i].fd && nodes[i].ino == st.st_ino) {
			close(fd);
			return i;
		}
		if (!nodes[i].fd && !empty)
			empty = i;
	}
	if (!empty)
		errx(1, "more than %u files", NODES);
	nodes[empty] = (struct node){.fd = fd, .ino = st.st_ino};
	snprintf(nodes[empty].name, sizeof(nodes[empty].name), "%s", name);
	return empty;
}

static struct fuse_entry_out entry_of(int fd, const char *name)
{
	uint64_t id = node_of(fd, name);

	nodes[id].lookups++;
	/* Nothing is cached: what the tests do to the directory behind shows at once. */
	return (struct fuse_entry_out){.nodeid = id, .attr = attr_of(nodes[id].fd, id)};
}

static void forget(uint64_t nodeid, uint64_t n)
{
	struct node *node = &nodes[nodeid];

	if (nodeid == FUSE_ROOT_ID || nodeid >= NODES || !node->fd)
		return;
	node->lookups -= n < node->lookups ? n : node->lookups;
	if (node->lookups)
		return;
	close(node->fd);
	*node = (struct node){0};
}

static void on_forget_many(const struct fuse_batch_forget_in *in)
{
	const struct fuse_forget_one *one = (const void *)(in + 1);

	for (uint32_t i = 0; i < in->count; i++)
		forget(one[i].nodeid, one[i].nlookup);
}

static void on_init(const struct fuse_in_header *h, const struct fuse_init_in *in)
{
	const struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = in->max_readahead,
		.flags = in->flags & (FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_ASYNC_READ | FUSE_ASYNC_DIO |
					     FUSE_PARALLEL_DIROPS),
		.max_background = 64,
		.congestion_threshold = 64,
		.max_write = WRITE_MAX,
		.max_pages = WRITE_MAX / 4096,
		.time_gran = 1,
	};

	reply(h, 0, &out, sizeof(out));
}

static void on_lookup(const struct fuse_in_header *h, const char *name)
{
	struct fuse_entry_out out;
	int fd = openat(dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0) {
		reply_errno(h, -1);
		return;
	}
	out = entry_of(fd, name);
	reply(h, 0, &out, sizeof(out));
}

static void on_create(const struct fuse_in_header *h, const struct fuse_create_in *in)
{
	const char *name = (const char *)(in + 1);
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = {0};
	int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | (int)(in->flags & (O_EXCL | O_TRUNC)),
		in->mode & 07777);

	if (fd < 0) {
		reply_errno(h, -1);
		return;
	}
	out.entry = entry_of(fd, name);
	reply(h, 0, &out, sizeof(out));
}

static void reply_attr(const struct fuse_in_header *h)
{
	const struct fuse_attr_out out = {.attr = attr_of(fd_of(h->nodeid), h->nodeid)};

	reply(h, 0, &out, sizeof(out));
}

static void on_setattr(const struct fuse_in_header *h, const struct fuse_setattr_in *in)
{
	int fd = fd_of(h->nodeid), r = 0;

	if (in->valid & FATTR_SIZE)
		r = ftruncate(fd, (off_t)in->size);
	if (r == 0 && in->valid & FATTR_MODE)
		r = fchmod(fd, in->mode & 07777);
	if (r == 0 && in->valid & (FATTR_UID | FATTR_GID))
		r = fchown(fd, in->valid & FATTR_UID ? in->uid : (uid_t)-1,
			in->valid & FATTR_GID ? in->gid : (gid_t)-1);
	if (r < 0)
		reply_errno(h, -1);
	else
		reply_attr(h);
}

static void on_open(const struct fuse_in_header *h)
{
	const struct fuse_open_out out = {0};

	reply(h, 0, &out, sizeof(out));
}

static void on_read(const struct fuse_in_header *h, const struct fuse_read_in *in)
{
	static uint8_t data[WRITE_MAX];
	ssize_t n = pread(
		fd_of(h->nodeid), data, in->size < sizeof(data) ? in->size : sizeof(data), (off_t)in->offset);

	if (n < 0)
		reply_errno(h, -1);
	else
		reply(h, 0, data, (size_t)n);
}

static void sleep_until(uint64_t ns)
{
	const struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* One request is served at a time, so that a slow write holds up all the rest, as on one disk. */
static void take_time(size_t bytes)
{
	uint64_t now = fr_load_now_ns();

	if (!rate)
		return;
	busy_until_ns = (busy_until_ns > now ? busy_until_ns : now) + bytes * 1000000000 / rate;
	sleep_until(busy_until_ns);
}

static bool concerned(uint64_t nodeid)
{
	return nodeid < NODES && strstr(nodes[nodeid].name, only);
}

static void on_write(const struct fuse_in_header *h, const struct fuse_write_in *in)
{
	struct fuse_write_out out = {0};
	ssize_t n;

	if ((fail || readonly) && concerned(h->nodeid)) {
		reply(h, readonly ? -EROFS : -EIO, NULL, 0);
		return;
	}
	if (concerned(h->nodeid))
		take_time(in->size);
	n = pwrite(fd_of(h->nodeid), in + 1, in->size, (off_t)in->offset);
	out.size = (uint32_t)n;
	if (n < 0)
		reply_errno(h, -1);
	else
		reply(h, 0, &out, sizeof(out));
}

static void on_readdir(const struct fuse_in_header *h, const struct fuse_read_in *in)
{
	static uint8_t out[65536];
	size_t len = 0, max = in->size < sizeof(out) ? in->size : sizeof(out);
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);
	struct dirent *e;

	if (!dir)
		err(1, "fdopendir");
	for (uint64_t i = 0; (e = readdir(dir)); i++) {
		struct fuse_dirent entry = {.ino = e->d_ino,
			.off = i + 1,
			.namelen = (uint32_t)strlen(e->d_name),
			.type = e->d_type};
		size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + entry.namelen);

		if (i < in->offset)
			continue;
		if (len + size > max)
			break;
		memset(out + len, 0, size);
		memcpy(out + len, &entry, FUSE_NAME_OFFSET);
		memcpy(out + len + FUSE_NAME_OFFSET, e->d_name, entry.namelen);
		len += size;
	}
	closedir(dir);
	reply(h, 0, out, len);
}

static void on_rename(const struct fuse_in_header *h, const char *from, unsigned flags)
{
	reply_errno(h, renameat2(dir_fd, from, dir_fd, from + strlen(from) + 1, flags));
}

static void on_statfs(const struct fuse_in_header *h)
{
	struct fuse_statfs_out out = {0};
	struct statvfs v;

	if (fstatvfs(dir_fd, &v) < 0)
		err(1, "fstatvfs");
	out.st = (struct fuse_kstatfs){.blocks = v.f_blocks,
		.bfree = v.f_bfree,
		.bavail = v.f_bavail,
		.files = v.f_files,
		.ffree = v.f_ffree,
		.bsize = (uint32_t)v.f_bsize,
		.frsize = (uint32_t)v.f_frsize,
		.namelen = NAME_MAX};
	reply(h, 0, &out, sizeof(out));
}

static void on_names(const struct fuse_in_header *h, const void *body)
{
	const struct fuse_rename2_in *rename2 = body;
	const struct fuse_rename_in *rename = body;

	if (readonly && h->opcode != FUSE_LOOKUP) {
		reply(h, -EROFS, NULL, 0);
		return;
	}
	switch (h->opcode) {
	case FUSE_LOOKUP:
		on_lookup(h, body);
		break;
	case FUSE_CREATE:
		on_create(h, body);
		break;
	case FUSE_UNLINK:
		reply_errno(h, unlinkat(dir_fd, body, 0));
		break;
	case FUSE_RENAME:
		on_rename(h, (const char *)(rename + 1), 0);
		break;
	case FUSE_RENAME2:
		on_rename(h, (const char *)(rename2 + 1), rename2->flags);
		break;
	default: /* xattrs, access, locks, poll …: the kernel does without */
		reply(h, -ENOSYS, NULL, 0);
	}
}

static void serve(const struct fuse_in_header *h, const void *body)
{
	const struct fuse_forget_in *forget_in = body;

	switch (h->opcode) {
	case FUSE_INIT:
		on_init(h, body);
		break;
	case FUSE_FORGET: /* this and the next two have no answer */
		forget(h->nodeid, forget_in->nlookup);
		break;
	case FUSE_BATCH_FORGET:
		on_forget_many(body);
		break;
	case FUSE_INTERRUPT:
		break;
	case FUSE_GETATTR:
		reply_attr(h);
		break;
	case FUSE_SETATTR:
		on_setattr(h, body);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		on_open(h);
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
		reply(h, 0, NULL, 0);
		break;
	case FUSE_READ:
		on_read(h, body);
		break;
	case FUSE_WRITE:
		on_write(h, body);
		break;
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
		if (nosync && h->opcode == FUSE_FSYNCDIR)
			reply(h, -EIO, NULL, 0);
		else
			reply_errno(h, fsync(fd_of(h->nodeid)));
		break;
	case FUSE_READDIR:
		on_readdir(h, body);
		break;
	case FUSE_STATFS:
		on_statfs(h);
		break;
	default:
		on_names(h, body);
	}
}

static bool is_to_wait(const struct fuse_in_header *h, const void *body)
{
	switch (h->opcode) {
	case FUSE_WRITE:
		return (hold || hang) && concerned(h->nodeid);
	case FUSE_LOOKUP:
		return hang && strstr(body, only);
	case FUSE_GETATTR:
	case FUSE_CREATE:
	case FUSE_OPEN:
	case FUSE_OPENDIR:
	case FUSE_READ:
	case FUSE_READDIR:
	case FUSE_STATFS:
		return hang && concerned(h->nodeid);
	default:
		return false;
	}
}

static void keep(const struct fuse_in_header *h)
{
	struct held *x = malloc(sizeof(*x) + h->len);

	if (!x)
		err(1, "memory");
	x->next = NULL;
	memcpy(x->request, h, h->len);
	*held_last = x;
	held_last = &x->next;
	n_held++;
}

static void let_go(void)
{
	while (held) {
		struct held *x = held;

		held = x->next;
		serve((const void *)x->request, x->request + sizeof(struct fuse_in_header));
		free(x);
	}
	held_last = &held;
	n_held = 0;
}

/* False: unmounted. */
static bool serve_one(void)
{
	const struct fuse_in_header *h = (const void *)request;
	ssize_t n = read(fuse_fd, request, sizeof(request));

	if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT))
		return true;
	if (n < 0 && errno == ENODEV)
		return false;
	if (n < (ssize_t)sizeof(struct fuse_in_header))
		err(1, "read of /dev/fuse");
	if (is_to_wait(h, h + 1))
		keep(h);
	else
		serve(h, h + 1);
	return true;
}

static void obey(char *line)
{
	char *argument = strchr(line, ' ');

	if (argument)
		*argument++ = '\0';
	if (!strcmp(line, "only")) {
		snprintf(only, sizeof(only), "%s", argument ? argument : "");
	} else if (!strcmp(line, "rate")) {
		rate = argument ? strtoull(argument, NULL, 10) : 0;
	} else if (!strcmp(line, "hold")) {
		hold = true;
	} else if (!strcmp(line, "hang")) {
		hang = true;
	} else if (!strcmp(line, "step")) {
		let_go();
	} else if (!strcmp(line, "fail")) {
		fail = true;
	} else if (!strcmp(line, "nosync")) {
		nosync = true;
	} else if (!strcmp(line, "readonly")) {
		readonly = true;
	} else if (!strcmp(line, "go")) {
		hold = hang = fail = nosync = readonly = false;
		rate = 0;
		let_go();
	} else if (strcmp(line, "count")) {
		errx(2, "\"%s\" is no command", line);
	}
	printf("ok %u\n", n_held);
}

static void mount_here(const char *where)
{
	char options[128];

	fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse_fd < 0) {
		warn("/dev/fuse");
		exit(SKIP);
	}
	snprintf(options, sizeof(options),
		"fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other,default_permissions", fuse_fd);
	if (mount("slowfs", where, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		warn("mount of FUSE at %s", where);
		exit(SKIP);
	}
}

int main(int argc, char *argv[])
{
	char line[256];

	if (argc != 3)
		errx(2, "usage: frtest-slowfs DIRECTORY MOUNTPOINT");
	dir_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		err(1, "%s", argv[1]);
	umask(0);
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	mount_here(argv[2]);
	puts("ready");
	for (;;) {
		struct pollfd fds[] = {{fuse_fd, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			err(1, "poll");
		if (fds[1].revents) {
			if (!fgets(line, sizeof(line), stdin))
				return 0;
			line[strcspn(line, "\n")] = '\0';
			obey(line);
		}
		if (fds[0].revents && !serve_one())
			return 0;
	}
}
