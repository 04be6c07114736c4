/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A bounded queue of messages between one producer and one consumer, without locks and system calls.
 *
 *     head ≤ read ≤ tail: positions, counted in bytes since the queue was created
 *     │ processed │ read, not processed yet │ waiting │ free │
 *                 head                      read      tail
 *
 * The producer advances `tail`. The consumer advances `read` with each message that it reads. When the
 * consumer has processed these messages, it advances `head`. So `head` shows how much the consumer has
 * processed.
 */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_queue;

/* The size of the queue is BYTES, rounded up to a power of two, and at least 4 KiB. Returns 0 or -ENOMEM. */
int fr_queue_new(size_t bytes, struct fr_queue **ret);
struct fr_queue *fr_queue_free(struct fr_queue *q);
/* Returns the size of the queue in bytes. Every message is shorter than this. */
size_t fr_queue_size(const struct fr_queue *q);

/* Producer: adds a message that consists of HEAD (NULL if HEAD_LEN is 0) and DATA. Returns 0; or 1 if there
   is no room for the message. */
int fr_queue_push(struct fr_queue *q, const void *head, size_t head_len, const void *data, size_t len);

/* Any thread. */
uint64_t fr_queue_tail(const struct fr_queue *q); /* bytes pushed */
uint64_t fr_queue_head(const struct fr_queue *q); /* bytes processed */
bool fr_queue_is_empty(const struct fr_queue *q);
bool fr_queue_is_half_full(const struct fr_queue *q);

/* Consumer: appends the next message to TO, whose capacity does not grow. Returns 1; or 0 if there is no
   message, or TO has no room for the message. */
int fr_queue_read(struct fr_queue *q, struct fr_buf *to);
/* Consumer: frees the room of all messages that were read. Call this function when these messages have been
   processed. */
void fr_queue_done(struct fr_queue *q);
