/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ring's memory, as it lies in the memfd. Private to history/. Host byte order: an image is read on the
 * machine that wrote it, or on one like it.
 *
 *     0                 struct fr_image_header, one page
 *     sideband_offset   the open chunk's side-band: raw records, the first sideband_fill bytes
 *     samples_offset    the open chunk's samples: raw records, the first samples_fill bytes
 *     log_offset        the log: frames and pads, each aligned to 64, none crosses the log's end
 *
 * Corruption rules, for whoever reads an image that nobody writes any more:
 *  1. The image header counts where magic, version and crc hold and the areas lie in the image, in order and
 *     apart. Else the whole image is taken for log, and there is no open chunk.
 *  2. A frame counts where, at a multiple of 64, magic and header crc hold, its lengths add up to its size
 *     and lie in the log, and the crc of its payload holds. Else the search goes on 64 bytes further.
 *  3. A pad says only that nothing is in it; it is never needed to find a frame.
 *  4. Frames are ordered by seq. Of two with one seq the one at the lower offset counts. A missing seq is a
 *     gap. Below moved_seq none counts.
 *  5. The open chunk counts where no frame has its seq; of it, what lies below the fill marks, up to the last
 *     whole record.
 *
 * Writing order that makes this hold at any instant: records, then the fill mark; a frame's payload and
 * header, then its magic; the frame, then fill marks to zero, then the new open_seq. All of these are release
 * stores. Who goes on with an image (adopt.c) first takes the magic of what is left out, oldest first, then
 * makes pads of what lies between frames, then sets the marks: fill, low watermark, open_seq.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define FR_IMAGE_MAGIC 0x5453494852544c46ULL /* "FLTRHIST" */
#define FR_IMAGE_VERSION 1u
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
	/* 1.2 Marks, on a line of their own. */
	_Atomic uint64_t open_seq; /* that the open chunk's frame will have; the first is 1 */
	_Atomic uint64_t sideband_fill;
	_Atomic uint64_t samples_fill;
	_Atomic uint64_t open_low_watermark_ns; /* as in a frame */
	_Atomic uint64_t drained_ns; /* what was in the kernel's rings by then is in here; 0: not known */
	_Atomic uint64_t moved_seq;  /* frames before it are in another image, or evicted; 0: none */
	uint64_t reserved_2[2];
};
static_assert(offsetof(struct fr_image_header, image_bytes) == 16, "layout 1.1");
static_assert(offsetof(struct fr_image_header, open_seq) == 128, "layout 1.2");
static_assert(sizeof(struct fr_image_header) == 192, "layout 1");
static_assert(sizeof(struct fr_image_header) <= FR_IMAGE_HEADER_BYTES, "layout 1");

/* 2. What every entry of the log begins with; all there is to a pad. */
struct fr_entry {
	_Atomic uint32_t magic;
	uint32_t header_crc;  /* crc32c of the header from `bytes` on: of a frame 88 bytes, of a pad 24 */
	uint32_t bytes;	      /* of the entry with header and padding, a multiple of FR_FRAME_ALIGN */
	uint32_t payload_crc; /* crc32c of side-band and samples; 0 in a pad */
	uint64_t seq;	      /* 0 in a pad */
	uint64_t reserved;
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
	uint64_t low_watermark_ns; /* nothing in this frame or in one of a later seq is older; 0: not known */
};
static_assert(sizeof(struct fr_frame_header) == 96, "layout 3");

/* What a header crc covers. */
#define FR_CRC_FROM offsetof(struct fr_entry, bytes)
