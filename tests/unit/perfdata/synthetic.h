/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* An artificial session and its records, for tests in which stock perf reads a file. */

#include "base/buf.h"
#include "perfdata/session.h"

#include <stdbool.h>

enum { SYNTHETIC_CLOCK, SYNTHETIC_RAW, SYNTHETIC_SWITCH };

#define SYNTHETIC_PID 4711
#define SYNTHETIC_START_NS 5000000000ULL
#define SYNTHETIC_WALL_NS 1700000000000000000ULL /* the wall time at SYNTHETIC_START_NS */

/* Makes a session with cpu-clock, bpf-output with RAW and, if TRACEPOINT, sched:sched_switch, two ids each,
   and with all feature sections of this machine. Returns false if tracefs, which sched_switch needs, is not
   mounted. */
bool synthetic_session(struct fr_session *s, bool tracepoint);

/* Appends COMM "synthetic" and an MMAP2 of /bin/true with a build-id, at TIME. */
void synthetic_state(struct fr_buf *b, uint64_t time);
/* Appends N samples of the first two events in turn, one each microsecond, with FILL bytes of RAW (noise or
   zeros). */
void synthetic_samples(struct fr_buf *b, uint64_t time, unsigned n, unsigned fill, bool noise);
/* Appends a sample of sched:sched_switch. */
void synthetic_switch(struct fr_buf *b, uint64_t time);

/* Runs a command in a shell and returns its exit status. The buffers get its two outputs; they may be NULL.
 */
int synthetic_run(const char *command, struct fr_buf *ret_out, struct fr_buf *ret_err);
