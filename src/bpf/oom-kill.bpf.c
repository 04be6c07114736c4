// SPDX-License-Identifier: GPL-2.0-or-later
/* Fires when the kernel kills a process because the machine or a cgroup is out of memory. The cause names the
   victim, not the task that needed memory. The value is the resident memory of the victim. */
#include <linux/bpf.h>

#define FLIGHTREC_UNIT FLIGHTREC_UNIT_BYTES
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 page_size = 4096;

struct percpu_counter {
	__s64 count;
} __attribute__((preserve_access_index));

enum { FILE_PAGES = 0, ANON_PAGES = 1, SHMEM_PAGES = 3 }; /* <linux/mm_types_task.h> */

struct mm_struct {
	struct percpu_counter rss_stat[4]; /* since 6.2 */
} __attribute__((preserve_access_index));

/* For CO-RE, a member must be of the same kind as in the kernel, where an atomic is a structure. */
struct atomic_long___v5 {
	__s64 counter;
} __attribute__((preserve_access_index));

struct mm_rss_stat {
	struct atomic_long___v5 count[4];
} __attribute__((preserve_access_index));

struct mm_struct___v5 {
	struct mm_rss_stat rss_stat;
} __attribute__((preserve_access_index));

/* Since 6.8, the event has this member, and the tracepoint's argument is the task. In older kernels, the
   event does not have this member, and the tracepoint's argument is a pid. */
struct trace_event_raw_mark_victim {
	unsigned long total_vm;
} __attribute__((preserve_access_index));

/* CO-RE needs a constant index, because the kernel's elements can have another size. */
#define PAGES(mm, index)                                                                                     \
	(bpf_core_field_exists(((struct mm_struct___v5 *)0)->rss_stat.count)                                 \
			? BPF_CORE_READ((struct mm_struct___v5 *)(mm), rss_stat.count[index].counter)        \
			: BPF_CORE_READ(mm, rss_stat[index].count))

/* The kernel batches its counters per CPU, so the sum can be wrong by a few hundred pages, and can
   even be negative. */
static __always_inline __u64 resident_bytes(struct mm_struct *mm)
{
	__s64 pages = PAGES(mm, FILE_PAGES) + PAGES(mm, ANON_PAGES) + PAGES(mm, SHMEM_PAGES);

	return pages > 0 ? pages * page_size : 0;
}

/* VALUE is 0 if the value is unknown. In this case, the threshold does not apply. */
static __always_inline void fire(struct flightrec_subject *victim, __u64 value)
{
	flightrec_trigger_for(victim, "OOM kill", 0, FLIGHTREC_UNIT, bpf_ktime_get_ns(), value,
		value ? flightrec_threshold : 0);
}

SEC("tp_btf/mark_victim")
int oom_kill_btf(__u64 *ctx)
{
	struct flightrec_subject victim = {};
	struct task_struct *task;
	__u64 value = 0;

	if (bpf_core_field_exists(struct trace_event_raw_mark_victim, total_vm)) {
		task = (void *)ctx[0];
		flightrec_task(&victim, task);
		value = resident_bytes(task->mm);
	} else {
		victim.pid = victim.tid = (__u32)ctx[0];
	}
	fire(&victim, value);
	return 0;
}

/* The classic tracepoint: the members that the format has in all kernels. */
struct mark_victim {
	__u64 common;
	int pid;
};

SEC("tp/oom/mark_victim")
int oom_kill_classic(struct mark_victim *ctx)
{
	struct flightrec_subject victim = {.pid = ctx->pid, .tid = ctx->pid};

	fire(&victim, 0);
	return 1;
}
