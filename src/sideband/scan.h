/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A scan reports the map of the kernel, its modules, BPF ksymbols, cgroups, and every task in /proc with its
 * maps. It makes the records that the kernel would have sent for them. A scan can wait for /proc and for the
 * files that processes have mapped.
 */

#include "base/diag.h"
#include "perfdata/record.h"

#include <stdbool.h>
#include <sys/types.h>

/* Processes and maps that the kernel hides because CAP_SYS_PTRACE is missing. */
struct fr_scan_unseen {
	bool processes; /* /proc hides some processes (hidepid=): the scan can lack live processes */
	uint64_t maps;	/* the number of processes whose maps cannot be read */
};

struct fr_scan_config {
	uint64_t time_ns;  /* time of every record */
	uint64_t id;	   /* event id of the side-band event */
	const pid_t *pids; /* the processes to scan; n_pids 0: all */
	size_t n_pids;
	bool kernel;		       /* also scan kernel map, modules, ksymbols and cgroups */
	struct fr_scan_unseen *unseen; /* the scan sets it; may be NULL */
};

typedef int (*fr_scan_put)(void *ctx, const struct perf_event_header *record);

/* Scans, and calls PUT for each record. If PUT returns a negative value, the scan ends and returns this
   value. A task that exits during the scan may be missing, or may lack some of its records. Returns 0; 1 if
   the scan has no kernel map, because the kernel hides its addresses (kernel.kptr_restrict, or no
   CAP_SYSLOG); or a negative errno, with a message in D. */
int fr_scan(const struct fr_scan_config *config, fr_scan_put put, void *ctx, struct fr_diag *d);

/* Scans only the kernel modules, from the file MODULES (NULL: /proc/modules). CONFIG gives the time and the
   event id. Returns 0 (also if the file cannot be opened), a negative errno, or a negative result of PUT. */
int fr_scan_modules(const struct fr_scan_config *config, const char *modules, fr_scan_put put, void *ctx);
/* Computes a digest of the names, sizes and addresses of all modules in the file MODULES (NULL:
   /proc/modules). The digest changes when a module is loaded or unloaded. Returns 0 or a negative errno. */
int fr_modules_digest(const char *modules, uint64_t *ret);
