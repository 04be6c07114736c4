// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/aux_clock.h"
#include "base/clock.h"

#include <string.h>

#define SHIFT 31 /* time_mult has 32 bits, and a tick of the counter is shorter than 2 ns */
#define MEASURE_MIN_NS FR_NSEC_PER_SEC
#define TRIES 8

static uint64_t read_counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return 0;
#endif
}

void fr_aux_clock_read(struct fr_aux_clock *ret)
{
	uint64_t shortest = UINT64_MAX;

	/* If the thread is interrupted between the readings, the reading takes longer. */
	for (int i = 0; i < TRIES; i++) {
		const uint64_t before = read_counter(), time_ns = fr_monotonic_ns(),
			       took = read_counter() - before;

		if (took >= shortest)
			continue;
		shortest = took;
		*ret = (struct fr_aux_clock){before + took / 2, time_ns};
	}
}

/* As perf does it. The product of the whole counter would not fit into 64 bits. */
static uint64_t to_ns(uint64_t counter, uint64_t mult, unsigned shift)
{
	const uint64_t whole = counter >> shift, rest = counter & ((1ULL << shift) - 1);

	return whole * mult + (rest * mult >> shift);
}

void fr_aux_clock_convert(const struct perf_event_mmap_page *page, const struct fr_aux_clock *first,
	const struct fr_aux_clock *now, struct perf_event_mmap_page *ret)
{
	const uint64_t ticks = now->counter - first->counter, ns = now->time_ns - first->time_ns;
	double mult = (double)page->time_mult;

	memset(ret, 0, sizeof(*ret));
	ret->time_shift = page->time_shift;
	if (ns >= MEASURE_MIN_NS && ticks > 0) {
		ret->time_shift = SHIFT;
		mult = (double)ns / (double)ticks * (double)(1ULL << SHIFT);
	}
	if (!page->cap_user_time || !now->counter || mult < 1 || mult > UINT32_MAX)
		return;
	ret->time_mult = (uint32_t)mult;
	ret->time_zero = now->time_ns - to_ns(now->counter, ret->time_mult, ret->time_shift);
	ret->cap_user_time_zero = 1;
}
