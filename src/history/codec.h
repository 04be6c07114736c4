/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * zstd, for sections: one context whose memory is taken once, so that a seal never allocates. One thread at a
 * time.
 */

#include <stddef.h>
#include <sys/types.h>

struct fr_codec;

/* For sources of up to MAX_BYTES. LEVEL: see fr_history_config. 0, -EINVAL for a level zstd does not have,
   -ENOMEM. */
int fr_codec_new(int level, size_t max_bytes, struct fr_codec **ret);
struct fr_codec *fr_codec_free(struct fr_codec *c);

/* One zstd frame of LEN bytes at SRC into DST, which has fr_codec_bound(LEN). Returns its length (0 for LEN
   0), or -EIO, which a correct zstd never gives. */
ssize_t fr_codec_compress(struct fr_codec *c, const void *src, size_t len, void *dst, size_t cap);

/* The most that LEN bytes can become. */
size_t fr_codec_bound(size_t len);
