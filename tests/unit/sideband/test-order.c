// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the queue between recorder and tracker, and of the order of side-band. */
#include "events.h"
#include "sideband/queue.h"
#include "sideband/reorder.h"
#include "base/cleanup.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 40000u

static size_t length_of(uint32_t n)
{
	return 4 + n * 2654435761u % 700;
}

static void *produce(void *arg)
{
	struct fr_queue *q = arg;
	uint8_t m[1024];

	for (uint32_t n = 0; n < MESSAGES;) {
		memset(m, (int)(n & 0xff), sizeof(m));
		memcpy(m, &n, sizeof(n));
		if (fr_queue_push(q, NULL, 0, m, length_of(n)) == 0)
			n++;
		else
			sched_yield();
	}
	return NULL;
}

TEST(queue_keeps_messages_between_threads)
{
	_cleanup_buf_ struct fr_buf to = {0};
	struct fr_queue *q;
	pthread_t t;

	assert_int_equal(fr_queue_new(5000, &q), 0);
	assert_int_equal(fr_queue_size(q), 8192);
	assert_int_equal(fr_buf_reserve(&to, 8192), 0);
	assert_int_equal(pthread_create(&t, NULL, produce, q), 0);
	for (uint32_t n = 0; n < MESSAGES;) {
		to.len = 0;
		if (!fr_queue_read(q, &to)) {
			sched_yield();
			continue;
		}
		assert_int_equal(to.len, length_of(n));
		assert_memory_equal(to.data, &n, sizeof(n));
		for (size_t i = sizeof(n); i < to.len; i++)
			assert_int_equal(to.data[i], n & 0xff);
		if (n++ % 3 == 0)
			fr_queue_done(q);
	}
	fr_queue_done(q);
	pthread_join(t, NULL);
	assert_true(fr_queue_is_empty(q));
	assert_int_equal(fr_queue_head(q), fr_queue_tail(q));
	fr_queue_free(q);
}

TEST(queue_is_bounded)
{
	_cleanup_buf_ struct fr_buf to = {0};
	uint8_t m[4096] = {0};
	struct fr_queue *q;
	int n = 0;

	assert_int_equal(fr_queue_new(1, &q), 0);
	assert_int_equal(fr_queue_push(q, NULL, 0, m, 4096), 1);
	while (fr_queue_push(q, NULL, 0, m, 100) == 0)
		n++;
	assert_int_equal(n, 4096 / (8 + 104));
	assert_true(fr_queue_is_half_full(q));
	assert_int_equal(fr_buf_reserve(&to, 250), 0);
	to.cap = 250;
	assert_int_equal(fr_queue_read(q, &to), 1);
	assert_int_equal(fr_queue_read(q, &to), 1);
	assert_int_equal(fr_queue_read(q, &to), 0); /* TO has no room for the next entry */
	assert_int_equal(fr_queue_push(q, NULL, 0, m, 100), 1);
	fr_queue_done(q);
	assert_int_equal(fr_queue_push(q, NULL, 0, m, 100), 0);
	fr_queue_free(q);
}

struct seen {
	uint64_t last;
	size_t n;
};

static int check_time(void *ctx, const struct perf_event_header *h)
{
	struct seen *s = ctx;

	assert_true(fr_record_time(h) >= s->last);
	s->last = fr_record_time(h);
	s->n++;
	return 0;
}

TEST(records_are_released_in_order_of_time)
{
	_cleanup_buf_ struct fr_buf rest = {0};
	struct fr_reorder r = {0};
	struct seen s = {0};
	size_t at = 0, total = 0;

	srand(3);
	/* Batch k has times from 1000 k to 1000 k + 1499, so it overlaps with the next batch. */
	for (uint64_t k = 1; k <= 50; k++) {
		_cleanup_buf_ struct fr_buf b = {0};

		for (int i = 0; i < 200; i++)
			ev_comm(&b, 1000 * k + (uint64_t)rand() % 1500, 1, 1, "x", 0);
		total += 200;
		assert_int_equal(fr_reorder_add(&r, b.data, b.len), 0);
		assert_int_equal(fr_reorder_release(&r, 1000 * k, check_time, &s), 0);
		assert_true(s.last < 1000 * k);
	}
	assert_true(s.n > 0);
	assert_int_equal(fr_reorder_write(&r, &rest), 0);
	for (const struct perf_event_header *h; (h = ev_next(&rest, &at));) {
		assert_true(fr_record_time(h) >= 50000);
		(void)check_time(&s, h);
	}
	assert_int_equal(s.n, total);
	s = (struct seen){0};
	assert_int_equal(fr_reorder_release(&r, UINT64_MAX, check_time, &s), 0);
	assert_true(s.n > 0 && s.n < 400);
	assert_int_equal(r.pending.len, 0);
	fr_reorder_deinit(&r);
}

static int name_order(void *ctx, const struct perf_event_header *h)
{
	strcat(ctx, ((const struct fr_record_comm *)h)->comm);
	return 0;
}

TEST(records_of_equal_time_keep_their_order)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_reorder r = {0};
	char order[16] = "";

	ev_comm(&b, 5, 1, 1, "c", 0);
	ev_comm(&b, 3, 1, 1, "a", 0);
	ev_comm(&b, 5, 1, 1, "d", 0);
	ev_comm(&b, 4, 1, 1, "b", 0);
	ev_comm(&b, 5, 1, 1, "e", 0);
	assert_int_equal(fr_reorder_add(&r, b.data, b.len - 8), 0);
	assert_int_equal(fr_reorder_release(&r, 5, name_order, order), 0);
	assert_string_equal(order, "ab");
	assert_int_equal(fr_reorder_release(&r, 6, name_order, order), 0);
	assert_string_equal(order, "abcd"); /* without "e", because the last record was not complete */
	fr_reorder_deinit(&r);
}
