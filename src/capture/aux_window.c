// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/aux_window.h"
#include "base/cleanup.h"

#include <string.h>

void fr_aux_window_init(struct fr_aux_window *w, uint64_t size)
{
	*w = (struct fr_aux_window){.size = size};
}

static void copy_out(
	const struct fr_aux_window *w, const uint8_t *area, uint64_t position, size_t len, uint8_t *to)
{
	const uint64_t at = position & (w->size - 1), before_end = FR_MIN((uint64_t)len, w->size - at);

	memcpy(to, area + at, before_end);
	memcpy(to + before_end, area, len - before_end);
}

static uint64_t reference_bytes(const struct fr_aux_window *w)
{
	return FR_MIN((uint64_t)FR_AUX_REFERENCE_BYTES, w->size);
}

/* Returns whether the LEN bytes before the last head have other content than at the last look. */
static bool has_changed(const struct fr_aux_window *w, const uint8_t *area, uint64_t len)
{
	uint8_t now[FR_AUX_REFERENCE_BYTES];
	const uint64_t n = FR_MIN(len, reference_bytes(w));

	copy_out(w, area, w->head - n, n, now);
	return memcmp(now, w->reference + reference_bytes(w) - n, n) != 0;
}

/* Returns how many bytes were written since the last look. If the number is the size of the area or more, it
   can be too small by a multiple of the size. */
static uint64_t count_written(const struct fr_aux_window *w, const uint8_t *area, uint64_t head)
{
	const uint64_t distance = (head - w->head) & (w->size - 1);

	/* A head that is not inside of the area counts all bytes. */
	if (head >= w->size && head >= w->head)
		return head - w->head;
	/* If the writer has not come by the last head, it has written only the bytes from the last head to
	   the new one, and the others are as they were. The bytes before the last head are the last of them
	   that it overwrites. */
	return distance + (has_changed(w, area, w->size - distance) ? w->size : 0);
}

bool fr_aux_window_look(struct fr_aux_window *w, const uint8_t *area, uint64_t head, uint64_t now_ns)
{
	const uint64_t written = count_written(w, area, head);

	w->head = head;
	w->position += written;
	copy_out(w, area, head - reference_bytes(w), reference_bytes(w), w->reference);
	w->marks[w->n_marks++ % FR_AUX_MARKS] = (struct fr_aux_mark){now_ns, w->position};
	return written > 0;
}

static const struct fr_aux_mark *mark(const struct fr_aux_window *w, uint64_t i)
{
	return &w->marks[i % FR_AUX_MARKS];
}

static uint64_t oldest_mark(const struct fr_aux_window *w)
{
	return w->n_marks - FR_MIN(w->n_marks, (uint64_t)FR_AUX_MARKS);
}

/* Returns the position up to which the area was written at the last look at or before SINCE_NS; 0 if there is
   none. */
static uint64_t position_before(const struct fr_aux_window *w, uint64_t since_ns)
{
	for (uint64_t i = w->n_marks; i-- > oldest_mark(w);)
		if (mark(w, i)->time_ns <= since_ns)
			return mark(w, i)->position;
	return 0;
}

/* Returns the position up to which the area was written at the first look at or after UNTIL_NS, or at the
   last look. */
static uint64_t position_after(const struct fr_aux_window *w, uint64_t until_ns)
{
	for (uint64_t i = oldest_mark(w); i < w->n_marks; i++)
		if (mark(w, i)->time_ns >= until_ns)
			return mark(w, i)->position;
	return w->position;
}

struct fr_aux_part fr_aux_window_peek(const struct fr_aux_window *w, uint64_t since_ns, uint64_t until_ns)
{
	const uint64_t exists = w->position - FR_MIN(w->position, w->size);
	const uint64_t from = FR_MAX(FR_MAX(exists, w->taken), position_before(w, since_ns));
	const uint64_t to = FR_MAX(from, position_after(w, until_ns));

	return (struct fr_aux_part){from, (size_t)(to - from)};
}

struct fr_aux_part fr_aux_window_take(struct fr_aux_window *w, uint64_t since_ns, uint64_t until_ns)
{
	const struct fr_aux_part p = fr_aux_window_peek(w, since_ns, until_ns);

	w->taken = FR_MAX(w->taken, p.position + p.len);
	return p;
}

void fr_aux_window_copy(
	const struct fr_aux_window *w, const uint8_t *area, const struct fr_aux_part *part, uint8_t *to)
{
	copy_out(w, area, part->position, part->len, to);
}
