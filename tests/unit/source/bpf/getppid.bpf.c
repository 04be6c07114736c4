// SPDX-License-Identifier: GPL-2.0-or-later
/* Each getppid() is an anomaly with the value `size`. */
#include <linux/bpf.h>
#include <asm/unistd.h>

#define FLIGHTREC_UNIT FLIGHTREC_UNIT_COUNT
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 size = 1;
const volatile __u64 interval_ns = 0;

/* Globals of all types that Set= accepts, and of a type that it refuses. */
const volatile _Bool flag = 0;
const volatile signed char tiny = 0;
volatile short shorter = 1;
typedef int number_t;
volatile number_t number = 0;
const volatile long long huge = 0;
const volatile char word[8] = "";
volatile __u32 several[2] = {1, 2};
enum colour { RED, GREEN } volatile colour = RED;

SEC("raw_tp/sys_enter")
int getppid(struct bpf_raw_tracepoint_args *ctx)
{
	if (ctx->args[1] != __NR_getppid)
		return 0;
	flightrec_trigger(word[0] ? (const char *)word : "getppid", size, flightrec_threshold);
	shorter += number + several[0] + colour + flag + tiny + (huge != 0);
	return 0;
}
