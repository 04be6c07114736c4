/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What heads a perf.data: the events, and the feature sections, each as the bytes that stand in the file.
 *
 * Made once by the recorder (fr_capture_describe() fills the events, fr_features_gather() the sections), read
 * from a file by the reader, united by the merge, written by the file and pipe writers. Plain data; not
 * thread-safe.
 */

#include "base/buf.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Feature bits: perf's enum in tools/perf/util/header.h. */
enum fr_feature {
	FR_FEATURE_TRACING_DATA = 1,
	FR_FEATURE_BUILD_ID = 2,
	FR_FEATURE_HOSTNAME = 3,
	FR_FEATURE_OSRELEASE = 4,
	FR_FEATURE_VERSION = 5,
	FR_FEATURE_ARCH = 6,
	FR_FEATURE_NRCPUS = 7,
	FR_FEATURE_CPUDESC = 8,
	FR_FEATURE_CPUID = 9,
	FR_FEATURE_TOTAL_MEM = 10,
	FR_FEATURE_CMDLINE = 11,
	FR_FEATURE_EVENT_DESC = 12,
	FR_FEATURE_CPU_TOPOLOGY = 13,
	FR_FEATURE_NUMA_TOPOLOGY = 14,
	FR_FEATURE_BRANCH_STACK = 15,
	FR_FEATURE_PMU_MAPPINGS = 16,
	FR_FEATURE_GROUP_DESC = 17,
	FR_FEATURE_AUXTRACE = 18,
	FR_FEATURE_STAT = 19,
	FR_FEATURE_CACHE = 20,
	FR_FEATURE_SAMPLE_TIME = 21,
	FR_FEATURE_MEM_TOPOLOGY = 22,
	FR_FEATURE_CLOCKID = 23,
	FR_FEATURE_DIR_FORMAT = 24,
	FR_FEATURE_BPF_PROG_INFO = 25,
	FR_FEATURE_BPF_BTF = 26,
	FR_FEATURE_COMPRESSED = 27,
	FR_FEATURE_CPU_PMU_CAPS = 28,
	FR_FEATURE_CLOCK_DATA = 29,
	FR_FEATURE_HYBRID_TOPOLOGY = 30,
	FR_FEATURE_PMU_CAPS = 31,
	_FR_FEATURE_MAX = 64, /* room for bits that a newer writer set */
};

struct fr_event_desc {
	struct perf_event_attr attr;
	char *name;    /* as perf prints it: "cycles:k", "sched:sched_switch" */
	uint64_t *ids; /* the kernel's ids of this event, one per CPU (and task) */
	size_t n_ids;
	/* It was opened anew or is recorded no more, and these ids have no record of that time or later; 0:
	   it is recorded; UINT64_MAX: not for long. Of a live recording only, in no file. */
	uint64_t until_ns;
};

struct fr_session {
	struct fr_event_desc *events;
	size_t n_events;
	/* A section is there where its len > 0. BUILD_ID is a run of build-id records, TRACING_DATA the blob
	   that begins with 23 8 68 "tracing". */
	struct fr_buf features[_FR_FEATURE_MAX];
};

/* Append a copy of an event (RET may be NULL). 0 or -ENOMEM. */
int fr_session_add_event(struct fr_session *s, const struct perf_event_attr *attr, const char *name,
	const uint64_t *ids, size_t n_ids, struct fr_event_desc **ret);
int fr_event_desc_add_id(struct fr_event_desc *e, uint64_t id);
/* Those that will not be recorded for long are recorded no more from NOW_NS on. */
void fr_session_close_events(struct fr_session *s, uint64_t now_ns);
/* Without the events that have no record of SINCE_NS or later. */
void fr_session_drop_closed_events(struct fr_session *s, uint64_t since_ns);
/* FROM's events, which are not recorded for long, before the last of TO's, which is the side-band event; and
   FROM's formats of tracepoints. Each time an event is opened it is one more here, with the ids of that time,
   so that it can go. 0, -ENOMEM, or -EBADMSG for formats that are none. */
int fr_session_add_older_events(struct fr_session *to, const struct fr_session *from);
/* As a file has them: events with the same attr and name become one, the newest ids first. The last stays the
   last. 0 or -ENOMEM. */
int fr_session_join_equal_events(struct fr_session *s);
/* Whether A and B have an event id in common: the kernel gives each once in a boot. */
bool fr_session_shares_id(const struct fr_session *a, const struct fr_session *b);
/* Whether an event is the one for side-band: it has no samples. */
bool fr_attr_is_sideband(const struct perf_event_attr *a);
/* The side-band event has stacks just where another event has: a reader may ask all of them (perf sched
   timehist), or any of them (perf report). Only in what is written to a file: what makes two events the same
   is without. */
void fr_session_set_sideband_stacks(struct fr_session *s);
/* A deep copy. RET is not touched on failure. */
int fr_session_copy(const struct fr_session *s, struct fr_session *ret);
void fr_session_deinit(struct fr_session *s);
#define _cleanup_session_ _cleanup_(fr_session_deinit)
