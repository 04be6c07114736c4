/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The kernel's rings: opened per CPU (and task), drained by the recorder thread.
 *
 * Per CPU: one forward ring that all sampling events of that CPU share (SET_OUTPUT), one forward ring of the
 * `dummy` event that carries all side-band, and, for events with the term `overwrite`, one ring that the
 * kernel overwrites.
 */

#include "base/diag.h"
#include "base/loss.h"
#include "capture/event.h"
#include "perfdata/session.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_capture_config {
	const struct fr_event_list *events;
	const char *cpus; /* a CPU list, or NULL: all that are online */
	const pid_t
		*pids; /* n_pids == 0: system-wide. Each with all its threads; their children are inherited */
	size_t n_pids;
	bool enable_on_exec; /* for a child that has not yet called exec */
	const char *cgroup;  /* path of a cgroup directory, or below the cgroup mount; NULL: none */
	bool no_build_ids;   /* no build-ids in the kernel's map records: see KernelBuildIDs= in
				flightrecd.conf(5) */
	size_t ring_bytes;   /* per CPU; a power of two of pages. 0: the default */
	size_t sideband_ring_bytes;
};

/* A run of whole records in our layout (perfdata/record.h), at most FR_RUN_MAX bytes, or as many as who takes
   samples has asked for; valid during the call. */
#define FR_RUN_MAX (64u << 10)
struct fr_run {
	const void *data;
	size_t len;
	uint32_t records;
	uint64_t first_ns, last_ns; /* smallest and largest time in it */
};

struct fr_capture_ops {
	void (*sideband)(void *ctx, const struct fr_run *run);
	void (*samples)(void *ctx, const struct fr_run *run);
	void *ctx;
	size_t samples_max; /* bytes of a run of samples out of a forward ring; 0: FR_RUN_MAX */
};

/* Whether this kernel marks the map records of others as having build-ids when we ask for them: 1, 0, or a
   negative errno where it could not be tried (one without build-ids: -EINVAL, -E2BIG). Any thread; it maps a
   page for a moment. */
int fr_capture_build_ids_leak(void);
/* The pid of another process that has perf events open, 0: none that we can see. Reads all of /proc/PID/fd.
 */
pid_t fr_capture_find_other_recorder(void);

struct fr_capture;

/* Opens and maps everything, disabled. On failure D names the event, what the kernel said, and what is
   missing: a capability, kernel.perf_event_paranoid, RLIMIT_MEMLOCK/kernel.perf_event_mlock_kb, a tracefs
   mount, a cgroup, a CPU, a pid. */
int fr_capture_open(const struct fr_capture_config *config, struct fr_capture **ret, struct fr_diag *d);
struct fr_capture *fr_capture_free(struct fr_capture *c);

/* Events with their ids and names into S, which has none yet. The side-band event is the last. */
int fr_capture_describe(const struct fr_capture *c, struct fr_session *s);

/* No events of these threads: a filter in the kernel, added to the user's, on every tracepoint that is opened
   system-wide. TIDS are of the initial pid namespace. Once, and before samples are enabled: the kernel takes
   one filter for an event and no second. 0 or a negative errno with D. */
int fr_capture_exclude_tids(struct fr_capture *c, const pid_t *tids, size_t n, struct fr_diag *d);

/* Side-band first, samples once the machine has been scanned and every own thread is known. With
 * enable_on_exec, samples of the task wait for its exec. */
enum fr_capture_part {
	FR_CAPTURE_SIDEBAND,
	FR_CAPTURE_SAMPLES,
};
int fr_capture_enable(struct fr_capture *c, enum fr_capture_part part, struct fr_diag *d);
void fr_capture_disable(struct fr_capture *c);

/* Samples a second of the first event that has a frequency, as it was asked for; 0: none has, all go by
   periods. */
uint64_t fr_capture_frequency(const struct fr_capture *c);
/* Every event with a frequency samples with 1/DIVISOR of it from now on, at least once a second; 1 is all of
   it. Tasks that inherited an event before keep theirs; who inherits it later does not. The attrs in files
   stay as they were opened, and so does the period in samples of cpu-clock and task-clock, as the kernel has
   it. 0; a negative errno with D, and then all are as they were. Main thread; a system call for each event
   and CPU.
 */
int fr_capture_set_divisor(struct fr_capture *c, unsigned divisor, struct fr_diag *d);

/* An epoll descriptor that has all rings in it (data.ptr of its own, never NULL); the recorder adds its
   eventfd with data.ptr == NULL. Wake-ups come at a quarter of a ring, and at
   most a MiB. fr_capture_handle_epoll() is told of each
   that has data.ptr != NULL and a hang-up (a task that ended, a CPU that went offline): it takes the ring out
   of the epoll set after its last drain. */
int fr_capture_epoll_fd(const struct fr_capture *c);
void fr_capture_handle_epoll(struct fr_capture *c, void *data_ptr, uint32_t epoll_events);

/* Whether every ring has been taken out of it: all the tasks have ended. Recorder thread. */
bool fr_capture_has_ended(const struct fr_capture *c);

/* One round: what the forward rings hold now, side-band rings first. No system call, no allocation, no lock.
   Returns the number of bytes drained. Recorder thread. */
size_t fr_capture_drain(struct fr_capture *c, const struct fr_capture_ops *ops);

/* What the overwritable rings gained since the last call (or hold at all), oldest first per CPU, through
   ops->samples; without pausing them. Recorder thread; it copies and may take milliseconds per 10 MiB. */
size_t fr_capture_drain_overwrite(struct fr_capture *c, const struct fr_capture_ops *ops);
bool fr_capture_has_overwrite(const struct fr_capture *c);

/* Counters since the start, of event E (as in describe()) on CPU index I. Written by the recorder thread,
 * read by any. */
struct fr_counter {
	uint64_t samples;
	uint64_t lost[_FR_LOSS_MAX];
};
/* C takes the place of FROM, of which nothing is drained any more: what FROM counted of an event on a CPU
   that C has too is in C's counters from now on; the other losses are added to LOST. Nobody may read C's
   counters meanwhile. */
void fr_capture_inherit_counters(
	struct fr_capture *c, const struct fr_capture *from, uint64_t lost[static _FR_LOSS_MAX]);
size_t fr_capture_n_events(const struct fr_capture *c);
/* Side-band is of all CPUs that are online, events are on the first fr_capture_n_sampled_cpus() of them. */
size_t fr_capture_n_cpus(const struct fr_capture *c);
size_t fr_capture_n_sampled_cpus(const struct fr_capture *c);
/* PATH, which C was opened for, is another cgroup by now: its service was started anew. One that is gone is
   none. */
bool fr_capture_has_other_cgroup(const struct fr_capture *c, const char *path);
int fr_capture_cpu_number(const struct fr_capture *c, size_t cpu_index); /* the CPU's number */
const char *fr_capture_event_name(const struct fr_capture *c, size_t event_index);
void fr_capture_counter(
	const struct fr_capture *c, size_t event_index, size_t cpu_index, struct fr_counter *ret);
/* The recorder's own losses (back-pressure …) are counted here too. */
void fr_capture_count_loss(
	struct fr_capture *c, size_t event_index, size_t cpu_index, enum fr_loss cause, uint64_t n);
/* Side-band lost or torn so far: the recorder asks for a scan when it grows. */
uint64_t fr_capture_sideband_lost(const struct fr_capture *c);
