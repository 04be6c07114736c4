/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Opens events for each CPU (and task) with their kernel rings. The recorder thread drains these rings.
 *
 * A forward ring is one that the kernel does not overwrite. Each CPU has one forward ring that its sampling
 * events share (SET_OUTPUT), and one forward ring of the `dummy` event for all side-band. But events with the
 * term `overwrite` share a third ring of the CPU, which the kernel overwrites.
 */

#include "base/diag.h"
#include "base/loss.h"
#include "capture/event.h"
#include "capture/config.h"
#include "capture/ops.h"
#include "perfdata/session.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns 1 if this kernel changes the map records of other recorders when we ask for build-ids
   (docs/design/10); 0 if it does not; a negative errno if the trial failed (-EINVAL or -E2BIG: the kernel
   does not know attr.build_id). Any thread. */
int fr_capture_build_ids_leak(void);
/* Returns the pid of another process that has perf events open; 0 if we see none. Reads /proc/PID/fd of all
   processes. */
pid_t fr_capture_find_other_recorder(void);

struct fr_capture;

/* Open all events, disabled, and map their rings. Returns 0, or a negative errno with D. D has the event, the
   error of the kernel, and as a hint what is missing: a capability, a sysctl, a resource limit, a tracefs
   mount, a cgroup, a CPU or a pid. Not on the recorder thread. */
int fr_capture_open(const struct fr_capture_config *config, struct fr_capture **ret, struct fr_diag *d);
struct fr_capture *fr_capture_free(struct fr_capture *c);

/* Add the events with their ids and names to S, which has no events yet. The side-band event is the last.
   Returns 0 or -ENOMEM. */
int fr_capture_describe(const struct fr_capture *c, struct fr_session *s);

/* Exclude threads (tids of the initial pid namespace) from every tracepoint, by a filter in the kernel, so
   that they make no samples of tracepoints. An event takes only one filter, so this filter contains the
   user's filter, too. Does nothing if only chosen processes are recorded. Call it once, before the samples
   are enabled. Returns 0, or a negative errno with D. */
int fr_capture_exclude_tids(struct fr_capture *c, const pid_t *tids, size_t n, struct fr_diag *d);

/* The parts of a capture. Enable the side-band first. Enable the samples after the first scan, and after all
   threads of this program were started and excluded. If enable_on_exec is set, fr_capture_enable() does
   nothing for the samples, because the exec enables them. */
enum fr_capture_part {
	FR_CAPTURE_SIDEBAND,
	FR_CAPTURE_SAMPLES,
};
/* Returns 0, or a negative errno with D. */
int fr_capture_enable(struct fr_capture *c, enum fr_capture_part part, struct fr_diag *d);
void fr_capture_disable(struct fr_capture *c);

/* Returns the configured frequency of the first event that has one, in samples a second; 0 if no event has
   one. */
uint64_t fr_capture_frequency(const struct fr_capture *c);
/*
 * Set the frequency of each event to its configured frequency divided by DIVISOR, but at least 1 Hz. Events
 * with a period do not change. A task that has inherited an event keeps the previous frequency of this event.
 * The attrs in files keep the configured frequency. The period that samples of cpu-clock and task-clock
 * contain stays that of the configured frequency, because the kernel does not change it there. Makes one
 * system call for each event and CPU. Returns 0; or a negative errno with D, and then the previous
 * frequencies are set again. Not on the recorder thread.
 */
int fr_capture_set_divisor(struct fr_capture *c, unsigned divisor, struct fr_diag *d);

/* The epoll set with all forward rings; borrowed. The recorder adds its eventfd with data.ptr NULL. The
   data.ptr of a ring is never NULL. A ring wakes the recorder when a quarter of it is full, or when it has
   one MiB. */
int fr_capture_epoll_fd(const struct fr_capture *c);
/* Handle an epoll event whose data.ptr is not NULL. Call it after a drain. After a hang-up (a task ended, a
   CPU went offline), the perf event that caused it is removed from the epoll set, and another perf event of
   the same ring is added, if there is one. */
void fr_capture_handle_epoll(struct fr_capture *c, void *data_ptr, uint32_t epoll_events);

/* Returns true if no ring is in the epoll set any more, because all tasks have ended. Recorder thread. */
bool fr_capture_has_ended(const struct fr_capture *c);

/* Drain all forward rings once, side-band rings first. Makes no system call, allocates no memory and takes no
   lock. Returns the number of bytes. Recorder thread. */
size_t fr_capture_drain(struct fr_capture *c, const struct fr_capture_ops *ops);

/* Pass to ops->samples the records that came into the overwritable rings since the last call, CPU by CPU, and
   for each CPU the oldest record first. Copies the rings and does not pause them, which may take some
   milliseconds for each 10 MiB. Returns the number of bytes. Recorder thread. */
size_t fr_capture_drain_overwrite(struct fr_capture *c, const struct fr_capture_ops *ops);
bool fr_capture_has_overwrite(const struct fr_capture *c);

/* Counts of one event on one CPU since the start. */
struct fr_counter {
	uint64_t samples;
	uint64_t lost[_FR_LOSS_MAX];
};
/* EVENT_INDEX is the index in the order of fr_capture_describe(). Any thread. */
void fr_capture_counter(
	const struct fr_capture *c, size_t event_index, size_t cpu_index, struct fr_counter *ret);
/* C replaces FROM. Add the counters of FROM to the counters of the same events and CPUs in C. If an event or
   a CPU of FROM is not in C, add its losses to LOST. No other thread may read the counters of C meanwhile. */
void fr_capture_inherit_counters(
	struct fr_capture *c, const struct fr_capture *from, uint64_t lost[static _FR_LOSS_MAX]);
/* Returns the number of losses of side-band so far (FR_LOSS_SIDEBAND and FR_LOSS_TORN). If the number grows,
   the caller requests a scan. */
uint64_t fr_capture_sideband_lost(const struct fr_capture *c);

size_t fr_capture_n_events(const struct fr_capture *c);
const char *fr_capture_event_name(const struct fr_capture *c, size_t event_index);
/* The number of CPUs with side-band. The first fr_capture_n_sampled_cpus() of them also have the other
 * events. */
size_t fr_capture_n_cpus(const struct fr_capture *c);
size_t fr_capture_n_sampled_cpus(const struct fr_capture *c);
int fr_capture_cpu_number(const struct fr_capture *c, size_t cpu_index);
/* C was opened for the cgroup at PATH. Returns true if another cgroup is at PATH now, for example because the
   service of the cgroup was restarted. Returns false if there is no cgroup at PATH. */
bool fr_capture_has_other_cgroup(const struct fr_capture *c, const char *path);
