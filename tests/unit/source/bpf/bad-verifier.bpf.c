// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";

SEC("raw_tp/sys_enter")
int reads_anywhere(__u64 *ctx)
{
	const char *where = (const char *)ctx[0];

	return flightrec_trigger("x", *where, 1);
}
