// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/loss.h"

#include <stddef.h>

static const struct {
	const char *name;
	const char *explain;
} causes[_FR_LOSS_MAX] = {
	[FR_LOSS_KERNEL_RING] = {"kernel-ring-full",
		"the kernel ring was full before the recorder read it; raise KernelBuffer="},
	[FR_LOSS_THROTTLED] = {"throttled", "the kernel throttled the event; lower its frequency or raise "
					    "kernel.perf_event_max_sample_rate"},
	[FR_LOSS_BACK_PRESSURE] = {"back-pressure", "a dump was slower than the input and the reserve was "
						    "full; raise RingSize= or use a faster disk"},
	[FR_LOSS_TORN] = {"torn-record", "a record in a kernel ring was not whole and was skipped"},
	[FR_LOSS_SIDEBAND] = {"side-band-lost",
		"the kernel ring of the side-band was full; a new scan of /proc restored the names"},
	[FR_LOSS_SIDEBAND_QUEUE] = {"side-band-queue",
		"the queue of the side-band tracker was full; a new scan of /proc restored the names"},
	[FR_LOSS_AUXILIARY] = {"auxiliary-write",
		"perf.data.auxiliary could not be written; dumps are complete without it"},
	[FR_LOSS_FAILED_DUMP] = {"failed-dump",
		"a dump could not be written and memory could not keep all of "
		"it; make room on the disk"},
	[FR_LOSS_RESTART] = {"restart",
		"the recorder was restarted, and events whose samples do not come from BPF programs were not "
		"recorded until it ran again"},
	[FR_LOSS_CPU_CAME] = {"cpu-came",
		"a CPU came online, or all CPUs after a suspend, and what ran there "
		"before its events were open is missing"},
	[FR_LOSS_CGROUP_CAME] = {"cgroup-came",
		"the recorded cgroup was created again, as by a restart of its "
		"service, and its first seconds are missing"},
	[FR_LOSS_FOREIGN_ID] = {"foreign-id",
		"the kernel gave samples of a software event the id of another "
		"recorder's event; record page faults and the like with only one "
		"recorder at a time"},
	[FR_LOSS_MACHINE_CRASH] = {"machine-crash",
		"the machine crashed, and the records that were still in the kernel rings are missing"},
	[FR_LOSS_AUX_PAUSED] = {"aux-paused",
		"a dump stopped the hardware trace of a CPU for a moment, to copy its AUX area; the JSON of "
		"the dump has the duration of each gap"},
	[FR_LOSS_AUX] = {"aux-lost",
		"the hardware lost AUX data, because its buffer was full, or another program or a virtual "
		"machine used it; or a dump with AUX data could not be written"},
	[FR_LOSS_SLEEP_TABLE] = {"sleep-table",
		"there were more threads than the event offcpu can follow, so some sleeps were not measured; "
		"a reload and a restart keep the table: stop and start the recorder to make a larger one"},
};

const char *fr_loss_name(enum fr_loss cause)
{
	return cause < _FR_LOSS_MAX ? causes[cause].name : NULL;
}

const char *fr_loss_explain(enum fr_loss cause)
{
	return cause < _FR_LOSS_MAX ? causes[cause].explain : NULL;
}
