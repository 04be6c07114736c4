/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A snapshot of the ring, written as one perf.data.sample.TIME that opens alone in stock perf, and the JSON
 * beside it. Runs on the dumper thread; blocks on the disk.
 *
 *   header, ids, attrs │ model at the tail, plain, then FINISHED_ROUND │ side-band since, frames │ features
 *
 * Code that processes made as they run is named by objects in NAME.jit/ (jit/jit.h), whose MMAP2 records
 * stand plain behind that round and between the two sections of a frame. There, too, stand the marks: samples
 * that tell what made the dump (dump/mark.h).
 *
 * Everything up to the first FINISHED_ROUND is state, not history: a merge that has the auxiliary file may
 * leave it out.
 */

#include "base/clock.h"
#include "base/diag.h"
#include "fileio/writer.h"
#include "history/history.h"
#include "jit/open_files.h"
#include "perfdata/session.h"
#include "sideband/early_ids.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* The state just before LOW_WATERMARK_NS, the snapshot's, as records with time TIME_NS; and the side-band
   that the ring has given up though it is not older, with its own times. (fr_tracker_write_model()) */
typedef int (*fr_dump_model)(void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret_state,
	struct fr_buf *ret_since);

/* What made a dump, as a sample of the event "flightrec:trigger" at its instant. Texts are borrowed until the
   dump is written, NULL or "" where there is none; what is no single line becomes one, and past 255 bytes
   they are cut. */
struct fr_dump_mark {
	uint64_t time_ns;		       /* monotonic */
	pid_t pid, tid;			       /* 0: nobody, or not known; as the samples' are */
	int cpu;			       /* -1: none, and then CPU 0 stands in the sample */
	const char *trigger, *reason, *detail; /* "run-queue-latency"; in words; of what */
	const char *unit;		       /* of the two numbers: "ns" */
	uint64_t value, threshold;
	const char *value_text, *threshold_text; /* for a person: "12.3ms" */
};

struct fr_dump_params {
	int dirfd;
	const struct fr_session *session; /* constant part of the head; build-ids are added per dump */
	struct fr_clock_pair clock;
	uint64_t trigger_ns; /* monotonic; names the file */
	uint64_t from_ns,
		to_ns; /* window, inclusive; 0 and UINT64_MAX: all that is there. Exact to the record */
	bool compress; /* pass frames on as they are (type 81); else plain */
	int level;     /* zstd level of the ring, for the feature section and for frames cut by the window */
	size_t section_max;		  /* fr_history_section_max() */
	const struct fr_dump_mark *marks; /* in the file wherever their time is, in the window or not */
	size_t n_marks;
	struct fr_jit_open_files *jit_open_files; /* borrowed, or NULL */
	struct fr_early_ids *early_ids;		  /* borrowed; NULL: files are read now */
	bool vdso_kept;	   /* a copy of it is where perf looks for build-ids, so that its id is no harm */
	bool strip_rounds; /* the ring holds records out of order (overwritable events): no FINISHED_ROUND */
	fr_dump_model model; /* called once, before anything is unpinned */
	/* Called once before anything is written, with about how many bytes will be. NULL: nobody makes room.
	 */
	void (*make_room)(void *ctx, uint64_t bytes);
	void *ctx;
	struct fr_file_writer_config writer;
	gid_t gid; /* of the files, (gid_t)-1: leave */
};

#define FR_DUMP_NAME_SIZE 64

struct fr_dump_result {
	char name[FR_DUMP_NAME_SIZE]; /* "perf.data.sample.20261120T231137.123456Z" */
	uint64_t bytes;
	uint64_t samples, sideband;	     /* records; marks are not among them */
	uint64_t from_ns, to_ns;	     /* first and last sample in the file; 0 where there is none */
	uint64_t marks;			     /* records */
	uint64_t write_ns;		     /* open to rename */
	uint64_t damaged;		     /* sections of the ring that were not whole, and were left out */
	uint64_t jit_objects, jit_functions; /* in NAME.jit/ */
	uint64_t jit_bytes;		     /* of these */
	uint64_t jit_cut;		     /* perf maps and jitdumps of which not all was taken */
	char how[96];			     /* fr_writer_describe() */
	int sidecar_error; /* negative errno: the data is there, its JSON could not be written */
	int owner_error;   /* negative errno: the file stays its writer's (base/owner.h) */
	int not_durable;   /* errno: the file has its name, but its directory could not be synced */
};

/* The name that a dump of a trigger at REALTIME_NS has where nobody has taken it. */
void fr_dump_name(uint64_t realtime_ns, char ret[static FR_DUMP_NAME_SIZE]);

/* Reads SNAPSHOT (borrowed), which lets go of what has been read. META (borrowed; cause, losses …) gets the
   file's own members added and becomes NAME.json. 0 or a negative errno with D; nothing is left behind on
   failure, and what the ring still has of the snapshot can be retained (fr_snapshot_retain()). A name that is
   taken gets the next free microsecond. A JSON that cannot be written is no failure: the data is what counts,
   and RET says so. */
int fr_dump_write(struct fr_snapshot *snapshot, const struct fr_dump_params *params, cJSON *meta,
	struct fr_dump_result *ret, struct fr_diag *d);
