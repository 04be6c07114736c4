/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * To open some sources, files are read that may lie on a file system which hangs, and the kernel verifies
 * programs for as long as it likes. A thread, "fr-arming", does that for the main thread, one job after the
 * other:
 *
 *   submit ─► class->open() on the thread ─► fd is readable ─► take ─► class->listen()
 *
 * Nobody waits for the thread: what is cancelled while it is opened, the thread closes itself, and it
 * outlives its owner where it has to.
 */

#include "source/source.h"

#include <stdbool.h>

struct fr_arming;

struct fr_arming_job {
	const struct fr_source_class *class;
	void *trigger;
	/* What open() borrows: copies, as the thread may still be at it when the trigger is gone. */
	struct fr_source_env env;
	struct fr_trigger_config config;
	/* What came of it. Who takes SOURCE away has it, with what it borrows pointed to what lasts. */
	int code;
	struct fr_diag diag;
	struct fr_source *source;
	/* arming.c */
	struct fr_arming *arming;
	struct fr_arming_job *next;
	bool cancelled;
};

int fr_arming_start(struct fr_arming **ret, struct fr_diag *d);
/* Waits a second for a job that is being done, and then lets the thread end by itself. NULL is fine. */
struct fr_arming *fr_arming_stop(struct fr_arming *a);
pid_t fr_arming_tid(const struct fr_arming *a);
/* Readable while a job is done that nobody has taken. */
int fr_arming_done_fd(const struct fr_arming *a);

/* Open a source of CLASS as class->open() has it. Everything is copied. NULL: no memory. */
struct fr_arming_job *fr_arming_submit(struct fr_arming *a, const struct fr_source_class *class,
	const struct fr_source_env *env, const struct fr_trigger_config *config, void *trigger);
/* The oldest job that is done, to be freed; NULL: none. */
struct fr_arming_job *fr_arming_take(struct fr_arming *a);
/* JOB, which was not taken, comes to nothing; it is no longer the caller's. */
void fr_arming_cancel(struct fr_arming_job *job);
/* Closes the source that it still has. */
struct fr_arming_job *fr_arming_job_free(struct fr_arming_job *job);
/* JOB waits for another one: the name of that trigger into RET. False: it does not wait. */
#define FR_ARMING_NAME_SIZE 64
bool fr_arming_waits(const struct fr_arming_job *job, char ret[static FR_ARMING_NAME_SIZE]);
