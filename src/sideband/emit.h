/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Side-band records that flightrec makes itself, in the layout of perfdata/record.h. Scans and the process
 * model write them.
 *
 * Each function appends one whole record with its sample id and returns 0 or -ENOMEM. A string has LEN bytes
 * and needs no NUL; a string longer than FR_EMIT_NAME_MAX bytes is truncated.
 */

#include "base/buf.h"
#include "perfdata/record.h"

#include <stdbool.h>
#include <sys/types.h>

/* PATH_MAX without its NUL. Names in the records of the kernel are not longer. */
#define FR_EMIT_NAME_MAX 4095u

struct fr_emit {
	struct fr_buf *to;
	uint64_t time_ns; /* time of every record */
	uint64_t id;	  /* event id of the side-band event */
};

/* The file of a map is described by its build-id, or by its device and inode. The layout is that of the union
   in struct fr_record_mmap2. */
struct fr_backing {
	bool has_build_id;
	union {
		struct {
			uint32_t maj, min;
			uint64_t ino, ino_generation;
		} file;
		struct {
			uint8_t size, reserved_1;
			uint16_t reserved_2;
			uint8_t bytes[20];
		} build_id;
		uint8_t raw[24];
	};
};
_Static_assert(sizeof(((struct fr_backing *)0)->file) == 24, "as in struct fr_record_mmap2");

struct fr_map_range {
	uint64_t addr, len, pgoff;
	uint32_t prot, flags;
};

int fr_emit_kernel_mmap(struct fr_emit *e, const struct fr_map_range *r, const char *name, size_t len);
int fr_emit_mmap2(struct fr_emit *e, pid_t pid, const struct fr_map_range *r, const struct fr_backing *b,
	const char *name, size_t len);
/* Appends a FORK with misc FORK_EXEC, so that a reader does not give the maps of the parent to the new
   process. */
int fr_emit_task(struct fr_emit *e, pid_t pid, pid_t tid, pid_t ppid, pid_t ptid);
int fr_emit_exit(struct fr_emit *e, pid_t pid, pid_t tid);
int fr_emit_comm(struct fr_emit *e, pid_t pid, pid_t tid, const char *comm, size_t len);
/* LINKS are N pairs of device and inode, as in struct fr_record_namespaces. */
int fr_emit_namespaces(struct fr_emit *e, pid_t pid, pid_t tid, const void *links, size_t n);
int fr_emit_ksymbol(struct fr_emit *e, uint64_t addr, uint32_t size, uint16_t type, uint16_t flags,
	const char *name, size_t len);
int fr_emit_cgroup(struct fr_emit *e, uint64_t cgroup_id, const char *path, size_t len);
