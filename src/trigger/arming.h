/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Arming opens the source of a trigger: the code that sees the anomalies. Some sources take long to open: it
 * is possible that their file is on a file system that hangs, or that the kernel's verifier is slow. So a
 * thread, "fr-arming", opens these sources for the main thread, one job after the other:
 *
 *   submit ─► class->open() on the thread ─► done_fd is readable ─► take ─► class->listen()
 *
 * The main thread does not wait for the arming thread. If the main thread cancels the job on which the arming
 * thread works, the arming thread closes the source later. So the arming thread can still work after
 * fr_arming_stop(). Only the main thread calls these functions.
 */

#include "source/source.h"

#include <stdbool.h>

struct fr_arming;

struct fr_arming_job {
	const struct fr_source_class *class;
	void *trigger;
	/* The source uses these copies, because the thread can still work on the job when the trigger
	   has been freed. */
	struct fr_source_env env;
	struct fr_trigger_config config;
	/* The result. A caller that takes `source` out of the job must replace source->env and source->config
	   before the job is freed, because they point to the copies above. */
	int code;
	struct fr_diag diag;
	struct fr_source *source;
	/* Only arming.c uses the members below. */
	struct fr_arming *arming;
	struct fr_arming_job *next;
	bool is_done, canceled;
};

/* Starts the thread. Returns 0; or a negative errno, with a message in D. */
int fr_arming_start(struct fr_arming **ret, struct fr_diag *d);
/* Stops the thread. Waits at most one second for the job on which the thread works. If the job takes longer,
   the thread ends after this job. Frees A and the jobs that were not taken; if the thread has not ended yet,
   the thread frees them at its end. NULL is allowed; returns NULL. */
struct fr_arming *fr_arming_stop(struct fr_arming *a);
pid_t fr_arming_tid(const struct fr_arming *a);
/* Returns a descriptor that is readable while there is a job that is done and not yet taken. A owns it. */
int fr_arming_done_fd(const struct fr_arming *a);

/* Queues a job that opens a source of CLASS. Copies ENV and CONFIG. Returns NULL if there is no memory. */
struct fr_arming_job *fr_arming_submit(struct fr_arming *a, const struct fr_source_class *class,
	const struct fr_source_env *env, const struct fr_trigger_config *config, void *trigger);
/* Takes the oldest job that is done. The caller frees the job. Returns NULL if no job is done. */
struct fr_arming_job *fr_arming_take(struct fr_arming *a);
/* Cancels JOB, which must not have been taken. The caller must not use JOB after this call. */
void fr_arming_cancel(struct fr_arming_job *job);
/* Frees JOB, and closes its source if it still has one. NULL is allowed; returns NULL. */
struct fr_arming_job *fr_arming_job_free(struct fr_arming_job *job);
/* Returns whether the thread works on another job than JOB. If so, RET gets the name of that other job's
   trigger. */
#define FR_ARMING_NAME_SIZE 64
bool fr_arming_is_waiting(const struct fr_arming_job *job, char ret[static FR_ARMING_NAME_SIZE]);
