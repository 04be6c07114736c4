/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "history/unpack.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

/* A struct fr_unpack is a ZSTD_DCtx. Because of the other name, users do not need the header of zstd. */

int fr_unpack_new(struct fr_unpack **ret)
{
	*ret = (struct fr_unpack *)ZSTD_createDCtx();
	return *ret ? 0 : -ENOMEM;
}

struct fr_unpack *fr_unpack_free(struct fr_unpack *u)
{
	ZSTD_freeDCtx((ZSTD_DCtx *)u);
	return NULL;
}

ssize_t fr_section_decompress(struct fr_unpack *u, const void *zstd, size_t len, void *dst, size_t cap)
{
	size_t n;

	if (len == 0)
		return 0;
	n = ZSTD_decompressDCtx((ZSTD_DCtx *)u, dst, cap, zstd, len);
	return ZSTD_isError(n) ? -EBADMSG : (ssize_t)n;
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
