// SPDX-License-Identifier: GPL-2.0-or-later
#include "records.h"
#include "base/cleanup.h"
#include "history/unpack.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

uint64_t test_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

uint64_t test_between(uint64_t *state, uint64_t low, uint64_t high)
{
	return low + test_random(state) % (high - low + 1);
}

/* Fills P with bytes that depend on the number N of the record, so that the tests notice a byte at a wrong
   place. If NOISE is true, the bytes cannot be compressed. */
static void fill(uint8_t *p, size_t len, uint64_t n, bool noise)
{
	uint64_t state = n * 2 + 1;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(noise ? test_random(&state) >> 24 : n);
}

struct sample {
	struct fr_sample head;
	uint64_t cpu;
	uint64_t noise;
	uint8_t filling[];
};

/* A COMM record. The fields n, noise and filling are in the place of the name. The sample id follows them. */
struct comm {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t n, noise;
	uint8_t filling[];
};

static void make_record(void *p, enum test_kind kind, uint64_t n, uint32_t size, bool noise)
{
	const struct fr_sample_id id = {.pid = 1, .tid = 2, .time = n + 1, .id = 7};
	struct sample *s = p;
	struct comm *c = p;

	if (kind == TEST_SAMPLES) {
		*s = (struct sample){.head = {.header = {.type = PERF_RECORD_SAMPLE,
						      .misc = PERF_RECORD_MISC_USER,
						      .size = (uint16_t)size},
					     .id = n,
					     .ip = n * 3,
					     .pid = 1,
					     .tid = 2,
					     .time = n + 1},
			.noise = noise};
		fill(s->filling, size - sizeof(*s), n, noise);
		return;
	}
	*c = (struct comm){.header = {.type = PERF_RECORD_COMM, .size = (uint16_t)size},
		.pid = 1,
		.tid = 2,
		.n = n,
		.noise = noise};
	fill(c->filling, size - sizeof(*c) - sizeof(id), n, noise);
	memcpy((uint8_t *)c + size - sizeof(id), &id, sizeof(id));
}

void test_put(struct fr_buf *b, enum test_kind kind, uint64_t n, uint32_t size, bool noise)
{
	size_t at = b->len;

	assert_int_equal(fr_buf_append_zero(b, size), 0);
	make_record(b->data + at, kind, n, size, noise);
}

bool test_is_valid_record(const struct perf_event_header *record, uint64_t *ret_n)
{
	static _Thread_local uint64_t expected[(FR_RECORD_MAX + 1) / 8];
	const struct comm *comm = (const struct comm *)record;
	const struct sample *sample = (const struct sample *)record;

	if (!record || record->size < TEST_RECORD_MIN)
		return false;
	if (record->type == PERF_RECORD_SAMPLE) {
		*ret_n = sample->head.id;
		make_record(expected, TEST_SAMPLES, *ret_n, record->size, sample->noise);
	} else {
		*ret_n = comm->n;
		make_record(expected, TEST_SIDEBAND, *ret_n, record->size, comm->noise);
	}
	return memcmp(record, expected, record->size) == 0;
}

uint64_t test_check_record(const struct perf_event_header *record)
{
	uint64_t n = 0;

	assert_true(test_is_valid_record(record, &n));
	assert_int_equal(fr_record_time(record), n + 1);
	return n;
}

int test_append_run(
	struct fr_history *h, enum test_kind kind, uint64_t first, unsigned n, uint32_t size, bool noise)
{
	_cleanup_buf_ struct fr_buf b = {0};

	for (unsigned i = 0; i < n; i++)
		test_put(&b, kind, first + i, size, noise);
	return (kind == TEST_SAMPLES ? fr_history_append : fr_history_append_sideband)(
		h, b.data, b.len, n, first + 1, first + n);
}

int test_append(struct fr_history *h, uint64_t first, unsigned n, uint32_t size, bool noise)
{
	return test_append_run(h, TEST_SAMPLES, first, n, size, noise);
}

int test_append_sideband(struct fr_history *h, uint64_t first, unsigned n, uint32_t size, bool noise)
{
	return test_append_run(h, TEST_SIDEBAND, first, n, size, noise);
}

bool test_walk_section(const struct fr_frame *f, enum test_kind kind, test_record_fn fn, void *ctx)
{
	static _Thread_local _Alignas(8) uint8_t buffer[FR_HISTORY_SECTION_MAX];
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	const struct perf_event_header *record;
	struct fr_record_iter it;
	ssize_t len;

	if (fr_unpack_new(&u) < 0)
		return false;
	len = kind == TEST_SAMPLES ? fr_frame_samples(u, f, buffer, sizeof(buffer))
				   : fr_frame_sideband(u, f, buffer, sizeof(buffer));
	if (len != (ssize_t)(kind == TEST_SAMPLES ? f->samples_raw : f->sideband_raw))
		return false;
	it = fr_record_iter(buffer, (size_t)len);
	while ((record = fr_record_next(&it)))
		fn(ctx, record);
	return it.at == it.end;
}

void test_count_record(void *contents, const struct perf_event_header *record)
{
	struct test_contents *c = contents;
	const enum test_kind kind = record->type == PERF_RECORD_SAMPLE ? TEST_SAMPLES : TEST_SIDEBAND;
	uint64_t n;

	n = test_check_record(record);
	if (!c->n[kind]++)
		c->first[kind] = n;
	else if (c->with_gaps)
		assert_true(n >= c->next[kind]);
	else
		assert_int_equal(n, c->next[kind]);
	c->next[kind] = n + 1;
}

void test_count_records(struct test_contents *c, const void *records, size_t len)
{
	struct fr_record_iter it = fr_record_iter(records, len);
	const struct perf_event_header *record;

	while (len && (record = fr_record_next(&it)))
		test_count_record(c, record);
	assert_ptr_equal(it.at, it.end);
}

void test_count_frame(struct test_contents *c, const struct fr_frame *f)
{
	const uint64_t n_sideband = c->n[TEST_SIDEBAND], n_samples = c->n[TEST_SAMPLES];

	if (c->frames++)
		assert_int_equal(f->seq, c->seq + 1);
	c->seq = f->seq;
	assert_true(test_walk_section(f, TEST_SIDEBAND, test_count_record, c));
	assert_int_equal(c->n[TEST_SIDEBAND] - n_sideband, f->n_sideband);
	assert_int_equal(c->n[TEST_SAMPLES], n_samples);
	assert_true(test_walk_section(f, TEST_SAMPLES, test_count_record, c));
	assert_int_equal(c->n[TEST_SAMPLES] - n_samples, f->n_samples);
	assert_int_equal(c->n[TEST_SIDEBAND] - n_sideband, f->n_sideband);
}

void test_count_snapshot(struct test_contents *c, struct fr_snapshot *s)
{
	struct fr_frame f;

	while (fr_snapshot_next(s, &f))
		test_count_frame(c, &f);
}

static struct test_contents read_ring(struct fr_history *h, bool with_gaps)
{
	struct test_contents c = {.with_gaps = with_gaps};
	struct fr_snapshot *s;

	assert_int_equal(fr_history_snapshot(h, &s), 0);
	test_count_snapshot(&c, s);
	fr_snapshot_free(s);
	return c;
}

struct test_contents test_read(struct fr_history *h)
{
	return read_ring(h, false);
}

struct test_contents test_read_with_gaps(struct fr_history *h)
{
	return read_ring(h, true);
}

struct fr_history *test_history(
	uint64_t size, void (*evicted)(void *ctx, const struct fr_frame *frame), void *ctx)
{
	struct fr_history_config config = {.size_bytes = size, .level = 1, .evicted = evicted, .ctx = ctx};
	struct fr_history *h;

	assert_int_equal(fr_history_new(&config, &h, NULL), 0);
	return h;
}

struct fr_history_stats test_stats(struct fr_history *h)
{
	struct fr_history_stats stats;

	fr_history_stats(h, &stats);
	return stats;
}

int test_copy_image(const struct fr_history *h)
{
	int fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	off_t at = 0, size = (off_t)fr_history_size(h);

	assert_true(fd >= 0);
	while (at < size)
		assert_true(sendfile(fd, fr_history_fd(h), &at, (size_t)(size - at)) > 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL), 0);
	return fd;
}

size_t test_flip_bit(uint64_t *random, const uint8_t *image, uint8_t *broken)
{
	const struct fr_image_header *i = (const struct fr_image_header *)image;
	size_t at;

	switch (test_random(random) % 4) {
	case 0:
		at = test_random(random) % sizeof(*i);
		break;
	case 1:
		at = i->sideband_offset + test_random(random) % (i->log_offset - i->sideband_offset);
		break;
	default:
		do /* takes only bytes that are not zero, because most of the log can be empty */
			at = i->log_offset + test_random(random) % i->log_bytes;
		while (!image[at]);
		if (test_random(random) % 2)
			at = FR_MIN(at / FR_FRAME_ALIGN * FR_FRAME_ALIGN + at % 96, i->image_bytes - 1);
	}
	broken[at] ^= (uint8_t)(1u << test_random(random) % 8);
	return at;
}

int test_resize(struct fr_history **h, uint64_t size, struct fr_history_adopted *ret, struct fr_diag *d)
{
	struct fr_resize *z = NULL;
	int r = fr_resize_begin(*h, size, &z, d);

	if (r < 0)
		return r;
	while (fr_resize_step(z) > 0)
		;
	*h = fr_resize_finish(z, ret);
	while (fr_resize_populate(z) > 0)
		;
	fr_resize_free(z);
	return 0;
}
