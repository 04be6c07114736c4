/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What src/capture/ and the BPF programs of the event offcpu (sleep.bpf.c) share: the table of sleeps, and
 * the raw data of the events. Dumps add the event flightrec:waiting, for waits that have not ended: its raw
 * data is that of flightrec:offcpu (src/dump/waits.h).
 */

#include "unwind.h"

/* The tracepoint ids of our events. The kernel gives a tracepoint the lowest free id of 16 bits, so no
   kernel tracepoint has these ids. flightrec:trigger has the id 65535 (src/dump/trigger_sample.c). */
#define FR_SLEEP_TRACEPOINT 65500u
#define FR_WAKER_TRACEPOINT 65501u
#define FR_WAITING_TRACEPOINT 65502u

enum { FR_SLEEP_EVENT, FR_WAKER_EVENT, FR_SLEEP_EVENTS };

/* The context of a waking. In all contexts except TASK, the task that is recorded as the waker was only
   interrupted. */
enum fr_waker_context {
	FR_WAKER_NONE, /* the task was preempted or yielded, so nobody woke it */
	FR_WAKER_TASK,
	FR_WAKER_SOFTIRQ,
	FR_WAKER_HARDIRQ,
	FR_WAKER_NMI,
	FR_WAKER_UNKNOWN, /* the waking was not seen, or the kernel does not show the context */
};

#define FR_SLEEP_COMM 16

/* One task. A slot of the table belongs to a task from the first time it stops running until it dies. */
struct fr_sleep {
	fr_u32 tid;   /* 0: the slot is free */
	fr_u32 state; /* at the switch-out: the bits of task_struct.__state; 0: runnable */
	fr_u8 preempted;
	fr_u8 woken_early; /* the waker came while the task ran, or was about to leave the CPU */
	fr_u16 reserved;
	fr_u32 context; /* enum fr_waker_context */
	/* Monotonic times. The task is off the CPU if in_ns < out_ns. If waking_ns < out_ns, it was not woken
	   since. */
	fr_u64 out_ns, in_ns, waking_ns;
	fr_u32 waker_pid, waker_tid;
	char waker_comm[FR_SLEEP_COMM];
};

/* The raw data, with its size, as they are in a sample. The size and the data together are a multiple of 8
   bytes. Formats: src/capture/off_cpu_format.c. */
struct fr_sleep_raw {
	fr_u32 size;
	fr_u16 common_type;
	fr_u8 common_flags, common_preempt_count;
	fr_s32 common_pid;
	fr_u32 waker_context;
	fr_u64 duration, blocked, runqueue; /* ns */
	fr_s32 waker_pid, waker_tid;
	char waker_comm[FR_SLEEP_COMM];
	char state[8];
};
struct fr_waker_raw {
	fr_u32 size;
	fr_u16 common_type;
	fr_u8 common_flags, common_preempt_count;
	fr_s32 common_pid;
	fr_u32 context;
	fr_u64 slept; /* ns */
	fr_s32 woken_pid, woken_tid;
	char woken_comm[FR_SLEEP_COMM];
};
