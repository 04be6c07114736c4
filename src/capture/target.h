/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the CPUs, tasks or cgroup that a configuration names. This folder uses these functions, and
   src/source/, which opens the events of triggers. */

#include "base/diag.h"
#include "capture/config.h"

#include <stddef.h>
#include <sys/types.h>

struct fr_target {
	pid_t *tids; /* NULL: record whole CPUs */
	size_t n_tids;
	int cgroup_fd; /* -1: none */
	int *cpus;     /* first the n_cpus configured CPUs, then the other online CPUs */
	size_t n_cpus, n_online;
};
/* Fills T with the CPUs, the threads and the cgroup that CONFIG names. Returns 0; or a negative errno, with a
   message in D and an empty T. */
int fr_target_init(struct fr_target *t, const struct fr_capture_config *config, struct fr_diag *d);
void fr_target_deinit(struct fr_target *t);

/* Opens a cgroup directory: PATH, or PATH below the mount of a cgroup hierarchy. Returns a descriptor or a
   negative errno. */
int fr_cgroup_open(const char *path);
