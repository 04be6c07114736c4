// SPDX-License-Identifier: GPL-2.0-or-later
#include "jit/source.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#define STATUS_MAX (64u << 10)

struct jit_source *jit_source_free(struct jit_source *s)
{
	if (s) {
		jit_code_deinit(&s->code);
		free(s->path);
		free(s);
	}
	return NULL;
}

/* A number behind KEY in /proc/PID/status; of several the last, which is that of the innermost namespace. */
static long status_number(const char *status, const char *key)
{
	const char *at = strstr(status, key), *end;
	long v = -1;

	if (!at)
		return -1;
	at += strlen(key);
	end = at + strcspn(at, "\n");
	while (at < end) {
		char *behind;
		long one = strtol(at, &behind, 10);

		if (behind == at || behind > end)
			break;
		v = one;
		at = behind;
	}
	return v;
}

int jit_find_who(pid_t pid, struct jit_who *ret)
{
	_cleanup_buf_ struct fr_buf b = {0};
	char path[64];
	struct stat st;
	int r;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	r = fr_read_file(AT_FDCWD, path, STATUS_MAX, &b);
	if (r < 0)
		return r;
	*ret = (struct jit_who){status_number((const char *)b.data, "\nNSpid:"), st.st_uid};
	return ret->nspid > 0 ? 0 : -ESRCH;
}

int jit_open_root(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int jit_open_perf_map(int root, const struct jit_who *who)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%ld.map", who->nspid);
	fd = fr_foreign_open_below(root, path, &st);
	/* Anyone may put a file of that name there, to rename the functions of others. */
	if (fd >= 0 && st.st_uid != who->uid && st.st_uid != 0) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

uint64_t jit_start_time(pid_t pid)
{
	uint64_t ahead = fr_now_ns(CLOCK_BOOTTIME) - fr_monotonic_ns(), start;
	const uint64_t tick = FR_NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	_cleanup_buf_ struct fr_buf b = {0};
	unsigned long long ticks = 0;
	const char *at;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fr_read_file(AT_FDCWD, path, STATUS_MAX, &b) < 0)
		return 0;
	/* Field 22; the second one, in parentheses, may hold anything. */
	at = strrchr((const char *)b.data, ')');
	for (int field = 2; at && field < 22; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return 0;
	ticks = strtoull(at, NULL, 10);
	start = ticks * tick;
	return start > ahead + tick ? start - ahead - tick : 0;
}

uid_t jit_user_of(pid_t pid)
{
	_cleanup_buf_ struct fr_buf b = {0};
	const char *at;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (fr_read_file(AT_FDCWD, path, STATUS_MAX, &b) < 0)
		return (uid_t)-1;
	at = strstr((const char *)b.data, "\nUid:");
	return at ? (uid_t)strtoul(at + strlen("\nUid:"), NULL, 10) : (uid_t)-1;
}

/* The file, or its last part, which tells of the newest code. */
static int read_tail(
	int fd, uint64_t size, uint64_t max, struct fr_buf *ret, uint64_t *ret_read, bool *ret_cut)
{
	uint64_t want = FR_MIN(FR_MIN(size, max), (uint64_t)JIT_FILE_MAX), skip = size - want;
	ssize_t n;
	int r = fr_buf_reserve(ret, want + 1);

	if (r < 0)
		return r;
	n = fr_pread_all(fd, ret->data, want, (off_t)skip);
	if (n < 0)
		return (int)n;
	ret->len = *ret_read = (size_t)n;
	*ret_cut = skip > 0;
	if (skip > 0) {
		const uint8_t *newline = memchr(ret->data, '\n', ret->len);
		size_t drop = newline ? (size_t)(newline + 1 - ret->data) : ret->len;

		ret->len -= drop;
		memmove(ret->data, ret->data + drop, ret->len);
	}
	return 0;
}

static int new_source(struct jit_code *code, struct jit_source **ret)
{
	struct jit_source *s = code->n ? calloc(1, sizeof(*s)) : NULL;

	if (!s) {
		int r = code->n ? -ENOMEM : 1;

		jit_code_deinit(code);
		return r;
	}
	s->code = *code;
	s->until_ns = UINT64_MAX;
	*ret = s;
	return 0;
}

static int from_file(int fd, uint64_t max, struct jit_source **ret, uint64_t *ret_read)
{
	_cleanup_buf_ struct fr_buf text = {0};
	struct jit_code code = {0};
	struct stat st;
	bool cut = false;
	int r;

	if (fstat(fd, &st) < 0)
		return 1;
	r = read_tail(fd, (uint64_t)st.st_size, max, &text, ret_read, &cut);
	if (r < 0)
		return r == -ENOMEM ? r : 1;
	r = jit_perf_map_parse((const char *)text.data, text.len, &code);
	if (r < 0)
		return r;
	code.cut |= cut;
	return new_source(&code, ret);
}

/* As it is now. */
static int open_now(pid_t pid, struct fr_jit_open_file *ret)
{
	_cleanup_close_ int root = jit_open_root(pid);
	struct jit_who who = {0};

	if (root < 0 || jit_find_who(pid, &who) < 0)
		return -ESRCH;
	*ret = (struct fr_jit_open_file){
		jit_open_perf_map(root, &who), who.uid, jit_start_time(pid), UINT64_MAX};
	return ret->fd < 0 ? ret->fd : 0;
}

int jit_source_perf_map(pid_t pid, uint64_t time_ns, struct fr_jit_open_files *held, uint64_t max,
	struct jit_source **ret, uint64_t *ret_read, uint64_t *ret_until_ns)
{
	struct fr_jit_open_file kept = {.fd = -1}, now = {.fd = -1}, *file = &kept;
	int r = held ? fr_jit_open_files_find(held, pid, time_ns, &kept) : -ENOENT;

	/* While it lives, the file may have become another. */
	if ((r < 0 || kept.until_ns == UINT64_MAX) && open_now(pid, &now) == 0)
		file = &now;
	*ret_until_ns = file->fd < 0 ? UINT64_MAX : file->until_ns;
	r = file->fd < 0 ? 1 : from_file(file->fd, max, ret, ret_read);
	if (r == 0) {
		(*ret)->from_ns = file->from_ns;
		(*ret)->until_ns = file->until_ns;
	}
	fr_closep(&kept.fd);
	fr_closep(&now.fd);
	return r;
}

/* By the map itself, else by its name where the process is, else where we are; the same inode. */
static int open_dump(const struct fr_record_mmap2 *m, struct stat *st)
{
	const pid_t pid = (pid_t)m->pid;
	int fd = fr_foreign_open_map(pid, m->addr, m->addr + m->len, st);

	if (fd >= 0 && st->st_ino != m->ino) {
		close(fd);
		fd = -ESTALE;
	}
	for (int i = 0; i < 2 && fd < 0; i++) {
		fd = fr_foreign_open(i ? 0 : pid, m->filename, st);
		if (fd >= 0 && st->st_ino != m->ino) {
			close(fd);
			fd = -ESTALE;
		}
	}
	return fd;
}

int jit_source_dump(
	const struct fr_record_mmap2 *m, uint64_t max, struct jit_source **ret, uint64_t *ret_read)
{
	_cleanup_buf_ struct fr_buf file = {0};
	_cleanup_close_ int fd = -1;
	struct jit_code code = {0};
	struct stat st;
	uint64_t want;
	ssize_t n;
	int r;

	if (m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID || m->ino == 0)
		return 1;
	fd = open_dump(m, &st);
	if (fd < 0)
		return 1;
	want = FR_MIN(FR_MIN((uint64_t)st.st_size, max), (uint64_t)JIT_FILE_MAX);
	r = fr_buf_reserve(&file, want + 1);
	if (r < 0)
		return r;
	n = fr_pread_all(fd, file.data, want, 0);
	if (n < 0)
		return 1;
	file.len = (size_t)n;
	*ret_read = file.len;
	r = jit_dump_parse(&file, &code);
	if (r < 0)
		return r == -ENOMEM ? r : 1;
	code.cut |= (uint64_t)st.st_size > want;
	r = new_source(&code, ret);
	if (r == 0)
		(*ret)->ino = m->ino;
	return r;
}
