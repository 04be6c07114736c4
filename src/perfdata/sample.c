// SPDX-License-Identifier: GPL-2.0-or-later

/* uapi linux/perf_event.h describes the layout, at PERF_RECORD_SAMPLE. */

#include "perfdata/sample.h"
#include "base/cleanup.h"
#include "perfdata/bytes.h"

#define BRANCH_BYTES 24

bool fr_sample_is_marker(uint64_t address, uint16_t *mode)
{
	if (address < (uint64_t)PERF_CONTEXT_MAX)
		return false;
	switch (address) {
	case PERF_CONTEXT_HV:
		*mode = PERF_RECORD_MISC_HYPERVISOR;
		break;
	case PERF_CONTEXT_KERNEL:
		*mode = PERF_RECORD_MISC_KERNEL;
		break;
	case PERF_CONTEXT_USER:
		*mode = PERF_RECORD_MISC_USER;
		break;
	case PERF_CONTEXT_GUEST_KERNEL:
		*mode = PERF_RECORD_MISC_GUEST_KERNEL;
		break;
	case PERF_CONTEXT_GUEST_USER:
		*mode = PERF_RECORD_MISC_GUEST_USER;
		break;
	default:
		break;
	}
	return true;
}

/* Skips N elements of SIZE bytes. Returns the number of whole elements that there are. */
static size_t take_array(struct byte_reader *in, uint64_t n, size_t size, const uint8_t **ret)
{
	const uint64_t there = in->failed ? 0 : in->left / size;

	*ret = in->p;
	(void)read_bytes(in, n > there ? UINT64_MAX : n * size);
	return (size_t)FR_MIN(n, there);
}

/* Skips the counters of PERF_SAMPLE_READ, which are in the form of read(2). */
static void skip_counters(struct byte_reader *in, uint64_t format)
{
	const uint64_t times =
		!!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	const uint64_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
	const uint64_t n = format & PERF_FORMAT_GROUP ? read_u64(in) : 1;
	const uint8_t *counters;

	(void)read_bytes(in, 8 * times);
	(void)take_array(in, n, 8 * each, &counters);
}

static void read_chain(struct byte_reader *in, struct fr_sample_fields *ret)
{
	const uint8_t *chain;

	ret->n_chain = take_array(in, read_u64(in), sizeof(uint64_t), &chain);
	ret->chain = (const void *)chain; /* aligned: all fields before it have a multiple of 8 bytes */
}

static void read_raw(struct byte_reader *in, struct fr_sample_fields *ret)
{
	const uint32_t size = read_u32(in);

	ret->raw = read_bytes(in, size);
	ret->raw_bytes = ret->raw ? size : 0;
}

static void read_stack(struct byte_reader *in, struct fr_sample_fields *ret)
{
	const uint64_t size = read_u64(in);
	const uint8_t *stack;
	uint64_t used;

	if (size == 0)
		return;
	stack = read_bytes(in, size);
	used = read_u64(in);
	in->failed |= used > size;
	if (in->failed)
		return;
	ret->stack = stack;
	ret->stack_bytes = used;
}

/* Reads the cgroup, and skips the fields between the user stack and it. */
static void read_cgroup(
	struct byte_reader *in, const struct perf_event_attr *attr, struct fr_sample_fields *ret)
{
	static const uint64_t words[] = {PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT, PERF_SAMPLE_DATA_SRC,
		PERF_SAMPLE_TRANSACTION};

	for (size_t i = 0; i < FR_ARRAY_SIZE(words); i++)
		if (attr->sample_type & words[i])
			(void)read_u64(in);
	if (attr->sample_type & PERF_SAMPLE_REGS_INTR && read_u64(in) != 0)
		(void)read_bytes(in, 8ull * (unsigned)__builtin_popcountll(attr->sample_regs_intr));
	if (attr->sample_type & PERF_SAMPLE_PHYS_ADDR)
		(void)read_u64(in);
	ret->cgroup = read_u64(in);
}

/* Reads the fields that have a fixed size. */
static void read_head(struct byte_reader *in, uint64_t type, struct fr_sample_fields *ret)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		ret->id = read_u64(in);
	if (type & PERF_SAMPLE_IP)
		ret->ip = read_u64(in);
	if (type & PERF_SAMPLE_TID) {
		ret->pid = read_u32(in);
		ret->tid = read_u32(in);
	}
	if (type & PERF_SAMPLE_TIME)
		ret->time = read_u64(in);
	if (type & PERF_SAMPLE_ADDR)
		ret->addr = read_u64(in);
	if (type & PERF_SAMPLE_ID)
		ret->id = read_u64(in);
	if (type & PERF_SAMPLE_STREAM_ID)
		(void)read_u64(in);
	if (type & PERF_SAMPLE_CPU)
		ret->cpu = (uint32_t)read_u64(in);
	if (type & PERF_SAMPLE_PERIOD)
		ret->period = read_u64(in);
}

int fr_sample_parse(const struct perf_event_attr *attr, const struct perf_event_header *sample,
	struct fr_sample_fields *ret)
{
	struct byte_reader in = {(const uint8_t *)(sample + 1), sample->size - sizeof(*sample), false};
	const uint64_t type = attr->sample_type;

	*ret = (struct fr_sample_fields){.mode = sample->misc & PERF_RECORD_MISC_CPUMODE_MASK,
		.period = attr->freq ? 1 : attr->sample_period};
	read_head(&in, type, ret);
	if (type & PERF_SAMPLE_READ)
		skip_counters(&in, attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		read_chain(&in, ret);
	if (type & PERF_SAMPLE_RAW)
		read_raw(&in, ret);
	if (type & PERF_SAMPLE_BRANCH_STACK) {
		const uint64_t n = read_u64(&in);

		if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
			(void)read_u64(&in);
		ret->n_branches = take_array(&in, n, BRANCH_BYTES, &ret->branches);
	}
	if (type & PERF_SAMPLE_REGS_USER && read_u64(&in) != 0) /* the ABI; 0: no registers */
		(void)read_bytes(&in, 8ull * (unsigned)__builtin_popcountll(attr->sample_regs_user));
	if (type & PERF_SAMPLE_STACK_USER)
		read_stack(&in, ret);
	if (type & PERF_SAMPLE_CGROUP)
		read_cgroup(&in, attr, ret);
	return in.failed ? -EBADMSG : 0;
}

static uint64_t word_at(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static void give_branch_end(fr_sample_address_fn each, void *ctx, uint64_t address)
{
	/* A branch record has no mode, but in addresses of the kernel the top bit is set. */
	each(ctx, address, address >> 63 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
}

void fr_sample_for_each_address(const struct perf_event_attr *attr, const struct perf_event_header *sample,
	fr_sample_address_fn each, void *ctx)
{
	struct fr_sample_fields s;
	uint16_t mode;

	(void)fr_sample_parse(attr, sample, &s);
	mode = s.mode;
	if (s.ip)
		each(ctx, s.ip, mode);
	for (size_t i = 0; i < s.n_chain; i++)
		if (!fr_sample_is_marker(s.chain[i], &mode))
			each(ctx, s.chain[i], mode);
	for (size_t i = 0; i < s.n_branches; i++) {
		give_branch_end(each, ctx, word_at(s.branches + i * BRANCH_BYTES));
		give_branch_end(each, ctx, word_at(s.branches + i * BRANCH_BYTES + 8));
	}
	for (size_t i = 0; i + 8 <= s.stack_bytes; i += 8)
		each(ctx, word_at(s.stack + i), PERF_RECORD_MISC_USER);
}
