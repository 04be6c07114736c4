/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Variants of frtest-chain for the shapes that a frame can have. */

#include "chain.h"

#include <err.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FACTOR 6364136223846793005ULL

volatile int chain_stop;

CHAIN_FRAME uint64_t chain_spin(uint64_t x)
{
	while (!chain_stop)
		x = x * FACTOR + 1;
	return x;
}

CHAIN_FRAME static uint64_t chain_recurse(uint64_t x, int n)
{
	return (n > 1 ? chain_recurse(x * FACTOR, n - 1) : chain_spin(x)) + (uint64_t)n;
}

CHAIN_FRAME uint64_t chain_deep(uint64_t x)
{
	return chain_recurse(x, CHAIN_DEPTH) + 1;
}

CHAIN_FRAME uint64_t chain_vdso(uint64_t x)
{
	struct timespec t;

	while (!chain_stop && clock_gettime(CLOCK_MONOTONIC, &t) == 0)
		x += (uint64_t)t.tv_nsec;
	return x;
}

CHAIN_FRAME uint64_t chain_system(uint64_t x)
{
	while (!chain_stop)
		x += (uint64_t)getppid();
	return x;
}

/* --- run-time code ------------------------------------------------------------------------------------- */

typedef uint64_t chain_function(uint64_t x);
typedef uint64_t chain_made(uint64_t x, chain_function *f);

/* push %rbp; mov %rsp,%rbp; sub $32,%rsp; call *%rsi; mov %rbp,%rsp; pop %rbp; ret */
static const unsigned char code[] = {
	0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd6, 0x48, 0x89, 0xec, 0x5d, 0xc3};
static chain_made *made;

CHAIN_FRAME static uint64_t chain_jit_back(uint64_t x)
{
	return made(x + 1, chain_spin) + 1;
}

CHAIN_FRAME uint64_t chain_jit(uint64_t x)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (m == MAP_FAILED)
		err(EXIT_FAILURE, "memory");
	memcpy(m, code, sizeof(code));
	if (mprotect(m, size, PROT_READ | PROT_EXEC) < 0)
		err(EXIT_FAILURE, "memory with code");
	memcpy(&made, &m, sizeof(m)); /* ISO C does not convert an object pointer to a function pointer */
	return made(x, chain_jit_back) + 1;
}

/* --- frames of variable size, and aligned frames ------------------------------------------------------- */

CHAIN_FRAME static uint64_t chain_variable(uint64_t x)
{
	volatile unsigned char *p = __builtin_alloca(x % 1000 + 100);

	p[x % 100] = (unsigned char)x;
	return chain_spin(x) + p[x % 100];
}

CHAIN_FRAME uint64_t chain_alloca(uint64_t x)
{
	return chain_variable(x) + 1;
}

/* An aligned variable together with arguments on the stack: the function needs a register that points to the
   arguments (DRAP), and its CFA is an expression. */
CHAIN_FRAME static uint64_t chain_aligned(
	uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
	_Alignas(64) volatile uint64_t aligned[8] = {a, b, c, d, e, f, g, h};
	volatile unsigned char *p = __builtin_alloca(g % 1000 + 8);

	p[0] = (unsigned char)h;
	return chain_spin(aligned[h % 8]) + aligned[g % 8] + p[0] + g + h;
}

CHAIN_FRAME __attribute__((force_align_arg_pointer)) uint64_t chain_realign(uint64_t x)
{
	return chain_aligned(x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7) + 1;
}

/* --- longjmp() ----------------------------------------------------------------------------------------- */

static jmp_buf outside;

CHAIN_FRAME static void chain_leave(int n)
{
	if (n > 0)
		chain_leave(n - 1);
	if (!chain_stop)
		longjmp(outside, 1);
}

CHAIN_FRAME uint64_t chain_jump(uint64_t x)
{
	for (volatile int i = 0; i < 20; i++)
		if (setjmp(outside) == 0)
			chain_leave(i);
	return chain_spin(x) + 1;
}

/* --- prologues and epilogues --------------------------------------------------------------------------- */

CHAIN_FRAME static uint64_t chain_hop_c(uint64_t x)
{
	volatile uint64_t y[4] = {x, x + 1};

	return y[x % 2] * FACTOR;
}

CHAIN_FRAME static uint64_t chain_hop_b(uint64_t x, uint64_t y)
{
	const uint64_t a = chain_hop_c(x), b = chain_hop_c(y), c = chain_hop_c(a ^ y);

	return a + b + c + chain_hop_c(a + x) * b + y;
}

CHAIN_FRAME static uint64_t chain_hop_a(uint64_t x)
{
	return chain_hop_b(x, x + 1) + chain_hop_c(x);
}

CHAIN_FRAME uint64_t chain_hop(uint64_t x)
{
	while (!chain_stop)
		x = chain_hop_a(x);
	return x;
}
