/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The page of many machines: the explanation, and a lane for each machine, all on the clock of the fleet. It
 * needs no program: the lanes are SVG. The data are in it, too, as JSON. docs/design/93-many-machines.md
 * describes them. Not thread-safe.
 */

#include "report/fleet_explain.h"

#define FR_FLEET_MARKS_MAX 100

struct fr_fleet_mark {
	uint64_t ns; /* after the begin of the page */
	char text[64];
};

struct fr_fleet_lane {
	uint32_t n_cpus;
	uint32_t event;			/* plus 1: the event of CPU time; 0: there is none yet */
	uint64_t *busy_ns, *waiting_ns; /* CPU time, and time that threads waited, in each bucket */
	uint64_t incident_ns;		/* the begin of the incident, after the begin of the page */
	struct fr_fleet_mark *marks;
	size_t n_marks;
};

struct fr_fleet_page {
	const struct fr_fleet_folder *folder; /* borrowed */
	struct fr_fleet_lane *lanes;	      /* of each machine */
	uint32_t n_buckets;
	uint64_t bucket_ns; /* the first one begins at folder->from_ns */
	size_t current;	    /* the machine whose samples come */
};

/* Returns 0 or -ENOMEM. The caller calls fr_fleet_page_deinit() in any case. */
int fr_fleet_page_init(struct fr_fleet_page *x, const struct fr_fleet_folder *folder);
/* Returns the view that gets the samples of MACHINE, for fr_explain(). */
struct fr_view fr_fleet_page_view(struct fr_fleet_page *x, size_t machine);
/* Adds what the explanation of MACHINE has: the waits, the incident and the triggers. Returns 0 or
   -ENOMEM. */
int fr_fleet_page_add(struct fr_fleet_page *x, size_t machine, const struct fr_explanation *e);
/* Writes the page. Returns 0 or -ENOMEM; errors of OUT are seen by ferror(). */
int fr_fleet_page_write(const struct fr_fleet_page *x, struct fr_fleet_explanation *e, FILE *out);
void fr_fleet_page_deinit(struct fr_fleet_page *x);
