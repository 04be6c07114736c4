// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/auxtrace.h"
#include "base/cleanup.h"
#include "perfdata/record.h"

#include <errno.h>
#include <stdlib.h>

/* The entries that fit into one record with a size that is a multiple of 8. */
#define ID_INDEX_MAX ((FR_RECORD_MAX - sizeof(struct fr_record_id_index)) / sizeof(struct fr_id_index_entry))

int fr_file_write_auxtrace(struct fr_file_writer *out, const struct fr_auxtrace *t)
{
	static const uint8_t zeros[8];
	struct fr_record_auxtrace record = {
		.header = {.type = FR_RECORD_AUXTRACE, .size = sizeof(record)},
		.size = FR_ALIGN_UP((uint64_t)t->len, 8),
		.offset = t->offset,
		.reference = t->reference,
		.idx = t->idx,
		.tid = (uint32_t)t->tid,
		.cpu = (uint32_t)t->cpu,
	};
	const uint64_t entry[2] = {out->offset, sizeof(record)};
	int r;

	if (t->len == 0)
		return 0;
	r = fr_buf_append(&out->aux_index, entry, sizeof(entry));
	if (r == 0)
		r = fr_file_write_records(out, &record, sizeof(record));
	if (r == 0 && t->data)
		r = fr_file_write_records(out, t->data, t->len);
	if (r == 0 && t->data)
		r = fr_file_write_records(out, zeros, record.size - t->len);
	return r;
}

int fr_id_index(struct fr_buf *ret, const struct fr_id_index_entry *entries, size_t n)
{
	size_t old = ret->len;
	int r = 0;

	for (size_t at = 0, count; at < n && r == 0; at += count) {
		struct fr_record_id_index head = {.header.type = FR_RECORD_ID_INDEX};

		count = FR_MIN(n - at, ID_INDEX_MAX);
		head.header.size = (uint16_t)(sizeof(head) + count * sizeof(*entries));
		head.nr = count;
		r = fr_buf_append(ret, &head, sizeof(head));
		if (r == 0)
			r = fr_buf_append(ret, entries + at, count * sizeof(*entries));
	}
	if (r < 0)
		ret->len = old;
	return r;
}

void fr_aux_data_deinit(struct fr_aux_data *d)
{
	fr_buf_deinit(&d->time_conv);
	fr_buf_deinit(&d->info);
	fr_buf_deinit(&d->ids);
	fr_buf_deinit(&d->records);
	free(d->pieces);
	*d = (struct fr_aux_data){0};
}
