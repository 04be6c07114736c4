/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads a recording and gives each sample, with names, to a view. This is the path of all views (text,
 * explain, page, exports): recording → filter → task, frames, stack → view. A view keeps what it needs; the
 * profile keeps only tables of names, so its memory does not depend on the number of samples. Not
 * thread-safe.
 */

#include "report/cgroups.h"
#include "report/frames.h"
#include "report/recording.h"
#include "report/stacks.h"

/* The samples to give to the view. If all members are zeros, all of them. */
struct fr_profile_filter {
	uint64_t from_ns, to_ns; /* on the clock of the events; to_ns 0: to the end */
	const uint32_t *pids;
	size_t n_pids;	    /* 0: all processes */
	const char *comm;   /* a pattern of glob(7); NULL: all */
	const char *event;  /* the name of the event; NULL: all */
	const char *cgroup; /* a path or its end: see cgroups.h; NULL: all */
	uint32_t cpu;
	bool has_cpu;
};

/* A thread while it had one name. The text belongs to the profile, which has equal texts only once. */
struct fr_task {
	uint32_t pid, tid;
	const char *comm;
	const char *process; /* the name of its main thread at that time */
};

struct fr_profile_sample {
	uint64_t time;
	uint32_t cpu, event, task;
	uint32_t stack; /* FR_STACK_NONE if the sample has no address */
	uint64_t period;
	const struct fr_recorded *recorded;
};

/* What was left out, because the tables have limits: so the memory is limited for any file. */
struct fr_profile_cuts {
	uint64_t stacks; /* samples whose innermost frames are missing */
	uint64_t tasks;	 /* samples of threads that are shown as "[others]" */
};

struct fr_profile;

/* A view. All functions are called in the order of time. They return 0, or a negative errno that ends the
 * reading. */
struct fr_view {
	int (*sample)(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s);
	/* Any other record; may be NULL. */
	int (*record)(void *ctx, const struct fr_profile *p, const struct fr_recorded *r);
	void *ctx;
};

struct fr_profile_config {
	const char *path;
	struct fr_object_places places;
	struct fr_profile_filter filter;
	/* NULL, or a function that is called while the recording is read, and with equal numbers when all of
	   it was read without an error, before the view writes. */
	void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
	void *ctx;
};

/* Opens the recording. CONFIG and what it points to are borrowed. Returns 0; or a negative errno, with a
   message in D. */
int fr_profile_open(const struct fr_profile_config *config, struct fr_profile **ret, struct fr_diag *d);
/* Accepts NULL; returns NULL. */
struct fr_profile *fr_profile_free(struct fr_profile *p);

/* Reads the recording to its end. Call it once. Returns 0; or a negative errno, with a message in D. */
int fr_profile_read(struct fr_profile *p, const struct fr_view *view, struct fr_diag *d);

/* Returns whether the filter leaves out samples of some threads or CPUs. */
bool fr_profile_is_filtered(const struct fr_profile *p);
const struct fr_recording *fr_profile_recording(const struct fr_profile *p);
const struct fr_profile_cuts *fr_profile_cuts(const struct fr_profile *p);
const struct fr_frames *fr_profile_frames(const struct fr_profile *p);
const struct fr_stacks *fr_profile_stacks(const struct fr_profile *p);
size_t fr_profile_n_tasks(const struct fr_profile *p);
const struct fr_task *fr_profile_task(const struct fr_profile *p, uint32_t task);
/* Returns the name of the process PID at the time of the current record. It belongs to the profile, as that
   of a task. NULL: it has no name, or there is no memory. */
const char *fr_profile_name_process(struct fr_profile *p, uint32_t pid);
/* Returns the last task that was the thread TID of PID, or NULL if it has no sample. */
const struct fr_task *fr_profile_find_thread(const struct fr_profile *p, uint32_t pid, uint32_t tid);
