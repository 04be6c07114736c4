// SPDX-License-Identifier: GPL-2.0-or-later
#include "reporting/rates.h"

#include <stdlib.h>

void fr_rates_tick(struct fr_rates *r, const struct fr_capture *capture)
{
	const size_t n_events = fr_capture_n_events(capture), n_cpus = fr_capture_n_cpus(capture);
	struct fr_counter_snapshot *s = &r->newer;
	struct fr_counter counter;

	if (s->time_ns) { /* the memory of the older snapshot is used for the new snapshot */
		const struct fr_counter_snapshot older = r->older;

		r->older = *s;
		*s = older;
	}
	if (!s->samples)
		s->samples = calloc(n_events * n_cpus, sizeof(*s->samples));
	if (!s->samples)
		return;
	for (size_t e = 0; e < n_events; e++)
		for (size_t cpu = 0; cpu < n_cpus; cpu++) {
			fr_capture_counter(capture, e, cpu, &counter);
			s->samples[e * n_cpus + cpu] = counter.samples;
		}
	s->cpu_ns = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->time_ns = fr_monotonic_ns();
}

void fr_rates_reset(struct fr_rates *r)
{
	free(r->older.samples);
	free(r->newer.samples);
	*r = (struct fr_rates){0};
}

const struct fr_counter_snapshot *fr_rates_base(const struct fr_rates *r)
{
	return r->older.time_ns ? &r->older : &r->newer;
}
