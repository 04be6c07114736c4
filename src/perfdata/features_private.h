/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to perfdata/: the files features*.c share it. */

#include "perfdata/bytes.h"
#include "perfdata/features.h"

/* Appends a string as perf writes it: a u32 length, the text with its NUL, zeros up to a multiple of 64. */
void fr_feature_put_string(struct builder *b, const char *text);

/* Ends the section that B builds. The section begins with a u32, the number of its items. The function sets
   this number to N. If N is 0, it drops the bytes of B, and SECTION does not change. Returns 0 or -ENOMEM. */
int fr_feature_finish_list(struct builder *b, uint32_t n, struct fr_buf *section);

/* Reads the first line of a file into RET. FMT gives the path. Returns 0 or a negative errno. */
int fr_feature_read_line(char *ret, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Reads a list like "0-3,8" from the file PATH. Returns its last number, or 0 if the list has no number. */
uint32_t fr_feature_read_last_number(const char *path);

/* These functions gather sections, and leave out data that the kernel does not provide. CPUS is the number of
   CPUs in NRCPUS. They return 0 or -ENOMEM. */
int fr_features_gather_cpus(struct fr_session *s, uint32_t cpus);   /* CPU_TOPOLOGY */
int fr_features_gather_caches(struct fr_session *s, uint32_t cpus); /* CACHE */
int fr_features_gather_numa(struct fr_session *s);		    /* NUMA_TOPOLOGY */
int fr_features_gather_memory(struct fr_session *s);		    /* MEM_TOPOLOGY */
int fr_features_gather_pmus(struct fr_session *s);		    /* PMU_MAPPINGS, CPU_PMU_CAPS */
