/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One AUX area: the events of one AUX event on one CPU (several if single tasks are recorded: one for each
 * thread), the ring of their records, and the memory of their AUX data. Private to this folder.
 */

#include "base/diag.h"
#include "base/lock.h"
#include "capture/aux_clock.h"
#include "capture/aux_copy.h"
#include "capture/aux_window.h"
#include "capture/event.h"
#include "capture/ops.h"

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <sys/types.h>

struct fr_capture;
struct fr_target;

/* The largest record that is kept: ITRACE_START and AUX_OUTPUT_HW_ID have 48 bytes. */
#define FR_AUX_KEPT_BYTES 64

/* Records that the kernel writes only when an event starts. The recorder thread adds them; the dumper reads
 * them. */
struct fr_aux_kept {
	struct fr_lock lock; /* held for microseconds only */
	uint8_t (*records)[FR_AUX_KEPT_BYTES];
	size_t n, max;
	size_t next; /* if there are more than `max`, the next one overwrites this one */
};

/* Sums over all areas that this process has ever had. */
struct fr_aux_totals {
	_Atomic uint64_t pauses, copied_bytes, gap_ns, longest_gap_ns; /* of snapshots */
	_Atomic uint64_t looks, longest_look_ns;
};
extern struct fr_aux_totals fr_aux_totals;

struct fr_aux_area {
	_Atomic unsigned references;
	uint32_t queue;	       /* number of the area; no two areas of this process have the same */
	struct fr_event event; /* with the attr that the kernel accepted */
	int cpu;
	bool of_tasks; /* events of threads, not of the CPU */
	int *cpus;     /* all CPUs of the event, for AUXTRACE_INFO */
	size_t n_cpus;

	/* The open events, the first one with the mappings. They do not change after the opening. */
	int *fds;
	uint64_t *ids;
	pid_t *tids; /* -1: the whole CPU */
	size_t n, max;
	struct perf_event_mmap_page *page;
	size_t ring_bytes, aux_bytes;
	const uint8_t *aux;

	struct fr_aux_kept kept;
	struct fr_aux_clock opened; /* at the opening */

	/* Held while the events are stopped, and while they are enabled or disabled. */
	struct fr_lock lock;
	bool is_enabled, enables_on_exec;
	struct fr_aux_window window;

	_Atomic uint64_t pauses_to_count; /* the recorder thread adds them to the loss FR_LOSS_AUX_PAUSED */
};

/* Makes an area without events, with one reference and a number of its own. It has room for MAX events. */
int fr_aux_area_new(const struct fr_event *e, int cpu, size_t max, struct fr_aux_area **ret);
void fr_aux_area_ref(struct fr_aux_area *a);
/* Closes the events if this was the last reference. NULL is allowed. */
void fr_aux_area_unref(struct fr_aux_area *a);
/* Adds the event FD (consumed, also on an error) of the thread TID. Maps the ring and the AUX area with the
   first event, and directs the others to them. Returns 0; or a negative errno, with a message in D. */
int fr_aux_area_add(struct fr_aux_area *a, int fd, pid_t tid, struct fr_diag *d);

/* Stops the events, notes how far the area is written, and starts them. */
void fr_aux_area_look(struct fr_aux_area *a);
/* Does the same, and also copies what is new: see fr_aux_snapshot_take(). *RET_NS gets the time of the stop.
   If the area is not in use, RET has no bytes and *RET_NS does not change. Returns 0 or a negative errno. */
int fr_aux_area_copy(struct fr_aux_area *a, uint64_t since_ns, uint64_t until_ns, struct fr_aux_copy *ret,
	uint64_t *ret_ns);

/* Returns 0 or a negative errno. */
int fr_aux_area_enable(struct fr_aux_area *a);
void fr_aux_area_disable(struct fr_aux_area *a);

/* Returns whether A has other references: during a reload, the old and the new capture have the area; during
   a dump, the dumper has it, too. */
static inline bool fr_aux_area_is_shared(const struct fr_aux_area *a)
{
	return atomic_load_explicit(&a->references, memory_order_relaxed) > 1;
}

/* Returns whether A belongs to the event E, which was not opened yet. */
bool fr_aux_area_is_of(const struct fr_aux_area *a, const struct fr_event *e);

/* Keeps the newest records of each type that the kernel writes only when an event starts. Only the recorder
 * thread calls this function. */
void fr_aux_area_keep(struct fr_aux_area *a, const struct fr_run *run);
/* Appends the kept records. Returns 0 or -ENOMEM. */
int fr_aux_area_append_kept(struct fr_aux_area *a, struct fr_buf *ret);

/* aux_open.c. Finds out which events of C have an AUX area, and sets `aux` and the attrs of these events.
   Returns 0; or a negative errno, with a message in D. */
int fr_aux_find(struct fr_capture *c, const struct fr_target *t, struct fr_diag *d);
/* Opens the AUX event EVENT on a CPU, or takes over its area from c->previous. */
int fr_aux_open_on_cpu(
	struct fr_capture *c, const struct fr_target *t, size_t event, size_t cpu_index, struct fr_diag *d);
