// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/perf_open.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Each clears one thing that A asks for; false where A does not ask. */
static bool drop_read_lost(struct perf_event_attr *a)
{
	bool had = a->read_format & PERF_FORMAT_LOST;

	a->read_format &= ~(__u64)PERF_FORMAT_LOST;
	return had;
}

static bool drop_branch_hints(struct perf_event_attr *a)
{
	const __u64 hints = PERF_SAMPLE_BRANCH_NO_FLAGS | PERF_SAMPLE_BRANCH_NO_CYCLES;
	bool had = a->branch_sample_type & hints;

	a->branch_sample_type &= ~hints;
	return had;
}

#define DROP_BIT(bit)                                                                                        \
	static bool drop_##bit(struct perf_event_attr *a)                                                    \
	{                                                                                                    \
		bool had = a->bit;                                                                           \
                                                                                                             \
		a->bit = 0;                                                                                  \
		return had;                                                                                  \
	}
DROP_BIT(build_id)
DROP_BIT(text_poke)
DROP_BIT(cgroup)
DROP_BIT(bpf_event)
DROP_BIT(ksymbol)
DROP_BIT(namespaces)
DROP_BIT(comm_exec)
DROP_BIT(mmap2)
DROP_BIT(exclude_guest)

/* Newest first; the kernel that brought it. write_backward and use_clockid are not here: without them the
   data would mean something else. */
static bool (*const optional[])(struct perf_event_attr *) = {
	drop_read_lost,	    /* 6.0 */
	drop_build_id,	    /* 5.12 */
	drop_text_poke,	    /* 5.9 */
	drop_cgroup,	    /* 5.7 */
	drop_bpf_event,	    /* 5.1 */
	drop_ksymbol,	    /* 5.1 */
	drop_namespaces,    /* 4.12 */
	drop_branch_hints,  /* 4.3 */
	drop_comm_exec,	    /* 3.16 */
	drop_mmap2,	    /* 3.16 */
	drop_exclude_guest, /* 3.2, and PMUs that exclude nothing */
};

int fr_perf_open(const struct perf_event_attr *a, pid_t pid, int cpu, unsigned long flags)
{
	struct perf_event_attr copy = *a; /* the kernel writes its size there on E2BIG */
	long fd = syscall(__NR_perf_event_open, &copy, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static bool unknown_bit(int fd)
{
	return fd == -EINVAL || fd == -E2BIG;
}

int fr_perf_open_adapt(struct perf_event_attr *a, pid_t pid, int cpu, unsigned long flags)
{
	struct perf_event_attr less;
	int first = fr_perf_open(a, pid, cpu, flags), fd;

	if (!unknown_bit(first))
		return first;
	/* One bit alone, so that a PMU that refuses an old one does not cost all the newer. */
	for (size_t i = 0; i < FR_ARRAY_SIZE(optional); i++) {
		less = *a;
		if (!optional[i](&less))
			continue;
		fd = fr_perf_open(&less, pid, cpu, flags);
		if (fd >= 0) {
			*a = less;
			return fd;
		}
	}
	less = *a;
	for (size_t i = 0; i < FR_ARRAY_SIZE(optional); i++) {
		if (!optional[i](&less))
			continue;
		fd = fr_perf_open(&less, pid, cpu, flags);
		if (fd >= 0) {
			*a = less;
			return fd;
		}
		if (!unknown_bit(fd))
			return fd;
	}
	return first;
}
