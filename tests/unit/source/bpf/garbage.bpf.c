// SPDX-License-Identifier: GPL-2.0-or-later
/* A program that writes malformed events into the ring buffer. */
#include <linux/bpf.h>
#include <asm/unistd.h>
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";

SEC("raw_tp/sys_enter")
int getppid(struct bpf_raw_tracepoint_args *ctx)
{
	struct flightrec_event e = {.abi = FLIGHTREC_TRIGGER_ABI, .size = sizeof(e)};

	if (ctx->args[1] != __NR_getppid || bpf_get_current_pid_tgid() >> 32 != flightrec_pid)
		return 0;
	__builtin_memset(e.comm, 'x', sizeof(e.comm));
	__builtin_memset(e.reason, '\1', sizeof(e.reason));
	e.time_ns = ~0ULL;
	e.cgroup_id = ~0ULL;
	e.unit = 77;
	e.cpu = ~0U;
	bpf_ringbuf_output(&flightrec_events, &e, sizeof(e), 0);
	bpf_ringbuf_output(&flightrec_events, &e, 40, 0);
	e.abi = 2;
	bpf_ringbuf_output(&flightrec_events, &e, sizeof(e), 0);
	e.abi = FLIGHTREC_TRIGGER_ABI;
	e.size = sizeof(e) + 64;
	bpf_ringbuf_output(&flightrec_events, &e, sizeof(e), 0);
	return 0;
}
