/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Inside perfdata/: the TRACING_DATA section in parts. In the file it is version 0.6 of trace-cmd's header,
 * as perf writes it:
 *
 *   23 8 68 "tracing" │ "0.6\0" │ u8 big-endian │ u8 sizeof(long) │ u32 page size
 *   "header_page\0"  u64 size, bytes │ "header_event\0" u64 size, bytes
 *   u32 n, n × { u64 size, format }                      (system ftrace)
 *   u32 m, m × { name "\0", u32 n, n × { u64 size, format } }
 *   u32 size, kallsyms │ u32 size, printk formats │ u64 size, saved command lines (since 0.6)
 */

#include "base/buf.h"

struct fr_trace_system {
	char *name; /* NULL: ftrace */
	struct fr_buf *formats;
	uint32_t n;
};

struct fr_trace_formats {
	struct fr_buf header_page, header_event, printk, cmdlines;
	struct fr_trace_system *systems;
	uint32_t n_systems;
	uint32_t n_formats; /* of all systems */
};

/* Adds a format unless the system has it. SYSTEM NULL: ftrace. 0, -ENOMEM, or -EBADMSG past the limit of
   16,384 formats. */
int fr_trace_formats_add(struct fr_trace_formats *t, const char *system, const void *format, size_t len);

/* Adds the parts of SECTION that T does not have. 0, -EBADMSG or -ENOMEM. */
int fr_trace_formats_parse(struct fr_trace_formats *t, const struct fr_buf *section);

/* Replaces SECTION by T in the form of the file. 0 or -ENOMEM. */
int fr_trace_formats_serialise(struct fr_trace_formats *t, struct fr_buf *section);

void fr_trace_formats_deinit(struct fr_trace_formats *t);
#define _cleanup_trace_formats_ _cleanup_(fr_trace_formats_deinit)
