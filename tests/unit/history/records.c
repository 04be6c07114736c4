/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "records.h"
#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

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

/* Filling: from the number, so that a byte out of place shows. */
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

static void make_sample(struct sample *s, uint64_t n, uint32_t size, bool noise)
{
	*s = (struct sample){
		.head.header = {.type = PERF_RECORD_SAMPLE,
			.misc = PERF_RECORD_MISC_USER,
			.size = (uint16_t)size},
		.head.id = n,
		.head.ip = n * 3,
		.head.pid = 1,
		.head.tid = 2,
		.head.time = n + 1,
		.noise = noise,
	};
	fill(s->filling, size - sizeof(*s), n, noise);
}

/* A COMM, of which the name is a number, a flag and filling; behind it the sample id. */
struct comm {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t n, noise;
	uint8_t filling[];
};

static void make_sideband(struct comm *c, uint64_t n, uint32_t size, bool noise)
{
	struct fr_sample_id id = {.pid = 1, .tid = 2, .time = n + 1, .id = 7};

	*c = (struct comm){
		.header = {.type = PERF_RECORD_COMM, .size = (uint16_t)size},
		.pid = 1,
		.tid = 2,
		.n = n,
		.noise = noise,
	};
	fill(c->filling, size - sizeof(*c) - sizeof(id), n, noise);
	memcpy((uint8_t *)c + size - sizeof(id), &id, sizeof(id));
}

void test_put_sample(struct fr_buf *b, uint64_t n, uint32_t size, bool noise)
{
	size_t at = b->len;

	assert_int_equal(fr_buf_append_zero(b, size), 0);
	make_sample((struct sample *)(b->data + at), n, size, noise);
}

void test_put_sideband(struct fr_buf *b, uint64_t n, uint32_t size, bool noise)
{
	size_t at = b->len;

	assert_int_equal(fr_buf_append_zero(b, size), 0);
	make_sideband((struct comm *)(b->data + at), n, size, noise);
}

bool test_record_holds(const struct perf_event_header *record, uint64_t *ret_n)
{
	static _Thread_local uint64_t expected[(FR_RECORD_MAX + 1) / 8];
	const struct comm *comm = (const struct comm *)record;
	const struct sample *sample = (const struct sample *)record;
	bool is_sample;

	if (!record || record->size < TEST_RECORD_MIN)
		return false;
	is_sample = record->type == PERF_RECORD_SAMPLE;
	*ret_n = is_sample ? sample->head.id : comm->n;
	if (is_sample)
		make_sample((struct sample *)expected, *ret_n, record->size, sample->noise);
	else
		make_sideband((struct comm *)expected, *ret_n, record->size, comm->noise);
	return memcmp(record, expected, record->size) == 0;
}

uint64_t test_check_record(const struct perf_event_header *record)
{
	uint64_t n = 0;

	assert_true(test_record_holds(record, &n));
	assert_int_equal(fr_record_time(record), n + 1);
	return n;
}

int test_append(struct fr_history *h, uint64_t first, unsigned n, uint32_t size, bool noise)
{
	_cleanup_buf_ struct fr_buf b = {0};

	for (unsigned i = 0; i < n; i++)
		test_put_sample(&b, first + i, size, noise);
	return fr_history_append(h, b.data, b.len, n, first + 1, first + n);
}

int test_append_sideband(struct fr_history *h, uint64_t first, unsigned n, uint32_t size, bool noise)
{
	_cleanup_buf_ struct fr_buf b = {0};

	for (unsigned i = 0; i < n; i++)
		test_put_sideband(&b, first + i, size, noise);
	return fr_history_append_sideband(h, b.data, b.len, n, first + 1, first + n);
}

struct fr_history *test_history(
	uint64_t size, void (*evicted)(void *ctx, const struct fr_frame *frame), void *ctx)
{
	struct fr_history_config config = {.size_bytes = size, .level = 1, .evicted = evicted, .ctx = ctx};
	struct fr_history *h;

	assert_int_equal(fr_history_new(&config, &h, NULL), 0);
	return h;
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
