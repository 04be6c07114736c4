// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/object_file.h"
#include "base/cleanup.h"
#include "base/foreign.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

/* Returns FD if it is the file of K. Else closes it, and returns -ESTALE. */
static int check(const struct fr_unwind_known *k, int fd, const struct stat *st)
{
	const struct fr_file_id file = {k->key.ino, k->key.generation};
	uint8_t id[FR_BUILD_ID_MAX];
	bool is_right;

	if (fd < 0)
		return fd;
	if (k->key.id_len)
		is_right = fr_build_id_read(fd, id) == (int)k->key.id_len &&
			   memcmp(id, k->key.id, k->key.id_len) == 0;
	else
		is_right = fr_file_has_id(fd, st->st_ino, &file);
	if (is_right)
		return fd;
	close(fd);
	return -ESTALE;
}

static int open_of_process(const struct fr_unwind_known *k, const struct fr_unwind_source *s)
{
	struct stat st;
	int fd = fr_foreign_open_map(s->pid, s->start, s->end, &st);

	fd = check(k, fd, &st);
	if (fd >= 0 || !s->path)
		return fd;
	fd = fr_foreign_open(s->pid, s->path, &st);
	return check(k, fd, &st);
}

static int open_by_name(const struct fr_unwind_known *k, const char *path)
{
	struct stat st;
	const int fd = path ? fr_foreign_open(0, path, &st) : -ENOENT;

	return check(k, fd, &st);
}

static int open_file(const struct fr_unwind_known *k, const struct fr_unwind_processes *p)
{
	struct fr_unwind_map map;
	pid_t pid;
	int fd = open_of_process(k, &k->source);

	if (fd < 0 && fr_unwind_processes_find_map(p, k->number, k->source.pid, &pid, &map)) {
		const struct fr_unwind_source other = {k->source.path, pid, map.start, map.end};

		fd = open_of_process(k, &other);
	}
	return fd >= 0 || !k->source.path ? fd : open_by_name(k, k->source.path);
}

/* Returns a descriptor of the separate debug file, or -1. */
static int open_debug(int fd)
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

int fr_unwind_object_file_open(
	const struct fr_unwind_known *k, const struct fr_unwind_processes *p, int *ret_debug)
{
	const int fd = open_file(k, p);

	if (fd >= 0)
		*ret_debug = open_debug(fd);
	return fd;
}

int fr_unwind_object_file_open_missed(const struct fr_unwind_known *k)
{
	const int fd = open_of_process(k, &k->missed);

	return fd < 0 ? open_by_name(k, k->missed.path) : fd;
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
