// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fires when the kernel's watchdog reports that a CPU has not switched tasks for longer than twice
 * kernel.watchdog_thresh. The watchdog has no tracepoint, but its message passes the tracepoint `console`.
 * The message is printed in the watchdog's interrupt, so the current task is the task that occupies the CPU:
 *
 *     watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [name:1234]
 *
 * Kernels before 5.15 put a time stamp before the line. Each user who is allowed to write to /dev/kmsg can
 * write the same line. So the probe fires only if the current task has run for at least half of the time that
 * the line names (docs/design/75). This check needs BTF.
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

/* The text before the number of the CPU. Tests use another text, because the kernel's own text would alarm
   the machine's monitoring. */
const volatile char words[40] = "watchdog: BUG: soft lockup - CPU#";

static __always_inline int has_prefix(const char *text, const char *word, int length)
{
	for (int i = 0; i < length; i++)
		if (text[i] != word[i])
			return 0;
	return 1;
}

/* Returns the length of `words` if TEXT begins with them, else 0. */
static __always_inline int match_words(const char *text)
{
	for (int i = 0; i < (int)sizeof(words); i++) {
		if (!words[i])
			return i;
		if (text[i] != words[i])
			break;
	}
	return 0;
}

/* Returns the number of seconds in a line that reports a soft lockup; or 0 if TEXT is another line. */
static __always_inline __u64 parse_seconds(const char text[TEXT_SIZE])
{
	__u64 seconds = 0;
	int at = 0, length = 0;

	while (at < BEFORE_MAX && !(length = match_words(text + at)))
		at++;
	if (!length)
		return 0;
	at += length;
	for (int i = 0; i < 8 && !has_prefix(text + at, STUCK, sizeof(STUCK) - 1); i++)
		at++;
	at += sizeof(STUCK) - 1;
	for (int i = 0; i < 6 && text[at] >= '0' && text[at] <= '9'; i++, at++)
		seconds = seconds * 10 + (text[at] - '0');
	return seconds;
}

/* Returns how long TASK has been running on its CPU. */
static __always_inline __u64 get_ran_ns(struct task_struct *task)
{
	return fr_rq_clock(task) - task->sched_info.last_arrival;
}

SEC("tp_btf/console")
int BPF_PROG(soft_lockup, const char *line)
{
	char text[TEXT_SIZE] = "";
	__u64 ns, ran, now = bpf_ktime_get_ns();

	bpf_probe_read_kernel_str(text, sizeof(text), line);
	ns = parse_seconds(text) * NS_PER_SEC;
	if (!ns)
		return 0;
	/* The line does not come from the kernel if the current task has not run long enough. In this case,
	   store the task's run time as the last value. */
	ran = get_ran_ns(bpf_get_current_task_btf());
	if (ran < ns / 2) {
		flightrec_count(ran, now);
		return 0;
	}
	fr_fire_current("soft lockup", 0, now, ns);
	return 0;
}
