/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* For tests of sources: a loop, and what a source told it. */

#include "base/clock.h"
#include "source/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

struct heard {
	struct fr_source_env env;
	unsigned n;
	struct fr_cause last;
	void *trigger; /* that the last one was for */
};

static inline void heard_fire(void *ctx, void *trigger, const struct fr_cause *cause)
{
	struct heard *h = ctx;

	assert_true(cause->time_ns != 0 && cause->time_ns <= fr_monotonic_ns());
	h->n++;
	h->last = *cause;
	h->trigger = trigger;
}

static inline void heard_init(struct heard *h)
{
	*h = (struct heard){.env = {.self = getpid(),
				    .application_socket = "",
				    .gid = (gid_t)-1,
				    .fire = heard_fire,
				    .ctx = h}};
	assert_true(sd_event_new(&h->env.event) >= 0);
}

static inline void heard_deinit(struct heard *h)
{
	sd_event_unref(h->env.event);
}

/* For what must come: no machine is as slow. */
#define HEARD_LIMIT_MS 60000

/* Run the loop for MS, or until N causes have been heard (0: all the time). */
static inline void heard_run(struct heard *h, unsigned ms, unsigned n)
{
	uint64_t until = fr_monotonic_ns() + ms * FR_NSEC_PER_MSEC, now;

	while ((now = fr_monotonic_ns()) < until && (!n || h->n < n))
		assert_true(sd_event_run(h->env.event, (until - now) / FR_NSEC_PER_USEC + 1) >= 0);
	/* A process that stood still for so long has yet to hear what came meanwhile; a flood has no end. */
	for (int i = 0; i < 1000 && (!n || h->n < n) && sd_event_run(h->env.event, 0) > 0; i++)
		;
}

/* Until N causes have been heard, which are to come. */
static inline void heard_wait(struct heard *h, unsigned n)
{
	heard_run(h, HEARD_LIMIT_MS, n);
}

/* Run the loop, one event after the other, until CONDITION, which is to come. */
#define HEARD_UNTIL(h, condition)                                                                            \
	do {                                                                                                 \
		const uint64_t limit_ns = fr_monotonic_ns() + HEARD_LIMIT_MS * FR_NSEC_PER_MSEC;             \
                                                                                                             \
		while (!(condition)) {                                                                       \
			assert_true(fr_monotonic_ns() < limit_ns);                                           \
			assert_true(sd_event_run((h)->env.event, 100000) >= 0);                              \
		}                                                                                            \
	} while (0)

/* Until the child PID, which does nothing else, waits in its system call. */
static inline void await_sleep(pid_t pid)
{
	char path[32], state = '\0';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int ms = 0; state != 'S'; ms++) {
		assert_true(ms < HEARD_LIMIT_MS);
		if (ms)
			usleep(1000);
		f = fopen(path, "re");
		assert_non_null(f);
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = '\0';
		fclose(f);
	}
}

/* What a section has that says nothing. */
static inline struct fr_trigger_config heard_config(enum fr_trigger_kind kind)
{
	static char name[] = "test";

	return (struct fr_trigger_config){.name = name,
		.kind = kind,
		.interval_ns = FR_TRIGGER_UNSET,
		.cooldown_ns = FR_TRIGGER_UNSET,
		.min_fill_ns = FR_TRIGGER_UNSET,
		.window_ns = FR_TRIGGER_UNSET,
		.post_ns = FR_TRIGGER_UNSET,
		.enabled = true};
}

/* As a class opens and listens. */
static inline int heard_open(const struct fr_source_class *class, const struct fr_source_env *env,
	const struct fr_trigger_config *config, void *trigger, struct fr_source **ret, struct fr_diag *d)
{
	int r = fr_source_open(class, env, config, trigger, ret, d);

	if (r == 0 && class->listen)
		assert_int_equal(class->listen(*ret, d), 0);
	return r;
}

/* CONFIG is refused with CODE, and the words contain WHAT; nothing is left open. */
static inline void heard_refused(struct heard *h, const struct fr_source_class *class,
	const struct fr_trigger_config *config, int code, const char *what)
{
	struct fr_source *s = NULL;
	struct fr_diag d = {0};
	int r = fr_source_open(class, &h->env, config, NULL, &s, &d);

	if (r != code)
		fail_msg("%d instead of %d: %s", r, code, d.what);
	assert_int_equal(d.code, code);
	if (!strstr(d.what, what) && !strstr(d.hint, what))
		fail_msg("neither \"%s\" nor \"%s\" says \"%s\"", d.what, d.hint, what);
	assert_null(s);
}
