/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The CPUs, tasks or cgroup of a configuration. For this folder and for source/, which opens other events. */

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
/* Resolve CONFIG's cpus, pids and cgroup. Returns 0, or a negative errno with D and an empty T. */
int fr_target_init(struct fr_target *t, const struct fr_capture_config *config, struct fr_diag *d);
void fr_target_deinit(struct fr_target *t);

/* Open a cgroup directory: PATH, or PATH below the mount of a cgroup hierarchy. Returns a descriptor or a
   negative errno. */
int fr_cgroup_open(const char *path);
