/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CPUs that come online while we record. The kernel ends the events of a CPU that goes offline, and these
 * events stay dead when it comes back. So all events have to be opened anew. Main thread.
 */

#include "capture/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

struct fr_cpu_watch;

/* N CPUs came, or the machine was suspended, and they are not recorded yet. It is called again at each look
   until fr_cpu_watch_opened(). */
typedef void (*fr_cpus_came)(void *ctx, unsigned n);

/* Watch from the CPUs of CAPTURE on. Where the files of the CPUs cannot be watched, only ticks see a change,
   and they miss a CPU that goes and comes back between two of them. 0 or -ENOMEM. */
int fr_cpu_watch_new(sd_event *event, const struct fr_capture *capture, fr_cpus_came came, void *ctx,
	struct fr_cpu_watch **ret);
/* Look now. Call it every few seconds: a hypervisor that adds CPUs and a machine that slept tell nobody.
   NULL-safe. */
void fr_cpu_watch_tick(struct fr_cpu_watch *w);
/* N of the CPUs that came are recorded now. */
void fr_cpu_watch_opened(struct fr_cpu_watch *w, unsigned n);
/* After the loop. NULL-safe; returns NULL. */
struct fr_cpu_watch *fr_cpu_watch_free(struct fr_cpu_watch *w);

/* The CPUs of WANTED (a list; NULL: all) that are online, as a list in RET. 0; -ENODEV: none; -E2BIG: SIZE is
   too small; another negative errno: the kernel's list cannot be read. */
int fr_cpus_online(const char *wanted, char *ret, size_t size);
#define FR_CPU_LIST_SIZE (6 * 8192) /* "8191," for each */
