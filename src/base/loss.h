/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * All causes of loss. A loss is data that should be in a dump and is not. Each cause has a counter. If the
 * event and the CPU of a loss are known, each event and CPU has a counter of its own. `flightrecctl status`
 * shows the counters, and each dump contains them. It is not a loss if the oldest data leaves the ring
 * because newer data needs the room.
 */
enum fr_loss {
	FR_LOSS_KERNEL_RING,	/* the kernel ring was full: PERF_RECORD_LOST, LOST_SAMPLES */
	FR_LOSS_THROTTLED,	/* the kernel throttled an event; counts the throttlings, not the records */
	FR_LOSS_BACK_PRESSURE,	/* a slow dump pinned the whole ring, and the newest samples were dropped */
	FR_LOSS_TORN,		/* a record in a kernel ring was not whole */
	FR_LOSS_SIDEBAND,	/* the kernel lost side-band records; a scan follows */
	FR_LOSS_SIDEBAND_QUEUE, /* the queue of the tracker was full; a scan follows */
	FR_LOSS_AUXILIARY,	/* perf.data.auxiliary could not be written */
	FR_LOSS_FAILED_DUMP,	/* a dump could not be written, and its samples could not be kept */
	FR_LOSS_RESTART,	/* events whose samples the kernel makes were not recorded between two
				   instances; counts the restarts */
	FR_LOSS_CPU_CAME,	/* a CPU came online and was not recorded at once; counts the CPUs */
	FR_LOSS_CGROUP_CAME,	/* the cgroup was made again and not recorded at once; counts how often */
	FR_LOSS_FOREIGN_ID,	/* the kernel gave a sample the id of another recorder's event */
	FR_LOSS_MACHINE_CRASH,	/* the machine crashed, and the kernel rings are lost; counts the crashes */
	FR_LOSS_AUX_PAUSED,	/* a dump stopped an AUX event, to copy its area; counts the copies */
	FR_LOSS_AUX, /* the hardware lost AUX data (counts the AUX records that say so), or a dump with
			AUX data could not be written (counts the areas) */
	FR_LOSS_SLEEP_TABLE, /* offcpu: the table of sleeps, or the table of recorded processes, was full;
				counts the sleeps that were not measured, and the processes */
	_FR_LOSS_MAX,
};

/* fr_loss_name() returns the name in status and JSON ("kernel-ring-full"), fr_loss_explain() an explanation
   for people. Both return NULL for an unknown cause. */
const char *fr_loss_name(enum fr_loss cause);
const char *fr_loss_explain(enum fr_loss cause);
