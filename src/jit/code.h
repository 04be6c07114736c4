/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside jit/: what a process has said of the code that it made itself, from either kind of file. */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds for one process: the files are written by whoever likes to. */
#define JIT_FILE_MAX (32u << 20)   /* bytes read */
#define JIT_SYMBOLS_MAX (1u << 19) /* functions */
#define JIT_NAME_MAX 511u	   /* bytes of a function's name, cut */

struct jit_symbol {
	uint64_t addr, size;
	uint64_t time_ns; /* from when on; 0: always */
	uint64_t order;	  /* in the file */
	uint64_t offset;  /* in the object, set by jit_object_make() */
	uint32_t name;	  /* in names */
	uint32_t code;	  /* in the file, where there are bytes */
};

struct jit_code {
	struct jit_symbol *v;
	size_t n, cap;
	struct fr_buf names; /* each with its NUL */
	struct fr_buf file;  /* jitdump: its bytes, which the code stands in */
	bool timed;	     /* jitdump: each function has its own bytes and its own time */
	bool cut;	     /* a bound was reached, or the file is damaged: some are missing */
};

void jit_code_deinit(struct jit_code *c);
#define _cleanup_jit_code_ _cleanup_(jit_code_deinit)

/* Append a function with a copy of NAME. 0; 1: the bound is reached, and C is marked cut; -ENOMEM. */
int jit_code_add(struct jit_code *c, const struct jit_symbol *s, const char *name, size_t len);

/* "ADDRESS SIZE NAME" lines, hexadecimal; a later line wins where two overlap, and what is left of the
   earlier one is in one or more pieces. Sorted by address, without overlaps. 0 or -ENOMEM. */
int jit_perf_map_parse(const char *text, size_t len, struct jit_code *ret);

/* A jitdump (tools/perf/Documentation/jitdump-specification.txt), whose bytes FILE go over to RET. In the
   order of time. 0, -EBADMSG where it is none of this machine's byte order, or -ENOMEM. */
int jit_dump_parse(struct fr_buf *file, struct jit_code *ret);

/* An ELF object with the functions as symbols of .text. A function's place in it is ADDR - BASE + 0x1000
   (RET_BASE) for a perf map; for a jitdump each stands alone at its OFFSET, with its code. RET_ID: its
   build-id. 0, -EFBIG or -ENOMEM. */
#define JIT_BUILD_ID_SIZE 20
int jit_object_make(
	struct jit_code *c, struct fr_buf *ret, uint64_t *ret_base, uint8_t ret_id[static JIT_BUILD_ID_SIZE]);
