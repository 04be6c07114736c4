/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The AUX data of a job. Only the dumper thread uses it. */

#include "capture/aux.h"

#include <cjson/cJSON.h>

struct fr_job_aux {
	struct fr_aux_snapshot snapshot;
	struct fr_aux_data data; /* borrows from `snapshot` */
};

/* Takes over AREAS, copies what is new in them from SINCE_NS to UNTIL_NS, and sets *RET, which the caller
   frees. If there are no areas, *RET is NULL. Returns 0 or -ENOMEM. */
int fr_job_aux_take(
	struct fr_aux_areas *areas, uint64_t since_ns, uint64_t until_ns, struct fr_job_aux **ret);
/* Completes A, which may be NULL, when the recorder has drained the rings after the copy, and adds the copies
   to META. Returns 0 or a negative errno. */
int fr_job_aux_finish(struct fr_job_aux *a, cJSON *meta);
/* A may be NULL. Returns NULL. */
struct fr_job_aux *fr_job_aux_free(struct fr_job_aux *a);
