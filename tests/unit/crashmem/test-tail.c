// SPDX-License-Identifier: GPL-2.0-or-later
/* Writes tails, lets the machine crash at any moment, and compares what is read with what was written. */
#include "../unit.h"
#include "memory.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "crashmem/tail_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define BYTES FR_CRASHMEM_BYTES_MIN

/* The content of sections and checkpoints follows from their sequence numbers. */
static void make_content(struct fr_buf *ret, uint64_t seq, bool is_checkpoint)
{
	uint64_t x = 2 * seq + is_checkpoint + 1;
	/* Every 16th section is large, and some are empty. */
	const size_t words = is_checkpoint ? 500 : seq % 7 == 3 ? 0 : seq % 16 == 5 ? 3000 : 40 + seq % 100;

	ret->len = 0;
	for (size_t i = 0; i < words; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		assert_int_equal(fr_buf_append_u64(ret, x), 0);
	}
}

struct world {
	struct fr_crashmem *m, *crashed;
	struct fr_tail *t;
	uint8_t *area, *crashed_area, *before;
	uint64_t area_bytes;
	uint64_t seq; /* the newest section */
	struct fr_buf content, zstd;
};

static struct world *w;

static int set_up(void **state)
{
	static struct world world;

	world = (struct world){.m = memory_new(BYTES), .crashed = memory_new(BYTES)};
	w = &world;
	w->area = fr_crashmem_area(w->m, FLIGHTREC_CRASHMEM_AREA_TAIL, &w->area_bytes);
	w->crashed_area = fr_crashmem_area(w->crashed, FLIGHTREC_CRASHMEM_AREA_TAIL, &w->area_bytes);
	w->before = malloc(w->area_bytes);
	assert_int_equal(fr_tail_new(w->m, &w->t), 0);
	return 0;
}

static int tear_down(void **state)
{
	fr_tail_free(w->t);
	fr_crashmem_free(w->m);
	fr_crashmem_free(w->crashed);
	free(w->before);
	fr_buf_deinit(&w->content);
	fr_buf_deinit(&w->zstd);
	return 0;
}

FIXTURE(set_up, tear_down)

static void compress(const struct fr_buf *from, struct fr_buf *ret)
{
	size_t n;

	ret->len = 0;
	assert_int_equal(fr_buf_reserve(ret, ZSTD_compressBound(from->len)), 0);
	n = ZSTD_compress(ret->data, ret->cap, from->data, from->len, 1);
	assert_false(ZSTD_isError(n));
	ret->len = from->len ? n : 0;
}

static void append(void)
{
	make_content(&w->content, ++w->seq, false);
	compress(&w->content, &w->zstd);
	fr_tail_append(w->t, w->seq, 100 * w->seq, w->zstd.data, w->zstd.len);
}

static int checkpoint(uint64_t seq)
{
	make_content(&w->content, seq, true);
	return fr_tail_checkpoint(w->t, seq, 100 * seq + 1, w->content.data, w->content.len);
}

static uint64_t lost(void)
{
	struct fr_tail_stats stats;

	fr_tail_stats(w->t, &stats);
	return stats.sections_lost;
}

struct seen {
	uint64_t checkpoint, newest; /* 0: none */
	size_t checkpoints, sections;
};

/* Whatever is read was written exactly so. */
static int check_part(void *ctx, const struct fr_tail_part *part)
{
	_cleanup_buf_ struct fr_buf wanted = {0};
	struct seen *s = ctx;

	make_content(&wanted, part->seq, part->is_checkpoint);
	assert_int_equal(part->len, wanted.len);
	assert_memory_equal(part->records, wanted.data, wanted.len);
	assert_int_equal(part->low_watermark_ns, 100 * part->seq + part->is_checkpoint);
	assert_true(part->is_checkpoint ? s->checkpoints + s->sections == 0 : part->seq > s->newest);
	s->newest = part->seq;
	if (part->is_checkpoint)
		s->checkpoint = part->seq;
	s->checkpoints += part->is_checkpoint;
	s->sections += !part->is_checkpoint;
	return 0;
}

static bool read_memory(const struct fr_crashmem *m, uint64_t before_seq, struct seen *ret)
{
	struct seen s = {0};
	bool whole = false;
	size_t wanted = 0;
	int r = fr_tail_read(m, before_seq, check_part, &s, &whole);

	assert_true(r == 0 || (r == -ENOENT && s.checkpoints + s.sections == 0));
	for (uint64_t seq = s.checkpoint + 1; seq < before_seq; seq++)
		wanted += seq % 7 != 3;
	assert_true(s.sections <= wanted);
	if (whole) {
		assert_int_equal(s.checkpoints, 1);
		assert_true(s.checkpoint < before_seq);
		assert_int_equal(s.sections, wanted);
	}
	if (ret)
		*ret = s;
	return whole;
}

TEST(an_empty_tail_has_nothing)
{
	bool whole;

	assert_true(fr_tail_wants_checkpoint(w->t));
	assert_int_equal(fr_tail_read(w->m, 1, check_part, NULL, &whole), -ENOENT);
	assert_int_equal(fr_tail_read(w->crashed, 1, check_part, NULL, &whole), -ENOENT);
	assert_int_equal(fr_tail_evicted_seq(w->m), 0);
	assert_int_equal(fr_tail_evicted_seq(w->crashed), 0);
}

TEST(a_checkpoint_and_the_sections_after_it_are_read)
{
	struct seen s;

	append();
	append();
	assert_false(read_memory(w->m, 3, &s)); /* no checkpoint yet */
	assert_int_equal(s.sections, 2);
	assert_int_equal(checkpoint(2), 0);
	assert_false(fr_tail_wants_checkpoint(w->t));
	assert_int_equal(fr_tail_evicted_seq(w->m), 2);
	for (int i = 0; i < 10; i++)
		append();
	assert_int_equal(fr_tail_evicted_seq(w->m), 12);
	assert_true(read_memory(w->m, 13, &s));
	assert_int_equal(s.checkpoint, 2);
	assert_int_equal(s.newest, 12);
	/* The ring still has the frames from 8 on. */
	assert_true(read_memory(w->m, 8, &s));
	assert_int_equal(s.newest, 7);
	/* The ring has lost frames, and the tail does not have them. */
	assert_false(read_memory(w->m, 14, &s));
}

TEST(a_checkpoint_that_is_later_than_the_ring_is_not_used_if_there_is_an_older_one)
{
	struct seen s;

	assert_int_equal(checkpoint(0), 0);
	for (int i = 0; i < 10; i++)
		append();
	assert_int_equal(checkpoint(10), 0);
	assert_true(read_memory(w->m, 6, &s));
	assert_int_equal(s.checkpoint, 0);
	assert_int_equal(s.newest, 5);
	assert_true(read_memory(w->m, 11, &s));
	assert_int_equal(s.checkpoint, 10);
	assert_int_equal(checkpoint(10), 0);
	assert_false(read_memory(w->m, 6, &s));
	assert_int_equal(s.checkpoint, 10);
	assert_int_equal(s.sections, 0);
}

/* The tracker is fast enough: the log never loses a section, though it is overwritten many times. */
TEST(checkpoints_that_are_written_when_they_are_wanted_lose_nothing)
{
	struct fr_tail_stats stats;

	assert_int_equal(checkpoint(0), 0);
	while (w->seq < 5000) {
		append();
		if (fr_tail_wants_checkpoint(w->t))
			assert_int_equal(checkpoint(w->seq > 20 ? w->seq - 20 : 0), 0);
		if (w->seq % 50 == 0)
			assert_true(read_memory(w->m, w->seq + 1, NULL));
	}
	fr_tail_stats(w->t, &stats);
	assert_int_equal(stats.sections_lost, 0);
	assert_in_range(stats.checkpoints, 20, 200);
	assert_true(stats.log_used_bytes <= stats.log_bytes);
}

TEST(lost_sections_are_counted_and_missed)
{
	size_t left = 0;
	struct seen s;
	uint64_t had;

	assert_int_equal(checkpoint(0), 0);
	while (lost() == 0)
		append();
	assert_true(fr_tail_wants_checkpoint(w->t));
	while (lost() < 10)
		append();
	had = lost();
	assert_false(read_memory(w->m, w->seq + 1, &s));
	assert_int_equal(s.newest, w->seq - (w->seq % 7 == 3));
	for (uint64_t seq = had + 1; seq <= w->seq; seq++) /* the newest sections are there */
		left += seq % 7 != 3;
	assert_int_equal(s.sections, left);
	assert_int_equal(checkpoint(w->seq), 0);
	assert_false(fr_tail_wants_checkpoint(w->t));
	append();
	assert_true(read_memory(w->m, w->seq + 1, NULL));
	assert_int_equal(lost(), had);
}

TEST(a_section_that_is_larger_than_the_log_is_lost)
{
	uint8_t *large = calloc(1, w->area_bytes);

	assert_int_equal(checkpoint(0), 0);
	append();
	fr_tail_append(w->t, 2, 200, large, w->area_bytes);
	w->seq = 2;
	free(large);
	assert_int_equal(lost(), 1);
	assert_true(fr_tail_wants_checkpoint(w->t));
	append();
	assert_false(read_memory(w->m, w->seq + 1, NULL));
	assert_int_equal(checkpoint(2), 0);
	assert_true(read_memory(w->m, w->seq + 1, NULL));
}

TEST(a_checkpoint_that_does_not_fit_changes_nothing)
{
	struct fr_tail_stats stats;
	struct fr_buf large = {0};

	assert_int_equal(checkpoint(0), 0);
	append();
	for (uint64_t x = 1; large.len < w->area_bytes; x = x * 6364136223846793005ULL + 1)
		assert_int_equal(fr_buf_append_u64(&large, x), 0);
	assert_int_equal(fr_tail_checkpoint(w->t, 1, 100, large.data, large.len), -E2BIG);
	fr_buf_deinit(&large);
	fr_tail_stats(w->t, &stats);
	assert_int_equal(stats.checkpoints_failed, 1);
	assert_false(fr_tail_wants_checkpoint(w->t));
	assert_true(read_memory(w->m, 2, NULL));
	/* The next attempt comes when the log is half full. */
	while (!fr_tail_wants_checkpoint(w->t))
		append();
	fr_tail_stats(w->t, &stats);
	assert_true(stats.log_used_bytes >= stats.log_bytes / 2 && stats.sections_lost == 0);
}

/* The memory after a crash: each cache line has its old content (before the last call), or its new content.
 */
static void crash(void)
{
	const int percent = rand() % 101;

	for (uint64_t at = 0; at < w->area_bytes; at += TAIL_LINE)
		memcpy(w->crashed_area + at, (rand() % 100 < percent ? w->before : w->area) + at, TAIL_LINE);
}

/* A crash in the middle of any call: the tail before the call is still there as a whole. */
TEST(a_crash_loses_at_most_the_section_that_is_being_written)
{
	unsigned appends = 0, checkpoints = 0;

	srand(1);
	assert_int_equal(checkpoint(0), 0);
	for (int i = 0; i < 1000; i++) {
		const uint64_t seq = w->seq;
		const bool wanted = fr_tail_wants_checkpoint(w->t) || rand() % 20 == 0;

		memcpy(w->before, w->area, w->area_bytes);
		if (wanted)
			assert_int_equal(checkpoint(w->seq - (uint64_t)rand() % 3 % (w->seq + 1)), 0);
		else
			append();
		*(wanted ? &checkpoints : &appends) += 1;
		for (int n = 0; n < 3; n++) {
			crash();
			assert_true(read_memory(w->crashed, seq + 1, NULL));
			(void)read_memory(w->crashed, w->seq + 1, NULL);
		}
	}
	assert_int_equal(lost(), 0);
	assert_true(appends > 500 && checkpoints > 30);
}

/* Several calls are torn at once, as if the processor wrote nothing back for a while. Parts are missing, but
   no part is wrong: check_part(). */
TEST(lost_cache_lines_are_never_read_as_something_else)
{
	unsigned whole = 0;

	srand(2);
	assert_int_equal(checkpoint(0), 0);
	for (int i = 0; i < 100; i++) {
		memcpy(w->before, w->area, w->area_bytes);
		for (int n = rand() % 40; n >= 0; n--)
			append();
		if (rand() % 2)
			assert_int_equal(checkpoint(w->seq), 0);
		for (int n = 0; n < 5; n++) {
			crash();
			whole += read_memory(w->crashed, w->seq + 1, NULL);
		}
	}
	assert_true(whole > 0);
}

TEST(damaged_bits_are_found)
{
	srand(3);
	assert_int_equal(checkpoint(0), 0);
	for (int i = 0; i < 300; i++)
		append();
	assert_int_equal(checkpoint(250), 0);
	for (int i = 0; i < 500; i++) {
		memcpy(w->crashed_area, w->area, w->area_bytes);
		for (int n = rand() % 30; n >= 0; n--) {
			const uint64_t bit = (uint64_t)rand() % (8 * w->area_bytes);

			w->crashed_area[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		(void)read_memory(w->crashed, w->seq + 1, NULL);
	}
	/* Each bit of the newest checkpoint: the older one is used instead. */
	memcpy(w->crashed_area, w->area, w->area_bytes);
	for (unsigned bit = 0; bit < 8 * sizeof(struct tail_slot); bit++) {
		struct tail_space space;
		struct seen s;
		uint8_t *slot;

		assert_true(tail_space_init(&space, w->crashed));
		slot = (uint8_t *)space.slots[1];
		slot[bit / 8] ^= (uint8_t)(1u << bit % 8);
		(void)read_memory(w->crashed, w->seq + 1, &s);
		assert_int_equal(s.checkpoint, 0);
		slot[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* Changes the newest entry or slot by CHANGE, and makes its crc right again. */
static void forge_entry(void (*change)(struct tail_entry *e))
{
	struct tail_space space;

	assert_true(tail_space_init(&space, w->m));
	for (uint64_t at = 0; at < space.log_bytes; at += TAIL_LINE) {
		struct tail_entry *e = (struct tail_entry *)(space.log + at);

		if (e->magic != TAIL_ENTRY_MAGIC || e->seq != w->seq)
			continue;
		change(e);
		if (tail_entry_size(&space, e->bytes))
			e->crc = tail_entry_crc(&space, e);
		return;
	}
	fail_msg("there is no entry");
}

static void forge_length(struct tail_entry *e)
{
	e->bytes = UINT64_MAX - 30;
}

static void forge_long(struct tail_entry *e)
{
	e->bytes += 100000;
}

static void forge_position(struct tail_entry *e)
{
	e->position = UINT64_MAX / 2;
}

static void forge_key(struct tail_entry *e)
{
	e->key ^= 1;
}

TEST(forged_entries_are_refused)
{
	static void (*const changes[])(struct tail_entry *) = {
		forge_length, forge_long, forge_position, forge_key};

	for (size_t i = 0; i < FR_ARRAY_SIZE(changes); i++) {
		w->seq = 0;
		fr_tail_free(w->t);
		assert_int_equal(fr_tail_new(w->m, &w->t), 0);
		assert_int_equal(checkpoint(0), 0);
		append();
		append();
		forge_entry(changes[i]);
		assert_false(read_memory(w->m, 3, NULL));
		assert_true(read_memory(w->m, 2, NULL));
	}
}

static int count_part(void *ctx, const struct fr_tail_part *part)
{
	size_t *n = ctx;

	assert_true(part->len <= FR_TAIL_SECTION_MAX);
	(*n)++;
	return 0;
}

/* A small section that would become large is not decompressed further than FR_TAIL_SECTION_MAX. */
TEST(sections_that_are_too_large_or_no_zstd_are_left_out)
{
	struct fr_buf zeros = {0};
	bool whole = true;
	size_t n = 0;

	assert_int_equal(checkpoint(0), 0);
	assert_int_equal(fr_buf_append_zero(&zeros, FR_TAIL_SECTION_MAX + 1), 0);
	compress(&zeros, &w->zstd);
	fr_tail_append(w->t, 1, 100, w->zstd.data, w->zstd.len);
	fr_tail_append(w->t, 2, 200, "no zstd at all", 14);
	zeros.len = FR_TAIL_SECTION_MAX;
	compress(&zeros, &w->zstd);
	fr_buf_deinit(&zeros);
	fr_tail_append(w->t, 3, 300, w->zstd.data, w->zstd.len);
	assert_int_equal(fr_tail_read(w->m, 4, count_part, &n, &whole), 0);
	assert_int_equal(n, 2); /* the checkpoint and section 3 */
	assert_false(whole);
}

TEST(a_checkpoint_that_zstd_cannot_read_is_not_used)
{
	struct tail_space space;
	struct seen s;

	assert_int_equal(checkpoint(0), 0);
	append();
	assert_int_equal(checkpoint(1), 0);
	assert_true(tail_space_init(&space, w->m));
	space.slots[1]->raw_bytes--;
	space.slots[1]->crc = tail_slot_crc(space.slots[1], space.slots[1]->data);
	assert_true(read_memory(w->m, 2, &s));
	assert_int_equal(s.checkpoint, 0);
	space.slots[1]->raw_bytes = UINT64_MAX;
	space.slots[1]->crc = tail_slot_crc(space.slots[1], space.slots[1]->data);
	assert_true(read_memory(w->m, 2, NULL));
}

static int fail_at_once(void *ctx, const struct fr_tail_part *part)
{
	return -ENOMEM;
}

TEST(an_error_of_apply_ends_the_reading)
{
	bool whole;

	assert_int_equal(checkpoint(0), 0);
	assert_int_equal(fr_tail_read(w->m, 1, fail_at_once, NULL, &whole), -ENOMEM);
}

static void restart(uint64_t evicted_seq)
{
	w->t = fr_tail_free(w->t);
	assert_int_equal(fr_tail_adopt(w->m, evicted_seq, &w->t), 0);
}

TEST(a_tail_is_adopted_again_and_again)
{
	assert_int_equal(checkpoint(0), 0);
	for (int i = 0; i < 2000; i++) {
		append();
		if (fr_tail_wants_checkpoint(w->t))
			assert_int_equal(checkpoint(w->seq), 0);
		if (i % 10 == 0) {
			restart(w->seq);
			assert_false(fr_tail_wants_checkpoint(w->t));
			assert_true(read_memory(w->m, w->seq + 1, NULL));
		}
	}
	assert_int_equal(lost(), 0);
}

/* The recorder was killed after the append, and before the ring forgot the frame: the frame is evicted again.
 */
TEST(a_section_that_is_appended_twice_is_read_once)
{
	struct seen s;

	assert_int_equal(checkpoint(0), 0);
	for (int i = 0; i < 20; i++)
		append();
	restart(19);
	w->seq = 19;
	append();
	append();
	assert_true(read_memory(w->m, 22, &s));
	assert_int_equal(s.newest, 21);
}

TEST(a_tail_that_is_not_whole_is_not_adopted)
{
	struct fr_tail *t;

	assert_int_equal(fr_tail_adopt(w->crashed, 0, &t), -EBADMSG);
	append();
	assert_int_equal(fr_tail_adopt(w->m, 1, &t), -EBADMSG); /* no checkpoint */
	assert_int_equal(checkpoint(1), 0);
	append();
	assert_int_equal(fr_tail_adopt(w->m, 3, &t), -EBADMSG); /* section 3 is missing */
	assert_int_equal(fr_tail_adopt(w->m, 0, &t), -EBADMSG); /* the checkpoint is later */
	assert_int_equal(fr_tail_adopt(w->m, UINT64_MAX, &t), -EBADMSG);
	/* A new tail begins, and does not see what was there. */
	fr_tail_free(w->t);
	assert_int_equal(fr_tail_new(w->m, &w->t), 0);
	w->seq = 10;
	append();
	assert_true(fr_tail_wants_checkpoint(w->t));
	assert_int_equal(checkpoint(10), 0);
	assert_true(read_memory(w->m, 12, NULL));
}

/* The memory changes while a recorder uses it. Its own writes stay inside of the log. */
TEST(a_writer_survives_damage)
{
	srand(4);
	assert_int_equal(checkpoint(0), 0);
	for (int i = 0; i < 3000; i++) {
		const uint64_t bit = (uint64_t)rand() % (8 * w->area_bytes);

		append();
		w->area[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (fr_tail_wants_checkpoint(w->t))
			assert_int_equal(checkpoint(w->seq), 0);
	}
	(void)read_memory(w->m, w->seq + 1, NULL);
	fr_tail_free(w->t);
	if (fr_tail_adopt(w->m, w->seq, &w->t) < 0)
		assert_int_equal(fr_tail_new(w->m, &w->t), 0);
}
