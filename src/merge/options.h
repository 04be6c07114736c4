/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The options and the report of fr_merge(). */

#include "fileio/writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_merge_options {
	const char *directory; /* its files perf.data.auxiliary* and perf.data.sample.* are inputs; or NULL */
	const char *const *files; /* more inputs */
	size_t n_files;
	const char *output; /* NULL: perf.data in `directory`, or in the current directory */
	bool keep;	    /* do not remove the inputs */
	bool dry_run;	    /* read the inputs and fill in the report, but write and remove nothing */
	bool compress;	    /* write compressed records (-z) */
	int level;	    /* the level of zstd; 0 means 1 */
	struct fr_file_writer_config writer;
	void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes); /* or NULL */
	/* Called with a line about each damaged or unusable input, and about other problems. May be NULL. */
	void (*warn)(void *ctx, const char *text);
	void *ctx;
};

struct fr_merge_report {
	size_t n_inputs, n_damaged, n_unusable, n_removed;
	uint64_t records, samples;  /* number of written records, and of the samples among them */
	uint64_t duplicates;	    /* number of records that were left out, because another input has them */
	uint64_t state;		    /* number of records of initial state (cursor.h) that were left out */
	uint64_t late;		    /* number of records that were written after a record of a later time */
	uint64_t first_ns, last_ns; /* the times of the first and the last sample */
	uint64_t bytes_in, bytes_out, lost_bytes;
	uint64_t aux_bytes;	 /* bytes of AUX data in the output */
	uint64_t aux_duplicates; /* bytes of AUX data that were left out, because another input has them */
	int not_durable; /* positive errno: the directory could not be synced, so the inputs are kept */
	char output[4096];
	char how[96];	       /* how the output was written: the text of fr_writer_describe() */
	char kept_older[4096]; /* the new path of the older output that was renamed, or empty */
};
