/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The fixture of the tests of triggers. It has sources (which see anomalies) whose anomalies the test makes,
   and functions for struct fr_triggers_ops that count their calls. The open of a source with the subject
   "broken" fails. The open of a source with the subject "hung" waits until the test opens the gate, like the
   open of a source whose file system hangs. */

#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "trigger/triggers_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_int opened, closed;
static int broken; /* the error of sources with the subject "broken" */
static bool stale;
static struct fr_source *source_of[26]; /* the index is the first letter of the trigger's name */
static struct fr_source_stats hand_stats;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool gate;	 /* the gate is open */
static unsigned at_gate; /* number of sources that have reached the gate */
static char order[64];	 /* the first letters of the triggers, in the order in which they were opened */

static int hand_open(struct fr_source *s, struct fr_diag *d)
{
	const char *subject = s->config->subject ? s->config->subject : "";

	pthread_mutex_lock(&lock);
	if (!strcmp(subject, "hung")) {
		at_gate++;
		pthread_cond_broadcast(&changed);
		while (!gate)
			pthread_cond_wait(&changed, &lock);
	}
	strncat(order, s->config->name, order[sizeof(order) - 2] ? 0 : 1);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	if (!strcmp(subject, "broken"))
		return fr_fail(d, broken, "mend it", "it is broken%s", broken == -ESRCH ? ": nobody" : "");
	source_of[s->config->name[0] - 'a'] = s;
	s->stats.fired = 1; /* with this value, hand_close() checks that it gets the same source */
	opened++;
	return 0;
}

static void hand_close(struct fr_source *s)
{
	/* The strings that the source borrows must still exist. */
	assert_non_null(s->config->name);
	closed += s->stats.fired == 1;
}

static void hand_get_stats(struct fr_source *s, struct fr_source_stats *ret)
{
	*ret = hand_stats;
}

static bool hand_is_stale(const struct fr_source *s)
{
	return stale;
}

struct scene {
	struct fr_triggers *t;
	sd_event *event;
	struct fr_arming *arming[FR_ARMING_LANES];
	int dump_returns, coalesce_returns;
	uint64_t span_ns, next_id;
	unsigned dumps, acts, coalesced, decided, first, failed, healed, settled;
};

static int on_dump(
	void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns, uint64_t *ret_id)
{
	struct scene *s = ctx;

	if (s->dump_returns < 0)
		return s->dump_returns;
	s->dumps++;
	*ret_id = s->dump_returns ? s->next_id : ++s->next_id;
	return s->dump_returns;
}

static int on_coalesce(
	void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns, uint64_t *ret_id)
{
	struct scene *s = ctx;

	if (s->coalesce_returns < 0)
		return s->coalesce_returns;
	s->coalesced++;
	*ret_id = 0;
	return 0;
}

static void on_act(void *ctx, const struct fr_trigger_config *config, const struct fr_cause *cause, char *ret,
	size_t size)
{
	struct scene *s = ctx;

	s->acts++;
	snprintf(ret, size, "%s", config->actions);
}

static void on_window(void *ctx, uint64_t window_ns, uint64_t post_ns, uint64_t time_ns,
	uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
	*ret_from_ns = time_ns - window_ns;
	*ret_to_ns = time_ns + post_ns;
}

static uint64_t on_span(void *ctx)
{
	return ((struct scene *)ctx)->span_ns;
}

static void on_decided(void *ctx, const struct fr_decision *d)
{
	struct scene *s = ctx;

	s->decided++;
	s->first += d->first;
}

static void on_armed(void *ctx, const char *name, const struct fr_diag *d)
{
	struct scene *s = ctx;

	*(d ? &s->failed : &s->healed) += 1;
}

static void on_settled(void *ctx)
{
	((struct scene *)ctx)->settled++;
}

/* Makes a scene in *RET. CLASS is the source class of all kinds of triggers except signal, control, fleet and
   timer. If THREADS is true, threads arm the triggers. Returns 0, or a negative number on failure. */
static int scene_new(const struct fr_source_class *class, bool threads, void **ret)
{
	static const struct fr_source_class *classes[FR_TRIGGER_KINDS];
	struct scene *s = calloc(1, sizeof(*s));
	struct fr_triggers_ops ops = {.dump = on_dump,
		.coalesce = on_coalesce,
		.act = on_act,
		.window = on_window,
		.ring_span_ns = on_span,
		.decided = on_decided,
		.armed = on_armed,
		.settled = on_settled,
		.ctx = s,
		.classes = classes};
	struct fr_source_env env = {.self = getpid(), .gid = (gid_t)-1};

	for (int kind = FR_TRIGGER_PROBE; kind < FR_TRIGGER_FLEET; kind++)
		classes[kind] = kind == FR_TRIGGER_TIMER ? &fr_source_timer : class;
	opened = closed = 0;
	gate = stale = false;
	at_gate = 0;
	memset(order, 0, sizeof(order));
	broken = -EOPNOTSUPP;
	hand_stats = (struct fr_source_stats){.unit = FR_CAUSE_NS, .threshold = 5000};
	if (!s || sd_event_new(&s->event) < 0)
		return -1;
	for (int i = 0; threads && i < FR_ARMING_LANES; i++)
		if (fr_arming_start(&s->arming[i], NULL) < 0)
			return -1;
	env.event = s->event;
	memcpy(ops.arming, s->arming, sizeof(ops.arming));
	s->coalesce_returns = -ENOENT;
	*ret = s;
	return fr_triggers_new(&env, &ops, &s->t);
}

static void set_gate(bool open)
{
	pthread_mutex_lock(&lock);
	gate = open;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static int scene_free(void **state)
{
	struct scene *s = *state;

	set_gate(true);
	fr_triggers_free(s->t);
	for (int i = 0; i < FR_ARMING_LANES; i++)
		fr_arming_stop(s->arming[i]);
	sd_event_unref(s->event);
	free(s);
	return opened == closed ? 0 : -1;
}

static struct fr_triggers_config defaults(void)
{
	return (struct fr_triggers_config){
		.cooldown_ns = 3600 * FR_NSEC_PER_SEC, .probes_by_section = true, .socket = (char *)""};
}

static struct fr_trigger_config section(const char *name, const char *subject, enum fr_trigger_kind kind)
{
	return (struct fr_trigger_config){
		.name = (char *)name,
		.origin = (char *)"flightrecd.conf:1",
		.kind = kind,
		.subject = (char *)subject,
		.interval_ns = FR_TRIGGER_UNSET,
		.enabled = true,
		.cooldown_ns = FR_TRIGGER_UNSET,
		.min_fill_ns = FR_TRIGGER_UNSET,
		.window_ns = FR_TRIGGER_UNSET,
		.post_ns = FR_TRIGGER_UNSET,
	};
}

static void configure(struct scene *s, const struct fr_trigger_config *c, size_t n)
{
	const struct fr_triggers_config all = defaults();

	assert_int_equal(fr_triggers_configure(s->t, &all, c, n), 0);
}

static struct fr_trigger_info info(struct scene *s, const char *name)
{
	struct fr_trigger_info ret;

	for (size_t i = 0; i < fr_triggers_count(s->t); i++) {
		fr_triggers_get_info(s->t, i, &ret);
		if (!strcmp(ret.name, name))
			return ret;
	}
	fail_msg("there is no trigger %s", name);
	return ret;
}
