/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Writes the data of the page as JSON, in the form of docs/design/95-the-page.md. The program of the page
   (page/data.js) reads it. */

#include "report/explain.h"
#include "report/page_data.h"

/* The numbers that the elements of a table have in the page, plus 1; 0: the page does not have the
   element. */
struct fr_page_numbers {
	uint32_t *of, *list;
	uint32_t n;
};

/* A thread that the page shows over time. */
struct fr_page_lane {
	uint32_t task;
	uint8_t runs[FR_PAGE_BUCKETS]; /* how long it ran in each column: 255 is all the time */
};

struct fr_page {
	const struct fr_profile *profile;
	struct fr_page_data *data;
	const struct fr_explanation *explanation;
	FILE *out;
	struct fr_page_numbers frames, objects, tasks;
	struct fr_page_lane *lanes;
	uint32_t n_lanes;
	uint32_t *lane_of; /* of each task: the number of its lane, plus 1; 0: it has none */
	uint64_t run_ns;   /* the length of a column of fr_page_lane.runs */
	uint32_t n_runs;   /* columns */
};

/* Returns the end of the time that the page shows: TO_NS, which is that of the last sample, or the time of
   the last trigger in META, the JSON of the dump, if it is a little later. */
uint64_t fr_page_end(const cJSON *meta, uint64_t from_ns, uint64_t to_ns);
/* Finishes the data, and writes them as JSON. Returns 0 or -ENOMEM. The caller calls fr_page_deinit(). */
int fr_page_json(struct fr_page *x);
void fr_page_deinit(struct fr_page *x);

/* page_lanes.c: chooses the threads of the lanes, before the buckets become coarser. Returns 0 or -ENOMEM. */
int fr_page_lanes_choose(struct fr_page *x);
/* page_lanes.c: writes the members "kinds", "run_ns", "lanes", "waits" and "waits_left_out". Returns 0 or
   -ENOMEM. */
int fr_page_lanes(const struct fr_page *x);
