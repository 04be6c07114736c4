/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* perf_event_open(2) itself, filters, and what to say where either fails. Between the files of this folder,
   and for trigger/, which opens events of its own. */

#include "base/diag.h"
#include "capture/event.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/types.h>

/* The descriptor (close-on-exec) or a negative errno. */
int fr_perf_open(const struct perf_event_attr *a, pid_t pid, int cpu, unsigned long flags);

/* The same; where the kernel does not know a bit of A that we can do without, it is cleared in A, as few as
   will do, the newest first. On failure A is as it was. */
int fr_perf_open_adapt(struct perf_event_attr *a, pid_t pid, int cpu, unsigned long flags);

/* explain.c: why perf_event_open() or the mmap() of a ring failed, and what to do. They return CODE. */
int fr_explain_open(struct fr_diag *d, int code, const struct fr_event *e, int cpu, pid_t tid);
/* CODE; where it is an error, what D says of E begins with where E was asked for. */
int fr_explain_origin(struct fr_diag *d, int code, const struct fr_event *e);
int fr_explain_map(struct fr_diag *d, int code, size_t ring_bytes, size_t n_rings);

/* filter.c: "(USER) && common_pid != 1 && common_pid != 2" into RET (the caller frees it); USER may be NULL,
   N 0; empty where neither says anything. 0 or -ENOMEM. */
int fr_filter_text(const char *user, const pid_t *tids, size_t n, char **ret);
/* TEXT is the filter of E, which is open as FD. 0 or a negative errno with D. */
int fr_filter_set(int fd, const struct fr_event *e, const char *text, struct fr_diag *d);
