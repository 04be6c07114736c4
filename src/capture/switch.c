// SPDX-License-Identifier: GPL-2.0-or-later
/* Switches the events of an open capture, and changes their rates (docs/design/16). */
#include "capture/capture_internal.h"
#include "capture/switches.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/nearest.h"
#include "base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

static size_t n_samplers(const struct fr_capture *c)
{
	return c->n_events - 1; /* without the side-band event */
}

/* Both events of offcpu have the switch of the first one. */
static const char *switch_name(const struct fr_capture *c, size_t i)
{
	return c->events[c->events[i].off_cpu == FR_OFF_CPU_WAKER ? i - 1 : i].name;
}

int fr_switch_assign_slots(struct fr_capture *c, struct fr_switches *switches, struct fr_diag *d)
{
	c->switches = switches;
	for (size_t i = 0; i < n_samplers(c); i++) {
		struct fr_event *e = &c->events[i];

		if (switches && !e->aux)
			e->slot = fr_switches_add(switches, switch_name(c, i), e->off);
		if (e->off && switches && e->slot == FR_SWITCH_NONE)
			return fr_fail(d, -EINVAL,
				e->aux ? "leave enabled=no out"
				       : "give it a shorter name, with the term name=",
				"event %s cannot be switched on later", e->name);
	}
	return 0;
}

bool fr_switch_is_off(const struct fr_capture *c, const struct fr_event *e)
{
	return e->slot != FR_SWITCH_NONE ? fr_switches_is_off(c->switches, e->slot) : e->off;
}

bool fr_switch_is_by_program(const struct fr_event *e)
{
	return e->unwind || e->bpf || e->off_cpu;
}

int fr_capture_apply_switch(struct fr_capture *c, uint32_t slot, struct fr_diag *d)
{
	for (size_t i = 0; i < c->n_open; i++) {
		const struct fr_event *e = &c->events[c->open[i].event];
		const bool is_off = fr_switch_is_off(c, e);

		if (e->slot != slot || slot == FR_SWITCH_NONE || fr_switch_is_by_program(e))
			continue;
		if (ioctl(c->open[i].fd, is_off ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0) < 0)
			return fr_fail_errno(d, -errno, NULL, "cannot %s %s on CPU %d",
				is_off ? "disable" : "enable", e->name, c->cpus[c->open[i].cpu_index]);
	}
	return 0;
}

uint32_t fr_capture_slot(const struct fr_capture *c, size_t event_index)
{
	return c->events[event_index].slot;
}

bool fr_capture_is_configured_off(const struct fr_capture *c, uint32_t slot)
{
	for (size_t i = 0; i < n_samplers(c); i++)
		if (c->events[i].slot == slot)
			return c->events[i].off;
	return false;
}

bool fr_capture_has_slot(const struct fr_capture *c, uint32_t slot)
{
	for (size_t i = 0; i < n_samplers(c); i++)
		if (c->events[i].slot == slot)
			return slot != FR_SWITCH_NONE;
	return false;
}

uint64_t fr_capture_rate(const struct fr_capture *c, uint32_t slot, bool *ret_is_frequency)
{
	for (size_t i = 0; i < n_samplers(c); i++) {
		const struct fr_event *e = &c->events[i];

		if (e->slot != slot || e->bpf || e->off_cpu)
			continue;
		*ret_is_frequency = e->attr.freq;
		return e->attr.sample_freq;
	}
	return 0;
}

uint64_t fr_switch_rate_value(const struct fr_capture *c, const struct fr_event *e)
{
	uint64_t value = e->rate ? e->rate : e->attr.sample_freq;

	if (!e->attr.freq)
		return value;
	value = FR_MAX(value / c->divisor, (uint64_t)1);
	/* For a clock, the kernel takes the period of its timer here instead of a frequency. */
	return fr_event_is_clock(&e->attr) ? FR_NSEC_PER_SEC / value : value;
}

static int set_rates(struct fr_capture *c, uint32_t slot, uint64_t rate, size_t *ret_failed)
{
	for (size_t i = 0; i < n_samplers(c); i++)
		if (c->events[i].slot == slot)
			c->events[i].rate = rate;
	for (size_t i = 0; i < c->n_open; i++) {
		const struct fr_event *e = &c->events[c->open[i].event];
		uint64_t value = fr_switch_rate_value(c, e);

		if (e->slot != slot || e->off_cpu)
			continue;
		if (ioctl(c->open[i].fd, PERF_EVENT_IOC_PERIOD, &value) < 0) {
			*ret_failed = c->open[i].event;
			return -errno;
		}
	}
	return 0;
}

static int check_rate(const struct fr_capture *c, uint32_t slot, uint64_t rate, struct fr_diag *d)
{
	for (size_t i = 0; i < n_samplers(c); i++) {
		const struct fr_event *e = &c->events[i];

		if (e->slot != slot)
			continue;
		if (e->off_cpu || e->bpf)
			return fr_fail(d, -EOPNOTSUPP, "switch it on or off instead",
				"event %s records every occurrence: it has no rate", e->name);
		if (rate && !e->attr.freq && fr_event_is_clock(&e->attr) && rate < FR_CLOCK_PERIOD_MIN_NS)
			return fr_fail(d, -EINVAL, "give at least 100000, which are nanoseconds",
				"the period %llu of %s is too short", (unsigned long long)rate, e->name);
	}
	return 0;
}

int fr_capture_set_rate(struct fr_capture *c, uint32_t slot, uint64_t rate, struct fr_diag *d)
{
	uint64_t before = 0;
	size_t failed = 0;
	int r = slot == FR_SWITCH_NONE ? 0 : check_rate(c, slot, rate, d);

	fr_thread_assert_not(FR_THREAD_RECORDER);
	if (r < 0 || slot == FR_SWITCH_NONE)
		return r;
	for (size_t i = 0; i < n_samplers(c); i++)
		if (c->events[i].slot == slot)
			before = c->events[i].rate;
	r = set_rates(c, slot, rate, &failed);
	if (r == 0)
		return 0;
	(void)set_rates(c, slot, before, &failed);
	return fr_fail_errno(d, r, "check the sysctl kernel.perf_event_max_sample_rate",
		"cannot change the rate of %s to %llu", c->events[failed].name, (unsigned long long)rate);
}

static const char *name_at(const void *ctx, size_t i)
{
	return ((const struct fr_capture *)ctx)->events[i].name;
}

int fr_capture_fail_no_event(const struct fr_capture *c, const char *name, struct fr_diag *d)
{
	const char *near = fr_nearest_name(name, name_at, c, n_samplers(c));
	char hint[256] = "`flightrecctl status` shows the events";

	if (near)
		snprintf(hint, sizeof(hint), "did you mean %s?", near);
	return fr_fail(d, -ENOENT, hint, "no event %s is recorded", name);
}

int fr_capture_find_kernel_switch(
	const struct fr_capture *c, const char *name, uint32_t *ret_slot, struct fr_diag *d)
{
	const struct fr_event *found = NULL;

	for (size_t i = 0; i < n_samplers(c); i++) {
		const struct fr_event *e = &c->events[i];

		if (strcmp(switch_name(c, i), name) != 0)
			continue;
		found = e;
		if (e->slot == FR_SWITCH_NONE)
			return fr_fail(d, -EOPNOTSUPP, "leave it out of the program",
				"the event %s cannot be switched", name);
		if (!fr_switch_is_by_program(e))
			return fr_fail(d, -EOPNOTSUPP,
				e->tracepoint ? "give the event the term capture=bpf, so that a BPF program "
						"records it"
					      : "give the event the term call-graph=unwind, so that a BPF "
						"program makes its samples",
				"the kernel makes the samples of %s, and a BPF program cannot switch that",
				name);
	}
	if (!found)
		return fr_capture_fail_no_event(c, name, d);
	if (!c->switches || fr_switches_fd(c->switches) < 0)
		return fr_fail(d, -EOPNOTSUPP, "run as root, or give CAP_BPF and CAP_PERFMON",
			"the map of the switches could not be made");
	*ret_slot = found->slot;
	return 0;
}
