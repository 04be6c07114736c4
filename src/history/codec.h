/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Compresses sections with zstd. The context takes all memory at once, so a seal never allocates. One thread
   at a time uses it. */

#include <stddef.h>
#include <sys/types.h>

struct fr_codec;

/* For sources of up to MAX_BYTES. LEVEL: as in fr_history_config. Returns 0; -EINVAL: zstd has no such level;
   -ENOMEM. */
int fr_codec_new(int level, size_t max_bytes, struct fr_codec **ret);
struct fr_codec *fr_codec_free(struct fr_codec *c);

/* Compress LEN bytes to DST, which has fr_codec_bound(LEN) bytes. Returns the length (0 for LEN 0), or -EIO,
   which a correct zstd never returns. */
ssize_t fr_codec_compress(struct fr_codec *c, const void *src, size_t len, void *dst, size_t cap);

/* The largest result of a compression of LEN bytes. */
size_t fr_codec_bound(size_t len);
