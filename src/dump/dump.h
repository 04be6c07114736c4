/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Writes a snapshot (pinned frames of the ring) to a file perf.data.sample.TIME, and a sidecar (a JSON file)
 * beside it. The perf of any distribution reads the dump without any other file. Only the dumper thread calls
 * fr_dump_write(), which waits for the disk.
 *
 *   header, ids, attrs │ process model │ FINISHED_ROUND │ later side-band, frames │ features
 *
 * The records before the first FINISHED_ROUND are the process model, uncompressed: they describe the
 * processes, threads and maps at the beginning of the dump. flightrec-merge can leave these records out if it
 * also reads perf.data.auxiliary, which has all side-band (records that are not samples). The later side-band
 * is newer than the process model, but the ring has already evicted it. A dump also has uncompressed records
 * that do not come from the ring: map records of the objects in NAME.jit/ (jit/jit.h), and trigger samples
 * (dump/trigger_sample.h). They are written after the later side-band, between the two sections of a frame,
 * and after the last frame.
 */

#include "dump/params.h"

/* Writes SNAPSHOT (borrowed) as a dump. Each frame is unpinned (the ring can then evict it) when it has been
   read. META (borrowed) is the content of the sidecar: causes, losses and so on. The function adds members
   that describe the file, and writes META to NAME.json. If the name is taken, the time in the name becomes
   the next free microsecond. Returns 0 and fills RET, also if only the sidecar could not be written. If the
   dump could not be written, returns a negative errno, with a message in D. In this case there is no file,
   and the caller can retain the frames that are still in the ring (fr_snapshots_retain()). */
int fr_dump_write(struct fr_snapshots *snapshots, const struct fr_dump_params *params, cJSON *meta,
	struct fr_dump_result *ret, struct fr_diag *d);
