// SPDX-License-Identifier: GPL-2.0-or-later
/* Measures block requests from their submission to their completion, including the time in the I/O scheduler.
   The cause names the task that submits the request. For written-back pages, this is a kworker. */
#include <linux/bpf.h>
#include <stdbool.h>

#define FLIGHTREC_UNIT FLIGHTREC_UNIT_NS
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

struct gendisk {
	char disk_name[32];
} __attribute__((preserve_access_index));

struct request_queue {
	struct gendisk *disk; /* since 5.15 */
} __attribute__((preserve_access_index));

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	__u64 start_time_ns; /* time of allocation; 0: the queue keeps no statistics */
} __attribute__((preserve_access_index));

/* The tracepoint block_io_start exists since 6.5. In older kernels, the programs first see a request when it
   is inserted into the queue or issued to the device. */
typedef void (*btf_trace_block_io_start)(void *, struct request *);

struct pending {
	__u64 start_ns; /* 0: the request has completed */
	struct flightrec_subject who;
};

/* The kernel reuses the memory of requests. So the entry of an address stays in the map after the request,
   and the programs write into the entry. Only the first request at an address needs an update of the map
   itself, which takes locks. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); /* address of the request; classic: device and sector */
	__type(value, struct pending);
} requests SEC(".maps");

static __always_inline struct pending *entry_of(__u64 key)
{
	struct pending *p = bpf_map_lookup_elem(&requests, &key), empty;

	if (p)
		return p;
	__builtin_memset(&empty, 0, sizeof(empty));
	bpf_map_update_elem(&requests, &key, &empty, BPF_ANY);
	return bpf_map_lookup_elem(&requests, &key);
}

static __always_inline void begin(struct pending *p)
{
	if (!p)
		return;
	flightrec_current(&p->who);
	flightrec_localize(&p->who);
	p->start_ns = bpf_ktime_get_ns();
}

/* Returns whether P describes the current request at RQ, and not an earlier request in the same memory. If a
   request is merged into another request, it does not complete, so its entry keeps its time. Since 6.5,
   begin() overwrites this entry when the next request in the memory starts. In older kernels, it is possible
   that the programs first see the next request when it is issued. So in older kernels, this function compares
   the time in P with the time when RQ was allocated. */
static __always_inline bool is_current(const struct pending *p, const struct request *rq)
{
	return p->start_ns &&
	       (bpf_core_type_exists(btf_trace_block_io_start) || p->start_ns >= rq->start_time_ns);
}

/* Each of the next two programs costs time at every request, and one of them is enough. So only one is
   loaded, by the rules about names in trigger.bpf.h: start_btf, or in older kernels start_classic. */
SEC("?tp_btf/block_io_start")
int BPF_PROG(start_btf, struct request *rq)
{
	begin(entry_of((__u64)rq));
	return 0;
}

SEC("?tp_btf/block_rq_insert")
int BPF_PROG(start_classic, struct request *rq)
{
	begin(entry_of((__u64)rq));
	return 0;
}

/* A flush that the block layer itself makes passes no earlier tracepoint, so its time begins here. */
SEC("tp_btf/block_rq_issue")
int BPF_PROG(issue_btf, struct request *rq)
{
	struct pending *p = entry_of((__u64)rq);

	if (p && !is_current(p, rq))
		begin(p);
	return 0;
}

/* Names of operations. The index is a number of enum req_op; the last name is for all other numbers. */
static const char operations[11][13] = {
	"read", "write", "flush", "discard", [9] = "write-zeroes", [10] = "command"};

static __always_inline void describe(char detail[static FLIGHTREC_DETAIL_SIZE], const struct request *rq)
{
	unsigned int bytes = rq->__data_len, at = rq->cmd_flags & 0xff;
	const char *disk = BPF_CORE_READ(rq, q, disk)->disk_name,
		   *op = operations[at < 4 || at == 9 ? at : 10];

	if (!bytes)
		BPF_SNPRINTF(detail, FLIGHTREC_DETAIL_SIZE, "%s %s", disk, op);
	else if (bytes % 1024)
		BPF_SNPRINTF(detail, FLIGHTREC_DETAIL_SIZE, "%s %s %uB", disk, op, bytes);
	else
		BPF_SNPRINTF(detail, FLIGHTREC_DETAIL_SIZE, "%s %s %uK", disk, op, bytes / 1024);
}

static __always_inline void fire(
	struct flightrec_subject *who, const char *detail, __u64 now_ns, __u64 value_ns)
{
	flightrec_trigger_for(
		who, "block I/O latency", detail, FLIGHTREC_UNIT, now_ns, value_ns, flightrec_threshold);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(complete_btf, struct request *rq, int error, unsigned int bytes)
{
	__u64 key = (__u64)rq, now_ns, value_ns;
	char detail[FLIGHTREC_DETAIL_SIZE];
	struct pending *p;

	if (bytes < rq->__data_len) /* a partial completion */
		return 0;
	p = bpf_map_lookup_elem(&requests, &key);
	if (!p || !is_current(p, rq))
		return 0;
	now_ns = bpf_ktime_get_ns();
	value_ns = now_ns - p->start_ns;
	p->start_ns = 0;
	detail[0] = '\0';
	if (value_ns >= flightrec_threshold)
		describe(detail, rq);
	fire(&p->who, detail, now_ns, value_ns);
	return 0;
}

/* Without BTF, the programs measure from issue to completion, and identify the request by its device and
   sector. The formats of these tracepoints begin with the same members in all kernels. */
struct block_rq {
	__u64 common;
	__u32 dev; /* 12 bits of major number, 20 of minor */
	__u64 sector;
	__u32 sectors;
};

static __always_inline __u64 key_of(const struct block_rq *rq)
{
	return (__u64)rq->dev << 40 ^ rq->sector;
}

SEC("tp/block/block_rq_issue")
int issue_classic(struct block_rq *ctx)
{
	begin(entry_of(key_of(ctx)));
	return 1;
}

SEC("tp/block/block_rq_complete")
int complete_classic(struct block_rq *ctx)
{
	__u64 key = key_of(ctx), now_ns = bpf_ktime_get_ns(), value_ns;
	char detail[FLIGHTREC_DETAIL_SIZE];
	struct flightrec_subject who;
	struct pending *p = bpf_map_lookup_elem(&requests, &key);

	if (!p)
		return 1;
	value_ns = now_ns - p->start_ns;
	who = p->who;
	bpf_map_delete_elem(&requests, &key);
	detail[0] = '\0';
	if (value_ns >= flightrec_threshold)
		BPF_SNPRINTF(detail, sizeof(detail), "%u:%u %uB", ctx->dev >> 20, ctx->dev & 0xfffff,
			ctx->sectors * 512);
	fire(&who, detail, now_ns, value_ns);
	return 1;
}
