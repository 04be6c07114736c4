// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of the built-in probes. flightrecd.conf(5) has the cost of each. */
#include "source/probes.h"
#include "base/cleanup.h"

#include <string.h>

#include "block-io-latency.skel.h"
#include "exec.skel.h"
#include "fatal-signal.skel.h"
#include "hung-task.skel.h"
#include "irq-time.skel.h"
#include "memory-stall.skel.h"
#include "off-cpu.skel.h"
#include "oom-kill.skel.h"
#include "run-queue-latency.skel.h"
#include "soft-lockup.skel.h"
#include "softirq-time.skel.h"
#include "syscall-latency.skel.h"
#include "tcp-retransmits.skel.h"

static const struct fr_probe probes[] = {
	{"run-queue-latency", run_queue_latency__elf_bytes, FR_CAUSE_NS, "100ms", 0, false},
	{"off-cpu", off_cpu__elf_bytes, FR_CAUSE_NS, "1s", 0, false},
	{"syscall-latency", syscall_latency__elf_bytes, FR_CAUSE_NS, "100ms", 0, false},
	{"irq-time", irq_time__elf_bytes, FR_CAUSE_NS, "5ms", 0, false},
	{"softirq-time", softirq_time__elf_bytes, FR_CAUSE_NS, "20ms", 0, false},
	{"exec", exec__elf_bytes, FR_CAUSE_NONE, NULL, 0, false},
	{"hung-task", hung_task__elf_bytes, FR_CAUSE_NS, NULL, 0, true},
	{"soft-lockup", soft_lockup__elf_bytes, FR_CAUSE_NS, NULL, 0, true},
	{"block-io-latency", block_io_latency__elf_bytes, FR_CAUSE_NS, "100ms", 0, false},
	{"memory-stall", memory_stall__elf_bytes, FR_CAUSE_NS, "100ms", 0, false},
	{"oom-kill", oom_kill__elf_bytes, FR_CAUSE_BYTES, NULL, 0, true},
	{"fatal-signal", fatal_signal__elf_bytes, FR_CAUSE_NONE, NULL, 0, false},
	{"tcp-retransmits", tcp_retransmits__elf_bytes, FR_CAUSE_COUNT, "100", 1000000000, false},
};

const struct fr_probe *fr_probes(size_t *ret_n)
{
	*ret_n = FR_ARRAY_SIZE(probes);
	return probes;
}

const struct fr_probe *fr_probe_find(const char *name)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(probes); i++)
		if (strcmp(probes[i].name, name) == 0)
			return &probes[i];
	return NULL;
}
