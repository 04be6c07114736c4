/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The unwind tables, in the layout that src/unwind/ writes and that BPF programs read (unwind.bpf.h). All of
 * it is in memory that both have mapped, so user space changes it without a system call.
 *
 *   slots[hash(pid)] ──► process: maps, sorted ──► objects[n] ──► pages ──► rows, sorted ──► rules
 *
 * The memory consists of chunks, which are made when they are needed. A position (fr_unwind_at) names a chunk
 * and an offset in it. What a position names is in one chunk, and does not change while a BPF program can
 * find it: user space writes it first, then stores the position, and uses the memory again only when no BPF
 * program can still read it.
 */

#ifdef __bpf__
typedef __u8 fr_u8;
typedef __u16 fr_u16;
typedef __s16 fr_s16;
typedef __u32 fr_u32;
typedef __s32 fr_s32;
typedef __u64 fr_u64;
#else
#include <stdint.h>
typedef uint8_t fr_u8;
typedef uint16_t fr_u16;
typedef int16_t fr_s16;
typedef uint32_t fr_u32;
typedef int32_t fr_s32;
typedef uint64_t fr_u64;
#endif

/* A position: the number of the chunk, and the offset in units of 8 bytes. 0 is the position of nothing: the
   first bytes of chunk 0 are not used. */
typedef fr_u32 fr_unwind_at;
#define FR_UNWIND_CHUNK_BYTES (1u << 20)
#define FR_UNWIND_CHUNKS_MAX 1024u
#define FR_UNWIND_AT_UNIT 8u
#define FR_UNWIND_AT_BITS 17u /* of the offset */

/*
 * How to find the caller of a frame. DWARF numbers of the registers of x86-64: 0 rax, 1 rdx, 2 rcx, 3 rbx,
 * 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8 to 15 r8 to r15. CFA (canonical frame address): the stack pointer of the
 * caller after the return.
 */
enum fr_unwind_kind {
	FR_UNWIND_NONE,	       /* there is no rule: no call frame information, or one that is not supported */
	FR_UNWIND_END,	       /* the outermost frame: it has no return address */
	FR_UNWIND_REGISTER,    /* CFA = REG + CFA_OFFSET */
	FR_UNWIND_DEREFERENCE, /* CFA = *(REG + CFA_OFFSET) + ADD */
	FR_UNWIND_REALIGNED,   /* the same, and SAVED is relative to REG in place of the CFA: a function that
				  has aligned its stack, so that the distance of both is not known */
	FR_UNWIND_PLT,	       /* CFA = rsp + CFA_OFFSET + ((rip & (ADD >> 8)) >= (ADD & 255) ? 8 : 0) */
	FR_UNWIND_SIGNAL, /* rsp points to the kernel's struct rt_sigframe without its return address: the
			     registers of the caller are in uc.uc_mcontext, at rsp + 40 */
};

/* The registers that a function must restore, in the order of `saved`. */
#define FR_UNWIND_SAVED 6
#define FR_UNWIND_SAVED_REGISTERS                                                                            \
	{                                                                                                    \
		3, 6, 12, 13, 14, 15                                                                         \
	}
#define FR_UNWIND_SAME                                                                                       \
	0 /* the register has the caller's value. (No register is saved at the CFA itself.)                  \
	   */
#define FR_UNWIND_LOST (-32768) /* the caller's value is not known */
#define FR_UNWIND_HERE 32767	/* REALIGNED only: the register is saved at REG itself */

struct fr_unwind_rule {
	fr_u8 kind; /* enum fr_unwind_kind */
	fr_u8 reg;
	fr_s16 ra; /* REGISTER, DEREFERENCE, REALIGNED, PLT: the return address is at CFA + RA */
	fr_s32 cfa_offset, add;
	fr_s16 saved[FR_UNWIND_SAVED]; /* offset from the CFA, or SAME, LOST or HERE */
};
#define FR_UNWIND_RULES_MAX 32768u /* of an object, so that its rules fit into a chunk */

/* The rule of the addresses from PC to the next row, or to the end of the page. */
struct fr_unwind_row {
	fr_u16 pc;   /* the lower 16 bits of the address in the object */
	fr_u16 rule; /* index into the rules of the object */
};

/* The rows of 64 KiB of an object. The first row has PC 0. */
struct fr_unwind_page {
	fr_unwind_at rows;
	fr_u32 n; /* 0: no address of this page has a rule */
};
#define FR_UNWIND_PAGE_BITS 16u

/* An ELF object, whether it has a table or not. */
struct fr_unwind_object {
	/* BPF counts here how often it needed this object. When it is READY, BPF writes only if the value is
	   0, because all CPUs share the cache line. User space sets it to 0 when it looks. */
	fr_u64 hits;
	fr_u32 first_page; /* address in the object >> FR_UNWIND_PAGE_BITS */
	fr_u32 n_pages;	   /* 0: there is no table (yet) */
	fr_unwind_at pages, rules;
	fr_u32 n_rules;
	fr_u32 state; /* enum fr_unwind_object_state */
	fr_u32 stamp; /* changes before the number stands for another object */
	fr_u32 reserved;
};
#define FR_UNWIND_OBJECTS_MAX 8192u

enum fr_unwind_object_state {
	FR_UNWIND_FREE,
	FR_UNWIND_WANTED, /* no table yet, or evicted */
	FR_UNWIND_READY,
	FR_UNWIND_BARE,	  /* has no call frame information: use the frame pointer */
	FR_UNWIND_FAILED, /* cannot be read: use the frame pointer, and count the sample */
};
/* Object 0 stands for memory without a file (run-time code), whose frames have frame pointers. Its state is
   always FR_UNWIND_BARE. */

struct fr_unwind_map {
	fr_u64 start, end; /* executable memory of a process */
	fr_u64 bias;	   /* address in memory - bias = address in the object */
	fr_u32 object;
	fr_u32 stamp; /* of the object; only in struct fr_unwind_young */
};
#define FR_UNWIND_MAPS_MAX 8192u /* of a process */

struct fr_unwind_process {
	fr_u32 n;
	fr_u32 reserved;
	struct fr_unwind_map maps[]; /* sorted by START, without overlap */
};

/* A hash table with linear probing: the slots of a pid begin at fr_unwind_hash(pid) and there are at most
   FR_UNWIND_PROBES of them. */
struct fr_unwind_slot {
	fr_u32 pid; /* 0: free */
	fr_unwind_at process;
};
#define FR_UNWIND_SLOTS 32768u
#define FR_UNWIND_PROBES 16u
static inline fr_u32 fr_unwind_hash(fr_u32 pid)
{
	return (pid * 2654435761u) >> 17; /* 15 bits */
}

/*
 * The newest change of executable maps that BPF has seen in the processes with one hash. User space learns of
 * a change later, from side-band. As long as ns >= synced_ns, the tables can be wrong for the addresses from
 * START to END.
 */
struct fr_unwind_change {
	fr_u64 ns; /* monotonic */
	fr_u64 start, end;
	fr_u64 has_file; /* 0: only memory without a file was mapped */
};
#define FR_UNWIND_CHANGES 16384u

/*
 * The maps that BPF has found by itself in a young process: one that has changed all of its maps (exec) or
 * that has no slot, so that user space does not know its maps yet. BPF programs ask the kernel for the map of
 * an address, and keep the answer here. The entry is used as long as NS >= synced_ns.
 *
 * The owner of an entry (young_owners) consists of its pid, and in the upper half a version that each change
 * increments. A program that changes an entry first stores FR_UNWIND_BUSY in place of the pid.
 */
#define FR_UNWIND_YOUNG_MAPS 32u
struct fr_unwind_young {
	fr_u64 begin_ns; /* the time of the exec, or of the first walk; monotonic, as NS */
	fr_u64 ns;	 /* of the last change */
	fr_u64 n;
	struct fr_unwind_map maps[FR_UNWIND_YOUNG_MAPS]; /* a newer one hides an older one */
};
#define FR_UNWIND_YOUNG 2048u
#define FR_UNWIND_YOUNG_WAYS 8u /* the entry of a pid is one of so many, from fr_unwind_young_set() on */
#define FR_UNWIND_BUSY (~0u)
static inline fr_u32 fr_unwind_young_set(fr_u32 pid)
{
	return fr_unwind_hash(pid) & (FR_UNWIND_YOUNG - FR_UNWIND_YOUNG_WAYS);
}

/* The keys of the map fr_unwind_files: a file as the kernel knows it, so that BPF programs can find the
   object of a map. The time of change says that the file is still the same. The vdso has the key 0. */
struct fr_unwind_file {
	fr_u64 ino, size;
	fr_u64 ctime_s;
	fr_u32 ctime_ns;
	fr_u32 dev, generation, reserved;
};
struct fr_unwind_file_object {
	fr_u32 object, stamp;
};
#define FR_UNWIND_FILES_MAX 16384u

/* A map of a young process whose file is not in fr_unwind_files. User space finds the object when it gets the
   record of the map. */
struct fr_unwind_miss {
	fr_u64 map; /* fr_unwind_miss_map() */
	fr_u64 hits;
};
#define FR_UNWIND_MISSES 1024u
static inline fr_u64 fr_unwind_miss_map(fr_u32 pid, fr_u64 start)
{
	return (fr_u64)pid << 32 | (fr_u32)(start >> 12);
}
static inline fr_u32 fr_unwind_miss_hash(fr_u64 map)
{
	return fr_unwind_hash((fr_u32)(map ^ map >> 32)) % FR_UNWIND_MISSES;
}

struct fr_unwind_shared {
	fr_u64 synced_ns; /* the slots know all changes before this time */
	fr_u64 missed_ns; /* when a walk last asked for a round, because it missed a map or a table */
	struct fr_unwind_slot slots[FR_UNWIND_SLOTS];
	struct fr_unwind_change changes[FR_UNWIND_CHANGES]; /* [fr_unwind_hash(pid) % FR_UNWIND_CHANGES] */
	struct fr_unwind_object objects[FR_UNWIND_OBJECTS_MAX];
	fr_u64 young_owners[FR_UNWIND_YOUNG];
	struct fr_unwind_young young[FR_UNWIND_YOUNG];
	struct fr_unwind_miss misses[FR_UNWIND_MISSES];
	struct fr_unwind_file asked; /* the answer of the program ask_file */
};

/* Counters of walks, per CPU. Each walk counts in one of them, and so does a walk that could not be made. */
enum fr_unwind_result {
	FR_UNWIND_WHOLE,      /* reached the outermost frame */
	FR_UNWIND_TOO_DEEP,   /* has more frames than are recorded */
	FR_UNWIND_NO_PROCESS, /* the maps of the process are not known yet: frame pointers instead */
	FR_UNWIND_CHANGED,    /* the process has just changed its maps: frame pointers in part of the stack */
	FR_UNWIND_NO_TABLE,   /* an object had no table yet: frame pointers in part of the stack */
	FR_UNWIND_NO_RULE,    /* code without call frame information, which has no frame pointer either */
	FR_UNWIND_UNREADABLE, /* a page of the stack is not in memory */
	FR_UNWIND_NO_MAP,     /* an address is in no executable map */
	FR_UNWIND_COMPAT,     /* a 32-bit process: only the innermost frame is recorded */
	FR_UNWIND_TOO_LATE,   /* offcpu: the task was gone from the CPU before the walk, so there was none */
	_FR_UNWIND_RESULTS,
};
struct fr_unwind_counters {
	fr_u64 walks[_FR_UNWIND_RESULTS];
	fr_u64 frames;
};
