/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The TRACING_DATA section. It has the format of trace-cmd's header, version 0.6:
 *
 *   23 8 68 "tracing" │ "0.6\0" │ u8 big-endian │ u8 sizeof(long) │ u32 page size
 *   "header_page\0"  u64 size, bytes │ "header_event\0" u64 size, bytes
 *   u32 n, n × { u64 size, format }                      (system ftrace)
 *   u32 m, m × { name "\0", u32 n, n × { u64 size, format } }
 *   u32 size, kallsyms │ u32 size, printk formats │ u64 size, saved command lines (since 0.6)
 */

#include "base/buf.h"

/* Adds a format of SYSTEM, in the form of a tracepoint's `format` file, unless SECTION has it. An empty
   SECTION also gets the headers that a kernel of this machine has. The function needs neither tracefs nor a
   tracepoint. Returns 0, -EBADMSG if SECTION is malformed, or -ENOMEM. On failure, SECTION does not
   change. */
int fr_tracing_data_add_format(struct fr_buf *section, const char *system, const char *format, size_t len);

/* Adds the formats of B that A does not have. A and B must come from one boot. Returns 0, -EBADMSG if A or B
   is malformed, or -ENOMEM. On failure, A does not change. */
int fr_tracing_data_unite(struct fr_buf *a, const struct fr_buf *b);

/* Calls EACH for each format of SECTION. SYSTEM is NULL for the system ftrace. FORMAT has LEN bytes and no
   NUL. Returns 0, -EBADMSG if SECTION is malformed, or -ENOMEM. */
int fr_tracing_data_for_each(const struct fr_buf *section,
	void (*each)(void *ctx, const char *system, const char *format, size_t len), void *ctx);
