// SPDX-License-Identifier: GPL-2.0-or-later
#include "jit/source.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/foreign.h"
#include "jit/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

struct jit_source *jit_source_free(struct jit_source *s)
{
	if (s) {
		jit_code_deinit(&s->code);
		free(s->path);
		free(s);
	}
	return NULL;
}

/* Reads at most MAX bytes of FD. If LAST is true, reads the last bytes, else the first bytes. RET_READ gets
   the number of bytes, and RET_TRUNCATED whether the file has more. Returns 0; 1 if the file cannot be read;
   or -ENOMEM. */
static int read_part(
	int fd, uint64_t max, bool last, struct fr_buf *ret, uint64_t *ret_read, bool *ret_truncated)
{
	uint64_t want;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return 1;
	want = FR_MIN(FR_MIN((uint64_t)st.st_size, max), (uint64_t)JIT_FILE_MAX);
	if (fr_buf_reserve(ret, want + 1) < 0)
		return -ENOMEM;
	n = fr_pread_all(fd, ret->data, want, last ? st.st_size - (off_t)want : 0);
	if (n < 0)
		return 1;
	ret->len = *ret_read = (size_t)n;
	*ret_truncated = (uint64_t)st.st_size > want;
	return 0;
}

/* B is the last part of a file and begins inside a line. Removes the rest of this line. */
static void drop_first_line(struct fr_buf *b)
{
	const uint8_t *newline = memchr(b->data, '\n', b->len);
	size_t n = newline ? (size_t)(newline + 1 - b->data) : b->len;

	b->len -= n;
	memmove(b->data, b->data + n, b->len);
}

/* Makes a source from CODE. The function takes over CODE, even if it fails. Returns 0; 1 if CODE has no
   functions; or -ENOMEM. */
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

/* Reads at most MAX bytes of the perf map FD: the last bytes, because the end of the file describes the
   newest code. Returns the same values as jit_source_perf_map(). */
static int read_perf_map(int fd, uint64_t max, struct jit_source **ret, uint64_t *ret_read)
{
	_cleanup_buf_ struct fr_buf text = {0};
	struct jit_code code = {0};
	bool truncated;
	int r = read_part(fd, max, true, &text, ret_read, &truncated);

	if (r != 0)
		return r;
	if (truncated)
		drop_first_line(&text);
	r = jit_perf_map_parse((const char *)text.data, text.len, &code);
	if (r < 0)
		return r;
	code.truncated |= truncated;
	return new_source(&code, ret);
}

/* Opens the perf map of a running process. Returns 0 or a negative errno. */
static int open_of_running(pid_t pid, struct fr_jit_open_file *ret)
{
	_cleanup_close_ int root = jit_open_root(pid);
	struct jit_identity identity = {0};

	if (root < 0 || jit_find_identity(pid, &identity) < 0)
		return -ESRCH;
	*ret = (struct fr_jit_open_file){
		jit_open_perf_map(root, &identity), identity.uid, jit_start_time(pid), UINT64_MAX};
	return ret->fd < 0 ? ret->fd : 0;
}

int jit_source_perf_map(pid_t pid, uint64_t time_ns, struct fr_jit_open_files *open_files, uint64_t max,
	struct jit_source **ret, uint64_t *ret_read, uint64_t *ret_until_ns)
{
	struct fr_jit_open_file kept = {.fd = -1}, now = {.fd = -1}, *file = &kept;
	int r = open_files ? fr_jit_open_files_find(open_files, pid, time_ns, &kept) : -ENOENT;

	/* If the process still runs, it may have a newer file than the file that was kept open. */
	if ((r < 0 || kept.until_ns == UINT64_MAX) && open_of_running(pid, &now) == 0)
		file = &now;
	*ret_until_ns = file->fd < 0 ? UINT64_MAX : file->until_ns;
	r = file->fd < 0 ? 1 : read_perf_map(file->fd, max, ret, ret_read);
	if (r == 0) {
		(*ret)->from_ns = file->from_ns;
		(*ret)->until_ns = file->until_ns;
	}
	fr_closep(&kept.fd);
	fr_closep(&now.fd);
	return r;
}

/* Opens the jitdump that M maps. Three paths are tried: the link in /proc/PID/map_files; the name in M, in
   the root directory of the process; and the same name in our root directory. The file must have the inode of
   M. Returns a descriptor or a negative errno. */
static int open_dump(const struct fr_record_mmap2 *m, struct stat *st)
{
	const pid_t pid = (pid_t)m->pid;
	int fd = -ENOENT;

	for (int way = 0; way < 3 && fd < 0; way++) {
		fd = way == 0 ? fr_foreign_open_map(pid, m->addr, m->addr + m->len, st)
			      : fr_foreign_open(way == 1 ? pid : 0, m->filename, st);
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
	bool truncated;
	struct stat st;
	int r;

	if (m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID || m->ino == 0)
		return 1;
	fd = open_dump(m, &st);
	r = fd < 0 ? 1 : read_part(fd, max, false, &file, ret_read, &truncated);
	if (r != 0)
		return r;
	r = jit_dump_parse(&file, &code);
	if (r < 0)
		return r == -ENOMEM ? r : 1;
	code.truncated |= truncated;
	r = new_source(&code, ret);
	if (r == 0)
		(*ret)->ino = m->ino;
	return r;
}
