/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A made-up session and its records, for tests that have stock perf judge a file. */

#include "base/buf.h"
#include "perfdata/session.h"

#include <stdbool.h>

enum { SYNTHETIC_CLOCK, SYNTHETIC_RAW, SYNTHETIC_SWITCH };

#define SYNTHETIC_PID 4711
#define SYNTHETIC_START_NS 5000000000ULL
#define SYNTHETIC_WALL_NS 1700000000000000000ULL /* of SYNTHETIC_START_NS */

/* cpu-clock, bpf-output with RAW, and, where TRACEPOINT, sched:sched_switch; two ids each. All feature
   sections. False where the machine has no tracefs for the last. */
bool synthetic_session(struct fr_session *s, bool tracepoint);
uint64_t synthetic_id(unsigned event, unsigned cpu);

/* COMM "synthetic" and an MMAP2 of /bin/true with a build-id, at TIME. */
void synthetic_state(struct fr_buf *b, uint64_t time);
/* N samples of the two first events in turn, a microsecond apart, with FILL bytes of RAW (noise or zeros). */
void synthetic_samples(struct fr_buf *b, uint64_t time, unsigned n, unsigned fill, bool noise);
void synthetic_switch(struct fr_buf *b, uint64_t time);

/* The output of a command, both streams apart; its exit status. */
int synthetic_run(const char *command, struct fr_buf *ret_out, struct fr_buf *ret_err);
bool synthetic_have_perf(void);
