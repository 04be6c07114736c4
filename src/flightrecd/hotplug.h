/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CPUs that come while we record. The kernel ends the events of a CPU that goes, and they stay dead when it
 * is back: so all of them are opened anew, as a reload does, with no gap on the others. What the CPU did
 * until then is not there, and counted (FR_LOSS_CPU_CAME). Main thread.
 */

#include "base/diag.h"
#include "base/loss.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#define FR_CPUS_MAX 8192

struct fr_daemon;

struct fr_hotplug_file { /* "online" of a CPU */
	struct fr_daemon *daemon;
	int cpu;
	struct sd_event_source *source; /* or NULL */
};

struct fr_hotplug {
	bool on; /* whole CPUs are recorded; the events of a task follow it by themselves */
	uint8_t online[FR_CPUS_MAX / 8]; /* when we last looked; at first, those that are recorded */
	uint64_t suspended_ns;		 /* so far */
	unsigned missing;		 /* came, and are not recorded yet */
	struct fr_hotplug_file *files;	 /* FR_CPUS_MAX, by CPU */
};

/* On the loop of DAEMON, whose capture is open. Where the files of the CPUs cannot be watched, only the ticks
   see a change, and miss a CPU that goes and comes back between two of them. */
void fr_hotplug_open(struct fr_daemon *daemon);
/* Every FR_RATE_PERIOD_NS: a hypervisor adds CPUs and a machine sleeps without a word to anybody. */
void fr_hotplug_tick(struct fr_daemon *daemon);
/* fr_daemon_reopen() on those of CPUs= that are online by now, or on all: one may have gone since. */
int fr_hotplug_reopen(struct fr_daemon *daemon, enum fr_loss came, unsigned n, struct fr_diag *d);
/* After the loop. */
void fr_hotplug_close(struct fr_daemon *daemon);
