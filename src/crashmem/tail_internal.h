/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Private to tail*.c: the layout of the area TAIL, and its validation.
 *
 *     struct tail_head, one page │ slot │ slot │ log: entries, one behind the other, in a circle
 *
 * A slot is a struct tail_slot with the records of a checkpoint, compressed. An entry of the log is a struct
 * tail_entry with a section. Entries are whole cache lines. The position of an entry counts the bytes of all
 * entries before it, so position % log_bytes is its place. Only the payload of an entry can go over the end
 * of the log, to its start.
 */

#include "crashmem/tail.h"

#define TAIL_MAGIC 0x4c49415444524c46ULL /* "FLRDTAIL" */
#define TAIL_VERSION 1
#define TAIL_SLOT_MAGIC 0x54504b43u  /* "CKPT" */
#define TAIL_ENTRY_MAGIC 0x54434553u /* "SECT" */
#define TAIL_LINE 64u
#define TAIL_HEAD_BYTES 4096u
#define TAIL_BYTES_MIN (64u << 10)
/* The largest checkpoint before compression. */
#define TAIL_CHECKPOINT_MAX (256ULL << 20)

/* All crcs are crc32c of the bytes from `key` to the end of the struct and of the payload. The key is a
   random number that each fr_tail_new() chooses. So content that was there before is not valid, and a process
   cannot give its files names that look like an entry. */
struct tail_head {
	uint64_t magic;
	uint32_t version, crc;
	uint64_t key;
};

struct tail_slot {
	uint32_t magic, crc;
	uint64_t key;
	uint64_t generation; /* the slot with the larger generation is newer */
	uint64_t seq, low_watermark_ns;
	uint64_t bytes, raw_bytes;
	uint64_t reserved;
	uint8_t data[];
};
_Static_assert(sizeof(struct tail_slot) == TAIL_LINE, "whole cache lines");

struct tail_entry {
	uint32_t magic, crc;
	uint64_t key;
	uint64_t position;
	uint64_t seq, low_watermark_ns;
	uint64_t bytes;
	uint64_t reserved[2];
	/* the section follows, and bytes up to a whole cache line */
};
_Static_assert(sizeof(struct tail_entry) == TAIL_LINE, "whole cache lines");

struct tail_space {
	struct tail_head *head;
	struct tail_slot *slots[2];
	uint8_t *log;
	uint64_t slot_max; /* the largest number of bytes in a slot, without its struct */
	uint64_t log_bytes;
};

/* Returns false if the area TAIL of M is too small. */
bool tail_space_init(struct tail_space *s, const struct fr_crashmem *m);
uint32_t tail_head_crc(const struct tail_head *h);
uint32_t tail_slot_crc(const struct tail_slot *s, const void *data);
/* The payload of the entry E is at LOG; the copy E need not be there. */
uint32_t tail_entry_crc(const struct tail_space *s, const struct tail_entry *e);
/* Returns the bytes of an entry with BYTES bytes of payload, or 0 if the log can have no such entry. */
uint64_t tail_entry_size(const struct tail_space *s, uint64_t bytes);
/* Both functions copy LEN bytes between P and the log, from the position POSITION on. */
void tail_log_write(const struct tail_space *s, uint64_t position, const void *p, size_t len);
void tail_log_read(const struct tail_space *s, uint64_t position, void *p, size_t len);

/* The valid content of the area. Only a copy of each header is trusted; a payload can still be anything. */
struct tail_scan {
	struct tail_space space;
	uint64_t key;
	struct tail_slot slots[2];  /* generation 0: the slot is not valid */
	struct tail_entry *entries; /* sorted by seq; each seq is there once */
	size_t n;
};
/* Returns 0; -ENOENT if the area has no valid head; or -ENOMEM. */
int tail_scan(const struct fr_crashmem *m, struct tail_scan *ret);
void tail_scan_deinit(struct tail_scan *s);
/* Returns whether the log has the sections of all frames after FROM_SEQ and before BEFORE_SEQ. */
bool tail_scan_has_all(const struct tail_scan *s, uint64_t from_seq, uint64_t before_seq);
