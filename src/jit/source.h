/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to jit/. A source is one perf map or jitdump of one process, and the object (ELF file) that is made
   from it. */

#include "jit/code.h"
#include "jit/open_files.h"
#include "perfdata/record.h"

struct jit_source {
	struct jit_source *next;
	struct jit_code code;
	char *path;		       /* path of the object; NULL: there is no object */
	uint8_t id[JIT_BUILD_ID_SIZE]; /* build-id of the object */
	uint64_t base;		       /* perf map: see jit_object_make() */
	uint64_t ino;		       /* inode of the jitdump; 0: the source is a perf map */
	uint64_t from_ns, until_ns;    /* the source describes the process from FROM_NS to UNTIL_NS */
	uint64_t event_id;
	size_t n_written; /* jitdump: number of functions whose records were written */
};

struct jit_source *jit_source_free(struct jit_source *s);

/* Reads the last bytes, at most MAX, of the perf map of the process that had PID at TIME_NS. If the process
   still runs, the file is opened in its root directory. If that fails, or if the process has exited, the file
   comes from OPEN_FILES (may be NULL). RET_READ gets the number of bytes. RET_UNTIL_NS gets the time at which
   the process exited; UINT64_MAX if the process still runs or there is no file. Returns 0; 1 if there is no
   usable file; or -ENOMEM. */
int jit_source_perf_map(pid_t pid, uint64_t time_ns, struct fr_jit_open_files *open_files, uint64_t max,
	struct jit_source **ret, uint64_t *ret_read, uint64_t *ret_until_ns);
/* Reads the first bytes, at most MAX, of the jitdump that M maps. The process may have exited. Returns the
   same values as jit_source_perf_map(). */
int jit_source_dump(
	const struct fr_record_mmap2 *m, uint64_t max, struct jit_source **ret, uint64_t *ret_read);
