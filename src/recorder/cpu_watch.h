/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Watches for CPUs that come online. The kernel ends the events of a CPU that goes offline. When the CPU
 * comes back, these events stay ended, so all events have to be opened again. Only the main thread calls
 * these functions.
 */

#include "capture/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

struct fr_cpu_watch;

/* N is the number of CPUs that came online and are not recorded yet. A suspend counts as one CPU. The
   function is called when N becomes larger than 0. It is called again at each tick and each change, until
   fr_cpu_watch_opened() has been called for all N CPUs. */
typedef void (*fr_cpus_came)(void *ctx, unsigned n);

/* Begins to watch. The CPUs of CAPTURE are recorded already. If inotify does not work for the files of the
   CPUs, only fr_cpu_watch_tick() sees a change. It does not see a CPU that goes offline and comes back
   between two ticks. Returns 0 or -ENOMEM. */
int fr_cpu_watch_new(sd_event *event, const struct fr_capture *capture, fr_cpus_came came, void *ctx,
	struct fr_cpu_watch **ret);
/* Looks for changes. Call this function every few seconds: inotify does not report that a hypervisor has
   added CPUs, or that the machine was suspended. NULL is allowed. */
void fr_cpu_watch_tick(struct fr_cpu_watch *w);
/* Call this function when N of the CPUs that came online are recorded. */
void fr_cpu_watch_opened(struct fr_cpu_watch *w, unsigned n);
/* Frees W. Call this function after the event loop has ended. NULL is allowed; returns NULL. */
struct fr_cpu_watch *fr_cpu_watch_free(struct fr_cpu_watch *w);

/* Writes the CPUs of WANTED that are online to RET, as numbers with commas between them. WANTED is a list of
   CPUs. If WANTED is NULL or an invalid list, the function writes all CPUs that are online. Returns 0;
   -ENODEV if no CPU of WANTED is online; -E2BIG if SIZE is too small; or another negative errno if the
   kernel's list cannot be read. */
int fr_cpus_online(const char *wanted, char *ret, size_t size);
#define FR_CPU_LIST_SIZE (6 * 8192) /* room for "8191," for each CPU */
