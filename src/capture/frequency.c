// SPDX-License-Identifier: GPL-2.0-or-later
/* Other frequencies for events that are open. */
#include "capture/capture_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <sys/ioctl.h>

#define NSEC_PER_SEC 1000000000ULL

uint64_t fr_capture_frequency(const struct fr_capture *c)
{
	for (size_t e = 0; e < c->n_events; e++)
		if (c->events[e].attr.freq)
			return c->events[e].attr.sample_freq;
	return 0;
}

static int set(struct fr_capture *c, unsigned divisor, size_t *ret_failed)
{
	for (size_t i = 0; i < c->n_open; i++) {
		const struct perf_event_attr *a = &c->events[c->open[i].event].attr;
		uint64_t value = FR_MAX(a->sample_freq / divisor, (uint64_t)1);

		if (!a->freq)
			continue;
		/* Their frequency is a period to the kernel once they are open, as their timers have one. */
		if (fr_event_is_clock(a))
			value = NSEC_PER_SEC / value;
		if (ioctl(c->open[i].fd, PERF_EVENT_IOC_PERIOD, &value) < 0) {
			*ret_failed = i;
			return -errno;
		}
	}
	return 0;
}

int fr_capture_set_divisor(struct fr_capture *c, unsigned divisor, struct fr_diag *d)
{
	const unsigned was = c->divisor;
	size_t failed = 0, ignored;
	int r = set(c, divisor, &failed);

	if (r == 0) {
		c->divisor = divisor;
		return 0;
	}
	(void)set(c, was, &ignored);
	return fr_fail_errno(d, r, "look at kernel.perf_event_max_sample_rate",
		"cannot change the frequency of %s", c->events[c->open[failed].event].name);
}
