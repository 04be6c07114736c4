// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/record.h"
#include "base/cleanup.h"

#include <string.h>

/* The smallest size of a record without its sample id. A string at its end has at least a NUL, padded to
   eight bytes. */
static const uint16_t fixed[] = {
	[PERF_RECORD_MMAP] = sizeof(struct fr_record_mmap) + 8,
	[PERF_RECORD_LOST] = sizeof(struct fr_record_lost),
	[PERF_RECORD_COMM] = sizeof(struct fr_record_comm) + 8,
	[PERF_RECORD_EXIT] = sizeof(struct fr_record_task),
	[PERF_RECORD_THROTTLE] = sizeof(struct fr_record_throttle),
	[PERF_RECORD_UNTHROTTLE] = sizeof(struct fr_record_throttle),
	[PERF_RECORD_FORK] = sizeof(struct fr_record_task),
	[PERF_RECORD_MMAP2] = sizeof(struct fr_record_mmap2) + 8,
	[PERF_RECORD_AUX] = sizeof(struct fr_record_aux),
	[PERF_RECORD_ITRACE_START] = sizeof(struct fr_record_itrace_start),
	[PERF_RECORD_LOST_SAMPLES] = sizeof(struct fr_record_lost_samples),
	[PERF_RECORD_NAMESPACES] = sizeof(struct fr_record_namespaces),
	[PERF_RECORD_KSYMBOL] = sizeof(struct fr_record_ksymbol) + 8,
	[PERF_RECORD_BPF_EVENT] = sizeof(struct fr_record_bpf_event),
	[PERF_RECORD_CGROUP] = sizeof(struct fr_record_cgroup) + 8,
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = sizeof(struct fr_record_aux_output_hw_id),
};

static size_t smallest_size(uint32_t type)
{
	size_t body = sizeof(struct perf_event_header);

	if (type == PERF_RECORD_SAMPLE)
		return sizeof(struct fr_sample);
	if (type >= FR_RECORD_USER_START)
		return body;
	if (type < FR_ARRAY_SIZE(fixed) && fixed[type])
		body = fixed[type];
	return body + sizeof(struct fr_sample_id);
}

bool fr_record_is_whole(const void *p, size_t left)
{
	const struct perf_event_header *h = p;

	if (left < sizeof(*h) || h->size > left)
		return false;
	/* perf writes these three types in any size. */
	if (h->size % 8 && h->type != FR_RECORD_COMPRESSED && h->type != FR_RECORD_HEADER_TRACING_DATA &&
		h->type != FR_RECORD_HEADER_BUILD_ID)
		return false;
	return h->size >= smallest_size(h->type);
}

const struct perf_event_header *fr_record_next(struct fr_record_iter *it)
{
	const struct perf_event_header *record = (const void *)it->at;

	/* Another size would leave the next record unaligned. */
	if (!fr_record_is_whole(record, (size_t)(it->end - it->at)) || record->size % 8)
		return NULL;
	it->at += record->size;
	return record;
}

const struct fr_record_build_id *fr_record_next_build_id(struct fr_record_iter *it)
{
	const struct fr_record_build_id *b = (const void *)fr_record_next(it);

	if (b && b->header.type == FR_RECORD_HEADER_BUILD_ID && b->header.size > sizeof(*b) &&
		b->header.misc & FR_MISC_BUILD_ID_SIZE && b->size > 0 && b->size <= sizeof(b->id) &&
		memchr(b->filename, '\0', b->header.size - sizeof(*b)))
		return b;
	if (b)
		it->at = (const uint8_t *)b;
	return NULL;
}

bool fr_record_has_text(const struct perf_event_header *h, const char *text)
{
	const char *end = (const char *)h + h->size - sizeof(struct fr_sample_id);

	return text < end && memchr(text, '\0', (size_t)(end - text));
}
