/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Writes a snapshot of the ring to a file perf.data.sample.TIME, and a sidecar beside it. The perf of any
 * distribution reads the file without any other file. Dumper thread; the function waits for the disk.
 *
 *   header, ids, attrs │ process model │ FINISHED_ROUND │ later side-band, frames │ features
 *
 * The records before the first FINISHED_ROUND are the process model, uncompressed: they describe the
 * processes at the begin of the dump. A merge that has the auxiliary file may leave these records out. The
 * dump also adds uncompressed records of its own: map records of the objects in NAME.jit/ (jit/jit.h), and
 * trigger samples (dump/trigger_sample.h). These records stand behind the side-band that precedes the frames,
 * and between the two sections of a frame.
 */

#include "dump/params.h"

/* Write SNAPSHOT (borrowed) as a dump. Each frame is unpinned when it has been read. META (borrowed) is the
   content of the sidecar: causes, losses and so on. The function adds members that describe the file, and
   writes META to NAME.json. If the name is taken, the time in the name becomes the next free microsecond.
   Returns 0 with RET; also if only the sidecar could not be written. Returns a negative errno with D if the
   dump could not be written: then no file is left, and the caller can retain the frames that are still there
   (fr_snapshot_retain()). */
int fr_dump_write(struct fr_snapshot *snapshot, const struct fr_dump_params *params, cJSON *meta,
	struct fr_dump_result *ret, struct fr_diag *d);
