/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What src/capture/ and the BPF programs that record tracepoints (capture-tracepoint.bpf.c) share
 * (docs/design/14). "Raw data" means the fields of a tracepoint as its format describes them, in the order
 * and at the offsets of the format. They begin with common_type.
 */

#include "capture.h"

typedef __UINT16_TYPE__ fr_u16;
typedef __UINT8_TYPE__ fr_u8;

/* A filter is a program of predicates. Each predicate names the next one for both results. */
enum fr_bpf_op {
	FR_BPF_EQ,
	FR_BPF_LT,
	FR_BPF_LE,
	FR_BPF_GT,
	FR_BPF_GE,
	FR_BPF_AND,  /* the field and the value have a common bit */
	FR_BPF_TEXT, /* the first 16 bytes of the field, under the mask, are the value */
};
enum fr_bpf_source {
	FR_BPF_RAW,  /* a field of the raw data */
	FR_BPF_CPU,  /* the number of the CPU */
	FR_BPF_COMM, /* the name of the current task */
};
struct fr_bpf_predicate {
	fr_u16 offset;	 /* of the field in the raw data */
	fr_u8 shift;	 /* 64 - the number of bits of the field */
	fr_u8 is_signed; /* the field is a signed number */
	fr_u8 source, op;
	fr_u8 on_true, on_false; /* the next predicate, or one of the two results below */
	fr_u64 value[2], mask[2];
};
#define FR_BPF_PREDICATES_MAX 32u
#define FR_BPF_ACCEPT 254u
#define FR_BPF_REJECT 255u

struct fr_bpf_filter {
	fr_u32 n, first; /* n = 0: no filter */
	struct fr_bpf_predicate predicates[FR_BPF_PREDICATES_MAX];
};

#define FR_BPF_OWN_MAX 16

struct fr_bpf_code {
	fr_u64 start, end;
};

/* An event whose records a program makes. */
struct fr_bpf_tracepoint {
	fr_u64 first_id; /* the id of the event on CPU n is first_id + n */
	fr_u32 is_enabled;
	fr_u32 slot;	 /* of struct fr_switch */
	fr_u32 own_tgid; /* the recorder's process, whose threads own_tids are not recorded; 0: none */
	fr_u32 own_tids[FR_BPF_OWN_MAX];
	fr_u32 flags; /* FR_BPF_CALLCHAIN … */
	fr_u32 max_stack;
	fr_u32 type;		     /* common_type and common_flags, as they are in the raw data */
	fr_u32 data_bytes;	     /* the end of the fields in the raw data */
	fr_u32 raw_bytes;	     /* the size of the raw data, with the padding of perf */
	fr_u32 dynamic;		     /* the offset of the last __data_loc field; 0: there is none */
	fr_u32 dynamic_begin;	     /* the offset of the first byte of dynamic data */
	fr_u32 skip;		     /* the frame of a kernel stack before the tracepoint's own */
	fr_u32 n_kernel;	     /* sys_enter: the number of frames in `kernel`; 0: not known yet */
	fr_u64 kernel[8];	     /* sys_enter: its kernel stack, which is always the same */
	fr_u64 ip;		     /* raw tracepoints: the code of the tracepoint; 0: not known yet */
	struct fr_bpf_code probe[3]; /* raw tracepoints: code between the tracepoint and the program */
	struct fr_bpf_filter filter;
};
#define FR_BPF_TRACEPOINTS_MAX 4096u
#define FR_BPF_CALLS_MAX 512u /* numbers of system calls */
#define FR_BPF_RAW_MAX 1024u

/* The programs. First those of raw tracepoints, each with its own way to make the raw data. FR_BPF_CALL_*
   make the data of all tracepoints syscalls:*, by the number of the system call. The last program is that of
   all other tracepoints. The kernel gives it the raw data. */
enum fr_bpf_tracepoint_kind {
	FR_BPF_SYS_ENTER,
	FR_BPF_SYS_EXIT,
	FR_BPF_SCHED_SWITCH,
	FR_BPF_SCHED_WAKING,
	FR_BPF_CALL_ENTER,
	FR_BPF_CALL_EXIT,
	FR_BPF_ANY_TRACEPOINT,
	_FR_BPF_TRACEPOINT_KINDS,
};
