/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Writes a snapshot of the ring as a perf.data.sample.TIME, which stock perf reads without any other file,
 * and a sidecar beside it. Dumper thread: it waits for the disk.
 *
 *   header, ids, attrs │ process model, plain │ FINISHED_ROUND │ side-band since then, frames │ features
 *
 * The part before the first FINISHED_ROUND is state, not history. A merge that has the auxiliary file may
 * leave this part out. Plain records follow this FINISHED_ROUND, and stand between the two sections of each
 * frame: map records of the objects in NAME.jit/ (jit/jit.h), and trigger samples (dump/trigger_sample.h).
 */

#include "dump/params.h"

/* Write SNAPSHOT (borrowed) as a dump. Each frame is unpinned when it has been read. META (borrowed) has the
   causes, losses and so on. The function adds members that describe the file, and writes META as NAME.json.
   If the name is taken, the name gets the next free microsecond. Returns 0 with RET, also if only the JSON
   could not be written. Returns a negative errno with D if the dump could not be written: no file is left,
   and the caller can retain the rest of the snapshot (fr_snapshot_retain()). */
int fr_dump_write(struct fr_snapshot *snapshot, const struct fr_dump_params *params, cJSON *meta,
	struct fr_dump_result *ret, struct fr_diag *d);
