/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
#ifndef FLIGHTREC_CRASHMEM_H
#define FLIGHTREC_CRASHMEM_H

/*
 * The crash memory: memory that survives a crash of the machine. A program keeps its data there,
 * and the kernel module flightrec_mem adds a record when the kernel panics or has an oops. All
 * values have the byte order of the machine. The areas do not overlap, and each begins at a
 * multiple of 4096:
 *
 *     0                          struct flightrec_crashmem_header
 *     FLIGHTREC_CRASHMEM_RECORD  struct flightrec_crash_record; only the kernel module writes it
 *     header.areas[...]          the other areas
 *
 * The module writes a record only if the header is valid and has the boot id of this boot: it does
 * not change what an earlier boot has left. The program clears the record when it formats the
 * memory.
 */

#include <linux/types.h>

#define FLIGHTREC_CRASHMEM_MAGIC 0x4d52435444524c46ULL /* "FLRDTCRM" */
#define FLIGHTREC_CRASHMEM_VERSION 1
#define FLIGHTREC_CRASHMEM_DEVICE "/dev/flightrec_mem"
#define FLIGHTREC_CRASHMEM_BOOT_ID 40
#define FLIGHTREC_CRASHMEM_AREAS 8

enum flightrec_crashmem_area {
	FLIGHTREC_CRASHMEM_AREA_RECORD, /* the record of the kernel module */
	FLIGHTREC_CRASHMEM_AREA_STATE,	/* two slots: the events, and facts about this boot */
	/* Two slots: symbols of the kernel, and its build-ids. A small memory has room for the build-ids
	   only. */
	FLIGHTREC_CRASHMEM_AREA_SYMBOLS,
	FLIGHTREC_CRASHMEM_AREA_TAIL, /* the process model at the ring's tail */
	FLIGHTREC_CRASHMEM_AREA_RING, /* the image of the ring */
};

enum flightrec_crashmem_use {
	FLIGHTREC_CRASHMEM_IN_USE = 1, /* a recorder uses the memory, or was killed with the machine */
	FLIGHTREC_CRASHMEM_CLOSED = 2, /* the recorder ended as asked: nothing has to be rescued */
};

struct flightrec_crashmem_header {
	__u64 magic;
	__u32 version;
	__u32 crc;   /* CRC-32C (RFC 3720) of the bytes from `bytes` to before `use` */
	__u64 bytes; /* size of the memory */
	char boot_id[FLIGHTREC_CRASHMEM_BOOT_ID]; /* 32 hexadecimal digits, and zeros */
	struct {
		__u64 offset, bytes;
	} areas[FLIGHTREC_CRASHMEM_AREAS];
	__u32 use; /* enum flightrec_crashmem_use; not part of the crc */
	__u32 reserved;
};

#define FLIGHTREC_CRASHMEM_RECORD 4096
#define FLIGHTREC_CRASHMEM_RECORD_BYTES (256 * 1024)

#define FLIGHTREC_CRASH_RECORD_MAGIC 0x4452434852534352ULL
#define FLIGHTREC_CRASH_RECORD_VERSION 1
#define FLIGHTREC_CRASH_STACK 64

enum flightrec_crash_kind {
	FLIGHTREC_CRASH_PANIC = 1,
	FLIGHTREC_CRASH_OOPS = 2, /* the machine may have gone on; a panic replaces this record */
};

enum flightrec_crash_registers {
	FLIGHTREC_CRASH_REGISTERS_FAULT = 1, /* at the instruction that failed */
	FLIGHTREC_CRASH_REGISTERS_USER = 2,  /* of the task in user mode, at its last entry into the kernel */
};

/*
 * The texts end with a zero byte. A text or a number that is not known is empty or 0. The module
 * writes the magic last, after a write barrier.
 */
struct flightrec_crash_record {
	__u64 magic;
	__u32 version;
	__u32 crc;	 /* CRC-32C of the bytes from `kind` to the end of the log */
	__u32 kind;	 /* enum flightrec_crash_kind */
	__u32 log_bytes; /* size of the log, which follows this struct */
	__u64 monotonic_ns, realtime_ns;
	__s32 cpu, pid, tid;
	__u32 n_stack;
	char reason[256]; /* "sysrq triggered crash". Of a panic after an oops: "Fatal exception (Oops)" */
	char comm[16];
	char release[64];    /* `uname -r` */
	__u64 registers[40]; /* in the order of the kernel's struct pt_regs: x86-64 has 21, aarch64 34 */
	__u32 n_registers;
	__u32 registers_of;		    /* enum flightrec_crash_registers */
	__u64 stack[FLIGHTREC_CRASH_STACK]; /* return addresses in the kernel, innermost first */
	/* char log[log_bytes]: the newest lines of the kernel's log, oldest first */
};

#endif
