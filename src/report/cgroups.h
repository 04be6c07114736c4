/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which samples are of a cgroup. A sample of perf record --all-cgroups has its cgroup. The samples of
 * flightrecd do not, but the JSON beside a dump has the processes that were in each cgroup when the dump was
 * made. A process that ended before is taken to be where the process was that made it. Not thread-safe.
 */

#include "base/diag.h"
#include "report/recording.h"

struct fr_cgroups;

/* Prepares to find the samples of the cgroup WANTED (borrowed) of the recording PATH: the path of the cgroup,
   or its last components; cgroups below it belong to it. The caller frees RET. Returns 0; or a negative
   errno, with a message in D: -ENODATA if the recording does not know cgroups, -ENOENT if it does not know
   this one. */
int fr_cgroups_new(const char *wanted, const char *path, const struct fr_recording *r,
	struct fr_cgroups **ret, struct fr_diag *d);
/* Accepts NULL; returns NULL. */
struct fr_cgroups *fr_cgroups_free(struct fr_cgroups *c);

/* Returns whether S, a sample of R, is of the cgroup. */
bool fr_cgroups_have(
	const struct fr_cgroups *c, const struct fr_recording *r, const struct fr_sample_fields *s);

/* Returns whether the cgroup PATH is WANTED or is below it. */
bool fr_cgroup_matches(const char *wanted, const char *path, size_t len);
