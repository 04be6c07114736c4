// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes the tail. Two threads share a struct fr_tail: the thread that evicts frames owns the log, and the
 * tracker owns the slots. They share atomic numbers only, so neither waits for the other.
 *
 *     tail ≤ head: positions in the log
 *     │ overwritten next, or free │ sections after the newest checkpoint │
 *                                tail                                   head
 */
#include "crashmem/tail_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <zstd.h>
#include <zstd_errors.h>

struct fr_tail {
	struct tail_space space;
	uint64_t key;

	/* The thread that evicts frames. */
	uint64_t tail;
	_Atomic uint64_t head; /* also read by the tracker */

	/* The tracker. */
	int next_slot;
	uint64_t generation;

	_Atomic uint64_t covered_seq; /* sequence number of the newest checkpoint */
	_Atomic uint64_t tried_head;  /* `head` at the last attempt to write a checkpoint */
	_Atomic uint64_t used;	      /* bytes of the sections after the newest checkpoint */
	atomic_bool wanted;	      /* there is no checkpoint, or a section was lost */
	_Atomic uint64_t checkpoints, checkpoints_failed, checkpoint_bytes, sections_lost;
};

static int new_tail(struct fr_crashmem *m, struct fr_tail **ret)
{
	struct fr_tail *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (!tail_space_init(&t->space, m)) {
		free(t);
		return -ENOSPC;
	}
	*ret = t;
	return 0;
}

static void write_head(const struct fr_tail *t)
{
	struct tail_head *to = t->space.head;
	struct tail_head h = {.version = TAIL_VERSION, .key = t->key};

	h.crc = tail_head_crc(&h);
	memcpy(to, &h, sizeof(h));
	fr_crashmem_write_back(to, sizeof(*to));
	__atomic_store_n(&to->magic, TAIL_MAGIC, __ATOMIC_RELEASE);
	fr_crashmem_write_back(to, sizeof(*to));
}

int fr_tail_new(struct fr_crashmem *m, struct fr_tail **ret)
{
	struct fr_tail *t;
	int r = new_tail(m, &t);

	if (r < 0)
		return r;
	if (getrandom(&t->key, sizeof(t->key), 0) != sizeof(t->key)) {
		r = -errno;
		free(t);
		return r;
	}
	atomic_store(&t->wanted, true);
	write_head(t);
	*ret = t;
	return 0;
}

/* Returns whether the newest checkpoint of S, and the sections after it, are whole up to the frame
 * EVICTED_SEQ. */
static bool is_whole(const struct tail_scan *s, uint64_t evicted_seq, int *ret_newest)
{
	*ret_newest = s->slots[1].generation > s->slots[0].generation;
	return s->slots[*ret_newest].generation > 0 && s->slots[*ret_newest].seq <= evicted_seq &&
	       evicted_seq < UINT64_MAX && tail_scan_has_all(s, s->slots[*ret_newest].seq, evicted_seq + 1);
}

/* Continues behind the newest entry. The oldest entry that counts is the first one after the checkpoint. */
static void continue_log(struct fr_tail *t, const struct tail_scan *s, uint64_t covered_seq)
{
	uint64_t head = 0, tail = UINT64_MAX;

	for (size_t i = 0; i < s->n; i++) {
		const struct tail_entry *e = &s->entries[i];

		head = FR_MAX(head, e->position + tail_entry_size(&s->space, e->bytes));
		if (e->seq > covered_seq)
			tail = FR_MIN(tail, e->position);
	}
	t->tail = FR_MIN(tail, head);
	atomic_store(&t->head, head);
	atomic_store(&t->tried_head, t->tail);
	atomic_store(&t->used, head - t->tail);
}

int fr_tail_adopt(struct fr_crashmem *m, uint64_t evicted_seq, struct fr_tail **ret)
{
	_cleanup_(tail_scan_deinit) struct tail_scan s = {0};
	struct fr_tail *t;
	int newest, r = tail_scan(m, &s);

	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	if (!is_whole(&s, evicted_seq, &newest))
		return -EBADMSG;
	r = new_tail(m, &t);
	if (r < 0)
		return r;
	t->key = s.key;
	t->next_slot = !newest;
	t->generation = s.slots[newest].generation;
	atomic_store(&t->covered_seq, s.slots[newest].seq);
	atomic_store(&t->checkpoint_bytes, s.slots[newest].bytes);
	continue_log(t, &s, s.slots[newest].seq);
	*ret = t;
	return 0;
}

struct fr_tail *fr_tail_free(struct fr_tail *t)
{
	free(t);
	return NULL;
}

/* Reads the header of the entry at t->tail. The memory is not trusted: returns false if this is not the entry
   that was written there. */
static bool read_oldest(const struct fr_tail *t, uint64_t head, struct tail_entry *ret)
{
	uint64_t size;

	tail_log_read(&t->space, t->tail, ret, sizeof(*ret));
	size = tail_entry_size(&t->space, ret->bytes);
	return ret->magic == TAIL_ENTRY_MAGIC && ret->key == t->key && ret->position == t->tail && size > 0 &&
	       size <= head - t->tail;
}

static void lose_section(struct fr_tail *t)
{
	atomic_fetch_add(&t->sections_lost, 1);
	atomic_store(&t->wanted, true);
}

/* Makes room for an entry of SIZE bytes, and frees the room of the sections that the newest checkpoint has.
 */
static void make_room(struct fr_tail *t, uint64_t head, uint64_t size)
{
	const uint64_t covered_seq = atomic_load(&t->covered_seq);
	struct tail_entry e;

	while (t->tail < head) {
		if (!read_oldest(t, head, &e)) {
			lose_section(t);
			t->tail = head;
			return;
		}
		if (e.seq > covered_seq) {
			if (head + size - t->tail <= t->space.log_bytes)
				return;
			lose_section(t);
		}
		t->tail += tail_entry_size(&t->space, e.bytes);
	}
}

/* Writes the payload first, and then the header: a torn payload has no header, or an old one with another
 * crc. */
static void write_entry(struct fr_tail *t, struct tail_entry *e, const void *data)
{
	tail_log_write(&t->space, e->position + sizeof(*e), data, e->bytes);
	e->crc = tail_entry_crc(&t->space, e);
	tail_log_write(&t->space, e->position, e, sizeof(*e));
}

void fr_tail_append(struct fr_tail *t, uint64_t seq, uint64_t low_watermark_ns, const void *zstd, size_t len)
{
	const uint64_t head = atomic_load_explicit(&t->head, memory_order_relaxed);
	const uint64_t size = tail_entry_size(&t->space, len);
	struct tail_entry e = {
		.magic = TAIL_ENTRY_MAGIC,
		.key = t->key,
		.position = head,
		.seq = seq,
		.low_watermark_ns = low_watermark_ns,
		.bytes = len,
	};

	make_room(t, head, size);
	if (!size) {
		lose_section(t);
		return;
	}
	write_entry(t, &e, zstd);
	atomic_store(&t->head, head + size);
	atomic_store(&t->used, head + size - t->tail);
}

bool fr_tail_wants_checkpoint(const struct fr_tail *t)
{
	const uint64_t since = atomic_load(&t->head) - atomic_load(&t->tried_head);

	/* `used` shrinks at the next append, not with the checkpoint. So a checkpoint also needs new sections
	   since the last one. This also limits the attempts if the checkpoint does not fit into its slot. */
	return atomic_load(&t->wanted) ||
	       (atomic_load(&t->used) >= t->space.log_bytes / 2 && since >= t->space.log_bytes / 4);
}

/* Compresses the records into a buffer of t->space.slot_max bytes. Returns the number of bytes; -E2BIG; or
 * -ENOMEM. */
static ssize_t compress(const struct fr_tail *t, void *to, const void *records, size_t len)
{
	/* Level 12 needs ten times as long as level 3. */
	static const int levels[] = {3, 12};

	if (len > TAIL_CHECKPOINT_MAX)
		return -E2BIG;
	for (size_t i = 0; i < FR_ARRAY_SIZE(levels); i++) {
		const size_t n = ZSTD_compress(to, t->space.slot_max, records, len, levels[i]);

		if (!ZSTD_isError(n))
			return (ssize_t)n;
		if (ZSTD_getErrorCode(n) != ZSTD_error_dstSize_tooSmall)
			return -ENOMEM;
	}
	return -E2BIG;
}

static void write_slot(struct fr_tail *t, const struct tail_slot *s, const void *data)
{
	struct tail_slot *to = t->space.slots[t->next_slot];

	to->magic = 0;
	fr_crashmem_write_back(to, sizeof(*to));
	memcpy(to, s, sizeof(*s));
	memcpy(to->data, data, s->bytes);
	to->crc = tail_slot_crc(s, data);
	fr_crashmem_write_back(to, sizeof(*to) + s->bytes);
	__atomic_store_n(&to->magic, TAIL_SLOT_MAGIC, __ATOMIC_RELEASE);
	fr_crashmem_write_back(to, sizeof(*to));
	t->next_slot = !t->next_slot;
}

int fr_tail_checkpoint(
	struct fr_tail *t, uint64_t seq, uint64_t low_watermark_ns, const void *records, size_t len)
{
	_cleanup_free_ void *data = malloc(t->space.slot_max);
	ssize_t n;

	atomic_store(&t->tried_head, atomic_load(&t->head));
	atomic_store(&t->wanted, false);
	n = data ? compress(t, data, records, len) : -ENOMEM;
	if (n < 0) {
		atomic_fetch_add(&t->checkpoints_failed, 1);
		return (int)n;
	}
	write_slot(t,
		&(struct tail_slot){.key = t->key,
			.generation = ++t->generation,
			.seq = seq,
			.low_watermark_ns = low_watermark_ns,
			.bytes = (uint64_t)n,
			.raw_bytes = len},
		data);
	atomic_store(&t->covered_seq, seq);
	atomic_store(&t->checkpoint_bytes, (uint64_t)n);
	atomic_fetch_add(&t->checkpoints, 1);
	return 0;
}

void fr_tail_stats(const struct fr_tail *t, struct fr_tail_stats *ret)
{
	*ret = (struct fr_tail_stats){
		.checkpoints = atomic_load(&t->checkpoints),
		.checkpoints_failed = atomic_load(&t->checkpoints_failed),
		.checkpoint_bytes = atomic_load(&t->checkpoint_bytes),
		.slot_bytes = t->space.slot_max,
		.sections_lost = atomic_load(&t->sections_lost),
		.log_bytes = t->space.log_bytes,
		.log_used_bytes = atomic_load(&t->used),
	};
}
