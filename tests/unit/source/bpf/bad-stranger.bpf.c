// SPDX-License-Identifier: GPL-2.0-or-later
/* Knows nothing of flightrec. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("raw_tp/sys_enter")
int program(void *ctx)
{
	return 0;
}
