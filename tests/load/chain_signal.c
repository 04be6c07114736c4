/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Variants of frtest-chain that pass through the C library, the kernel's signal frame and the dynamic
   linker. */

#include "chain.h"
#include "load.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/time.h>

#ifndef CHAIN_STATIC
#include <dlfcn.h>
#include <link.h>
#endif

static volatile int handled;
static volatile uint64_t number;
static uint64_t (*enter)(uint64_t x, uint64_t (*leaf)(uint64_t x));

/* --- an object of dlopen() ------------------------------------------------------------------------------ */

#ifndef CHAIN_STATIC
static void *open_plugin(void)
{
	char path[PATH_MAX];
	void *plugin;

	fr_load_program("frtest-chain-plugin.so", path, sizeof(path));
	plugin = dlopen(path, RTLD_LAZY);
	if (!plugin)
		errx(EXIT_FAILURE, "%s", dlerror());
	return plugin;
}

static void find_enter(void)
{
	*(void **)&enter = dlsym(open_plugin(), "chain_plugin_enter");
	if (!enter)
		errx(EXIT_FAILURE, "%s", dlerror());
}

/* Finds the slots that the dynamic linker fills when a function of the PLT of PLUGIN is called first. */
static void **find_slots(void *plugin, size_t *ret_n)
{
	struct link_map *map;
	uintptr_t first = UINTPTR_MAX;

	if (dlinfo(plugin, RTLD_DI_LINKMAP, &map) < 0)
		errx(EXIT_FAILURE, "%s", dlerror());
	*ret_n = 0;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_PLTRELSZ)
			*ret_n = d->d_un.d_val / sizeof(ElfW(Rela));
		if (d->d_tag == DT_PLTGOT)
			first = d->d_un.d_ptr; /* the C library has relocated it */
	}
	if (*ret_n == 0 || first == UINTPTR_MAX)
		errx(EXIT_FAILURE, "the plugin has no PLT: it must be linked with -z lazy");
	return (void **)first + 3; /* the first three words belong to the dynamic linker */
}

CHAIN_FRAME uint64_t chain_lazy(uint64_t x)
{
	void *plugin = open_plugin(), *unbound[32];
	uint64_t (*lazy)(uint64_t);
	size_t n;
	void **slots = find_slots(plugin, &n);

	*(void **)&lazy = dlsym(plugin, "chain_plugin_lazy");
	if (!lazy || n > sizeof(unbound) / sizeof(*unbound))
		errx(EXIT_FAILURE, "the plugin is wrong");
	memcpy(unbound, slots, n * sizeof(*slots));
	chain_from_ns = fr_load_now_ns();
	while (!chain_stop) {
		x = lazy(x);
		memcpy(slots, unbound, n * sizeof(*slots));
	}
	return x;
}
#else
static void find_enter(void)
{
}

uint64_t chain_lazy(uint64_t x)
{
	errx(EXIT_FAILURE, "a static program has no dynamic linker, but got %" PRIu64, x);
}
#endif

/* --- signals -------------------------------------------------------------------------------------------- */

CHAIN_FRAME static void chain_handler(int sig)
{
	chain_from_ns = fr_load_now_ns();
	number = (enter ? enter(number, chain_spin) : chain_spin(number)) + (uint64_t)sig;
	handled = 1;
}

/* Lets the kernel send a signal when this process has run for 20 ms. (A timer of real time could expire
   before the call returns, if the process has to wait for a CPU.) */
static void arm(int flags)
{
	const struct itimerval soon = {.it_value.tv_usec = 20000};
	struct sigaction action = {.sa_handler = chain_handler, .sa_flags = flags};

	if (sigaction(SIGVTALRM, &action, NULL) < 0 || setitimer(ITIMER_VIRTUAL, &soon, NULL) < 0)
		err(EXIT_FAILURE, "no timer");
}

/* A leaf without a frame, which the signal interrupts at any of its instructions. */
CHAIN_FRAME static uint64_t chain_interrupted(uint64_t x)
{
	while (!handled)
		x = x * 6364136223846793005ULL + 1;
	return x;
}

CHAIN_FRAME static int chain_compare(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	number += chain_interrupted(number);
	return (x > y) - (x < y);
}

CHAIN_FRAME static uint64_t chain_sort(uint64_t x)
{
	int numbers[64];

	for (size_t i = 0; i < 64; i++)
		numbers[i] = (int)(x * (i + 7) % 101);
	qsort(numbers, 64, sizeof(*numbers), chain_compare);
	return (uint64_t)numbers[0];
}

CHAIN_FRAME uint64_t chain_call(uint64_t x)
{
	find_enter();
	arm(0);
	return chain_sort(x) + number;
}

CHAIN_FRAME uint64_t chain_altstack(uint64_t x)
{
	const size_t size = 1 << 16;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const stack_t stack = {.ss_sp = memory, .ss_size = size};

	if (memory == MAP_FAILED || sigaltstack(&stack, NULL) < 0)
		err(EXIT_FAILURE, "no stack for signals");
	arm(SA_ONSTACK);
	return chain_interrupted(x) + number;
}
