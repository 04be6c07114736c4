/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What is recorded: CPUs, tasks with all their threads, a cgroup. Between the files of this folder, and for
   trigger/, which opens events of its own. */

#include "base/diag.h"
#include "capture/capture.h"

#include <stddef.h>
#include <sys/types.h>

struct fr_target {
	pid_t *tids; /* NULL: whole CPUs */
	size_t n_tids;
	int cgroup_fd; /* -1: none */
	int *cpus;
	size_t n_cpus;
	size_t n_online; /* the other CPUs that are online follow in CPUS: n_cpus to n_online */
};
/* From CONFIG's cpus, pids and cgroup. 0 or a negative errno with D; nothing is left then. */
int fr_target_init(struct fr_target *t, const struct fr_capture_config *config, struct fr_diag *d);
void fr_target_deinit(struct fr_target *t);
