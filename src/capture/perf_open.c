// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls perf_event_open(2), also on kernels and PMUs that do not know every bit of an attr. */
#include "capture/perf_open.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The bits that a recording does not need, newest first, with the version of the kernel that added each bit.
   write_backward and use_clockid are not in this list, because the data would have another meaning without
   these bits. */
static const struct perf_event_attr optional[] = {
	{.read_format = PERF_FORMAT_LOST},						    /* 6.0 */
	{.build_id = 1},								    /* 5.12 */
	{.text_poke = 1},								    /* 5.9 */
	{.cgroup = 1},									    /* 5.7 */
	{.bpf_event = 1},								    /* 5.1 */
	{.ksymbol = 1},									    /* 5.1 */
	{.namespaces = 1},								    /* 4.12 */
	{.branch_sample_type = PERF_SAMPLE_BRANCH_NO_FLAGS | PERF_SAMPLE_BRANCH_NO_CYCLES}, /* 4.3 */
	{.comm_exec = 1},								    /* 3.16 */
	{.mmap2 = 1},									    /* 3.16 */
	{.exclude_guest = 1}, /* 3.2; some PMUs cannot exclude anything */
};

/* Clears the bits of MASK in A. Returns whether A had any of these bits. */
static bool clear_bits(struct perf_event_attr *a, const struct perf_event_attr *mask)
{
	const uint8_t *m = (const uint8_t *)mask;
	uint8_t *p = (uint8_t *)a, had = 0;

	for (size_t i = 0; i < sizeof(*a); i++) {
		had |= p[i] & m[i];
		p[i] &= (uint8_t)~m[i];
	}
	return had;
}

int fr_perf_open(const struct perf_event_attr *a, pid_t pid, int cpu, unsigned long flags)
{
	struct perf_event_attr copy = *a; /* on E2BIG the kernel changes copy.size */
	long fd = syscall(__NR_perf_event_open, &copy, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static bool is_unknown_bit(int fd)
{
	return fd == -EINVAL || fd == -E2BIG;
}

int fr_perf_open_adapt(struct perf_event_attr *a, pid_t pid, int cpu, unsigned long flags)
{
	struct perf_event_attr less;
	int first = fr_perf_open(a, pid, cpu, flags), fd;

	if (!is_unknown_bit(first))
		return first;
	/* In the first pass, each try clears one bit only. So if a PMU refuses an old bit, the newer bits
	   stay set. In the second pass, each try also clears all bits of the tries before it. */
	for (int alone = 1; alone >= 0; alone--) {
		less = *a;
		for (size_t i = 0; i < FR_ARRAY_SIZE(optional); i++) {
			if (alone)
				less = *a;
			if (!clear_bits(&less, &optional[i]))
				continue;
			fd = fr_perf_open(&less, pid, cpu, flags);
			if (fd >= 0) {
				*a = less;
				return fd;
			}
			if (!alone && !is_unknown_bit(fd))
				return fd;
		}
	}
	return first;
}
