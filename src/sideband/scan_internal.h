/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to scan*.c: one scan. Files are parameters, so that tests can pass other files. */

#include "sideband/buildid.h"
#include "sideband/emit.h"
#include "sideband/scan.h"

#include <stdio.h>

struct scan {
	struct fr_emit emit; /* appends to `record` */
	struct fr_buf record;
	fr_scan_put put;
	void *ctx;
	struct fr_build_id_cache *build_ids;
	int proc_fd;
	bool no_map_files; /* we are not permitted to open files in /proc/PID/map_files */
	bool may_trace;	   /* we have CAP_SYS_PTRACE */
	struct fr_scan_unseen unseen;
	char *line; /* for getline() */
	size_t line_size;
	char maps_buffer[16u << 10]; /* stdio buffer of the maps file that is open */
};

/* R is the result of an fr_emit function. If it is 0, passes the record in S->record to S->put, and returns 0
   or the negative result of S->put. If R is negative, returns R. */
int scan_put(struct scan *s, int r);

/* Scans the kernel map and BPF ksymbols, from a file like /proc/kallsyms. Returns 0; 1 if the file shows no
   addresses; or a negative errno. */
int scan_kallsyms(struct scan *s, FILE *kallsyms);
/* Scans modules, from a file like /proc/modules. MODULES_DEP (may be NULL) is the file modules.dep in the
   directory LIB. Returns 0 or a negative errno. */
int scan_modules(struct scan *s, FILE *modules, FILE *modules_dep, const char *lib);
/* Scans ROOT, the mount point of a cgroup2 hierarchy, and every cgroup below it. Returns 0 or a negative
   errno. */
int scan_cgroups(struct scan *s, const char *root);

/* scan_process() scans one process, and scan_maps() scans the maps of one process. PID_FD is the directory
   /proc/PID. Both functions return 0, also if the process has exited meanwhile; or a negative errno. */
int scan_process(struct scan *s, pid_t pid);
int scan_maps(struct scan *s, pid_t pid, int pid_fd);
