/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to jit/: the run-time functions of one process. Its perf map (the text file /tmp/perf-PID.map) or
   its jitdump (a file that the process maps) describes them. */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds for one perf map or jitdump, because any user can write such files. */
#define JIT_FILE_MAX (32u << 20)     /* bytes read */
#define JIT_SYMBOLS_MAX (1u << 19)   /* functions */
#define JIT_NAME_MAX 511u	     /* bytes of a function's name; a longer name is truncated */
#define JIT_ADDRESS_MAX (1ULL << 56) /* on every machine, all addresses of user memory are smaller */

struct jit_symbol {
	uint64_t addr, size;
	uint64_t time_ns; /* time from which the function exists; 0: always */
	uint64_t order;	  /* number of the function in the file */
	uint64_t offset;  /* file offset in the object; jit_object_make() sets it */
	uint32_t name;	  /* offset in jit_code.names */
	uint32_t code;	  /* jitdump: offset of the function's code in jit_code.file */
};

struct jit_code {
	struct jit_symbol *v;
	size_t n, cap;
	struct fr_buf names; /* the names, each with its NUL */
	struct fr_buf file;  /* jitdump: the whole file, with the code of the functions */
	bool is_timed;	     /* the file is a jitdump: each function has code and a time */
	bool truncated;	     /* some functions are missing: a bound was reached, or the file is damaged */
};

void jit_code_deinit(struct jit_code *c);
#define _cleanup_jit_code_ _cleanup_(jit_code_deinit)

static inline bool jit_is_range(uint64_t addr, uint64_t size)
{
	return size > 0 && addr < JIT_ADDRESS_MAX && size < JIT_ADDRESS_MAX - addr;
}

/* Appends a function with a copy of NAME. Returns 0; 1 if C already has JIT_SYMBOLS_MAX functions: the
   function is not added, and c->truncated is set; or -ENOMEM. */
int jit_code_add(struct jit_code *c, const struct jit_symbol *s, const char *name, size_t len);

/* Parses the LEN bytes at TEXT, which are lines "ADDRESS SIZE NAME" with hexadecimal numbers. Other lines are
   skipped. Where the functions of two lines overlap, the memory belongs to the later line. The rest of the
   earlier function stays, perhaps as several pieces. The functions in RET are sorted by address and do not
   overlap. Returns 0 or -ENOMEM. */
int jit_perf_map_parse(const char *text, size_t len, struct jit_code *ret);

/* Parses a jitdump (tools/perf/Documentation/jitdump-specification.txt). RET takes over the bytes of FILE.
   The functions in RET are sorted by time. Returns 0; -EBADMSG: FILE is not a jitdump of this byte order; or
   -ENOMEM. */
int jit_dump_parse(struct fr_buf *file, struct jit_code *ret);

#define JIT_BUILD_ID_SIZE 20
/* Makes an ELF object that has the functions of C (at least one) as symbols of .text. For a perf map, the
   object has no code, and the offset of a function is its address - *RET_BASE + 0x1000. For a jitdump, the
   object has the code of each function at the offset of the function, and *RET_BASE is 0. RET gets the
   object, and RET_ID its build-id. Returns 0; -EFBIG if the code of a jitdump is too large; or -ENOMEM. */
int jit_object_make(
	struct jit_code *c, struct fr_buf *ret, uint64_t *ret_base, uint8_t ret_id[static JIT_BUILD_ID_SIZE]);
