/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The BPF programs of the event offcpu (src/bpf/sleep.bpf.c): load, attach, thresholds. bpf_capture.c has the
 * rings into which they put their samples. Private to this folder.
 */

#include "base/diag.h"
#include "bpf/sleep.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_off_cpu;
struct fr_unwinder;

struct fr_off_cpu_config {
	const struct fr_unwinder *unwinder; /* NULL: user stacks by frame pointers */
	int rings_fd, shared_fd;	    /* the maps fr_rings and fr_bpf_shared of the capture */
	int switches_fd;		    /* the map fr_switches */
	uint32_t slot;			    /* of both events in this map */
	const struct fr_off_cpu *previous;  /* shares its table of sleeps; NULL: there is none */
	int sleeps_fd;			    /* the same, of the previous instance; -1: there is none */
	const pid_t *pids;		    /* the processes; they and their later children are recorded */
	size_t n_pids;			    /* 0: all */
	bool enable_on_exec;		    /* begin when one of `pids` calls exec */
	int cgroup_fd;			    /* only tasks below this cgroup; -1: all */
	uint64_t threshold_ns;
};

/* Loads and attaches the programs, which make no samples yet. Returns 0; or a negative errno, with a message
   in D. */
int fr_off_cpu_new(const struct fr_off_cpu_config *config, struct fr_off_cpu **ret, struct fr_diag *d);
struct fr_off_cpu *fr_off_cpu_free(struct fr_off_cpu *o);

/* Sets the index in fr_bpf_shared.events of the event WHICH (FR_SLEEP_EVENT or FR_WAKER_EVENT) on CPU. */
void fr_off_cpu_set_index(struct fr_off_cpu *o, unsigned which, int cpu, uint32_t index);

/* The other functions can be called by any thread. If enable_on_exec is set, fr_off_cpu_enable() does
 * nothing.
 */
void fr_off_cpu_enable(struct fr_off_cpu *o);
void fr_off_cpu_disable(struct fr_off_cpu *o);
void fr_off_cpu_set_threshold(struct fr_off_cpu *o, uint64_t ns);
/* Returns a descriptor, which the caller closes. A read of it goes over the tasks, and returns a record for
   each wait of at least the threshold that has not ended: a sample of flightrec:offcpu, with the kernel stack
   only. Returns a negative errno on failure. */
int fr_off_cpu_open_waits(const struct fr_off_cpu *o);
/* Sets RET to the links of the programs, and *RET_SLEEPS to the table of sleeps; all stay O's. Returns the
   number of links. */
#define FR_OFF_CPU_LINKS_MAX 6
size_t fr_off_cpu_fds(const struct fr_off_cpu *o, int ret[static FR_OFF_CPU_LINKS_MAX], int *ret_sleeps);
/* Returns the number of times that a task stopped running and the table of sleeps had no room for it, or that
   a new process was not recorded because there were too many. */
uint64_t fr_off_cpu_untracked(const struct fr_off_cpu *o);
