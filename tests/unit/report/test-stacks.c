// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the tree of stacks, of the chain of addresses in a sample, and of the messages of Protocol *
   Buffers. */
#include "../unit.h"
#include "perfdata/sample.h"
#include "report/protobuf.h"
#include "report/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

TEST(equal_stacks_are_one_stack)
{
	struct fr_stacks s = {0};
	uint32_t frames[4];
	const uint32_t a = fr_stacks_push(&s, FR_STACK_NONE, 7), b = fr_stacks_push(&s, a, 8);

	assert_int_equal(fr_stacks_push(&s, FR_STACK_NONE, 7), a);
	assert_int_equal(fr_stacks_push(&s, a, 8), b);
	assert_int_not_equal(fr_stacks_push(&s, FR_STACK_NONE, 8), b);
	assert_int_equal(fr_stacks_frames(&s, b, frames, 4), 2);
	assert_int_equal(frames[0], 8);
	assert_int_equal(frames[1], 7);
	assert_int_equal(fr_stacks_frames(&s, b, frames, 1), 1);
	assert_int_equal(frames[0], 8);
	assert_int_equal(fr_stacks_frames(&s, FR_STACK_NONE, frames, 4), 0);
	fr_stacks_deinit(&s);
}

TEST(the_tree_grows)
{
	struct fr_stacks s = {0};
	uint32_t *nodes = malloc(100000 * sizeof(*nodes));

	srand(1);
	for (uint32_t i = 0; i < 100000; i++) {
		const uint32_t parent =
			i == 0 || rand() % 4 == 0 ? FR_STACK_NONE : nodes[(uint32_t)rand() % i];

		nodes[i] = fr_stacks_push(&s, parent, (uint32_t)rand() % 100);
		assert_int_not_equal(nodes[i], FR_STACK_NONE);
	}
	for (uint32_t i = 0; i < s.n; i++)
		assert_int_equal(fr_stacks_push(&s, s.nodes[i].parent, s.nodes[i].frame), i);
	fr_stacks_deinit(&s);
	free(nodes);
}

/* A sample with each field that the parser knows. */
struct sample {
	struct perf_event_header h;
	uint64_t id, ip, tid, time, addr, cpu, period, values[4], n, chain[4];
	uint32_t raw_size, raw;
	uint64_t n_branches, branches[2][3], abi, regs[2], size, stack[2], used;
};

static const struct perf_event_attr attr = {
	.sample_type = FR_SAMPLE_TYPE | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ |
		       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK |
		       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
	.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED,
	.sample_regs_user = 3};

static struct sample make_sample(void)
{
	return (struct sample){.h = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, sizeof(struct sample)},
		.id = 11,
		.ip = 12,
		.tid = 14ull << 32 | 13,
		.time = 15,
		.addr = 16,
		.cpu = 17,
		.period = 18,
		.values = {2, 100, 1, 2}, /* a group of two counters, and the time enabled */
		.n = 4,
		.chain = {(uint64_t)PERF_CONTEXT_KERNEL, 2, (uint64_t)PERF_CONTEXT_USER, 3},
		.raw_size = 4,
		.raw = 0x61626364,
		.n_branches = 2,
		.branches = {{1, 2, 3}, {4, 5, 6}},
		.abi = 2,
		.size = 16,
		.stack = {5, 7},
		.used = 8};
}

TEST(all_fields_of_a_sample_are_found)
{
	const struct sample s = make_sample();
	struct fr_sample_fields f;

	assert_int_equal(fr_sample_parse(&attr, &s.h, &f), 0);
	assert_int_equal(f.id, 11);
	assert_int_equal(f.ip, 12);
	assert_int_equal(f.pid, 13);
	assert_int_equal(f.tid, 14);
	assert_int_equal(f.time, 15);
	assert_int_equal(f.addr, 16);
	assert_int_equal(f.cpu, 17);
	assert_int_equal(f.period, 18);
	assert_int_equal(f.mode, PERF_RECORD_MISC_KERNEL);
	assert_int_equal(f.n_chain, 4);
	assert_int_equal(f.chain[3], 3);
	assert_int_equal(f.raw_bytes, 4);
	assert_memory_equal(f.raw, "dcba", 4);
	assert_int_equal(f.n_branches, 2);
	assert_int_equal(f.stack_bytes, 8);
}

TEST(a_damaged_sample_is_read_within_its_bounds)
{
	struct sample s = make_sample();
	struct fr_sample_fields f;

	for (uint16_t size = sizeof(s.h); size < sizeof(s); size += 8) {
		void *copy = malloc(size); /* a sanitizer sees a read behind its end */

		s.h.size = size;
		memcpy(copy, &s, size);
		assert_int_equal(fr_sample_parse(&attr, copy, &f), -EBADMSG);
		for (size_t i = 0; i < f.n_chain; i++)
			assert_true(f.chain[i] != 1);
		free(copy);
	}
	s.n = UINT64_MAX;
	assert_int_equal(fr_sample_parse(&attr, &s.h, &f), -EBADMSG);
	s = make_sample();
	s.values[0] = UINT64_MAX / 4;
	assert_int_equal(fr_sample_parse(&attr, &s.h, &f), -EBADMSG);
	s = make_sample();
	s.raw_size = UINT32_MAX;
	assert_int_equal(fr_sample_parse(&attr, &s.h, &f), -EBADMSG);
	s = make_sample();
	s.used = 17;
	assert_int_equal(fr_sample_parse(&attr, &s.h, &f), -EBADMSG);
}

TEST(messages_have_the_wire_format)
{
	static const uint8_t wanted[] = {0x08, 0x96, 0x01, 0x12, 0x02, 'h', 'i', 0x1a, 0x02, 0x08, 0x01};
	struct fr_protobuf outer = {0}, inner = {0};

	fr_pb_number(&outer, 1, 150);
	fr_pb_text(&outer, 2, "hi");
	fr_pb_number(&inner, 1, 1);
	fr_pb_message(&outer, 3, &inner);
	assert_int_equal(inner.buf.len, 0);
	assert_false(outer.failed);
	assert_int_equal(outer.buf.len, sizeof(wanted));
	assert_memory_equal(outer.buf.data, wanted, sizeof(wanted));
	fr_pb_number(&inner, 1, UINT64_MAX);
	assert_int_equal(inner.buf.len, 11);
	fr_pb_deinit(&outer);
	fr_pb_deinit(&inner);
}
