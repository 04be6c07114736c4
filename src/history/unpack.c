/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "history/unpack.h"
#include "history/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

struct fr_unpack {
	ZSTD_DCtx *dctx;
	uint8_t *encoded; /* a decompressed section that fr_columns_decode() reads; NULL until it is needed */
	size_t encoded_bytes;
};

int fr_unpack_new(struct fr_unpack **ret)
{
	struct fr_unpack *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->dctx = ZSTD_createDCtx();
	if (!u->dctx) {
		free(u);
		return -ENOMEM;
	}
	*ret = u;
	return 0;
}

struct fr_unpack *fr_unpack_free(struct fr_unpack *u)
{
	if (!u)
		return NULL;
	ZSTD_freeDCtx(u->dctx);
	free(u->encoded);
	free(u);
	return NULL;
}

static ssize_t decompress(struct fr_unpack *u, const void *zstd, size_t len, void *dst, size_t cap)
{
	size_t n = ZSTD_decompressDCtx(u->dctx, dst, cap, zstd, len);

	return ZSTD_isError(n) ? -EBADMSG : (ssize_t)n;
}

static int grow_encoded(struct fr_unpack *u, size_t bytes)
{
	uint8_t *p;

	if (u->encoded_bytes >= bytes)
		return 0;
	p = realloc(u->encoded, bytes);
	if (!p)
		return -ENOMEM;
	u->encoded = p;
	u->encoded_bytes = bytes;
	return 0;
}

static ssize_t decompress_columns(struct fr_unpack *u, const void *zstd, size_t len, void *dst, size_t cap)
{
	ssize_t n = grow_encoded(u, fr_columns_bound(cap));

	if (n == 0)
		n = decompress(u, zstd, len, u->encoded, u->encoded_bytes);
	return n < 0 ? n : fr_columns_decode(u->encoded, (size_t)n, dst, cap);
}

ssize_t fr_section_decompress(
	struct fr_unpack *u, enum fr_encoding encoding, const void *zstd, size_t len, void *dst, size_t cap)
{
	if (len == 0)
		return 0;
	switch (encoding) {
	case FR_ENCODING_RECORDS:
		return decompress(u, zstd, len, dst, cap);
	case FR_ENCODING_COLUMNS:
		return decompress_columns(u, zstd, len, dst, cap);
	default:
		return -EBADMSG;
	}
}

static bool must_keep(const struct perf_event_header *record, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t t = fr_record_time(record);

	return t >= from_ns && t <= to_ns;
}

void fr_section_count(struct fr_section_kept *kept, const struct perf_event_header *record)
{
	uint64_t t = fr_record_time(record);

	if (kept->records == 0 || t < kept->first_ns)
		kept->first_ns = t;
	if (t > kept->last_ns)
		kept->last_ns = t;
	kept->records++;
}

ssize_t fr_section_filter(
	void *records, size_t len, uint64_t from_ns, uint64_t to_ns, struct fr_section_kept *ret)
{
	struct fr_record_iter it = fr_record_iter(records, len);
	struct fr_section_kept kept = {0};
	const struct perf_event_header *record;
	uint8_t *out = records;

	while ((record = fr_record_next(&it))) {
		size_t size = record->size;

		if (!must_keep(record, from_ns, to_ns))
			continue;
		fr_section_count(&kept, record);
		if (out != (const uint8_t *)record)
			memmove(out, record, size);
		out += size;
	}
	if (it.at != it.end)
		return -EBADMSG;
	*ret = kept;
	return out - (uint8_t *)records;
}
