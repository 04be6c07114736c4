/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One line of /proc/PID/maps (proc_pid_maps(5)), whose name the process chose: bounded, checked. */

#include <stddef.h>
#include <stdint.h>

/* A name of PATH_MAX bytes, each of them a newline that stands as four, and the numbers before it. */
#define FR_PROCMAPS_LINE_MAX (4u * 4096u + 128u)

struct fr_procmap {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	uint32_t prot, flags; /* PROT_…, MAP_SHARED or MAP_PRIVATE */
	char *name;	      /* in the line, unescaped, not terminated; may be empty */
	size_t name_len;
};

/* Parse LINE of LEN bytes without its newline; the name is unescaped in place (\012). 0, or -EINVAL where it
   is no such line. */
int fr_procmap_parse(char *line, size_t len, struct fr_procmap *ret);
