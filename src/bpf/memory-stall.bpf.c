// SPDX-License-Identifier: GPL-2.0-or-later
/* How long a task was held up because memory was short or not there: it reclaimed pages itself (of the
   machine or of its cgroup), compacted memory, or waited in a page fault for a page of a file to be read.
   Pages that come back from swap are not among these: no tracepoint tells of them. */
#include <linux/bpf.h>
#include <stdbool.h>

#define FLIGHTREC_UNIT FLIGHTREC_UNIT_NS
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"

char LICENSE[] SEC("license") = "GPL";

struct hlist_node {
};

struct hlist_head {
	struct hlist_node *first;
} __attribute__((preserve_access_index));

struct qstr {
	const unsigned char *name;
} __attribute__((preserve_access_index));

struct dentry {
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
} __attribute__((preserve_access_index));

struct inode {
	struct hlist_head i_dentry;
} __attribute__((preserve_access_index));

struct address_space {
	struct inode *host;
} __attribute__((preserve_access_index));

struct stall {
	__u64 begin_ns;		  /* of reclaim or compaction; 0: not in it */
	__u64 fault_ns;		  /* when the newest fault on a file's page began */
	__u64 faults, page_index; /* which fault: so many were complete before, at that page */
};

/* Entries stay and are written in place; a task that has gone leaves its to the next one with its number,
   which tells by its own start. All memory is there from the beginning, as a stall is no time to ask for it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32); /* tid */
	__type(value, struct stall);
} stalls SEC(".maps");

static __always_inline struct stall *entry_of(__u32 tid)
{
	struct stall *s = bpf_map_lookup_elem(&stalls, &tid), empty;

	if (s)
		return s;
	__builtin_memset(&empty, 0, sizeof(empty));
	bpf_map_update_elem(&stalls, &tid, &empty, BPF_ANY);
	return bpf_map_lookup_elem(&stalls, &tid);
}

static __always_inline void fire(const char *reason, const char *detail, __u64 now_ns, __u64 value_ns)
{
	struct flightrec_subject who;

	if (flightrec_below(value_ns, flightrec_threshold, now_ns))
		return;
	flightrec_current(&who);
	flightrec_trigger_for(&who, reason, detail, FLIGHTREC_UNIT, now_ns, value_ns, flightrec_threshold);
}

static __always_inline int begin(void)
{
	struct stall *s = entry_of((__u32)bpf_get_current_pid_tgid());

	if (s)
		s->begin_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int end(const char *reason)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct stall *s = bpf_map_lookup_elem(&stalls, &tid);
	__u64 now_ns, value_ns;

	if (!s || !s->begin_ns) /* it began before we did */
		return 0;
	now_ns = bpf_ktime_get_ns();
	value_ns = now_ns - s->begin_ns;
	s->begin_ns = 0;
	fire(reason, 0, now_ns, value_ns);
	return 0;
}

/* To compact is the work of these two: nobody waits. */
static __always_inline bool compacts_for_others(void)
{
	char comm[FLIGHTREC_COMM_SIZE];
	__u64 begin_of;

	bpf_get_current_comm(comm, sizeof(comm));
	__builtin_memcpy(&begin_of, comm, sizeof(begin_of));
	return !__builtin_memcmp(&begin_of, "kcompact", 8) || !__builtin_memcmp(&begin_of, "khugepag", 8);
}

static __always_inline int begin_compaction(void)
{
	return compacts_for_others() ? 0 : begin();
}

static __always_inline int end_compaction(void)
{
	return compacts_for_others() ? 0 : end("memory compaction");
}

#define PROGRAM(section, name, what)                                                                         \
	SEC(section) int name(void *ctx)                                                                     \
	{                                                                                                    \
		return what;                                                                                 \
	}
PROGRAM("tp_btf/mm_vmscan_direct_reclaim_begin", direct_begin_btf, begin())
PROGRAM("tp_btf/mm_vmscan_direct_reclaim_end", direct_end_btf, end("direct reclaim"))
PROGRAM("tp/vmscan/mm_vmscan_direct_reclaim_begin", direct_begin_classic, begin())
PROGRAM("tp/vmscan/mm_vmscan_direct_reclaim_end", direct_end_classic, end("direct reclaim"))
/* With CONFIG_MEMCG. */
PROGRAM("?tp_btf/mm_vmscan_memcg_reclaim_begin", memcg_begin_btf, begin())
PROGRAM("?tp_btf/mm_vmscan_memcg_reclaim_end", memcg_end_btf, end("cgroup reclaim"))
PROGRAM("?tp/vmscan/mm_vmscan_memcg_reclaim_begin", memcg_begin_classic, begin())
PROGRAM("?tp/vmscan/mm_vmscan_memcg_reclaim_end", memcg_end_classic, end("cgroup reclaim"))
/* With CONFIG_COMPACTION. */
PROGRAM("?tp_btf/mm_compaction_begin", compaction_begin_btf, begin_compaction())
PROGRAM("?tp_btf/mm_compaction_end", compaction_end_btf, end_compaction())
PROGRAM("?tp/compaction/mm_compaction_begin", compaction_begin_classic, begin_compaction())
PROGRAM("?tp/compaction/mm_compaction_end", compaction_end_classic, end_compaction())

/* The name of the file, as far as one of its names is in memory. */
static __always_inline void name_of(char detail[static FLIGHTREC_DETAIL_SIZE], struct address_space *mapping)
{
	void *alias = BPF_CORE_READ(mapping, host, i_dentry.first);
	struct dentry *d = alias - bpf_core_field_offset(struct dentry, d_u.d_alias);

	detail[0] = '\0';
	if (alias)
		bpf_probe_read_kernel_str(detail, FLIGHTREC_DETAIL_SIZE, BPF_CORE_READ(d, d_name.name));
}

/*
 * A fault that has to wait for the disk drops its locks, waits, and is made again from the start. So it comes
 * by twice, and the second time tells how long the first one waited; no other event has to be looked at. It
 * is the same fault if the task has completed none in between. Mostly the page is found by
 * mm_filemap_map_pages then, which comes before mm_filemap_fault, maps what is there of the pages around, and
 * leaves the rest to that.
 */
static __always_inline bool again(
	const struct stall *s, const struct task_struct *task, unsigned long first, unsigned long last)
{
	return s->faults == task->min_flt + task->maj_flt && s->page_index >= first &&
	       s->page_index <= last && s->fault_ns > task->start_time;
}

static __always_inline void end_fault(const struct stall *s, struct address_space *mapping)
{
	__u64 now_ns = bpf_ktime_get_ns(), value_ns = now_ns - s->fault_ns;
	char detail[FLIGHTREC_DETAIL_SIZE];

	detail[0] = '\0';
	if (value_ns >= flightrec_threshold)
		name_of(detail, mapping);
	fire("page fault stall", detail, now_ns, value_ns);
}

SEC("?tp_btf/mm_filemap_map_pages")
int BPF_PROG(map_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u32 tid = task->pid;
	struct stall *s = bpf_map_lookup_elem(&stalls, &tid);

	if (s && again(s, task, first, last))
		end_fault(s, mapping);
	return 0;
}

SEC("?tp_btf/mm_filemap_fault")
int BPF_PROG(fault, struct address_space *mapping, unsigned long index)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct stall *s = entry_of(task->pid);

	if (!s)
		return 0;
	if (again(s, task, index, index)) {
		end_fault(s, mapping);
		return 0;
	}
	s->faults = task->min_flt + task->maj_flt;
	s->page_index = index;
	s->fault_ns = bpf_ktime_get_ns();
	return 0;
}
