/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Many files of one boot into one perf.data: sorted by time, each record once, heads united. Streaming:
 * memory does not grow with the input. Inputs are removed only when the output is durable.
 *
 *   inputs ─► reader (perfdata/) ─► cursor: sorts between rounds ─► heap by time ─► group: each record once
 *                                                                     └► output: rounds, zstd, rename
 */

#include "base/diag.h"
#include "fileio/writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_merge_options {
	const char *directory;	  /* inputs: perf.data.auxiliary* and perf.data.sample.* in it; or NULL */
	const char *const *files; /* and/or these */
	size_t n_files;
	const char *output; /* NULL: perf.data in the directory (or the current one) */
	bool keep;	    /* do not remove inputs */
	bool dry_run;	    /* say what would be merged, read the inputs, write nothing */
	bool compress;	    /* -z */
	int level;	    /* of zstd, 0: 1 */
	struct fr_file_writer_config writer;
	void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes); /* or NULL */
	/* One line each: what was salvaged, what was left out. May be NULL. */
	void (*warn)(void *ctx, const char *text);
	void *ctx;
};

struct fr_merge_report {
	size_t n_inputs, n_damaged, n_unusable, n_removed;
	uint64_t records, samples,
		duplicates; /* written, of them samples; left out as known from another file */
	uint64_t state;	    /* left out: a sample file's initial state that the auxiliary file tells */
	uint64_t late;	    /* written, though records of later times were already */
	uint64_t first_ns, last_ns; /* samples */
	uint64_t bytes_in, bytes_out, lost_bytes;
	int not_durable; /* errno: the output's directory could not be synced, and the inputs are kept */
	char output[4096];
	char how[96];	       /* fr_writer_describe() of the output */
	char kept_older[4096]; /* where an older output went; empty: there was none */
};

/* 0; 1: done, but an input was damaged or unusable (exit code 3); negative errno with D: nothing was written
   or removed. -ENOENT: no inputs. -EBADMSG: none that is a perf.data. -EXDEV: inputs of different boots or
   machines. -EINVAL: inputs whose events do not go together. -EBUSY: another merge is at work in the
   directory. Inputs that are damaged, unusable, or in the hands of a running daemon are not removed. */
int fr_merge(const struct fr_merge_options *options, struct fr_merge_report *ret, struct fr_diag *d);
