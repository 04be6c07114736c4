/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Makes the section TRACING_DATA: the formats of tracepoints, without kallsyms and with the printk formats,
   like trace-event-info.c of perf. */

#include "base/diag.h"
#include "perfdata/session.h"
#include "perfdata/tracing_format.h"

/* Tracepoints with an id of at least this number are our own, and not the kernel's, whose ids are small.
   Their formats are added with fr_tracing_data_add_format(). */
#define FR_TRACEPOINT_OURS 65500u

/* Makes the section from tracefs, for the events of S that are tracepoints. If there is no such event, S does
   not change. The function reads files, so do not call it on the recorder thread. Returns 0; or a negative
   errno, with a message in D. */
int fr_tracing_data_gather(struct fr_session *s, struct fr_diag *d);
