/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Makes TRACING_DATA: the formats of tracepoints, as perf's trace-event-info.c writes them (without kallsyms,
   with the printk formats). */

#include "base/diag.h"
#include "perfdata/session.h"
#include "perfdata/tracing_format.h"

/* Makes the section from tracefs, for the events of S that are tracepoints. Without such an event, S does not
   change. Reads files: not on the recorder thread. 0 or a negative errno, with D. */
int fr_tracing_data_gather(struct fr_session *s, struct fr_diag *d);
