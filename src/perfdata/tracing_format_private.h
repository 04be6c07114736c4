/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "perfdata/bytes.h"
#include "perfdata/tracing_format.h"

/* Private to perfdata/: the parts of the section TRACING_DATA. */
struct fr_trace_system {
	char *name; /* NULL: ftrace */
	struct byte_set formats;
};

/* If all members are zeros, there are no formats. */
struct fr_trace_formats {
	struct fr_buf header_page, header_event, printk, cmdlines;
	struct fr_trace_system *systems;
	uint32_t n_systems;
	uint32_t n_formats; /* the formats of all systems */
};

/* Adds a format to the formats of SYSTEM (NULL: ftrace), unless SYSTEM has it. Returns 0, -ENOMEM, or
   -EBADMSG if there are too many systems or formats. */
int fr_trace_formats_add(struct fr_trace_formats *t, const char *system, const void *format, size_t len);
/* Replaces SECTION by T. Returns 0 or -ENOMEM. */
int fr_trace_formats_write(struct fr_trace_formats *t, struct fr_buf *section);
void fr_trace_formats_deinit(struct fr_trace_formats *t);
