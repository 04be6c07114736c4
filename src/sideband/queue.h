/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A bounded queue of byte strings between one producer and one consumer, without locks or system calls.
 *
 *     head ≤ read ≤ tail, counted in bytes since the start, never wrapped
 *     │ done │ read, not yet done │ waiting │ free │
 *
 * The producer publishes TAIL, the consumer publishes HEAD when it has done with what it read: so HEAD also
 * tells how far the consumer's work has come.
 */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_queue;

/* BYTES is rounded up to a power of two, at least 4 KiB. 0 or -ENOMEM. */
int fr_queue_new(size_t bytes, struct fr_queue **ret);
struct fr_queue *fr_queue_free(struct fr_queue *q);
size_t fr_queue_size(const struct fr_queue *q); /* no message is as long as this */

/* Producer. 0; 1: no room, nothing was put in. */
int fr_queue_push(struct fr_queue *q, const void *data, size_t len);
/* The same for a message of two parts. */
int fr_queue_push_parts(struct fr_queue *q, const void *head, size_t head_len, const void *data, size_t len);
/* Producer or any other: what was pushed so far, and what is done. */
uint64_t fr_queue_tail(const struct fr_queue *q);
uint64_t fr_queue_head(const struct fr_queue *q);
/* Any thread; true for the producer only where the consumer has work. */
bool fr_queue_is_empty(const struct fr_queue *q);
bool fr_queue_is_half_full(const struct fr_queue *q);

/* Consumer: append the next message to TO, where its capacity has room (it is not grown). 1; 0: there is
   none, or it does not fit. */
int fr_queue_read(struct fr_queue *q, struct fr_buf *to);
/* Consumer: all that was read is done with; its room is free. */
void fr_queue_done(struct fr_queue *q);
