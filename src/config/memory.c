// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/memory.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define FILE_MAX (64u << 10)
#define MIB (1ULL << 20)
/* What the recorder has beside the ring: codec, queues, process models, blocks of a dump. */
#define RESERVE (32 * MIB)
/* While a ring takes over from another: history/history.h. */
#define RESIZE (16 * MIB)
/* Of all there is, one part in so many stays free: for the others, and for what grows later. */
#define MARGIN 16

/* Of "KEY 123" or "KEY: 123 kB" in TEXT. */
static uint64_t number_of(const char *text, const char *key, uint64_t unit)
{
	const size_t len = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n'), line += !!line)
		if (!strncmp(line, key, len) && (line[len] == ' ' || line[len] == ':'))
			return strtoull(line + len + 1, NULL, 10) * unit;
	return 0;
}

static int read_text(const char *directory, const char *name, struct fr_buf *ret)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, name) >= sizeof(path))
		return -ENAMETOOLONG;
	ret->len = 0;
	return fr_read_file(AT_FDCWD, path, FILE_MAX, ret);
}

/* UINT64_MAX: there is no such file, or it says that there is no limit. */
static uint64_t read_number(const char *directory, const char *name)
{
	_cleanup_buf_ struct fr_buf b = {0};
	const char *text;

	if (read_text(directory, name, &b) < 0)
		return UINT64_MAX;
	text = (const char *)b.data;
	return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* The names of a version of cgroups. */
struct version {
	const char *limits[2], *used;
	const char *stat[2]; /* page cache, which makes room; memory of tmpfs is not in it */
};

static const struct version v1 = {{"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes",
	{"total_active_file", "total_inactive_file"}};
/* Above memory.high nothing is killed, but all that runs is held back. */
static const struct version v2 = {
	{"memory.max", "memory.high"}, "memory.current", {"active_file", "inactive_file"}};

static void look_at_group(struct fr_memory *m, const char *directory, const struct version *v)
{
	uint64_t limit = read_number(directory, v->limits[0]);
	uint64_t used = read_number(directory, v->used), cache = 0, free;
	_cleanup_buf_ struct fr_buf b = {0};

	if (v->limits[1])
		limit = FR_MIN(limit, read_number(directory, v->limits[1]));
	/* Version 1 has a number for "no limit". */
	if (limit >= INT64_MAX / 2 || (m->total && limit >= m->total) || used == UINT64_MAX)
		return;
	if (read_text(directory, "memory.stat", &b) == 0)
		for (unsigned i = 0; i < FR_ARRAY_SIZE(v->stat); i++)
			cache += number_of((const char *)b.data, v->stat[i], 1);
	used -= FR_MIN(used, cache);
	free = limit - FR_MIN(limit, used);
	if (m->limit && free - FR_MIN(free, limit / MARGIN) >= m->free - FR_MIN(m->free, m->limit / MARGIN))
		return;
	m->limit = limit;
	m->free = free;
	snprintf(m->group, sizeof(m->group), "%.*s", (int)sizeof(m->group) - 1, directory);
}

/* GROUP and all that it is in. In a container they may have other names: those that are not there say
   nothing. */
static void look_at_groups(struct fr_memory *m, const char *mount, const char *group, const struct version *v)
{
	char path[PATH_MAX];
	const size_t least = strlen(mount);
	char *slash;

	if ((size_t)snprintf(path, sizeof(path), "%s%s", mount, group) >= sizeof(path))
		return;
	for (;;) {
		look_at_group(m, path, v);
		slash = strrchr(path, '/');
		if (!slash || (size_t)(slash - path) < least)
			return;
		*slash = '\0';
	}
}

/* "4:memory:/PATH" or "0::/PATH". */
static void look_at_line(struct fr_memory *m, const char *root, char *line)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
	char mount[PATH_MAX];

	if (!group)
		return;
	*group++ = '\0';
	if (!strcmp(controllers + 1, "memory")) {
		snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/memory", root);
		look_at_groups(m, mount, group, &v1);
	} else if (!controllers[1]) {
		for (unsigned i = 0; i < FR_ARRAY_SIZE(mounts); i++) {
			snprintf(mount, sizeof(mount), "%s%s", root, mounts[i]);
			look_at_groups(m, mount, group, &v2);
		}
	}
}

void fr_memory_look(const char *root, struct fr_memory *ret)
{
	_cleanup_buf_ struct fr_buf b = {0};
	char proc[PATH_MAX], *rest = NULL;

	*ret = (struct fr_memory){0};
	snprintf(proc, sizeof(proc), "%s/proc", root);
	if (read_text(proc, "meminfo", &b) == 0) {
		ret->total = number_of((const char *)b.data, "MemTotal", 1024);
		ret->available = number_of((const char *)b.data, "MemAvailable", 1024);
	}
	if (read_text(proc, "self/cgroup", &b) < 0)
		return;
	for (char *line = strtok_r((char *)b.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		look_at_line(ret, root, line);
}

/* What may be taken of FREE, of which there are TOTAL in all. */
static uint64_t spare(uint64_t total, uint64_t free, uint64_t beside)
{
	const uint64_t kept = total / MARGIN + beside;

	return total ? free - FR_MIN(free, kept) : UINT64_MAX;
}

uint64_t fr_memory_largest_ring(const struct fr_memory *m, uint64_t now)
{
	const uint64_t beside = now ? RESIZE : RESERVE;
	const uint64_t most = FR_MIN(spare(m->total, m->available, beside), spare(m->limit, m->free, beside));

	return most > UINT64_MAX - now ? UINT64_MAX : (now + most) / MIB * MIB;
}

static const char *whole(uint64_t bytes, char ret[static FR_UNIT_SIZE])
{
	snprintf(ret, FR_UNIT_SIZE, "%lluM", (unsigned long long)(bytes / MIB));
	return ret;
}

int fr_memory_check_ring(
	const struct fr_memory *m, uint64_t now, uint64_t bytes, const char *origin, struct fr_diag *d)
{
	const uint64_t largest = fr_memory_largest_ring(m, now), beside = now ? RESIZE : RESERVE;
	const bool group = spare(m->limit, m->free, beside) < spare(m->total, m->available, beside);
	char size[FR_UNIT_SIZE], fits[FR_UNIT_SIZE], limit[FR_UNIT_SIZE], free[FR_UNIT_SIZE], hint[128];

	/* A smaller one only gives back. */
	if (bytes <= FR_MAX(largest, now))
		return 0;
	whole(largest, fits);
	if (largest < MIB)
		snprintf(hint, sizeof(hint), "make room: not even the smallest ring would fit");
	else
		snprintf(hint, sizeof(hint), "%s would fit%s", fits,
			group ? "; or raise MemoryMax= of the unit together with it" : "");
	fr_size_format(bytes, size);
	fr_size_format(group ? m->limit : m->total, limit);
	fr_size_format(group ? m->free : m->available, free);
	if (group)
		return fr_fail(d, -ENOMEM, hint, "%s: a ring of %s does not fit: %s of %s are free in %s",
			origin ? origin : "RingSize=", size, free, limit, m->group);
	return fr_fail(d, -ENOMEM, hint, "%s: a ring of %s does not fit: %s of the machine's %s are free",
		origin ? origin : "RingSize=", size, free, limit);
}

/* KernelBuffer=auto. */

#define BUFFER_MAX (16 * MIB)
#define BUFFER_MIN (512ULL << 10)
#define BUFFERS_MAX (64 * MIB) /* of all CPUs */
#define BUFFERS_PART 64	       /* of the machine's memory, at most one part in so many for all CPUs */
#define SIDEBAND_AND_PAGES ((512ULL << 10) + 8192)

uint64_t fr_memory_kernel_buffer(uint64_t total, unsigned n_cpus, uint64_t locked_max)
{
	const uint64_t n = FR_MAX(n_cpus, 1u);
	const uint64_t most = total ? FR_MIN(BUFFERS_MAX, total / BUFFERS_PART) : BUFFERS_MAX;
	uint64_t bytes = BUFFER_MAX;

	while (bytes > BUFFER_MIN &&
		(bytes * n > most || (locked_max && (bytes + SIDEBAND_AND_PAGES) * n > locked_max)))
		bytes /= 2;
	return bytes;
}

/* What the kernel lets this process lock for rings, or 0: as much as it likes. */
static uint64_t locked_max(unsigned n_cpus)
{
	const uint64_t each = read_number("/proc/sys/kernel", "perf_event_mlock_kb");
	struct rlimit limit;

	capng_get_caps_process();
	if (capng_have_capability(CAPNG_EFFECTIVE, CAP_IPC_LOCK) || each >= UINT32_MAX ||
		getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return 0;
	return each * 1024 * n_cpus + limit.rlim_cur;
}

uint64_t fr_memory_kernel_buffer_here(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
	const unsigned n = cpus > 0 ? (unsigned)cpus : 1;

	return fr_memory_kernel_buffer(
		pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0, n, locked_max(n));
}
