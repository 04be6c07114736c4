/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A session is the head of a perf.data file. It has the events, and the bytes of the feature sections.
 *
 * For the recorder, fr_capture_describe() fills the events and fr_features_gather() the sections. The reader
 * reads a session from a file, src/merge/ unites several sessions, and the writers write a session. Plain
 * data; not thread-safe.
 */

#include "base/buf.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Feature bits that this program knows: perf's enum in tools/perf/util/header.h. */
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
	_FR_FEATURE_MAX = 64, /* room for bits of newer writers */
};

struct fr_event_desc {
	struct perf_event_attr attr;
	char *name;    /* as perf prints it: "cycles:k", "sched:sched_switch" */
	uint64_t *ids; /* the kernel's ids of this event, one per CPU (and task) */
	size_t n_ids;
	/* All records of these ids are older than this time. 0: the event is still recorded. UINT64_MAX: the
	   event is recorded until fr_session_close_events(). Only a recording uses this time; files do not
	   have it. */
	uint64_t until_ns;
};

struct fr_session {
	struct fr_event_desc *events;
	size_t n_events;
	/* A section exists if its len > 0. BUILD_ID is a sequence of build-id records; TRACING_DATA begins
	   with 23 8 68 "tracing". */
	struct fr_buf features[_FR_FEATURE_MAX];
};

/* Appends a copy of an event (RET may be NULL). The ids need not be aligned. Returns 0 or -ENOMEM. */
int fr_session_add_event(struct fr_session *s, const struct perf_event_attr *attr, const char *name,
	const void *ids, size_t n_ids, struct fr_event_desc **ret);
/* Appends N ids of 8 bytes, which need not be aligned. Returns 0 or -ENOMEM. */
int fr_event_desc_add_ids(struct fr_event_desc *e, const void *ids, size_t n);
static inline int fr_event_desc_add_id(struct fr_event_desc *e, uint64_t id)
{
	return fr_event_desc_add_ids(e, &id, 1);
}

/* Replaces the name by the LEN bytes at NAME, up to the first NUL. Returns 0 or -ENOMEM. */
int fr_event_desc_set_name(struct fr_event_desc *e, const char *name, size_t len);

/* Removes the events for which IS_GONE returns true. */
void fr_session_remove_events(struct fr_session *s,
	bool (*is_gone)(const struct fr_event_desc *e, const void *ctx), const void *ctx);
/* Notes that the events whose until_ns is UINT64_MAX are recorded only up to NOW_NS. */
void fr_session_close_events(struct fr_session *s, uint64_t now_ns);
/* Removes the events that have no record of SINCE_NS or later. */
void fr_session_drop_closed_events(struct fr_session *s, uint64_t since_ns);

/* Call it after the events of FROM were opened again. Each opening is an event of a session, with its own
   ids. TO has the new openings, and its last event is the side-band event (the event that has no samples).
   Inserts copies of the openings of FROM before the side-band event of TO, without the ids that TO has (some
   events stay open), and adds the tracepoint formats of FROM. If until_ns of an event is 0, until_ns of its
   copy is UINT64_MAX. Returns 0, -ENOMEM, or -EBADMSG if the formats are malformed. */
int fr_session_add_older_events(struct fr_session *to, const struct fr_session *from);
/* Joins the openings of each event (same attr and name) to one event, because a file has each event only
   once. The ids of the newest opening come first. The last event stays the last. Returns 0 or -ENOMEM. */
int fr_session_join_equal_events(struct fr_session *s);
/* Returns whether A and B have an event id in common. The kernel gives each id once in a boot, so sessions
   with a common id belong to one recording. */
bool fr_session_shares_id(const struct fr_session *a, const struct fr_session *b);

/* Returns whether A is the attr of the side-band event, which has no samples. */
bool fr_attr_is_sideband(const struct perf_event_attr *a);
/* Sets the bit PERF_SAMPLE_CALLCHAIN in the side-band event if another event has it. `perf sched timehist`
   needs the bit in all events. But `perf report` expects call chains if any event has the bit, so the bit is
   not set if no other event has it. Call this function only for a session that is written to a file.
   src/merge/ ignores this bit when it compares side-band events. */
void fr_session_set_sideband_stacks(struct fr_session *s);

/* Makes a deep copy. On failure, RET does not change. Returns 0 or -ENOMEM. */
int fr_session_copy(const struct fr_session *s, struct fr_session *ret);
void fr_session_deinit(struct fr_session *s);
#define _cleanup_session_ _cleanup_(fr_session_deinit)
