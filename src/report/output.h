/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The views that write a text or a file. Each reads the whole recording of P, and writes into OUT. They
   return 0; or a negative errno, with a message in D. Errors of OUT are seen by ferror(). */

#include "report/profile.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* A table for each event, as that of perf report --stdio -g none: "Overhead Samples Command Object Symbol".
   Rows with less than MIN_PERCENT of the event are left out. */
int fr_output_table(struct fr_profile *p, FILE *out, double min_percent, bool colours, struct fr_diag *d);

/* What the samples of a stack are added up by. The default: their periods if the event measures waits, which
   are very different, and otherwise their number. */
enum fr_output_weight { FR_WEIGHT_DEFAULT, FR_WEIGHT_SAMPLES, FR_WEIGHT_PERIODS };

/* Folded stacks: "comm;outermost;…;innermost N", where N is the weight. The filter of the profile chooses an
   event; the weights of several events would be added up. */
int fr_output_folded(struct fr_profile *p, FILE *out, enum fr_output_weight weight, struct fr_diag *d);

/* The format of pprof, compressed: see pprof.c. */
int fr_output_pprof(struct fr_profile *p, FILE *out, struct fr_diag *d);
/* One of several machines whose traces are written one after the other into one file. */
struct fr_perfetto_machine {
	const char *name;  /* is put before the names of processes */
	uint32_t number;   /* 0, 1, … up to FR_PERFETTO_MACHINES_MAX - 1 */
	uint32_t cpus;	   /* of the machines before: the first CPU of this machine gets this number */
	int64_t offset_ns; /* is added to all times; it has been checked for the times of the recording */
};
#define FR_PERFETTO_MACHINES_MAX 500u
/* Processes and threads of the machine N get their ids plus N times this: the kernel's ids are smaller. */
#define FR_PERFETTO_PIDS (1u << 22)
/* The format of Perfetto: see perfetto.c. MACHINE may be NULL. */
int fr_output_perfetto(
	struct fr_profile *p, const struct fr_perfetto_machine *machine, FILE *out, struct fr_diag *d);
/* The format of speedscope: see speedscope.c. */
int fr_output_speedscope(struct fr_profile *p, FILE *out, struct fr_diag *d);
/* The format of Firefox Profiler: see firefox.c. */
int fr_output_firefox(struct fr_profile *p, FILE *out, struct fr_diag *d);
/* A page for a browser: see page.c. META is the sidecar of the recording or NULL, and NAME its title. */
int fr_output_page(struct fr_profile *p, const cJSON *meta, const char *name, FILE *out, struct fr_diag *d);
/* A flame graph of WIDTH columns for a terminal: see flame.c. */
int fr_output_flame(struct fr_profile *p, FILE *out, unsigned width, bool colours, struct fr_diag *d);
