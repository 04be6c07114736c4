// SPDX-License-Identifier: GPL-2.0-or-later
/* Measures how long a task stalls for memory: it reclaims pages (of the machine or of its cgroup), compacts
   memory, or waits in a page fault until a page of a file is read. Faults on swapped pages have no
   tracepoint, so they are not measured. */
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
	__u64 begin_ns;	  /* begin of the reclaim or compaction; 0: neither is running */
	__u64 fault_ns;	  /* time of the newest fault on a file's page */
	__u64 faults;	  /* how many page faults the task had before the newest fault */
	__u64 page_index; /* index in the file of the page of the newest fault */
};

/* Entries stay in the map after a stall, and the programs write into them again. A new task can get the
   number of an earlier task, so is_repeated() compares the time of the fault with the start of the task. The
   map is preallocated, because memory is scarce during a stall. */
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
	if (!flightrec_below(value_ns, flightrec_threshold, now_ns))
		fr_fire_current(reason, detail, now_ns, value_ns);
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

	if (!s || !s->begin_ns) /* the stall began before the probe was armed */
		return 0;
	now_ns = bpf_ktime_get_ns();
	value_ns = now_ns - s->begin_ns;
	s->begin_ns = 0;
	fire(reason, 0, now_ns, value_ns);
	return 0;
}

/* Returns whether the current task is kcompactd or khugepaged. These threads compact memory in the
   background, so no task waits for them. */
static __always_inline bool is_compaction_thread(void)
{
	char comm[FLIGHTREC_COMM_SIZE];
	__u64 first8;

	bpf_get_current_comm(comm, sizeof(comm));
	__builtin_memcpy(&first8, comm, sizeof(first8));
	return !__builtin_memcmp(&first8, "kcompact", 8) || !__builtin_memcmp(&first8, "khugepag", 8);
}

static __always_inline int begin_compaction(void)
{
	return is_compaction_thread() ? 0 : begin();
}

static __always_inline int end_compaction(void)
{
	return is_compaction_thread() ? 0 : end("memory compaction");
}

#define PROGRAM(section, name, action)                                                                       \
	SEC(section) int name(void *ctx)                                                                     \
	{                                                                                                    \
		return action;                                                                               \
	}
PROGRAM("tp_btf/mm_vmscan_direct_reclaim_begin", direct_begin_btf, begin())
PROGRAM("tp_btf/mm_vmscan_direct_reclaim_end", direct_end_btf, end("direct reclaim"))
PROGRAM("tp/vmscan/mm_vmscan_direct_reclaim_begin", direct_begin_classic, begin())
PROGRAM("tp/vmscan/mm_vmscan_direct_reclaim_end", direct_end_classic, end("direct reclaim"))
/* These tracepoints need CONFIG_MEMCG. */
PROGRAM("?tp_btf/mm_vmscan_memcg_reclaim_begin", memcg_begin_btf, begin())
PROGRAM("?tp_btf/mm_vmscan_memcg_reclaim_end", memcg_end_btf, end("cgroup reclaim"))
PROGRAM("?tp/vmscan/mm_vmscan_memcg_reclaim_begin", memcg_begin_classic, begin())
PROGRAM("?tp/vmscan/mm_vmscan_memcg_reclaim_end", memcg_end_classic, end("cgroup reclaim"))
/* These tracepoints need CONFIG_COMPACTION. */
PROGRAM("?tp_btf/mm_compaction_begin", compaction_begin_btf, begin_compaction())
PROGRAM("?tp_btf/mm_compaction_end", compaction_end_btf, end_compaction())
PROGRAM("?tp/compaction/mm_compaction_begin", compaction_begin_classic, begin_compaction())
PROGRAM("?tp/compaction/mm_compaction_end", compaction_end_classic, end_compaction())

/* Writes a name of MAPPING's file into DETAIL; "" if no name is in memory. */
static __always_inline void name_of(char detail[static FLIGHTREC_DETAIL_SIZE], struct address_space *mapping)
{
	void *alias = BPF_CORE_READ(mapping, host, i_dentry.first);
	struct dentry *d = alias - bpf_core_field_offset(struct dentry, d_u.d_alias);

	detail[0] = '\0';
	if (alias)
		bpf_probe_read_kernel_str(detail, FLIGHTREC_DETAIL_SIZE, BPF_CORE_READ(d, d_name.name));
}

/* Returns whether the current fault is the fault that S describes, which has started again. A fault that has
   to wait for the disk drops its locks, waits, and starts again. So the wait is the time between the two
   starts (docs/design/74). */
static __always_inline bool is_repeated(
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

	if (s && is_repeated(s, task, first, last))
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
	if (is_repeated(s, task, index, index)) {
		end_fault(s, mapping);
		return 0;
	}
	s->faults = task->min_flt + task->maj_flt;
	s->page_index = index;
	s->fault_ns = bpf_ktime_get_ns();
	return 0;
}
