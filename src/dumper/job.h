/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A job of the dumper: the request, and its outcome. */

#include "base/diag.h"
#include "dump/dump.h"
#include "dump/vacuum.h"
#include "dumper/job_aux.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#define FR_UID_MACHINE ((uid_t)-1)

enum fr_job_kind {
	FR_JOB_DUMP,
	FR_JOB_VACUUM,	/* remove old dumps until `limits` hold */
	FR_JOB_REMOVE,	/* remove the dumps `names` */
	FR_JOB_RELEASE, /* end the holds of the dumps `names` (dump/hold.h) */
};

enum fr_job_outcome {
	FR_OUTCOME_DONE,     /* the job has ended, and `code` says whether it succeeded */
	FR_OUTCOME_KEPT,     /* a dump failed; its data stays in memory, and the dumper tries again */
	FR_OUTCOME_RESCUED,  /* a kept dump became a file */
	FR_OUTCOME_GIVEN_UP, /* a kept dump is lost: a newer kept dump replaced it, or its last try failed */
};

/* The window that a trigger asks for. Two requests with equal windows can become one dump. */
struct fr_dump_asked {
	uint64_t last_ns;	 /* the time before the trigger; 0: the whole ring */
	uint64_t post_ns;	 /* the time after the trigger */
	uint64_t from_ns, to_ns; /* if from_ns or to_ns is not 0, last_ns and post_ns are not used */
	bool exact;		 /* a person gave the window: it is that of all rings */
};

struct fr_dump_job {
	TAILQ_ENTRY(fr_dump_job) link; /* the link of the list that has the job */
	enum fr_job_kind kind;
	uint64_t id;
	uid_t uid;   /* the user who asked; 0: root or the recorder's own user; FR_UID_MACHINE: no user */
	bool shared; /* true: the job also has causes that do not come from `uid` */
	uint64_t trigger_ns; /* monotonic time of the first trigger; the name of the file has this time */
	struct fr_dump_asked asked;
	uint64_t from_ns, to_ns; /* the window, monotonic; from_ns 0: from the oldest sample on */
	uint64_t ready_ns;	 /* the job is not written before this time */
	struct fr_dump_job_ring {
		char name[FR_RING_LABEL_SIZE];
		uint64_t window_ns; /* Window= of its section; 0: that of the job */
	} rings[FR_RINGS_MAX];	    /* by number; n_rings 0: there is only one ring */
	unsigned n_rings;
	bool compress;
	bool hold; /* retention keeps the file until it is uploaded (dump/hold.h) */
	struct fr_file_writer_config writer;
	struct fr_buf waits;	/* that have not ended, from the snapshot on (struct fr_dump_params) */
	struct fr_job_aux *aux; /* the AUX data, from the snapshot on; NULL: none */
	cJSON *meta;	/* content of the sidecar: "cause", "causes" …; fr_dump_write() adds the rest */
	void **callers; /* calls of the main loop that wait for the outcome */
	size_t n_callers;
	bool final;	/* the recorder ends after this dump */
	bool automatic; /* the source of a trigger asked for it: fr_dumper_coalesce() can add causes */

	struct fr_retention limits; /* FR_JOB_VACUUM */
	char **names;		    /* FR_JOB_REMOVE, FR_JOB_RELEASE; terminated by NULL */

	/* The result. */
	enum fr_job_outcome outcome;
	int code; /* 0; or a negative errno, with a message in `diag` */
	struct fr_dump_result result;
	struct fr_diag diag;
	uint64_t snapshot_ns;		/* how long after max(trigger_ns, ready_ns) the snapshot was made */
	struct fr_vacuum_report vacuum; /* the dumps that were removed */
	struct fr_diag vacuum_diag;	/* why old dumps could not be removed; code 0: no failure */
	bool followed;	 /* the configured path names another directory than at the job before */
	char *directory; /* the directory of the file; NULL: the configured path */
};

/* Returns a job of KIND with zeros in all other members, or NULL if there is no memory. */
struct fr_dump_job *fr_dump_job_new(enum fr_job_kind kind);
/* Adds CALLER to the calls that wait for JOB. Returns 0 or -ENOMEM. */
int fr_dump_job_add_caller(struct fr_dump_job *job, void *caller);
/* JOB may be NULL. The callers are not freed. Returns NULL. */
struct fr_dump_job *fr_dump_job_free(struct fr_dump_job *job);
