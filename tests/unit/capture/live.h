/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Captures on the running kernel, and loads of known behaviour. */

#include "capture/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>

/* A limit for loads, after which a test fails. */
#define LIVE_LIMIT_NS (60 * FR_NSEC_PER_SEC)

/* Skip the test unless tracefs can be mounted, in a mount namespace of its own, and getppid() has a known
 * number. */
void live_need_tracepoints(void);
void live_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Open SPEC with FILTER, which may be NULL, disabled. Skips the test if the kernel forbids it. */
struct fr_capture *live_open(const char *spec, const char *filter, struct fr_capture_config *config);
void live_enable(struct fr_capture *c);
/* Open and enable an event for each getppid() of this thread, which stays on its CPU. TERMS: "" or "/…/". */
struct fr_capture *live_open_getppid(const char *terms, struct fr_capture_config *config);

/* What a drain returned. */
struct live_seen {
	uint64_t samples, sideband;
	uint32_t tid;			      /* count also what belongs to it: */
	uint64_t of_tid, backward, last_time; /* samples, and those with a smaller time than the one before */
	uint64_t mmap2, build_ids, comms, forks, exits;
};
void live_drain(struct fr_capture *c, struct live_seen *seen);
void live_drain_overwrite(struct fr_capture *c, struct live_seen *seen);

/* Sums over all CPUs. */
struct fr_counter live_counter(const struct fr_capture *c, size_t event);

void live_getppid(uint64_t times);
/* Stay on the current CPU, which is returned. The machine may forbid the others. */
int live_pin(void);
void live_spin_ms(unsigned ms);

/* Start a process that waits for live_let_go(*RET_GO), runs FN, and exits. */
pid_t live_fork(void (*fn)(void), int *ret_go);
void live_let_go(int go);
