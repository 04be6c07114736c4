/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Every way in which data can be lost. Each is counted per event and CPU where that is known, shown by
 * `flightrecctl status` and written into every dump. Eviction of the oldest samples is the job, and is not
 * here.
 */
enum fr_loss {
	FR_LOSS_KERNEL_RING,	/* the kernel found its ring full: PERF_RECORD_LOST, LOST_SAMPLES */
	FR_LOSS_THROTTLED,	/* the kernel throttled an event: times, not records */
	FR_LOSS_BACK_PRESSURE,	/* all of the ring was pinned by a slow dump: the newest chunk went */
	FR_LOSS_TORN,		/* a record in a ring was not whole */
	FR_LOSS_SIDEBAND,	/* the kernel lost side-band records: a /proc scan follows */
	FR_LOSS_SIDEBAND_QUEUE, /* the side-band tracker was behind: a /proc scan follows */
	FR_LOSS_AUXILIARY,	/* perf.data.auxiliary could not be written */
	FR_LOSS_FAILED_DUMP,	/* a dump could not be written, and its samples could not be kept */
	FR_LOSS_RESTART,	/* nothing was recorded between two instances: times, not records */
	FR_LOSS_CPU_CAME,	/* what a CPU did from when it came online until it was recorded: times */
	FR_LOSS_CGROUP_CAME, /* what a cgroup did from when it was made anew until it was recorded: times */
	FR_LOSS_FOREIGN_ID,  /* a sample that the kernel gave the id of another recorder's event */
	_FR_LOSS_MAX,
};

/* "kernel-ring-full", "throttled" … as in status and JSON; and the same in a sentence. Static storage. */
const char *fr_loss_name(enum fr_loss cause);
const char *fr_loss_explain(enum fr_loss cause);
