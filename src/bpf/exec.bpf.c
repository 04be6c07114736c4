// SPDX-License-Identifier: GPL-2.0-or-later
/* Fires when a process executes a program. Comm= selects programs by name. */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

SEC("raw_tp/sched_process_exec")
int exec(void *ctx)
{
	flightrec_trigger("exec", 0, 0); /* there is no value */
	return 0;
}
