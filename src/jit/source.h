/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to jit/: one perf map or jitdump of one process, and the object that is made of it. */

#include "jit/code.h"
#include "jit/open_files.h"
#include "perfdata/record.h"

struct jit_source {
	struct jit_source *next;
	struct jit_code code;
	char *path;		       /* of the object; NULL: there is none */
	uint8_t id[JIT_BUILD_ID_SIZE]; /* its build-id */
	uint64_t base;		       /* perf map: see jit_object_make() */
	uint64_t ino;		       /* jitdump: of the file; 0: a perf map */
	uint64_t from_ns, until_ns;    /* it describes the process in this time */
	uint64_t event_id;
	size_t n_written; /* jitdump: functions whose records were written */
};

struct jit_source *jit_source_free(struct jit_source *s);

/* Read the perf map of the process that had PID at TIME_NS: from OPEN_FILES (or NULL) if it has exited, else
   from its own root. Reads at most MAX bytes; RET_READ is their number. RET_UNTIL_NS: the end of the process.
   0; 1: there is no usable file; or -ENOMEM. */
int jit_source_perf_map(pid_t pid, uint64_t time_ns, struct fr_jit_open_files *open_files, uint64_t max,
	struct jit_source **ret, uint64_t *ret_read, uint64_t *ret_until_ns);
/* Read the jitdump that M maps. The process may have exited. Returns as above. */
int jit_source_dump(
	const struct fr_record_mmap2 *m, uint64_t max, struct jit_source **ret, uint64_t *ret_read);
