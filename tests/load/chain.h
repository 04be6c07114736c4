/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The variants of frtest-chain: each spins at the end of a known chain of calls until chain_stop is set. The
 * names of all functions of the chain begin with "chain_". The files are built without frame pointers and
 * without tail calls.
 */

#include <stdint.h>

#define CHAIN_FRAME __attribute__((noinline, noclone))

extern volatile int chain_stop;
extern uint64_t chain_from_ns; /* since when the whole chain stands; set by variants that prepare something */

/* A leaf without a frame: it has no stack pointer of its own and calls nothing. */
uint64_t chain_spin(uint64_t x);

/* Regular expressions for the names of the frames of all samples, the innermost frame first, with ";" after
   each name. ANY stands for frames of libraries. */
#define CHAIN_ANY "(?:(?!chain_|main;)[^;]*;)*"
#define CHAIN_MAIN "chain_run;main;" CHAIN_ANY "_start;"
#define CHAIN_SPIN "chain_spin;"

/* Each returns a number that depends on its argument, so that the compiler must make the calls. */
uint64_t chain_call(uint64_t x);     /* qsort, a signal, a PLT, an object of dlopen(), a leaf */
uint64_t chain_altstack(uint64_t x); /* a signal handler on its own stack */
uint64_t chain_lazy(uint64_t x);     /* the dynamic linker binds a symbol, again and again */
uint64_t chain_deep(uint64_t x);     /* 120 frames of one function */
uint64_t chain_vdso(uint64_t x);     /* clock_gettime() */
uint64_t chain_system(uint64_t x);   /* a system call */
uint64_t chain_jit(uint64_t x);	     /* code in anonymous memory that calls back */
uint64_t chain_alloca(uint64_t x);   /* a frame of variable size */
uint64_t chain_realign(uint64_t x);  /* a frame that aligns the stack */
uint64_t chain_jump(uint64_t x);     /* after a longjmp() */
uint64_t chain_hop(uint64_t x);	     /* short functions: often sampled in a prologue or an epilogue */

#define CHAIN_DEPTH 120
#define CHAIN_CALL_EXPECTED                                                                                  \
	CHAIN_SPIN "chain_plugin_inner;chain_plugin_enter;chain_handler;" CHAIN_ANY                          \
		   "chain_interrupted;chain_compare;" CHAIN_ANY "chain_sort;chain_call;" CHAIN_MAIN
#define CHAIN_CALL_STATIC_EXPECTED                                                                           \
	CHAIN_SPIN "chain_handler;" CHAIN_ANY "chain_interrupted;chain_compare;" CHAIN_ANY                   \
		   "chain_sort;chain_call;" CHAIN_MAIN
