/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside perfdata/: how the parts of features*.c write their sections. */

#include "base/buf.h"
#include "perfdata/features.h"

/* perf's string: u32 length, the bytes with their NUL, zeros up to 64. 0 or -ENOMEM. */
int fr_feature_append_string(struct fr_buf *b, const char *text);

/* Replace section F by B's bytes (taken over; B is empty then). */
void fr_feature_take(struct fr_session *s, enum fr_feature f, struct fr_buf *b);

/* A line of a file whose path is formatted; -errno where it cannot be read. */
int fr_feature_line(char *ret, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* CPU_TOPOLOGY (CPUS: number of CPUs as in NRCPUS), CACHE; NUMA_TOPOLOGY, MEM_TOPOLOGY; PMU_MAPPINGS and
   CPU_PMU_CAPS. What cannot be read is left out. 0 or -ENOMEM. */
int fr_features_gather_cpus(struct fr_session *s, uint32_t cpus);
int fr_features_gather_caches(struct fr_session *s, uint32_t cpus);
int fr_features_gather_numa(struct fr_session *s);
int fr_features_gather_memory(struct fr_session *s);
int fr_features_gather_pmus(struct fr_session *s);
