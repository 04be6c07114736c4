// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/object_file.h"
#include "base/cleanup.h"
#include "base/foreign.h"
#include "base/trusted.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* How many processes one call of fr_unwind_object_file_search() asks: about a millisecond. */
#define SEARCH_STEP 64

/* Returns whether FD has the build-id or the inode of K. */
static bool is_file_of(const struct fr_unwind_known *k, int fd, const struct stat *st)
{
	const struct fr_file_id file = {k->key.ino, k->key.generation};
	uint8_t id[FR_BUILD_ID_MAX];

	if (!k->key.id_len)
		return fr_file_has_id(fd, st->st_ino, &file);
	return fr_build_id_read(fd, id) == (int)k->key.id_len && memcmp(id, k->key.id, k->key.id_len) == 0;
}

/* Returns FD if it is the file of K; and trusted, if that is WANTED. Else closes it, and returns -ESTALE. PID
   is the process by which FD was opened. */
static int check(
	const struct fr_unwind_known *k, int fd, const struct stat *st, pid_t pid, bool wants_trusted)
{
	if (fd < 0)
		return fd;
	if ((!wants_trusted || fr_is_trusted_file(pid, fd)) && is_file_of(k, fd, st))
		return fd;
	close(fd);
	return -ESTALE;
}

static int open_map(
	const struct fr_unwind_known *k, pid_t pid, uint64_t start, uint64_t end, bool wants_trusted)
{
	struct stat st;
	const int fd = fr_foreign_open_map(pid, start, end, &st);

	return check(k, fd, &st, pid, wants_trusted);
}

/* Opens PATH, which may be NULL, in the root directory of PID; 0: of this process. */
static int open_path(const struct fr_unwind_known *k, pid_t pid, const char *path, bool wants_trusted)
{
	struct stat st;
	const int fd = path ? fr_foreign_open(pid, path, &st) : -ENOENT;

	return check(k, fd, &st, pid, wants_trusted);
}

/* The same in the root directory of PID, of pid 1, or of this process. The service manager gives services
   with NoNewPrivileges= a view in which all mounts are nosuid, and so not trusted. Pid 1 has no such view. */
static int open_in_roots(const struct fr_unwind_known *k, pid_t pid, const char *path, bool wants_trusted)
{
	const pid_t roots[] = {pid, 1, 0};
	int fd = -ENOENT;

	for (size_t i = 0; fd < 0 && i < FR_ARRAY_SIZE(roots); i++)
		fd = open_path(k, roots[i], path, wants_trusted);
	return fd;
}

static int open_source(const struct fr_unwind_known *k, const struct fr_unwind_source *s, bool wants_trusted)
{
	const int fd = open_map(k, s->pid, s->start, s->end, wants_trusted);

	return fd < 0 ? open_in_roots(k, s->pid, s->path, wants_trusted) : fd;
}

/* Opens the map of a process whose name for the file is not known. Without CAP_CHECKPOINT_RESTORE, the link
   of a map can be read, but not followed. */
static int open_found(const struct fr_unwind_known *k, const struct fr_unwind_found *f, bool wants_trusted)
{
	const int fd = open_map(k, f->pid, f->start, f->end, wants_trusted);
	char link[96], path[PATH_MAX];
	ssize_t n;

	if (fd != -EPERM && fd != -ESTALE)
		return fd;
	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", f->pid, (unsigned long long)f->start,
		(unsigned long long)f->end);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return open_in_roots(k, f->pid, path, wants_trusted);
}

/* Does one step of the search among the processes. If a file is found, the search stays where it is. */
static int search_processes(struct fr_unwind_known *k, const struct fr_unwind_processes *p)
{
	struct fr_unwind_found found[SEARCH_STEP];
	const size_t n = fr_unwind_processes_find_maps(p, k->number, k->search_at, found, SEARCH_STEP);

	for (size_t i = 0; i < n && found[i].serial < k->search_end; i++) {
		const int fd = open_found(k, &found[i], true);

		k->search_at = found[i].serial;
		if (fd >= 0)
			return fd;
		k->search_at++;
	}
	if (n == SEARCH_STEP && k->search_at < k->search_end)
		return -EAGAIN;
	k->search_at = 0;
	return -ENOENT;
}

int fr_unwind_object_file_search(struct fr_unwind_known *k, const struct fr_unwind_processes *p)
{
	int fd = -ENOENT;

	if (!k->search_at) {
		k->has_new_map = false;
		/* A file of the root of a container can be trusted, too. That of the machine comes first. */
		fd = open_path(k, 1, k->source.path, true);
		if (fd < 0)
			fd = open_source(k, &k->source, true);
		if (fd >= 0)
			return fd;
		k->search_at = 1;
		k->search_end = fr_unwind_processes_next_serial(p);
	}
	return search_processes(k, p);
}

int fr_unwind_object_file_open(const struct fr_unwind_known *k, const struct fr_unwind_processes *p)
{
	struct fr_unwind_found found;
	const int fd = open_source(k, &k->source, false);

	if (fd >= 0 || !fr_unwind_processes_find_maps(p, k->number, 0, &found, 1))
		return fd;
	return open_found(k, &found, false);
}

int fr_unwind_object_file_open_debug(int fd)
{
	static const char prefix[] = "/usr/lib/debug/.build-id/";
	char path[sizeof(prefix) + 2 * FR_BUILD_ID_MAX + sizeof("/.debug")], *to;
	uint8_t id[FR_BUILD_ID_MAX];
	const int n = fr_build_id_read(fd, id);

	if (n < 2)
		return -1;
	to = path + sprintf(path, "%s%02x/", prefix, id[0]);
	for (int i = 1; i < n; i++)
		to += sprintf(to, "%02x", id[i]);
	memcpy(to, ".debug", sizeof(".debug"));
	fd = fr_foreign_open(0, path, NULL);
	return fd < 0 ? -1 : fd;
}

int fr_unwind_object_file_open_missed(const struct fr_unwind_known *k)
{
	return open_source(k, &k->missed, false);
}

int fr_unwind_vdso_find(const void **ret, size_t *ret_size)
{
	const uint8_t *base =
		(const void *)getauxval(AT_SYSINFO_EHDR); /* NOLINT(performance-no-int-to-ptr) */
	const ElfW(Ehdr) *e = (const void *)base;

	if (!base || !e->e_shoff)
		return -ENOENT;
	*ret = base;
	/* The section headers are the last part of the vdso. */
	*ret_size = e->e_shoff + (size_t)e->e_shnum * e->e_shentsize;
	return 0;
}
