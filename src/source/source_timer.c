// SPDX-License-Identifier: GPL-2.0-or-later
/* Every=: fires at regular times. CLOCK_MONOTONIC stops while the machine is suspended, so the timer does not
   expire many times when the machine resumes. */
#include "source/source.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"

#include <errno.h>
#include <stdio.h>

#define EVERY_MIN_NS (10 * FR_NSEC_PER_MSEC)
#define EVERY_MAX_NS (INT64_MAX / 2) /* so that the sum of two times does not overflow */
#define ACCURACY_USEC 1000

struct timer {
	struct fr_source source;
	sd_event_source *timer;
	uint64_t next_ns;
};

static int timer_check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	if (config->every_ns >= EVERY_MIN_NS && config->every_ns <= EVERY_MAX_NS)
		return 0;
	return fr_fail(d, -EINVAL, "write a time of at least 10ms, for example Every=1h",
		"the trigger %s: Every= is out of its range", config->name);
}

static int on_time(sd_event_source *e, uint64_t usec, void *userdata)
{
	struct timer *t = userdata;
	uint64_t now = fr_monotonic_ns(), every = t->source.config->every_ns;
	struct fr_cause cause = {.time_ns = now, .cpu = -1};
	char text[FR_UNIT_SIZE];
	int r;

	snprintf(cause.reason, sizeof(cause.reason), "every %s", fr_duration_format(every, text));
	t->source.stats.fired++;
	t->source.stats.last_ns = now;
	/* The timer expires at the time of its first expiry plus multiples of Every=. If the process was
	   stopped, all expiries that it missed count as one. */
	t->next_ns += every;
	if (t->next_ns <= now)
		t->next_ns += (now - t->next_ns) / every * every + every;
	r = sd_event_source_set_time(e, t->next_ns / FR_NSEC_PER_USEC);
	if (r >= 0)
		r = sd_event_source_set_enabled(e, SD_EVENT_ONESHOT);
	fr_source_fire(&t->source, &cause);
	return r;
}

static void timer_close(struct fr_source *s)
{
	sd_event_source_disable_unref(((struct timer *)s)->timer);
}

static int timer_open(struct fr_source *s, struct fr_diag *d)
{
	struct timer *t = (struct timer *)s;
	int r = timer_check(s->config, d);

	if (r < 0)
		return r;
	t->next_ns = fr_monotonic_ns() + s->config->every_ns;
	r = sd_event_add_time(s->env->event, &t->timer, CLOCK_MONOTONIC, t->next_ns / FR_NSEC_PER_USEC,
		ACCURACY_USEC, on_time, t);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot set the timer of the trigger %s", s->config->name)
		     : 0;
}

const struct fr_source_class fr_source_timer = {.name = "timer",
	.size = sizeof(struct timer),
	.open = timer_open,
	.close = timer_close,
	.check = timer_check};
