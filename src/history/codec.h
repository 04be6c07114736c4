/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Compresses the sections of frames with zstd. fr_codec_new() allocates all memory, so fr_codec_compress()
   allocates no memory. One thread at a time uses a codec. */

#include <stddef.h>
#include <sys/types.h>

struct fr_codec;

/* Makes a codec for sections of up to MAX_BYTES. LEVEL is the zstd level, as in struct fr_history_config.
   Returns 0; -EINVAL if zstd has no such level; or -ENOMEM. */
int fr_codec_new(int level, size_t max_bytes, struct fr_codec **ret);
struct fr_codec *fr_codec_free(struct fr_codec *c);

/* Compresses LEN bytes to DST, which has room for CAP bytes: fr_codec_bound(LEN) are enough. Returns the
   compressed length (0 if LEN is 0), or -EIO if zstd fails, which is not expected. */
ssize_t fr_codec_compress(struct fr_codec *c, const void *src, size_t len, void *dst, size_t cap);
/* The same for the columns of fr_columns_encode(). */
ssize_t fr_codec_compress_columns(struct fr_codec *c, const void *src, size_t len, void *dst, size_t cap);

/* Returns the largest possible compressed length of LEN bytes. */
size_t fr_codec_bound(size_t len);
