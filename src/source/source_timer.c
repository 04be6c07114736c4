// SPDX-License-Identifier: GPL-2.0-or-later
/* Every=: a dump now and then, whatever happens. CLOCK_MONOTONIC stands still while the machine is suspended,
   so nothing has piled up after it. */
#include "source/source.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"

#include <errno.h>
#include <stdio.h>

#define EVERY_MIN_NS (10 * FR_NSEC_PER_MSEC)
/* Of CLOCK_MONOTONIC in microseconds, with room for sums. */
#define EVERY_MAX_NS (INT64_MAX / 2)
#define ACCURACY_USEC 1000

struct timer {
	struct fr_source source;
	sd_event_source *timer;
	uint64_t next_ns;
	struct fr_source_stats stats;
};

static int check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	if (config->every_ns >= EVERY_MIN_NS && config->every_ns <= EVERY_MAX_NS)
		return 0;
	return fr_fail(d, -EINVAL, "give a time of at least 10ms, like Every=1h",
		"the trigger %s: Every= is out of its range", config->name);
}

static int on_time(sd_event_source *e, uint64_t usec, void *userdata)
{
	struct timer *t = userdata;
	const struct fr_source_env *env = t->source.env;
	uint64_t now = fr_monotonic_ns(), every = t->source.config->every_ns;
	struct fr_cause cause = {.time_ns = now, .cpu = -1};
	char text[FR_UNIT_SIZE];
	int r;

	snprintf(cause.reason, sizeof(cause.reason), "every %s", fr_duration_format(every, text));
	t->stats.fired++;
	t->stats.last_ns = now;
	/* On its grid, and what was missed (a stopped process) is one. */
	t->next_ns += every;
	if (t->next_ns <= now)
		t->next_ns += (now - t->next_ns) / every * every + every;
	r = sd_event_source_set_time(e, t->next_ns / FR_NSEC_PER_USEC);
	if (r >= 0)
		r = sd_event_source_set_enabled(e, SD_EVENT_ONESHOT);
	env->fire(env->ctx, t->source.trigger, &cause);
	return r;
}

static void timer_close(struct fr_source *s)
{
	struct timer *t = (struct timer *)s;

	sd_event_source_disable_unref(t->timer);
	free(t);
}

static int timer_open(const struct fr_source_env *env, const struct fr_trigger_config *config, void *trigger,
	struct fr_source **ret, struct fr_diag *d)
{
	struct timer *t;
	int r = check(config, d);

	if (r < 0)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->source = (struct fr_source){&fr_source_timer, env, config, trigger};
	t->next_ns = fr_monotonic_ns() + config->every_ns;
	r = sd_event_add_time(env->event, &t->timer, CLOCK_MONOTONIC, t->next_ns / FR_NSEC_PER_USEC,
		ACCURACY_USEC, on_time, t);
	if (r < 0) {
		timer_close(&t->source);
		return fr_fail_errno(d, r, NULL, "cannot set the timer of the trigger %s", config->name);
	}
	*ret = &t->source;
	return 0;
}

static void timer_stats(struct fr_source *s, struct fr_source_stats *ret)
{
	*ret = ((struct timer *)s)->stats;
}

const struct fr_source_class fr_source_timer = {
	.name = "timer", .open = timer_open, .close = timer_close, .stats = timer_stats, .check = check};
