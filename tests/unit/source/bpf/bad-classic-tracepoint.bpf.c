// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";

SEC("tracepoint/flightrec/no_such_tracepoint")
int program(void *ctx)
{
	return flightrec_trigger("x", 1, 1);
}
