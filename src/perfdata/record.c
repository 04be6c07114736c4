// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/record.h"
#include "base/cleanup.h"

static const char *const names[] = {
	[PERF_RECORD_MMAP] = "MMAP",
	[PERF_RECORD_LOST] = "LOST",
	[PERF_RECORD_COMM] = "COMM",
	[PERF_RECORD_EXIT] = "EXIT",
	[PERF_RECORD_THROTTLE] = "THROTTLE",
	[PERF_RECORD_UNTHROTTLE] = "UNTHROTTLE",
	[PERF_RECORD_FORK] = "FORK",
	[PERF_RECORD_READ] = "READ",
	[PERF_RECORD_SAMPLE] = "SAMPLE",
	[PERF_RECORD_MMAP2] = "MMAP2",
	[PERF_RECORD_AUX] = "AUX",
	[PERF_RECORD_ITRACE_START] = "ITRACE_START",
	[PERF_RECORD_LOST_SAMPLES] = "LOST_SAMPLES",
	[PERF_RECORD_SWITCH] = "SWITCH",
	[PERF_RECORD_SWITCH_CPU_WIDE] = "SWITCH_CPU_WIDE",
	[PERF_RECORD_NAMESPACES] = "NAMESPACES",
	[PERF_RECORD_KSYMBOL] = "KSYMBOL",
	[PERF_RECORD_BPF_EVENT] = "BPF_EVENT",
	[PERF_RECORD_CGROUP] = "CGROUP",
	[PERF_RECORD_TEXT_POKE] = "TEXT_POKE",
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = "AUX_OUTPUT_HW_ID",
	[FR_RECORD_HEADER_ATTR] = "HEADER_ATTR",
	[FR_RECORD_HEADER_EVENT_TYPE] = "HEADER_EVENT_TYPE",
	[FR_RECORD_HEADER_TRACING_DATA] = "HEADER_TRACING_DATA",
	[FR_RECORD_HEADER_BUILD_ID] = "HEADER_BUILD_ID",
	[FR_RECORD_FINISHED_ROUND] = "FINISHED_ROUND",
	[FR_RECORD_ID_INDEX] = "ID_INDEX",
	[FR_RECORD_AUXTRACE_INFO] = "AUXTRACE_INFO",
	[FR_RECORD_AUXTRACE] = "AUXTRACE",
	[FR_RECORD_AUXTRACE_ERROR] = "AUXTRACE_ERROR",
	[FR_RECORD_THREAD_MAP] = "THREAD_MAP",
	[FR_RECORD_CPU_MAP] = "CPU_MAP",
	[FR_RECORD_STAT_CONFIG] = "STAT_CONFIG",
	[FR_RECORD_STAT] = "STAT",
	[FR_RECORD_STAT_ROUND] = "STAT_ROUND",
	[FR_RECORD_EVENT_UPDATE] = "EVENT_UPDATE",
	[FR_RECORD_TIME_CONV] = "TIME_CONV",
	[FR_RECORD_HEADER_FEATURE] = "HEADER_FEATURE",
	[FR_RECORD_COMPRESSED] = "COMPRESSED",
	[FR_RECORD_FINISHED_INIT] = "FINISHED_INIT",
	[FR_RECORD_COMPRESSED2] = "COMPRESSED2",
};

/* Bytes of the fixed part, without the sample id that follows. A name at the end has at least its NUL, which
   the padding makes eight bytes. */
static const uint16_t fixed[] = {
	[PERF_RECORD_MMAP] = sizeof(struct fr_record_mmap) + 8,
	[PERF_RECORD_LOST] = sizeof(struct fr_record_lost),
	[PERF_RECORD_COMM] = sizeof(struct fr_record_comm) + 8,
	[PERF_RECORD_EXIT] = sizeof(struct fr_record_task),
	[PERF_RECORD_THROTTLE] = sizeof(struct fr_record_throttle),
	[PERF_RECORD_UNTHROTTLE] = sizeof(struct fr_record_throttle),
	[PERF_RECORD_FORK] = sizeof(struct fr_record_task),
	[PERF_RECORD_MMAP2] = sizeof(struct fr_record_mmap2) + 8,
	[PERF_RECORD_LOST_SAMPLES] = sizeof(struct fr_record_lost_samples),
	[PERF_RECORD_NAMESPACES] = sizeof(struct fr_record_namespaces),
	[PERF_RECORD_KSYMBOL] = sizeof(struct fr_record_ksymbol) + 8,
	[PERF_RECORD_BPF_EVENT] = sizeof(struct fr_record_bpf_event),
	[PERF_RECORD_CGROUP] = sizeof(struct fr_record_cgroup) + 8,
};

static size_t smallest(uint32_t type)
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
	/* perf itself writes these three in any length. */
	if (h->size % 8 && h->type != FR_RECORD_COMPRESSED && h->type != FR_RECORD_HEADER_TRACING_DATA &&
		h->type != FR_RECORD_HEADER_BUILD_ID)
		return false;
	return h->size >= smallest(h->type);
}

const char *fr_record_name(uint32_t type)
{
	return type < FR_ARRAY_SIZE(names) ? names[type] : NULL;
}
