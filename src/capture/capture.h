/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The kernel rings: opened per CPU (and task), drained by the recorder thread.
 *
 * Each CPU has one forward ring for all its sampling events (SET_OUTPUT) and one forward ring of the `dummy`
 * event for all side-band. Events with the term `overwrite` share a third ring, which the kernel overwrites.
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

/* 1: if we ask this kernel for build-ids, it changes the map records of other recorders (docs/design/10). 0:
   it does not. A negative errno: the trial failed; -EINVAL, -E2BIG: the kernel knows no build-ids. Any
   thread. */
int fr_capture_build_ids_leak(void);
/* The pid of another process that has perf events open. 0: we can see none. Reads /proc/PID/fd of all
   processes. */
pid_t fr_capture_find_other_recorder(void);

struct fr_capture;

/* Open and map everything, disabled. On an error D names the event, the kernel's answer, and what is missing:
   a capability, a sysctl, a resource limit, a tracefs mount, a cgroup, a CPU or a pid. Not on the recorder
   thread. */
int fr_capture_open(const struct fr_capture_config *config, struct fr_capture **ret, struct fr_diag *d);
struct fr_capture *fr_capture_free(struct fr_capture *c);

/* Add the events with ids and names to S, which has none yet. The side-band event is the last. */
int fr_capture_describe(const struct fr_capture *c, struct fr_session *s);

/* Exclude threads (tids of the initial pid namespace): every system-wide tracepoint gets a filter in the
   kernel, together with the user's filter. Only once, and before samples are enabled, as an event takes one
   filter. Returns 0, or a negative errno with D. */
int fr_capture_exclude_tids(struct fr_capture *c, const pid_t *tids, size_t n, struct fr_diag *d);

/* Enable side-band first. Enable samples after the first scan, when all own threads exist. With
   enable_on_exec, exec enables the samples. */
enum fr_capture_part {
	FR_CAPTURE_SIDEBAND,
	FR_CAPTURE_SAMPLES,
};
int fr_capture_enable(struct fr_capture *c, enum fr_capture_part part, struct fr_diag *d);
void fr_capture_disable(struct fr_capture *c);

/* Samples a second of the first event with a frequency, as asked for. 0: all events have periods. */
uint64_t fr_capture_frequency(const struct fr_capture *c);
/*
 * Sample every event that has a frequency with 1/DIVISOR of it, at least once a second. Tasks that have
 * inherited an event keep its old frequency. The attrs in files keep the frequency of the open, and samples
 * of cpu-clock and task-clock keep its period, as in the kernel. One system call for each event and CPU.
 * Returns 0, or a negative errno with D, and then nothing changes. Not on the recorder thread.
 */
int fr_capture_set_divisor(struct fr_capture *c, unsigned divisor, struct fr_diag *d);

/* An epoll descriptor with all rings in it; borrowed. The recorder adds its eventfd with data.ptr NULL;
   data.ptr of a ring is never NULL. A ring wakes at a quarter of its size, or at a MiB. */
int fr_capture_epoll_fd(const struct fr_capture *c);
/* Call it, after a drain, for each event with data.ptr not NULL. A hang-up (a task ended, a CPU went offline)
   takes the ring out of the epoll set. */
void fr_capture_handle_epoll(struct fr_capture *c, void *data_ptr, uint32_t epoll_events);

/* No ring is in the epoll set any more: all tasks have ended. Recorder thread. */
bool fr_capture_has_ended(const struct fr_capture *c);

/* Drain all forward rings once, side-band rings first. No system call, no allocation, no lock. Returns the
   number of bytes. Recorder thread. */
size_t fr_capture_drain(struct fr_capture *c, const struct fr_capture_ops *ops);

/* Give ops->samples the records that the overwritable rings gained since the last call, oldest first per CPU.
   The rings are not paused. The function copies, which may take milliseconds per 10 MiB. Recorder thread. */
size_t fr_capture_drain_overwrite(struct fr_capture *c, const struct fr_capture_ops *ops);
bool fr_capture_has_overwrite(const struct fr_capture *c);

/* Counters since the start. The recorder thread writes them, any thread reads them. EVENT_INDEX: as in
   fr_capture_describe(). */
struct fr_counter {
	uint64_t samples;
	uint64_t lost[_FR_LOSS_MAX];
};
void fr_capture_counter(
	const struct fr_capture *c, size_t event_index, size_t cpu_index, struct fr_counter *ret);
/* Add the counters of FROM, which C replaces, to those of the same events and CPUs in C. Losses that have no
   place in C are added to LOST. No other thread may read C's counters meanwhile. */
void fr_capture_inherit_counters(
	struct fr_capture *c, const struct fr_capture *from, uint64_t lost[static _FR_LOSS_MAX]);
/* Records of side-band that were lost or torn so far. When it grows, a scan is due. */
uint64_t fr_capture_sideband_lost(const struct fr_capture *c);

size_t fr_capture_n_events(const struct fr_capture *c);
const char *fr_capture_event_name(const struct fr_capture *c, size_t event_index);
/* CPUs with side-band; events are on the first fr_capture_n_sampled_cpus() of them. */
size_t fr_capture_n_cpus(const struct fr_capture *c);
size_t fr_capture_n_sampled_cpus(const struct fr_capture *c);
int fr_capture_cpu_number(const struct fr_capture *c, size_t cpu_index);
/* PATH, which C was opened for, is another cgroup now: its service was restarted. False if there is none. */
bool fr_capture_has_other_cgroup(const struct fr_capture *c, const char *path);
