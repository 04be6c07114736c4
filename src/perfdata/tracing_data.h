/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* TRACING_DATA: the formats of tracepoints, version 0.6 of trace-cmd's header, as perf's trace-event-info.c
   writes it (without kallsyms, with the printk formats). */

#include "perfdata/session.h"
#include "base/diag.h"

/* Makes the section from tracefs, for the events of S that are tracepoints. Without such an event, S does not
   change. Reads files: not on the recorder thread. 0 or a negative errno, with D. */
int fr_tracing_data_gather(struct fr_session *s, struct fr_diag *d);

/* Adds a format of SYSTEM, in the form of a tracepoint's `format` file, unless SECTION has it. An empty
   SECTION gets the headers that a kernel of this machine has, so neither tracefs nor a tracepoint is needed.
   0, -EBADMSG (SECTION is malformed) or -ENOMEM; SECTION does not change on failure. */
int fr_tracing_data_add_format(struct fr_buf *section, const char *system, const char *format, size_t len);

/* Adds the formats of B that A does not have. Both are of one boot. 0, -EBADMSG (either is malformed) or
   -ENOMEM; A does not change on failure. */
int fr_tracing_data_unite(struct fr_buf *a, const struct fr_buf *b);
