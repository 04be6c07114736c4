// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A soft lockup: a CPU that has not scheduled for twice kernel.watchdog_thresh. The watchdog has no
 * tracepoint, but what it prints passes one, in its interrupt, so that the current task is the one that holds
 * the CPU:
 *
 *     watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [name:1234]
 *
 * Kernels before 5.15 put a time stamp before it.
 *
 * Such a line may also be what somebody writes to /dev/kmsg: a log that is passed on, a test. The tracepoint
 * does not tell whose a line is. But who holds a CPU in a lockup has run since the watchdog's own thread, the
 * highest of its CPU, came last, which is every 2/5 of watchdog_thresh; nobody else runs so long: while the
 * watchdog works, its thread puts them off. So a line counts where the current task has run at least half of
 * the time that the line tells of. That takes BTF; without, there is no telling, and no such probe.
 */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"

char LICENSE[] SEC("license") = "GPL";

#define NS_PER_SEC 1000000000ULL
#define TEXT_SIZE 128
#define BEFORE_MAX 48

#define STUCK "stuck for "

/* With what such a line begins, before the number of the CPU. A test has words of its own: the kernel's, in
   the kernel's log, alarm whoever watches over the machine. */
const volatile char words[40] = "watchdog: BUG: soft lockup - CPU#";

static __always_inline int is_at(const char *text, const char *word, int length)
{
	for (int i = 0; i < length; i++)
		if (text[i] != word[i])
			return 0;
	return 1;
}

/* The length of the words, where TEXT has them, or 0. */
static __always_inline int words_at(const char *text)
{
	for (int i = 0; i < (int)sizeof(words); i++) {
		if (!words[i])
			return i;
		if (text[i] != words[i])
			break;
	}
	return 0;
}

/* The seconds of a line that tells of a lockup, or 0. */
static __always_inline __u64 parse(const char text[TEXT_SIZE])
{
	__u64 seconds = 0;
	int at = 0, length = 0;

	while (at < BEFORE_MAX && !(length = words_at(text + at)))
		at++;
	if (!length)
		return 0;
	at += length;
	for (int i = 0; i < 8 && !is_at(text + at, STUCK, sizeof(STUCK) - 1); i++)
		at++;
	at += sizeof(STUCK) - 1;
	for (int i = 0; i < 6 && text[at] >= '0' && text[at] <= '9'; i++, at++)
		seconds = seconds * 10 + (text[at] - '0');
	return seconds;
}

/* Since TASK, which runs, came to its CPU. */
static __always_inline __u64 ran_ns(struct task_struct *task)
{
	return fr_rq_clock(task) - task->sched_info.last_arrival;
}

SEC("tp_btf/console")
int BPF_PROG(soft_lockup, const char *line)
{
	char text[TEXT_SIZE] = "";
	struct flightrec_subject s;
	__u64 ns, ran, now = bpf_ktime_get_ns();

	bpf_probe_read_kernel_str(text, sizeof(text), line);
	ns = parse(text) * NS_PER_SEC;
	if (!ns)
		return 0;
	/* Of a line that is not the kernel's, the last value seen is how long its writer had run. */
	ran = ran_ns(bpf_get_current_task_btf());
	if (ran < ns / 2) {
		flightrec_count(ran, now);
		return 0;
	}
	flightrec_current(&s);
	flightrec_trigger_for(&s, "soft lockup", 0, FLIGHTREC_UNIT_NS, now, ns, flightrec_threshold);
	return 0;
}
