/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A job of the dumper: what is asked for, and what became of it. */

#include "base/diag.h"
#include "dump/dump.h"
#include "dump/vacuum.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_UID_MACHINE ((uid_t)-1)

enum fr_job_kind {
	FR_JOB_DUMP,
	FR_JOB_VACUUM, /* apply limits */
	FR_JOB_REMOVE, /* remove named dumps */
};

enum fr_job_outcome {
	FR_OUTCOME_DONE,     /* succeeded or failed, as CODE says; nothing of it is left in memory */
	FR_OUTCOME_KEPT,     /* failed; its data stays in memory and is tried again */
	FR_OUTCOME_RESCUED,  /* a kept dump is a file now */
	FR_OUTCOME_GIVEN_UP, /* a kept dump is lost */
};

/* The window that a trigger asks for. Two requests with equal windows may become one file. */
struct fr_dump_asked {
	uint64_t last_ns;	 /* the time before the trigger; 0: the whole ring */
	uint64_t post_ns;	 /* the post-trigger time */
	uint64_t from_ns, to_ns; /* instead of these two, if not both are 0 */
};

struct fr_dump_job {
	struct fr_dump_job *next;
	enum fr_job_kind kind;
	uint64_t id;
	uid_t uid;   /* of the person who asked; 0: root or the recorder's own user; FR_UID_MACHINE: a trigger
		      */
	bool shared; /* it has causes of other users */
	uint64_t trigger_ns; /* monotonic; of the first trigger, which names the file */
	struct fr_dump_asked asked;
	uint64_t from_ns, to_ns; /* the window; from 0: the oldest sample */
	uint64_t ready_ns;	 /* not written before: the end of its post-trigger time */
	bool compress;
	struct fr_file_writer_config writer;
	cJSON *meta;	/* the sidecar: cause, causes, …; the write completes it */
	void **callers; /* of the main loop: they wait for the outcome */
	size_t n_callers;
	bool final;	/* the recorder ends after it */
	bool automatic; /* of a source: fr_dumper_coalesce() may add causes */

	struct fr_retention limits; /* FR_JOB_VACUUM */
	char **names;		    /* FR_JOB_REMOVE; terminated by NULL */

	/* What became of it. */
	enum fr_job_outcome outcome;
	int code; /* 0 or a negative errno with DIAG */
	struct fr_dump_result result;
	struct fr_diag diag;
	uint64_t snapshot_ns;		/* from the end of the window to the snapshot */
	struct fr_vacuum_report vacuum; /* the dumps that were removed */
	struct fr_diag vacuum_diag;	/* why old dumps could not be removed; code 0: they could */
	bool followed;			/* the configured path names another directory than before */
	char *directory;		/* where the file is; NULL: at the configured path */
};

/* A job of KIND, otherwise zeroed; NULL: no memory. */
struct fr_dump_job *fr_dump_job_new(enum fr_job_kind kind);
/* CALLER waits for JOB. 0 or -ENOMEM. */
int fr_dump_job_add_caller(struct fr_dump_job *job, void *caller);
/* NULL-safe; returns NULL. The callers are not freed. */
struct fr_dump_job *fr_dump_job_free(struct fr_dump_job *job);
