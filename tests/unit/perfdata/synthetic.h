/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* An artificial session and its records, for tests in which stock perf reads a file. */

#include "base/buf.h"
#include "perfdata/session.h"

#include <stdbool.h>

enum { SYNTHETIC_CLOCK, SYNTHETIC_RAW, SYNTHETIC_SWITCH };

#define SYNTHETIC_PID 4711
#define SYNTHETIC_START_NS 5000000000ULL
#define SYNTHETIC_WALL_NS 1700000000000000000ULL /* the wall-clock time at SYNTHETIC_START_NS */

/* Makes a session with the events cpu-clock, bpf-output with raw data and, if TRACEPOINT, sched:sched_switch.
   Each has two ids. The session has all feature sections of this machine. Returns false if sched_switch is
   wanted and tracefs is not mounted. */
bool synthetic_session(struct fr_session *s, bool tracepoint);

/* Appends a COMM "synthetic" and an MMAP2 of /bin/true with a build-id, both with the time TIME. */
void synthetic_state(struct fr_buf *b, uint64_t time);
/* Appends N samples of the first two events in turn, one each microsecond from TIME on. Each sample of
   bpf-output has FILL bytes of raw data: noise or zeros. */
void synthetic_samples(struct fr_buf *b, uint64_t time, unsigned n, unsigned fill, bool noise);
/* Appends a sample of sched:sched_switch. */
void synthetic_switch(struct fr_buf *b, uint64_t time);

/* Runs a command in a shell. Returns its exit status. RET_OUT gets its standard output, and RET_ERR its
   standard error. Both may be NULL. */
int synthetic_run(const char *command, struct fr_buf *ret_out, struct fr_buf *ret_err);
