// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of the built-in probes. A row names an object of src/bpf/; what it measures stands there. */
#include "source/probes.h"

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
	{
		.name = "run-queue-latency",
		.description = "a task was ready to run, woken or preempted, and waited long for a CPU",
		.object = run_queue_latency__elf_bytes,
		.unit = FR_CAUSE_NS,
		.threshold = "100ms",
		.costs = "one program at each switch of tasks: 3 to 5 % of a load that does nothing but "
			 "switch",
	},
	{
		.name = "off-cpu",
		.description =
			"a task was blocked for long, uninterruptibly; Set=interruptible=1 counts any sleep",
		.object = off_cpu__elf_bytes,
		.unit = FR_CAUSE_NS,
		.threshold = "1s",
		.costs = "one program at each switch of tasks: 3 to 5 % of a load that does nothing but "
			 "switch",
	},
	{
		.name = "syscall-latency",
		.description =
			"a system call took long: of Syscall=, or of all but those that wait by design",
		.object = syscall_latency__elf_bytes,
		.unit = FR_CAUSE_NS,
		.threshold = "100ms",
		.costs = "every system call of the machine takes the kernel's slow way: 15 % of a load that "
			 "does little else",
	},
	{
		.name = "irq-time",
		.description = "the handler of a hard interrupt ran long",
		.object = irq_time__elf_bytes,
		.unit = FR_CAUSE_NS,
		.threshold = "5ms",
	},
	{
		.name = "softirq-time",
		.description = "the handler of a softirq ran long",
		.object = softirq_time__elf_bytes,
		.unit = FR_CAUSE_NS,
		.threshold = "20ms",
	},
	{
		.name = "exec",
		.description = "a program is executed; Comm= says which",
		.object = exec__elf_bytes,
		.unit = FR_CAUSE_NONE,
		.costs = "without Comm= every exec fires",
	},
	{
		.name = "hung-task",
		.description = "a task is uninterruptible for longer than kernel.hung_task_timeout_secs",
		.object = hung_task__elf_bytes,
		.unit = FR_CAUSE_NS,
		.armed = true,
	},
	{
		.name = "soft-lockup",
		.description = "a CPU has not scheduled for twice kernel.watchdog_thresh",
		.object = soft_lockup__elf_bytes,
		.unit = FR_CAUSE_NS,
		.armed = true,
	},
	{
		.name = "block-io-latency",
		.description = "a request to a disk took long, from its submission to its completion",
		.object = block_io_latency__elf_bytes,
		.unit = FR_CAUSE_NS,
		.threshold = "100ms",
		.costs = "a microsecond of CPU for each request",
	},
	{
		.name = "memory-stall",
		.description = "a task was held up by reclaim, compaction or a page fault that read a file",
		.object = memory_stall__elf_bytes,
		.unit = FR_CAUSE_NS,
		.threshold = "100ms",
		.costs = "0.3 microseconds for each page fault on a file",
	},
	{
		.name = "oom-kill",
		.description = "the kernel kills a process for want of memory, of the machine or of a cgroup",
		.object = oom_kill__elf_bytes,
		.unit = FR_CAUSE_BYTES,
		.armed = true,
	},
	{
		.name = "fatal-signal",
		.description =
			"a process dies of SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGSYS or SIGTRAP",
		.object = fatal_signal__elf_bytes,
		.unit = FR_CAUSE_NONE,
		.costs = "where services crash in a loop, it spends the dumps that all triggers share",
	},
	{
		.name = "tcp-retransmits",
		.description = "a burst of TCP retransmissions, so many in Interval=",
		.object = tcp_retransmits__elf_bytes,
		.unit = FR_CAUSE_COUNT,
		.threshold = "100",
		.counts = true,
		.interval_ns = 1000000000,
		.costs = "3 microseconds for each connection that is opened",
	},
};

const struct fr_probe *fr_probes(size_t *ret_n)
{
	*ret_n = sizeof(probes) / sizeof(probes[0]);
	return probes;
}

const struct fr_probe *fr_probe_find(const char *name)
{
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
		if (strcmp(probes[i].name, name) == 0)
			return &probes[i];
	return NULL;
}
