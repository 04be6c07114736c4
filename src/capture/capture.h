/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Opens the events of a recording on each CPU, or on each CPU for each recorded thread. Maps the kernel rings
 * of the events: the buffers into which the kernel writes the records. The recorder thread drains the kernel
 * rings.
 *
 * Each CPU has up to three kernel rings. The sampling events of the CPU share the first ring
 * (PERF_EVENT_IOC_SET_OUTPUT). The second ring has all side-band (the records that are not samples), from the
 * event `dummy`. These two rings are forward rings: the kernel does not overwrite records that have not been
 * read. The events with the term `overwrite` share the third ring, in which the kernel overwrites the oldest
 * records.
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

/* Tests whether this kernel has a fault: if one recording asks for build-ids, some kernels also change the
   MMAP2 records of other recordings (docs/design/10). Returns 1 if the kernel changes the records; 0 if it
   does not; or a negative errno if the trial failed (-EINVAL or -E2BIG: the kernel does not know
   attr.build_id). Any thread is allowed to call this function. */
int fr_capture_build_ids_leak(void);

struct fr_capture;

/* Opens all events, disabled, and maps their rings. Returns 0; or a negative errno, with a message in D. The
   message names the event and the kernel's error. The hint in D says what is missing: a capability, a sysctl,
   a resource limit, a tracefs mount, a cgroup, a CPU or a pid. Do not call this function on the recorder
   thread. */
int fr_capture_open(const struct fr_capture_config *config, struct fr_capture **ret, struct fr_diag *d);
struct fr_capture *fr_capture_free(struct fr_capture *c);

/* Adds the events with their ids and names to S, which has no events yet. The side-band event is the last
   event of S. Returns 0 or -ENOMEM. */
int fr_capture_describe(const struct fr_capture *c, struct fr_session *s);

/* Adds the formats of the events that are not the kernel's to the section TRACING_DATA of S. Returns 0 or a
   negative errno. */
int fr_capture_add_formats(const struct fr_capture *c, struct fr_session *s);

/* Sets a filter in the kernel for every tracepoint, so that the N threads TIDS (tids of the initial pid
   namespace) make no samples of tracepoints. An event takes only one filter, so the filter also contains the
   user's filter. Does nothing if only chosen processes are recorded. Call this function once, before the
   samples are enabled. Returns 0; or a negative errno, with a message in D. */
int fr_capture_exclude_tids(struct fr_capture *c, const pid_t *tids, size_t n, struct fr_diag *d);

/* The parts of a capture. The caller enables the side-band first. The caller enables the samples later: after
   the first scan of all processes in /proc, and after fr_capture_exclude_tids() for all threads of this
   program. If enable_on_exec is set, fr_capture_enable() does nothing for the samples, because the exec
   enables them. */
enum fr_capture_part {
	FR_CAPTURE_SIDEBAND,
	FR_CAPTURE_SAMPLES,
};
/* Returns 0; or a negative errno, with a message in D. */
int fr_capture_enable(struct fr_capture *c, enum fr_capture_part part, struct fr_diag *d);
/* Disables all events. See fr_capture_leave(), too. */
void fr_capture_disable(struct fr_capture *c);

/* Returns the configured frequency, in samples a second, of the first event that has a frequency; 0 if no
   event has a frequency. */
uint64_t fr_capture_frequency(const struct fr_capture *c);
/* Returns the configured threshold of the event offcpu, in ns; 0: it is not recorded. */
uint64_t fr_capture_off_cpu_threshold(const struct fr_capture *c);
/* Returns a descriptor from which one read to the end returns the waits that have not ended: a sample of
   flightrec:offcpu for each wait of at least the threshold, as if it ended at the time of the read, and with
   the kernel stack only. The caller closes the descriptor, also after C is freed. On failure, returns a
   negative errno; -ENOENT: the event offcpu is not recorded. */
int fr_capture_open_waits(const struct fr_capture *c);
/*
 * Changes the frequency of each event to its configured frequency divided by DIVISOR, but at least 1 Hz.
 * Multiplies the threshold of offcpu by DIVISOR. Does not change events with a period. A task that has
 * inherited an event keeps the previous frequency of the event. The attrs that are written into files still
 * have the configured frequency. Samples of cpu-clock and task-clock contain a period, which the kernel does
 * not adjust: it is still 1 / configured frequency. Makes one system call for each event and CPU. Returns 0;
 * or a negative errno, with a message in D. On an error, the function sets the previous frequencies again. Do
 * not call this function on the recorder thread.
 */
int fr_capture_set_divisor(struct fr_capture *c, unsigned divisor, struct fr_diag *d);

/* --- switches (docs/design/16). Not for the recorder thread. */

/* Returns the slot of the event's switch; FR_SWITCH_NONE: the event cannot be switched. */
uint32_t fr_capture_slot(const struct fr_capture *c, size_t event_index);
bool fr_capture_has_slot(const struct fr_capture *c, uint32_t slot);
/* Returns whether the event with SLOT has the term enabled=no. */
bool fr_capture_is_configured_off(const struct fr_capture *c, uint32_t slot);
/* Call this function when the state of SLOT has changed. Enables or disables the events with SLOT for which
   the kernel makes the samples. Returns 0; or a negative errno, with a message in D. */
int fr_capture_apply_switch(struct fr_capture *c, uint32_t slot, struct fr_diag *d);
/* Returns the configured frequency or period of the event with SLOT; 0: it has none. */
uint64_t fr_capture_rate(const struct fr_capture *c, uint32_t slot, bool *ret_is_frequency);
/* Gives the event with SLOT the frequency (in Hz) or the period RATE, in place of the configured one; 0: the
   configured one. The divisor of fr_capture_set_divisor() applies to this frequency, too. Returns 0; or a
   negative errno, with a message in D, and the rate has not changed. */
int fr_capture_set_rate(struct fr_capture *c, uint32_t slot, uint64_t rate, struct fr_diag *d);
/* Finds the slot of the event NAME, for a BPF program that is to switch it. Returns 0; or a negative errno,
   with a message in D: there is no such event, or a BPF program cannot switch it. */
int fr_capture_find_kernel_switch(
	const struct fr_capture *c, const char *name, uint32_t *ret_slot, struct fr_diag *d);
/* Says in D that there is no event NAME. Returns -ENOENT. */
int fr_capture_fail_no_event(const struct fr_capture *c, const char *name, struct fr_diag *d);

/* Returns the epoll set with all forward rings. C owns the set. The recorder adds its own eventfd with
   data.ptr NULL; the data.ptr of a ring is never NULL. A ring wakes the recorder when a quarter of the ring
   is full, or when the ring has one MiB of records. */
int fr_capture_epoll_fd(const struct fr_capture *c);
/* Handles an epoll event whose data.ptr is not NULL. Call this function after a drain. After a hang-up (a
   task has ended, or a CPU has gone offline), removes the perf event that caused the hang-up from the epoll
   set. If the same ring has another perf event, adds that perf event to the set. */
void fr_capture_handle_epoll(struct fr_capture *c, void *data_ptr, uint32_t epoll_events);

/* Returns true if no ring is in the epoll set any more, because all tasks have ended. Only the recorder
   thread calls this function. */
bool fr_capture_has_ended(const struct fr_capture *c);

/* Drains all forward rings once, side-band rings first. Makes no system call, except for the losses of BPF
   programs ten times a second. Allocates no memory and takes no lock. Returns the number of drained bytes.
   Only the recorder thread calls this function. */
size_t fr_capture_drain(struct fr_capture *c, const struct fr_capture_ops *ops);

/* Passes to ops->samples the records that came into the overwritable rings since the last call, CPU by CPU,
   and for each CPU the oldest record first. Copies the rings while the kernel continues to write into them. A
   copy can take some milliseconds for each 10 MiB. Returns the number of bytes that were read. Only the
   recorder thread calls this function. */
size_t fr_capture_drain_overwrite(struct fr_capture *c, const struct fr_capture_ops *ops);
bool fr_capture_has_overwrite(const struct fr_capture *c);

/* Counts of one event on one CPU since the start. */
struct fr_counter {
	uint64_t samples;
	uint64_t lost[_FR_LOSS_MAX];
};
/* EVENT_INDEX is the index in the order of fr_capture_describe(). Any thread is allowed to call this
   function. */
void fr_capture_counter(
	const struct fr_capture *c, size_t event_index, size_t cpu_index, struct fr_counter *ret);
/* Call this function when the capture C replaces the capture `from`. Adds the counters of `from` to the
   counters of the same events and CPUs in C. If an event or a CPU of `from` is not in C, adds the losses of
   that event or CPU to LOST. No other thread is allowed to read the counters of C during the call. */
void fr_capture_inherit_counters(
	struct fr_capture *c, const struct fr_capture *from, uint64_t lost[static _FR_LOSS_MAX]);
/* Returns the number of losses of side-band so far (FR_LOSS_SIDEBAND and FR_LOSS_TORN). If the number grows,
   the caller requests a scan. */
uint64_t fr_capture_sideband_lost(const struct fr_capture *c);

size_t fr_capture_n_events(const struct fr_capture *c);
const char *fr_capture_event_name(const struct fr_capture *c, size_t event_index);
/* fr_capture_n_cpus() returns the number of CPUs whose side-band is recorded. fr_capture_n_sampled_cpus()
   returns how many of these CPUs also have the other events: those with the lowest indexes. */
size_t fr_capture_n_cpus(const struct fr_capture *c);
size_t fr_capture_n_sampled_cpus(const struct fr_capture *c);
int fr_capture_cpu_number(const struct fr_capture *c, size_t cpu_index);
/* C was opened for the cgroup at PATH. Returns true if another cgroup is at PATH now, for example because the
   service of the cgroup was restarted. Returns false if there is no cgroup at PATH. */
bool fr_capture_has_other_cgroup(const struct fr_capture *c, const char *path);
