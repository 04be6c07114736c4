/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A recording that a test makes, and what explain says of it. It has events of CPU time, of waits, and of
   waits that have not ended. */

#include "base/clock.h"
#include "report/explain.h"
#include "perfdata/session.h"

#define MS_NS FR_NSEC_PER_MSEC
#define FROM_NS (100 * FR_NSEC_PER_SEC)
#define INCIDENT_S 10
#define INCIDENT_NS (FROM_NS + INCIDENT_S * FR_NSEC_PER_SEC)
#define TO_NS (INCIDENT_NS + INCIDENT_S * FR_NSEC_PER_SEC)
#define SAMPLE_NS (10 * MS_NS)
#define CLOCK_ID 1
#define WAIT_ID 9
#define WAITING_ID 10
#define HOG 77

/* Functions of the kernel. */
enum {
	SCENE_LOCK = 1,
	SCENE_DISK,
	SCENE_SLEEP,
	SCENE_WRITE,
	SCENE_FUTEX,
	SCENE_FAULT,
	SCENE_TIMER,
	SCENE_RECLAIM,
	SCENE_THROTTLED,
	SCENE_KERNEL,
	SCENE_VFORK,
};
/* The address of a function; of 0: an address in a program. */
unsigned long long scene_address(unsigned function);

/* A recording that is being made, and what explain says of it. */
struct scene {
	struct fr_session session;
	struct fr_buf records;
	struct fr_profile_config config;
	char path[96], kallsyms[96];
	uint32_t threads[4][2]; /* pid and tid of threads that are no leaders; 0: none */
	struct fr_profile *profile;
	struct fr_explanation e;
};

/* Begins a recording in the directory ROOT. The processes HOG, HOG + 1 and HOG + 2 are "hog", "second" and
 * "third". */
void scene_begin(struct scene *s, const char *root);
/* Appends N samples of CPU time of PID, which begin at TIME and are one after the other. */
void scene_run(struct scene *s, uint32_t pid, uint64_t time, unsigned n);
void scene_run_in(struct scene *s, uint32_t pid, uint64_t time, unsigned n, unsigned function);

struct wait {
	uint32_t pid, waker;
	uint64_t end_ns, blocked_ns, runqueue_ns;
	char state;
};

void scene_wait(struct scene *s, const struct wait *w);
/* The same for a wait in FUNCTION; 0: not known. IS_OPEN: it has not ended. */
void scene_wait_in(struct scene *s, const struct wait *w, unsigned function, bool is_open);
/* Appends the record of a new process, which PARENT made. */
void scene_fork(struct scene *s, uint32_t parent, uint32_t child, uint64_t time);
/* Appends the record of a new thread TID of PID. Waits of TID then belong to it. */
void scene_thread(struct scene *s, uint32_t pid, uint32_t tid, uint64_t time);
/* Ends the recording and explains it. */
void scene_explain(struct scene *s, const char *root);
/* Returns the finding of RULE with the highest score, or NULL. */
const struct fr_finding *scene_find(const struct scene *s, const char *rule);
void scene_finish(struct scene *s);
