/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* TRACING_DATA: the formats of tracepoints, version 0.6 of trace-cmd's header, as perf's trace-event-info.c
   writes it (no kallsyms, printk formats included). */

#include "perfdata/session.h"
#include "base/diag.h"

/* Make the section from tracefs for the events of S with type PERF_TYPE_TRACEPOINT (config is the id); none:
   no section. 0 or a negative errno. */
int fr_tracing_data_gather(struct fr_session *s, struct fr_diag *d);

/* Add a format of SYSTEM (as a tracepoint's `format` file has it) to SECTION unless it is there. An empty one
   gets the headers that a kernel of this machine has, so that neither tracefs nor a tracepoint is needed. 0,
   -EBADMSG where SECTION is none, -ENOMEM; SECTION is not touched on failure. */
int fr_tracing_data_add_format(struct fr_buf *section, const char *system, const char *format, size_t len);

/* Unite B's formats into A (same boot: where both have an event it is the same). Bounded parsing. 0,
 * -EBADMSG, -ENOMEM. */
int fr_tracing_data_unite(struct fr_buf *a, const struct fr_buf *b);
