/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parameters and the result of fr_dump_write(). */

#include "base/clock.h"
#include "base/diag.h"
#include "dump/names.h"
#include "fileio/writer.h"
#include "history/rings.h"
#include "jit/open_files.h"
#include "perfdata/auxtrace.h"
#include "perfdata/session.h"
#include "sideband/early_ids.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* A function that gets the side-band (records that are not samples) with which a dump begins.
   LOW_WATERMARK_NS is the low watermark of the oldest frame: the frames of the dump have no older side-band.
   RET_STATE gets the process model: records that describe the processes, threads and maps just before
   LOW_WATERMARK_NS. All these records have the time TIME_NS. RET_SINCE gets the side-band that the ring has
   already evicted, but that is not older than LOW_WATERMARK_NS. This side-band keeps its times. See
   fr_tracker_write_model(). Returns 0 or a negative errno. */
typedef int (*fr_dump_model)(void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret_state,
	struct fr_buf *ret_since);

/* A sample of the event "flightrec:trigger": a cause, or a step of the sampling frequency. The texts are
   borrowed until the dump is written; NULL and "" mean that there is no text. In the dump, each text is one
   line of at most 255 bytes. */
struct fr_trigger_sample {
	uint64_t time_ns;		       /* monotonic */
	pid_t pid, tid;			       /* 0: no process, or an unknown process */
	int cpu;			       /* -1: no CPU; the sample then has CPU 0 */
	const char *trigger, *reason, *detail; /* "run-queue-latency", "run-queue latency", "cpu 3" */
	const char *unit;		       /* the unit of the two numbers: "ns" */
	uint64_t value, threshold;
	const char *value_text, *threshold_text; /* "12.3ms" */
};

/* All pointers are borrowed until fr_dump_write() returns. */
struct fr_dump_params {
	int dirfd;
	const struct fr_session *session; /* the dump adds build-ids and trigger samples to a copy */
	struct fr_clock_pair clock;
	uint64_t trigger_ns; /* monotonic; the name of the file has this time */
	/* The window, both times inclusive: except for trigger samples, the dump has no sample before
	   from_ns, and no record after to_ns. If from_ns is 0 and to_ns is UINT64_MAX, the window is the
	   whole ring. */
	uint64_t from_ns, to_ns;
	/* The rings of the snapshots, by number; NULL: there is only one ring. A ring gives no sample that is
	   older than its own from_ns. */
	const struct fr_dump_ring {
		const char *name;
		uint64_t from_ns;
	} * rings;
	bool compress;	    /* true: write compressed records (record type 81) */
	int level;	    /* the zstd level of the ring, also for sections that are filtered */
	size_t section_max; /* fr_history_section_max() */
	/* The dump has all trigger samples, also those outside the window. */
	const struct fr_trigger_sample *trigger_samples;
	size_t n_trigger_samples;
	/* The waits that have not ended: samples of flightrec:offcpu, of which the dump makes samples of
	   flightrec:waiting; NULL: none. */
	const struct fr_buf *waits;
	const struct fr_aux_data *aux;		  /* NULL: the recording has no AUX events */
	struct fr_jit_open_files *jit_open_files; /* or NULL */
	struct fr_early_ids *early_ids;		  /* NULL: the dump reads build-ids from files */
	bool vdso_kept;				  /* perf can find a copy of the vdso by its build-id */
	/* The ring is of another boot: of a machine that has crashed. The dump then has nothing of the
	   running kernel and of its processes: no run-time code, no vdso, no BPF programs, and as build-ids
	   of the kernel and its modules those in KERNEL_BUILD_IDS only: records of type 67, with names such
	   as "[kernel.kallsyms]" and
	   "[snd_pcm]"; NULL: none. */
	bool other_boot;
	const struct fr_buf *kernel_build_ids;
	const char *boot_id; /* for the sidecar; NULL: that of this boot */
	/* Write no FINISHED_ROUND between the frames. It would promise too much if an event has overwritable
	   kernel rings (docs/design/20). */
	bool no_rounds;
	fr_dump_model model; /* called once, while all frames of the snapshot are pinned (not evicted) */
	/* Called once before the first byte is written, with an estimate of the file's size. May be NULL. */
	void (*make_room)(void *ctx, uint64_t bytes);
	void *ctx;
	bool hold; /* make a hold before the file has its name (hold.h) */
	struct fr_file_writer_config writer;
	gid_t gid; /* the group of the files; (gid_t)-1: do not change the group */
};

struct fr_dump_result {
	char name[FR_DUMP_NAME_SIZE]; /* "perf.data.sample.20261120T231137.123456Z" */
	uint64_t bytes;
	uint64_t samples, sideband; /* numbers of records, without trigger samples */
	uint64_t waits;		 /* the number of samples of waits that have not ended; in `samples`, too */
	uint64_t from_ns, to_ns; /* times of the first and the last sample; 0: no samples */
	/* Each ring has a part: its number of samples, and the times of its first and its last sample. */
	struct fr_dump_part {
		uint64_t samples, from_ns, to_ns;
	} parts[FR_RINGS_MAX];
	unsigned n_rings;
	uint64_t trigger_samples; /* number of trigger samples */
	uint64_t write_ns;	  /* how long it took until the file had its name */
	uint64_t damaged;	  /* number of damaged sections of frames, which the dump does not have */
	uint64_t jit_objects, jit_functions; /* numbers of objects and functions in NAME.jit/ */
	uint64_t jit_bytes;		     /* size of these objects */
	/* Number of perf maps and jitdumps that were not read as a whole, or have no object. */
	uint64_t jit_cut;
	char how[96];	   /* the text of fr_writer_describe() */
	int sidecar_error; /* negative errno: the dump is complete, but its JSON could not be written */
	int owner_error;   /* negative errno: the file could not be given to root (base/owner.h) */
	int not_durable;   /* positive errno: the file has its name, but its directory could not be synced */
};
