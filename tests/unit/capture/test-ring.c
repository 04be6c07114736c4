// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of draining kernel rings. The test writes the rings itself, as the kernel does. It covers
   wrap-around, invalid records, records that the kernel changes because of another recorder, and overwritable
   rings. */
#include "../unit.h"
#include "capture/ring.h"
#include "base/cleanup.h"
#include "perfdata/record.h"

#include <stdlib.h>
#include <string.h>

#define RING_BYTES (256u << 10)
#define IDS 3
#define ID(i) (1000 + ((uint64_t)(i) << 26)) /* ids with the same hash in the table of ids */

struct fixture {
	struct perf_event_mmap_page page;
	struct fr_ring ring;
	struct fr_id_table ids;
	struct fr_counter_cell cells[IDS], unknown;
	struct fr_tally tally;
	struct fr_overwritable_room room;
	_Alignas(8) uint8_t data[RING_BYTES], copy[RING_BYTES], bounce[FR_RUN_MAX];
	/* Counts of the drained records. If is_suffix is true, the older records may be missing, so the
	   first record may have any time. */
	uint64_t next_time, records, largest;
	bool is_suffix;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->room =
		(struct fr_overwritable_room){f->copy, calloc(fr_ring_max_pieces(RING_BYTES), 8), f->bounce};
	f->ring = (struct fr_ring){
		.page = &f->page, .data = f->data, .size = RING_BYTES, .owner = &f->cells[0], .epoll_fd = -1};
	for (uint32_t i = 0; i < IDS; i++)
		assert_int_equal(fr_id_table_add(&f->ids, ID(i), i), 0);
	f->tally = (struct fr_tally){.ids = &f->ids,
		.cells = f->cells,
		.unknown = &f->unknown,
		.last = &f->unknown,
		.lost_as = FR_LOSS_KERNEL_RING};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fr_id_table_deinit(&f->ids);
	free(f->room.pieces);
	free(f);
	return 0;
}

FIXTURE(setup, teardown)

/* Checks the records of a run (what one call of the sink gets): their times are consecutive, and each word of
   a sample is the time of the sample. */
static void sink(void *ctx, const struct fr_run *run)
{
	struct fixture *f = ctx;
	const uint8_t *p = run->data, *end = p + run->len;
	uint32_t n = 0;

	assert_true(run->len <= FR_RUN_MAX);
	if (f->is_suffix && !f->records)
		f->next_time = run->first_ns;
	assert_int_equal(run->first_ns, f->next_time);
	for (; p < end; p += ((const struct perf_event_header *)p)->size, n++) {
		const struct fr_sample *s = (const void *)p;
		const uint64_t *words = (const void *)p;

		assert_int_equal(fr_record_time(&s->header), f->next_time);
		if (s->header.type == PERF_RECORD_SAMPLE)
			for (size_t i = 5; i < s->header.size / 8; i++)
				assert_int_equal(words[i], f->next_time);
		f->next_time++;
	}
	assert_ptr_equal(p, end);
	assert_int_equal(n, run->records);
	assert_int_equal(run->last_ns, f->next_time - 1);
	f->records += n;
	f->largest = FR_MAX(f->largest, run->len);
}

static void ring_write(struct fixture *f, uint64_t at, const void *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		f->data[(at + i) & (RING_BYTES - 1)] = ((const uint8_t *)from)[i];
}

static void put_record(struct fixture *f, const void *record, size_t len)
{
	ring_write(f, f->page.data_head, record, len);
	f->page.data_head += len;
}

static void make_sample(uint64_t *words, uint64_t id, uint64_t time, size_t size)
{
	struct fr_sample *s = (void *)words;

	s->header = (struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = size};
	s->id = id;
	s->time = time;
	for (size_t i = 5; i < size / 8; i++)
		words[i] = time;
}

static void put_sample(struct fixture *f, uint64_t id, uint64_t time, size_t size)
{
	uint64_t words[FR_RECORD_MAX / 8];

	make_sample(words, id, time, size);
	put_record(f, words, size);
}

static size_t drain(struct fixture *f)
{
	return fr_ring_drain(&f->ring, &f->tally, f->bounce, sink, f);
}

TEST(all_records_are_drained_and_counted)
{
	struct fixture *f = *state;
	uint64_t time = 0, expected[IDS] = {0};

	srand(1);
	for (int round = 0; round < 300; round++) {
		uint64_t before = f->page.data_head;

		for (;;) {
			size_t size = 48 + 8 * (size_t)(rand() % (rand() % 16 ? 20 : 8000));
			unsigned id = rand() % IDS;

			if (f->page.data_head + size - f->page.data_tail > RING_BYTES)
				break;
			put_sample(f, ID(id), time++, size);
			expected[id]++;
		}
		assert_int_equal(drain(f), f->page.data_head - before);
		assert_int_equal(f->page.data_tail, f->page.data_head);
	}
	assert_int_equal(f->records, time);
	assert_true(f->largest > FR_RUN_MAX / 2);
	for (unsigned i = 0; i < IDS; i++)
		assert_int_equal(f->cells[i].samples, expected[i]);
	assert_int_equal(f->cells[0].lost[FR_LOSS_TORN], 0);
	assert_int_equal(drain(f), 0);
}

TEST(largest_record_can_go_over_the_end_of_the_ring)
{
	struct fixture *f = *state;

	f->ring.tail = f->page.data_tail = f->page.data_head = RING_BYTES - 8;
	put_sample(f, 1000, 0, FR_RECORD_MAX & ~7u);
	put_sample(f, 1000, 1, 48);
	drain(f);
	assert_int_equal(f->records, 2);
}

/* The kernel can give a sample the id of another recorder's event. */
TEST(samples_with_unknown_ids_are_skipped_and_counted)
{
	struct fixture *f = *state;

	f->tally.only_known = true;
	f->ring.tail = f->page.data_tail = f->page.data_head = RING_BYTES - 48 * 4 - 8;
	put_sample(f, 4711, 99, 48); /* the first record */
	put_sample(f, 1000, 0, 48);
	put_sample(f, 4711, 99, 48);
	put_sample(f, ID(1), 1, 48);
	put_sample(f, 4711, 99, 48); /* wraps around the end of the memory */
	put_sample(f, ID(1), 2, 48);
	put_sample(f, 4712, 99, 48); /* the last record */
	drain(f);
	assert_int_equal(f->records, 3);
	assert_int_equal(f->cells[0].samples, 1);
	assert_int_equal(f->cells[1].samples, 2);
	assert_int_equal(f->unknown.samples, 0);
	assert_int_equal(f->cells[0].lost[FR_LOSS_FOREIGN_ID], 4);
	assert_int_equal(f->cells[0].lost[FR_LOSS_TORN], 0);
	assert_int_equal(f->page.data_tail, f->page.data_head);
}

/* Put a side-band record: HEADER, BODY_LEN bytes of BODY, and a sample id with TIME and ID. */
static void put_sideband(struct fixture *f, struct perf_event_header header, const void *body,
	size_t body_len, uint64_t time, uint64_t id)
{
	const struct fr_sample_id trailer = {.pid = 4, .time = time, .cpu = 1, .id = id};

	if (!header.size)
		header.size = (uint16_t)(sizeof(header) + body_len + sizeof(trailer));
	put_record(f, &header, sizeof(header));
	put_record(f, body, body_len);
	put_record(f, &trailer, sizeof(trailer));
}

TEST(aux_records_of_lost_data_are_counted)
{
	static const uint64_t flags[] = {0, PERF_AUX_FLAG_OVERWRITE, PERF_AUX_FLAG_TRUNCATED,
		PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_OVERWRITE, PERF_AUX_FLAG_COLLISION};
	struct fixture *f = *state;

	for (size_t i = 0; i < FR_ARRAY_SIZE(flags); i++)
		put_sideband(f, (struct perf_event_header){.type = PERF_RECORD_AUX},
			(uint64_t[]){0, 64, flags[i]}, 24, i, ID(2));
	drain(f);
	assert_int_equal(f->records, FR_ARRAY_SIZE(flags));
	assert_int_equal(f->cells[2].lost[FR_LOSS_AUX], 3);
}

TEST(losses_are_counted_for_their_event)
{
	struct fixture *f = *state;

	put_sample(f, 1000, 0, 56);
	put_sideband(f, (struct perf_event_header){.type = PERF_RECORD_LOST}, (uint64_t[]){ID(1), 77}, 16, 1,
		ID(1));
	put_sideband(f, (struct perf_event_header){.type = PERF_RECORD_THROTTLE},
		(uint64_t[]){2, ID(2), ID(2)}, 24, 2, ID(2));
	put_sideband(
		f, (struct perf_event_header){.type = PERF_RECORD_LOST_SAMPLES}, (uint64_t[]){5}, 8, 3, 4711);
	drain(f);
	assert_int_equal(f->records, 4);
	assert_int_equal(f->cells[1].lost[FR_LOSS_KERNEL_RING], 77);
	assert_int_equal(f->cells[2].lost[FR_LOSS_THROTTLED], 1);
	assert_int_equal(f->unknown.lost[FR_LOSS_KERNEL_RING], 5); /* the record with an unknown id */
}

/* If other recorders run, the kernel can leave bytes after the sample id of a record. In this case the drain
   moves the sample id to the end of the record. */
TEST(misplaced_trailer_moves_to_the_end)
{
	static const struct {
		struct fr_record_ksymbol r;
		char name[16];
	} k = {.r = {.addr = 1}, .name = "bpf_prog_1"};
	static const uint64_t garbage[8] = {7, 7, 7, 7, 7, 7, 7, 7}, zeros[8];
	const size_t body = sizeof(k) - sizeof(k.r.header),
		     whole = sizeof(k) + sizeof(struct fr_sample_id) + sizeof(garbage);
	struct fixture *f = *state;
	_cleanup_free_ uint8_t *before = NULL;

	put_sideband(f, (struct perf_event_header){PERF_RECORD_KSYMBOL, 0, (uint16_t)whole}, &k.r.addr, body,
		0, ID(1));
	put_record(f, garbage, sizeof(garbage));
	put_sideband(f, (struct perf_event_header){.type = PERF_RECORD_BPF_EVENT}, (uint64_t[]){7, 0}, 16, 1,
		ID(2));
	before = memcpy(malloc(whole), f->data, whole);
	drain(f); /* sink() checks the times of the records */
	assert_int_equal(f->records, 2);
	assert_memory_equal(f->data, before, whole); /* the kernel's memory does not change */
	/* The bounce buffer still has the repaired record. */
	assert_memory_equal(f->bounce, before, sizeof(k));
	assert_memory_equal(f->bounce + sizeof(k), zeros, sizeof(zeros));
	assert_memory_equal(
		f->bounce + sizeof(k) + sizeof(zeros), before + sizeof(k), sizeof(struct fr_sample_id));
}

/* Our recorder does not ask for build-ids. If another recorder starts later and asks for build-ids, the
   kernel sets the flag in our records, too. */
TEST(build_id_flag_of_another_recorder_is_cleared)
{
	const struct perf_event_header header = {
		.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID};
	struct fixture *f = *state;
	const struct perf_event_header *repaired = (const void *)f->bounce, *original = (const void *)f->data;

	f->tally.no_build_ids = true;
	put_sideband(f, header, (uint64_t[]){1, 2, 3, 4, 254, 77, 0, 0, 0x782f}, 72, 0, ID(1));
	drain(f);
	assert_int_equal(f->records, 1);
	assert_int_equal(original->misc, header.misc); /* the kernel's memory does not change */
	assert_int_equal(repaired->misc, PERF_RECORD_MISC_USER);
	assert_memory_equal(repaired + 1, original + 1, original->size - sizeof(header));
}

TEST(torn_records_are_skipped_and_counted)
{
	static const struct perf_event_header bad[] = {
		{PERF_RECORD_SAMPLE, 0, 0},	 /* a reader would not advance */
		{PERF_RECORD_SAMPLE, 0, 7},	 /* less than a header */
		{PERF_RECORD_SAMPLE, 0, 40},	 /* less than a sample of the test's events */
		{PERF_RECORD_SAMPLE, 0, 50},	 /* not a multiple of 8 */
		{PERF_RECORD_MMAP, 0, 32},	 /* no room for the sample id */
		{PERF_RECORD_SAMPLE, 0, 0xfff8}, /* ends after data_head */
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		put_sample(f, 1000, f->next_time, 64);
		ring_write(f, f->page.data_head, &bad[i], sizeof(bad[i]));
		f->page.data_head += 128;
		drain(f);
		/* The record before the bad header is drained. All bytes from the bad header to data_head are
		   skipped. */
		assert_int_equal(f->records, 2 * i + 1);
		assert_int_equal(f->cells[0].lost[FR_LOSS_TORN], i + 1);
		assert_int_equal(f->page.data_tail, f->page.data_head);
		put_sample(f, 1000, f->next_time, 64);
		drain(f);
		assert_int_equal(f->records, 2 * i + 2);
	}
	/* The distance from the tail to data_head is larger than the ring. */
	f->page.data_head += RING_BYTES + 8;
	drain(f);
	assert_int_equal(f->cells[0].lost[FR_LOSS_TORN], FR_ARRAY_SIZE(bad) + 1);
	assert_int_equal(f->page.data_tail, f->page.data_head);
}

/* Puts a sample into an overwritable ring, which the kernel fills from higher to lower addresses. */
static void put_backward(struct fixture *f, uint64_t time, size_t size)
{
	uint64_t words[FR_RECORD_MAX / 8];

	make_sample(words, 1000, time, size);
	f->page.data_head -= size;
	ring_write(f, f->page.data_head, words, size);
}

static size_t look(struct fixture *f)
{
	return fr_ring_read_overwritable(&f->ring, &f->tally, &f->room, sink, f);
}

TEST(a_look_returns_only_new_records)
{
	struct fixture *f = *state;

	for (uint64_t t = 0; t < 1000; t++)
		put_backward(f, t, 48 + 8 * (t % 9));
	look(f);
	assert_int_equal(f->records, 1000);
	assert_int_equal(f->cells[0].samples, 1000);
	assert_int_equal(look(f), 0);
	put_backward(f, 1000, 64);
	assert_int_equal(look(f), 64);
	assert_int_equal(f->records, 1001);
	assert_int_equal(f->cells[0].lost[FR_LOSS_TORN], 0);
}

TEST(a_full_overwritable_ring_has_the_newest_records)
{
	struct fixture *f = *state;
	uint64_t t = 0;
	size_t bytes;

	f->is_suffix = true;
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 9000; i++, t++)
			put_backward(f, t, 48 + 8 * (t % 5));
		f->records = 0;
		bytes = look(f);
		assert_int_equal(f->next_time, t);
		/* look() leaves out the oldest quarter of the ring, which the kernel could overwrite during
		   the copy, and one incomplete record. It returns all other records of the ring. */
		assert_true(bytes > RING_BYTES - RING_BYTES / 4 - 96 && bytes <= RING_BYTES);
	}
	assert_int_equal(f->cells[0].lost[FR_LOSS_TORN], 0);
}

TEST(the_array_of_pieces_is_large_enough)
{
	struct fixture *f = *state;
	uint64_t t = 0;

	/* The worst case: any two neighbouring records together are a little too large for one run, so each
	   run has one record. */
	f->is_suffix = true;
	for (; t < 12; t++)
		put_backward(f, t, t % 2 ? 32832 : 32000);
	look(f);
	assert_int_equal(f->next_time, 12);
	assert_true(f->records >= 5);
}
