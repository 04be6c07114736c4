/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Applies side-band to the process model of a recording so that the last samples of a task have names, too:
 *
 * A task still has samples after its EXIT record: it runs in the kernel until it is gone. So the model gets
 * an EXIT only when the id of the task is used again, or when many other tasks have exited since.
 *
 * Between the COMM record of an exec and the first instruction of the new program, the samples have the
 * address from which the old program called exec. So the model gets the exec and the maps of the new program
 * together: before the first sample of the new program, or the first record of what it did.
 *
 * Not thread-safe.
 */

#include "perfdata/sample.h"
#include "sideband/model.h"

#define FR_EXITS_MAX 16384u /* tasks that have exited and are still in the model */
#define FR_EXECS_MAX 16384u
#define FR_EXEC_MAPS_MAX 64u	     /* delayed maps of an exec: each sample looks at all of them */
#define FR_EXEC_MAP_BYTES (4u << 20) /* of all delayed maps */

struct fr_delayed_exit;
struct fr_delayed_exec;

/* It begins as zeros. */
struct fr_exits {
	struct fr_delayed_exit *by_tid;
	struct fr_delayed_exit *first, *last; /* in the order of time */
	size_t n;
	struct fr_delayed_exec *execs;
	size_t map_bytes;
};

/* Does what fr_model_apply_foreign() does, but delays some records. Returns 0 or -ENOMEM. */
int fr_exits_apply(struct fr_exits *e, struct fr_model *m, const struct perf_event_header *record,
	size_t tail_bytes, uint64_t time_ns);
/* Call this function before the names of the sample S are looked up. Returns 0 or -ENOMEM. */
int fr_exits_run(struct fr_exits *e, struct fr_model *m, const struct fr_sample_fields *s);
void fr_exits_deinit(struct fr_exits *e);
