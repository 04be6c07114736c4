// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the memory of tables and maps, in real BPF maps. */
#include "../unit.h"
#include "unwind/memory.h"
#include "base/cleanup.h"
#include "chunks.h"

#include <errno.h>
#include <string.h>

#define MIB (1u << 20)

struct block {
	fr_unwind_at at;
	uint32_t bytes;
	uint8_t mark;
};

static struct fr_unwind_memory *m;
static int chunks_fd;

static int set_up(void **state)
{
	chunks_fd = chunks_new();
	assert_int_equal(fr_unwind_memory_new(chunks_fd, 4 * MIB, &m), 0);
	return 0;
}

static int tear_down(void **state)
{
	m = fr_unwind_memory_free(m);
	close(chunks_fd);
	return 0;
}
FIXTURE(set_up, tear_down)

TEST(chunks_are_made_up_to_the_bound)
{
	unsigned n = 0;

	assert_int_equal(fr_unwind_memory_bytes(m), MIB);
	while (fr_unwind_memory_take(m, MIB / 2))
		n++;
	assert_int_equal(n, 7); /* the first bytes of the first chunk are not used */
	assert_int_equal(fr_unwind_memory_bytes(m), 4 * MIB);
	assert_true(fr_unwind_memory_take(m, MIB / 4));
	assert_int_equal(fr_unwind_memory_room(m), MIB / 4 - FR_UNWIND_AT_UNIT);
}

TEST(a_block_is_in_one_chunk)
{
	assert_int_equal(fr_unwind_memory_take(m, 0), 0);
	assert_int_equal(fr_unwind_memory_take(m, MIB + 1), 0);
	assert_int_equal(fr_unwind_memory_take(m, MIB) >> FR_UNWIND_AT_BITS, 1);
	assert_int_equal(fr_unwind_memory_take(m, MIB / 2) >> FR_UNWIND_AT_BITS, 0);
	assert_int_equal(fr_unwind_memory_take(m, MIB / 2) >> FR_UNWIND_AT_BITS, 2);
}

TEST(another_process_reads_what_is_written)
{
	const fr_unwind_at at = fr_unwind_memory_take(m, 16);

	memcpy(fr_unwind_memory_address(m, at), "0123456789abcdef", 16);
	assert_memory_equal(chunks_read(chunks_fd, at), "0123456789abcdef", 16);
}

static void fill(const struct block *b)
{
	memset(fr_unwind_memory_address(m, b->at), b->mark, b->bytes);
}

static void check_filled(const struct block *b)
{
	const uint8_t *v = fr_unwind_memory_address(m, b->at);

	for (uint32_t i = 0; i < b->bytes; i++)
		assert_int_equal(v[i], b->mark);
}

TEST(blocks_do_not_overlap_and_join_when_they_are_given_back)
{
	struct block blocks[512] = {0};
	unsigned seed = 1;

	for (unsigned i = 0; i < 20000; i++) {
		struct block *b = &blocks[(unsigned)rand_r(&seed) % FR_ARRAY_SIZE(blocks)];

		if (b->at) {
			check_filled(b);
			fr_unwind_memory_give(m, b->at, b->bytes);
			b->at = 0;
			continue;
		}
		*b = (struct block){.bytes = 1 + (uint32_t)rand_r(&seed) % 12000, .mark = (uint8_t)i};
		b->at = fr_unwind_memory_take(m, b->bytes);
		if (b->at)
			fill(b);
	}
	for (unsigned i = 0; i < FR_ARRAY_SIZE(blocks); i++)
		fr_unwind_memory_give(m, blocks[i].at, blocks[i].bytes);
	assert_int_equal(fr_unwind_memory_room(m), 4 * MIB - FR_UNWIND_AT_UNIT);
	assert_int_not_equal(fr_unwind_memory_take(m, MIB), 0);
	assert_int_not_equal(fr_unwind_memory_take(m, MIB - FR_UNWIND_AT_UNIT), 0);
}

TEST(memory_that_programs_may_read_is_not_used_before_they_have_ended)
{
	const fr_unwind_at at = fr_unwind_memory_take(m, MIB - FR_UNWIND_AT_UNIT);

	assert_int_equal(at >> FR_UNWIND_AT_BITS, 0);
	fr_unwind_memory_give_later(m, at, MIB - FR_UNWIND_AT_UNIT);
	assert_int_equal(fr_unwind_memory_waiting(m), MIB - FR_UNWIND_AT_UNIT);
	assert_int_not_equal(fr_unwind_memory_take(m, 8) >> FR_UNWIND_AT_BITS, 0);
	assert_int_equal(fr_unwind_memory_wait(m), 0);
	assert_int_equal(fr_unwind_memory_waiting(m), 0);
	assert_int_equal(fr_unwind_memory_take(m, 8) >> FR_UNWIND_AT_BITS, 0);
}

TEST(a_smaller_bound_removes_the_excess_chunks_when_they_are_empty)
{
	const fr_unwind_at first = fr_unwind_memory_take(m, MIB / 2), second = fr_unwind_memory_take(m, MIB);

	fr_unwind_memory_set_max(m, MIB);
	assert_false(fr_unwind_memory_is_excess(m, first));
	assert_true(fr_unwind_memory_is_excess(m, second));
	fr_unwind_memory_trim(m);
	assert_int_equal(fr_unwind_memory_bytes(m), 2 * MIB);
	assert_int_equal(fr_unwind_memory_take(m, MIB / 2), 0);
	fr_unwind_memory_give(m, second, MIB);
	fr_unwind_memory_trim(m);
	assert_int_equal(fr_unwind_memory_bytes(m), MIB);
	assert_null(chunks_read(chunks_fd, second));
}
