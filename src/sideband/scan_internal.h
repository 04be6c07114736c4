/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to scan*.c: one scan under way. The paths are parameters so that tests can hand in files of their
 * own. */

#include "sideband/buildid.h"
#include "sideband/emit.h"
#include "sideband/scan.h"

#include <stdio.h>

struct scan {
	struct fr_emit emit; /* into record */
	struct fr_buf record;
	int (*put)(void *ctx, const struct perf_event_header *record);
	void *ctx;
	struct fr_build_id_cache *build_ids;
	int proc_fd;
	bool data_maps;	   /* as fr_scan_config */
	bool no_map_files; /* not permitted: the names have to do */
	bool may_trace;	   /* CAP_SYS_PTRACE */
	struct fr_scan_unseen unseen;
	char *line; /* FR_PROCMAPS_LINE_MAX */
};

/* Hands on what stands in S->record, where R says that it was made. 0 or a negative errno. */
int scan_put(struct scan *s, int r);

/* The kernel's text and BPF's ksymbols from a file like /proc/kallsyms. 0, 1: no addresses in it. */
int scan_kallsyms(struct scan *s, FILE *kallsyms);
/* Modules from a file like /proc/modules; MODULES_DEP (NULL: none) is that of the tree LIB. */
int scan_modules(struct scan *s, FILE *modules, FILE *modules_dep, const char *lib);
/* Every cgroup below ROOT, where a cgroup2 hierarchy is mounted. */
int scan_cgroups(struct scan *s, const char *root);

/* 0, also where the process has gone meanwhile. */
int scan_process(struct scan *s, pid_t pid);
int scan_maps(struct scan *s, pid_t pid, int pid_fd);
