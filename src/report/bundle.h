/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A bundle has a dump and all that its names need, so that it can be read on another machine. It is a tar
 * archive (pax), compressed by zstd. When it is unpacked, the folder is like the recorder's own, so perf can
 * use it, too:
 *
 *     NAME                             the dump, which is the first member
 *     NAME.json, NAME.kallsyms         its sidecar; the symbols of a kernel that has crashed
 *     debug/.build-id/XX/REST/elf      object files, in the layout of perf's build-id cache
 *     debug/.build-id/XX/REST/debug    their debug files; also …/vdso and …/kallsyms
 *     files/PATH                       object files without a build-id, at their recorded paths
 *     FOLDER.jit/FILE                  objects of run-time code without a build-id
 *
 * All members are regular files that belong to root, with the mode 0600 and the time of the dump.
 */

#include "base/diag.h"
#include "report/profile.h"

#define FR_BUNDLE_MEMBERS_MAX 20000u

/* --- to make a bundle --- */

struct fr_bundle_plan;

struct fr_bundle_stats {
	size_t n_members;
	uint64_t bytes;	     /* of all members */
	size_t n_missing;    /* objects whose files were not found */
	const char *missing; /* the paths of some of them, separated by ", " */
	/* The same for files that would make the bundle too large. */
	size_t n_left_out;
	const char *left_out;
};

/* Reads the recording P, whose configuration is CONFIG, to its end. Plans a bundle with the objects of the
   samples that pass the filter. P must exist as long as the plan. Returns 0; or a negative errno, with a
   message in D. */
int fr_bundle_plan(struct fr_profile *p, const struct fr_profile_config *config, struct fr_bundle_plan **ret,
	struct fr_diag *d);
/* Accepts NULL; returns NULL. */
struct fr_bundle_plan *fr_bundle_plan_free(struct fr_bundle_plan *plan);
void fr_bundle_plan_stats(const struct fr_bundle_plan *plan, struct fr_bundle_stats *ret);

/* Writes the bundle to FD. Calls PROGRESS, which may be NULL, after each block; if it returns false, the
   bundle is not completed. Returns 0; -EINTR; or another negative errno, with a message in D. */
int fr_bundle_write(struct fr_bundle_plan *plan, int fd, bool (*progress)(uint64_t done, uint64_t total),
	struct fr_diag *d);

/* --- to open a bundle, which can be hostile --- */

struct fr_bundle;

/* Opens PATH if it is a bundle: unpacks it into a temporary folder. Sets *RET to NULL if it is no archive.
   Returns 0; or a negative errno, with a message in D. */
int fr_bundle_open(const char *path, struct fr_bundle **ret, struct fr_diag *d);
/* Removes the folder. Accepts NULL; returns NULL. */
struct fr_bundle *fr_bundle_free(struct fr_bundle *b);
/* The path of the unpacked dump, and of the folder with the files without a build-id. */
const char *fr_bundle_dump(const struct fr_bundle *b);
const char *fr_bundle_files(const struct fr_bundle *b);

/* --- both --- */

/* Returns why NAME cannot be that of a member, as the end of a sentence: "has an empty part in its name"; or
   NULL if it can. */
const char *fr_bundle_name_fault(const char *name);
