/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What exists already: the kernel's map, its modules, BPF ksymbols, cgroups, and every task of /proc with its
 * maps, as the records that the kernel would have sent. Blocks on /proc; never on the recorder thread.
 */

#include "base/diag.h"
#include "perfdata/record.h"

#include <stdbool.h>
#include <sys/types.h>

/* What the kernel does not let us see for want of CAP_SYS_PTRACE. */
struct fr_scan_unseen {
	bool processes; /* /proc hides some of them (hidepid=): who is not there may be alive */
	uint64_t maps;	/* of so many processes the maps cannot be read */
};

struct fr_scan_config {
	uint64_t time_ns;  /* stands in every record */
	uint64_t id;	   /* event id of the side-band event */
	const pid_t *pids; /* n_pids == 0: all */
	size_t n_pids;
	bool kernel;		       /* kernel map, modules, ksymbols, cgroups too */
	bool data_maps;		       /* maps of files without text too: for stacks that are unwound later */
	struct fr_scan_unseen *unseen; /* NULL, or set by the scan */
};

/* Each record goes to PUT; a negative return ends the scan and is returned. Tasks that vanish meanwhile are
   left out. 0; 1: done, but the kernel's addresses are hidden from us (kernel.kptr_restrict, or no
   CAP_SYSLOG), so its map is not among the records; or a negative errno. */
int fr_scan(const struct fr_scan_config *config,
	int (*put)(void *ctx, const struct perf_event_header *record), void *ctx, struct fr_diag *d);

/* The kernel modules alone, from MODULES (NULL: /proc/modules). 0 or a negative errno, also PUT's. */
int fr_scan_modules(const struct fr_scan_config *config, const char *modules,
	int (*put)(void *ctx, const struct perf_event_header *record), void *ctx);
/* What changes when a module comes, goes or moves. 0 or a negative errno. */
int fr_modules_digest(const char *modules, uint64_t *ret);
