/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The options and the report of fr_merge(). */

#include "fileio/writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_merge_options {
	const char *directory;	  /* inputs: perf.data.auxiliary* and perf.data.sample.* in it; or NULL */
	const char *const *files; /* more inputs */
	size_t n_files;
	const char *output; /* NULL: perf.data in the directory (or the current one) */
	bool keep;	    /* do not remove inputs */
	bool dry_run;	    /* read the inputs, fill the report, write nothing */
	bool compress;	    /* -z */
	int level;	    /* the level of zstd; 0: 1 */
	struct fr_file_writer_config writer;
	void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes); /* or NULL */
	/* Gets one line about each damaged or unusable input. May be NULL. */
	void (*warn)(void *ctx, const char *text);
	void *ctx;
};

struct fr_merge_report {
	size_t n_inputs, n_damaged, n_unusable, n_removed;
	uint64_t records, samples; /* written records, and the samples among them */
	uint64_t duplicates;	   /* records that were left out, because another input has them */
	uint64_t state; /* records of initial state that were left out, because another input covers it */
	uint64_t late;	/* records that were written behind records of a later time */
	uint64_t first_ns, last_ns; /* the times of the first and the last sample */
	uint64_t bytes_in, bytes_out, lost_bytes;
	int not_durable; /* the errno of the sync of the output's directory; the inputs are kept then */
	char output[4096];
	char how[96];	       /* fr_writer_describe() of the output */
	char kept_older[4096]; /* the new path of an older output, or empty */
};
