// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/queue.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define LINE 64

struct fr_queue {
	size_t size;
	uint8_t *data;
	/* The producer writes `tail` and the consumer writes `head`, each in its own cache line. */
	_Alignas(LINE) _Atomic uint64_t tail;
	_Alignas(LINE) _Atomic uint64_t head;
	uint64_t read; /* only the consumer uses it */
};

/* In the queue, a message takes 8 bytes for its length, its LEN bytes, and padding to a multiple of 8. */
static size_t message_size(size_t len)
{
	return sizeof(uint64_t) + FR_ALIGN_UP(len, 8);
}

int fr_queue_new(size_t bytes, struct fr_queue **ret)
{
	struct fr_queue *q = aligned_alloc(LINE, sizeof(*q));
	size_t size = 4096;

	if (!q)
		return -ENOMEM;
	while (size < bytes)
		size *= 2;
	memset(q, 0, sizeof(*q));
	q->size = size;
	q->data = malloc(size);
	if (!q->data) {
		free(q);
		return -ENOMEM;
	}
	*ret = q;
	return 0;
}

struct fr_queue *fr_queue_free(struct fr_queue *q)
{
	if (q)
		free(q->data);
	free(q);
	return NULL;
}

size_t fr_queue_size(const struct fr_queue *q)
{
	return q->size;
}

static void copy_in(struct fr_queue *q, uint64_t at, const void *data, size_t len)
{
	size_t offset = at & (q->size - 1);
	size_t first = FR_MIN(len, q->size - offset);

	if (!len) /* DATA may be NULL, which memcpy() does not allow */
		return;
	memcpy(q->data + offset, data, first);
	memcpy(q->data, (const uint8_t *)data + first, len - first);
}

static void copy_out(const struct fr_queue *q, uint64_t at, void *data, size_t len)
{
	size_t offset = at & (q->size - 1);
	size_t first = FR_MIN(len, q->size - offset);

	memcpy(data, q->data + offset, first);
	memcpy((uint8_t *)data + first, q->data, len - first);
}

int fr_queue_push(struct fr_queue *q, const void *head_part, size_t head_len, const void *data, size_t len)
{
	uint64_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);
	/* Pairs with the store in fr_queue_done(), so that the consumer has read the bytes before they are
	   overwritten here. */
	uint64_t head = atomic_load_explicit(&q->head, memory_order_acquire);
	uint64_t len64 = head_len + len;

	if (len64 >= q->size || message_size(len64) > q->size - (tail - head))
		return 1;
	copy_in(q, tail, &len64, sizeof(len64));
	copy_in(q, tail + sizeof(len64), head_part, head_len);
	copy_in(q, tail + sizeof(len64) + head_len, data, len);
	/* Pairs with the load in fr_queue_read(). This store is sequentially consistent, because the producer
	   next checks whether the consumer sleeps, while the consumer first stores that it sleeps and then
	   checks for messages. So the producer sees that the consumer sleeps, or the consumer sees the
	   message. */
	atomic_store(&q->tail, tail + message_size(len64));
	return 0;
}

uint64_t fr_queue_tail(const struct fr_queue *q)
{
	return atomic_load(&q->tail);
}

uint64_t fr_queue_head(const struct fr_queue *q)
{
	return atomic_load(&q->head);
}

bool fr_queue_is_empty(const struct fr_queue *q)
{
	return atomic_load(&q->head) == atomic_load(&q->tail);
}

bool fr_queue_is_half_full(const struct fr_queue *q)
{
	return atomic_load(&q->tail) - atomic_load(&q->head) > q->size / 2;
}

int fr_queue_read(struct fr_queue *q, struct fr_buf *to)
{
	uint64_t len;

	if (q->read == atomic_load(&q->tail))
		return 0;
	copy_out(q, q->read, &len, sizeof(len));
	if (len > to->cap - to->len)
		return 0;
	copy_out(q, q->read + sizeof(len), to->data + to->len, len);
	to->len += len;
	q->read += message_size(len);
	return 1;
}

void fr_queue_done(struct fr_queue *q)
{
	atomic_store(&q->head, q->read);
}
