/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A scan: the kernel's map, its modules, BPF ksymbols, cgroups, and every task of /proc with its maps, as the
 * records that the kernel would have sent. May wait for /proc and for files of processes.
 */

#include "base/diag.h"
#include "perfdata/record.h"

#include <stdbool.h>
#include <sys/types.h>

/* Hidden by the kernel because CAP_SYS_PTRACE is missing. */
struct fr_scan_unseen {
	bool processes; /* /proc hides some (hidepid=), so a process that the scan does not see may live */
	uint64_t maps;	/* the number of processes whose maps cannot be read */
};

struct fr_scan_config {
	uint64_t time_ns;  /* of every record */
	uint64_t id;	   /* event id of the side-band event */
	const pid_t *pids; /* n_pids == 0: all */
	size_t n_pids;
	bool kernel;		       /* also kernel map, modules, ksymbols and cgroups */
	struct fr_scan_unseen *unseen; /* NULL, or set by the scan */
};

/* Call PUT for each record. A negative result of PUT ends the scan and is returned. Tasks that exit meanwhile
   are left out. 0; 1: done, but the kernel hides its addresses (kernel.kptr_restrict, or no CAP_SYSLOG), so
   its map is missing; or a negative errno with D. */
int fr_scan(const struct fr_scan_config *config,
	int (*put)(void *ctx, const struct perf_event_header *record), void *ctx, struct fr_diag *d);

/* Only the kernel modules, from the file MODULES (NULL: /proc/modules). 0 or a negative errno, also PUT's. */
int fr_scan_modules(const struct fr_scan_config *config, const char *modules,
	int (*put)(void *ctx, const struct perf_event_header *record), void *ctx);
/* A number that changes when a module comes, goes or moves. 0 or a negative errno. */
int fr_modules_digest(const char *modules, uint64_t *ret);
