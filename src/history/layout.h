/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ring's image: the structures in the memfd, in host byte order. Private to history/. docs/design/22 has
 * the rules by which a reader reads a damaged image, and the order of writes that these rules need.
 *
 *     0                 struct fr_image_header, struct fr_image_commit[2]: one page
 *     sideband_offset   the open chunk's side-band: raw records, the first sideband_fill bytes
 *     samples_offset    the open chunk's samples: raw records, the first samples_fill bytes
 *     log_offset        the log: frames, and pads, which cover bytes without a frame. Each frame and each pad
 *                       begins at a multiple of 64, and does not cross the log's end
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define FR_IMAGE_MAGIC 0x5453494852544c46ULL /* "FLTRHIST" */
#define FR_IMAGE_VERSION 2u		     /* 2: the samples of a frame have an encoding */
#define FR_IMAGE_HEADER_BYTES 4096u

#define FR_FRAME_MAGIC 0x4d524652u /* "RFRM" */
#define FR_PAD_MAGIC 0x44415046u   /* "FPAD" */
#define FR_FRAME_ALIGN 64u

/* 1. The image. */
struct fr_image_header {
	/* 1.1 Constant. */
	uint64_t magic;
	uint32_t version;
	uint32_t constant_crc; /* crc32c of image_bytes … reserved_1 */
	uint64_t image_bytes;
	uint64_t sideband_offset, sideband_bytes;
	uint64_t samples_offset, samples_bytes;
	uint64_t log_offset, log_bytes;
	uint64_t reserved_1[7];
	/* 1.2 Changing. This part has its own cache lines. */
	_Atomic uint64_t open_seq; /* sequence number of the open chunk; the first chunk of a ring has 1 */
	_Atomic uint64_t sideband_fill;
	_Atomic uint64_t samples_fill;
	_Atomic uint64_t open_low_watermark_ns; /* low watermark of the open chunk */
	/* The image has all records of the kernel rings up to this time; 0: unknown. */
	_Atomic uint64_t drained_ns;
	/* Frames with a smaller sequence number do not count: a change of the ring's size has evicted them or
	   moved them to another image. 0: all frames count. */
	_Atomic uint64_t moved_seq;
	uint64_t reserved_2[2];
};
static_assert(offsetof(struct fr_image_header, image_bytes) == 16, "layout 1.1");
static_assert(offsetof(struct fr_image_header, open_seq) == 128, "layout 1.2");
static_assert(sizeof(struct fr_image_header) == 192, "layout 1");

/* 1.3 Behind the header: two commits, which are written in turns. Only a ring in memory that survives a crash
   of the machine has them; otherwise they are zeros. A commit says which records of the open chunk have
   reached the memory. Each commit has a cache line of its own. */
struct fr_image_commit {
	uint64_t generation;				 /* 0: no commit */
	uint64_t open_seq, low_watermark_ns, drained_ns; /* as in the header, at the time of the commit */
	uint32_t sideband_fill, samples_fill;
	uint32_t sideband_crc, samples_crc; /* crc32c of the records */
	uint32_t crc;			    /* crc32c of the bytes before this member */
	uint32_t reserved[3];
};
static_assert(sizeof(struct fr_image_commit) == 64, "layout 1.3");
#define FR_IMAGE_COMMITS 2u
static_assert(sizeof(struct fr_image_header) % 64 == 0, "layout 1.3");
static_assert(sizeof(struct fr_image_header) + FR_IMAGE_COMMITS * sizeof(struct fr_image_commit) <=
		      FR_IMAGE_HEADER_BYTES,
	"layout 1");

static inline struct fr_image_commit *fr_image_commits(const struct fr_image_header *i)
{
	return (struct fr_image_commit *)(uintptr_t)(i + 1);
}

/* 2. The head of every entry of the log. An entry is a frame or a pad. A pad has no other fields in its
   header. */
struct fr_entry {
	_Atomic uint32_t magic;
	uint32_t header_crc;  /* crc32c of the header from `bytes` on: 88 bytes in a frame, 24 in a pad */
	uint32_t bytes;	      /* size of the entry with header and padding; a multiple of FR_FRAME_ALIGN */
	uint32_t payload_crc; /* crc32c of side-band and samples; 0 in a pad */
	uint64_t seq;	      /* 0 in a pad */
	uint32_t encoding;    /* of the samples: enum fr_encoding; 0 in a pad */
	uint32_t dump_len;    /* fr_frame.samples_dump_len; 0 in a pad */
};
static_assert(sizeof(struct fr_entry) == 32, "layout 2");

/* 3. A frame: header, side-band (zstd), samples (zstd), padding. */
struct fr_frame_header {
	struct fr_entry entry;
	uint64_t first_ns, last_ns;
	uint64_t sideband_first_ns, sideband_last_ns;
	uint32_t n_samples, n_sideband;
	uint32_t samples_raw, sideband_raw;
	uint32_t samples_len, sideband_len;
	uint64_t low_watermark_ns; /* 0: unknown */
};
static_assert(sizeof(struct fr_frame_header) == 96, "layout 3");

/* header_crc is the crc of a header from this offset on. */
#define FR_CRC_FROM offsetof(struct fr_entry, bytes)
