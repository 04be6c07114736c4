/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* perf_event_open(2), tracepoint filters, and explanations of their errors. This folder uses these functions,
   and src/source/, which opens the events of triggers. */

#include "base/diag.h"
#include "capture/event.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns a descriptor (close-on-exec) or a negative errno. */
int fr_perf_open(const struct perf_event_attr *a, pid_t pid, int cpu, unsigned long flags);

/* Opens an event. If the kernel does not know an optional bit of A, clears this bit in A. Returns the same
   values as fr_perf_open(). On an error, A does not change. */
int fr_perf_open_adapt(struct perf_event_attr *a, pid_t pid, int cpu, unsigned long flags);

/* explain.c: fills D with the reason why perf_event_open() or the mmap() of a ring failed, and with a hint.
   TID is 0 or negative if the event is for a whole CPU. Both functions return CODE. */
int fr_explain_open(struct fr_diag *d, int code, const struct fr_event *e, int cpu, pid_t tid);
int fr_explain_map(struct fr_diag *d, int code, size_t ring_bytes, size_t n_rings);
/* Does the same for the mmap() of an AUX area of the event E. */
int fr_explain_aux_map(
	struct fr_diag *d, int code, const struct fr_event *e, size_t aux_bytes, size_t n_areas);
/* If CODE is an error, puts E's origin ("file:line") before the text of D. Returns CODE. */
int fr_explain_origin(struct fr_diag *d, int code, const struct fr_event *e);

/* filter.c: writes "(USER) && common_pid != 1 && common_pid != 2" to RET, which the caller frees. If USER is
   NULL and N is 0, the text is empty. Returns 0 or -ENOMEM. */
int fr_filter_text(const char *user, const pid_t *tids, size_t n, char **ret);
/* Sets TEXT as the filter of the event E, which is open as the descriptor FD. Returns 0; or a negative errno,
   with a message in D. */
int fr_filter_set(int fd, const struct fr_event *e, const char *text, struct fr_diag *d);
