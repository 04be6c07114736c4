// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";

SEC("perf_event")
int program(void *ctx)
{
	return flightrec_trigger("x", 1, 1);
}
