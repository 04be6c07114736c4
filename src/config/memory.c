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
/* Memory that the recorder needs in addition to the ring: for the codec, the queues, the process models (what
   is known of all processes) and the blocks of a dump. */
#define RESERVE (32 * MIB)
/* While a resize moves the frames from the old ring to the new ring, both rings together need the memory of
   the larger ring, and at most this much more (history/history.h). */
#define RESIZE (16 * MIB)
/* 1/MARGIN of all memory stays free, for other programs and for later growth. */
#define MARGIN 16

/* Returns the number in the line "KEY 123" or "KEY: 123 kB" of TEXT, times UNIT; 0 if there is no such
   line. */
static uint64_t find_number(const char *text, const char *key, uint64_t unit)
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

/* Returns the number in the file NAME; UINT64_MAX if there is no such file, or if it has no number. */
static uint64_t read_number(const char *directory, const char *name)
{
	_cleanup_buf_ struct fr_buf b = {0};
	const char *text;

	if (read_text(directory, name, &b) < 0)
		return UINT64_MAX;
	text = (const char *)b.data;
	return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* A directory where version 1 or 2 of cgroups can be mounted, and the names of the files in a group. */
struct hierarchy {
	const char *controllers, *mount; /* the controllers, as in /proc/self/cgroup; the mount point */
	const char *limits[2], *used;
	const char *cache[2]; /* keys in memory.stat: droppable page cache, which does not include tmpfs */
};

static const struct hierarchy hierarchies[] = {
	{"memory", "/sys/fs/cgroup/memory", {"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes",
		{"total_active_file", "total_inactive_file"}},
	/* memory.high is a limit, too: if a group uses more, the kernel slows down all processes of the
	   group. */
	{"", "/sys/fs/cgroup", {"memory.max", "memory.high"}, "memory.current",
		{"active_file", "inactive_file"}},
	{"", "/sys/fs/cgroup/unified", {"memory.max", "memory.high"}, "memory.current",
		{"active_file", "inactive_file"}},
};

/* Returns how many bytes a ring can use if `free` bytes are free. TOTAL is all memory of the group or of the
   machine. If TOTAL is 0, there is no limit, and the function returns UINT64_MAX. BESIDE is the number of
   bytes that the recorder needs in addition to the ring. */
static uint64_t subtract_reserve(uint64_t total, uint64_t free, uint64_t beside)
{
	const uint64_t reserve = total / MARGIN + beside;

	return total ? free - FR_MIN(free, reserve) : UINT64_MAX;
}

static void look_at_group(struct fr_memory *m, const char *directory, const struct hierarchy *h)
{
	uint64_t limit = read_number(directory, h->limits[0]);
	uint64_t used = read_number(directory, h->used), cache = 0, free;
	_cleanup_buf_ struct fr_buf b = {0};

	if (h->limits[1])
		limit = FR_MIN(limit, read_number(directory, h->limits[1]));
	/* In version 1 of cgroups, a very large number means that there is no limit. */
	if (limit >= INT64_MAX / 2 || (m->total && limit >= m->total) || used == UINT64_MAX)
		return;
	if (read_text(directory, "memory.stat", &b) == 0)
		for (unsigned i = 0; i < FR_ARRAY_SIZE(h->cache); i++)
			cache += find_number((const char *)b.data, h->cache[i], 1);
	used -= FR_MIN(used, cache);
	free = limit - FR_MIN(limit, used);
	if (subtract_reserve(limit, free, 0) >= subtract_reserve(m->limit, m->free, 0))
		return;
	m->limit = limit;
	m->free = free;
	snprintf(m->group, sizeof(m->group), "%.*s", (int)sizeof(m->group) - 1, directory);
}

/* Takes the limits of the control group `group` and of its parents into account. In a container,
   it is possible that the directory of this group is missing, because /proc can show the name that the group
   has outside of the container. A missing directory sets no limit. */
static void look_at_groups(
	struct fr_memory *m, const char *root, const struct hierarchy *h, const char *group)
{
	const size_t mount_len = strlen(root) + strlen(h->mount);
	char path[PATH_MAX], *slash;

	if ((size_t)snprintf(path, sizeof(path), "%s%s%s", root, h->mount, group) >= sizeof(path))
		return;
	for (;;) {
		look_at_group(m, path, h);
		slash = strrchr(path, '/');
		if (!slash || (size_t)(slash - path) < mount_len)
			return;
		*slash = '\0';
	}
}

/* Takes the limits of one control group and of its parents into account. The parameter `line` names this
   group. It is a line of /proc/self/cgroup: "4:memory:/PATH" or "0::/PATH". */
static void look_at_line(struct fr_memory *m, const char *root, char *line)
{
	char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!group)
		return;
	*group++ = '\0';
	for (size_t i = 0; i < FR_ARRAY_SIZE(hierarchies); i++)
		if (!strcmp(controllers + 1, hierarchies[i].controllers))
			look_at_groups(m, root, &hierarchies[i], group);
}

void fr_memory_read(const char *root, struct fr_memory *ret)
{
	_cleanup_buf_ struct fr_buf b = {0};
	char proc[PATH_MAX], *rest = NULL;

	*ret = (struct fr_memory){0};
	snprintf(proc, sizeof(proc), "%s/proc", root);
	if (read_text(proc, "meminfo", &b) == 0) {
		ret->total = find_number((const char *)b.data, "MemTotal", 1024);
		ret->available = find_number((const char *)b.data, "MemAvailable", 1024);
	}
	if (read_text(proc, "self/cgroup", &b) < 0)
		return;
	for (char *line = strtok_r((char *)b.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		look_at_line(ret, root, line);
}

static uint64_t beside(const struct fr_memory *m, uint64_t now)
{
	return now ? RESIZE : RESERVE + m->later;
}

static uint64_t largest_ring_in_group(const struct fr_memory *m, uint64_t now)
{
	return subtract_reserve(m->limit, m->free, beside(m, now));
}

static uint64_t largest_ring_in_machine(const struct fr_memory *m, uint64_t now)
{
	return subtract_reserve(m->total, m->available, beside(m, now));
}

uint64_t fr_memory_largest_ring(const struct fr_memory *m, uint64_t now)
{
	const uint64_t more = FR_MIN(largest_ring_in_group(m, now), largest_ring_in_machine(m, now));

	return more > UINT64_MAX - now ? UINT64_MAX : (now + more) / MIB * MIB;
}

int fr_memory_check_ring(
	const struct fr_memory *m, uint64_t now, uint64_t bytes, const char *origin, struct fr_diag *d)
{
	const uint64_t largest = fr_memory_largest_ring(m, now);
	const bool by_group = largest_ring_in_group(m, now) < largest_ring_in_machine(m, now);
	char size[FR_UNIT_SIZE], limit[FR_UNIT_SIZE], free[FR_UNIT_SIZE];
	char hint[128] = "free some memory: the smallest ring does not fit";

	/* A ring that is not larger than the current ring always fits. */
	if (bytes <= FR_MAX(largest, now))
		return 0;
	if (largest >= MIB)
		snprintf(hint, sizeof(hint), "%lluM would fit%s", (unsigned long long)(largest / MIB),
			by_group ? "; for a larger ring, also raise MemoryMax= of the unit" : "");
	return fr_fail(d, -ENOMEM, hint, "%s: a ring of %s does not fit: %s of %s are free in %s",
		origin ? origin : "RingSize=", fr_size_format(bytes, size),
		fr_size_format(by_group ? m->free : m->available, free),
		fr_size_format(by_group ? m->limit : m->total, limit), by_group ? m->group : "this machine");
}

int fr_memory_check_ring_here(
	uint64_t later, uint64_t now, uint64_t bytes, const char *origin, struct fr_diag *d)
{
	struct fr_memory memory;

	fr_memory_read("", &memory);
	memory.later = later;
	return fr_memory_check_ring(&memory, now, bytes, origin, d);
}

/* The rest of this file computes the value of KernelBuffer=auto. */

#define BUFFER_MAX (16 * MIB)
#define BUFFER_MIN (512ULL << 10)
#define BUFFERS_MAX (64 * MIB) /* limit for the buffers of all CPUs together */
#define BUFFERS_PART 64	       /* the buffers of all CPUs take at most 1/64 of all memory */
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

/* Returns how many bytes the kernel lets this process lock for its rings; 0 if there is no limit. */
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
