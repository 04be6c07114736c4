/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The data of the page (page.c). The time is divided into buckets. An entry is the samples of one source, task and stack in
 * one bucket. If there are too many entries, two buckets become one, until there are few enough. So the sums stay exact, and
 * only the borders of the windows that a user can choose become coarse. Not thread-safe.
 */

#include "report/classes.h"
#include "report/facts.h"

struct fr_page_key {
	uint32_t bucket, source, task, stack;
};

struct fr_page_entry {
	UT_hash_handle hh;
	struct fr_page_key key;
	uint64_t count, weight;
};

/* A source is an event; the waits of flightrec:offcpu are two: those for work, and the others. */
#define FR_PAGE_SOURCES_MAX 64
struct fr_page_source {
	uint32_t event;
	bool idle; /* the waits for work */
	uint64_t count;
};

/* A wait that a lane shows. */
struct fr_page_wait {
	uint64_t from_ns, to_ns;
	uint32_t task;
	enum fr_wait kind;
};

struct fr_page_data {
	uint64_t from_ns, to_ns; /* of the recording */
	uint32_t n_buckets;
	struct fr_page_entry *entries;
	struct fr_page_source sources[FR_PAGE_SOURCES_MAX];
	size_t n_sources;
	uint32_t n_cpus;
	struct fr_buf heat;  /* uint64_t: CPU time of each CPU in each of FR_PAGE_BUCKETS buckets */
	struct fr_buf waits; /* struct fr_page_wait */
	uint64_t trigger_ns; /* 0: there is no trigger sample */
	struct fr_classes classes;
};

#define FR_PAGE_BUCKETS 600u /* at the begin */

/* Prepares the data for a recording from FROM_NS to TO_NS. */
void fr_page_data_init(struct fr_page_data *x, uint64_t from_ns, uint64_t to_ns);
/* Adds a sample. Returns 0 or -ENOMEM. */
int fr_page_data_add(struct fr_page_data *x, const struct fr_profile *p, const struct fr_profile_sample *s);
/* Makes the buckets coarser until there are few enough entries, and sorts these by bucket. Returns 0 or -ENOMEM. */
int fr_page_data_finish(struct fr_page_data *x);
void fr_page_data_deinit(struct fr_page_data *x);
