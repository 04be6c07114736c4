// SPDX-License-Identifier: GPL-2.0-or-later
/* Puts a configuration in force: makes the list of triggers, and gives each trigger its settings. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "source/probes.h"
#include "trigger/triggers_private.h"

#include <errno.h>
#include <string.h>

/* These triggers always exist, and come first in the list. */
static const struct {
	const char *name;
	enum fr_trigger_kind kind;
} fixed[] = {
	{"signal", FR_TRIGGER_SIGNAL},
	{"control", FR_TRIGGER_CONTROL},
	{"application", FR_TRIGGER_APPLICATION},
	{"fleet", FR_TRIGGER_FLEET},
};

static bool is_requested_by_person(enum fr_trigger_kind kind)
{
	return kind == FR_TRIGGER_SIGNAL || kind == FR_TRIGGER_CONTROL;
}

static void apply_defaults(struct fr_trigger_config *c, const struct fr_triggers_config *all)
{
	const bool has_cooldown = !is_requested_by_person(c->kind) && c->kind != FR_TRIGGER_TIMER &&
				  c->kind != FR_TRIGGER_FLEET;

	if (c->cooldown_ns == FR_TRIGGER_UNSET)
		c->cooldown_ns = has_cooldown ? all->cooldown_ns : 0;
	if (c->min_fill_ns == FR_TRIGGER_UNSET)
		c->min_fill_ns = all->min_fill_ns;
	/* A dump of the fleet has the window that the fleet asks for. */
	if (c->window_ns == FR_TRIGGER_UNSET && !is_requested_by_person(c->kind) &&
		c->kind != FR_TRIGGER_FLEET)
		c->window_ns = all->window_ns;
}

/* Copies G's configuration to G's policy. If a cool-down has begun, its length becomes the new Cooldown=. */
static void update_policy(struct fr_trigger *g)
{
	struct fr_policy_trigger *p = &g->policy;
	const struct fr_trigger_config *c = &g->config;

	if (p->quiet_until_ns)
		p->quiet_until_ns = p->quiet_until_ns - p->cooldown_ns + c->cooldown_ns;
	p->enabled = c->enabled;
	p->by_person = is_requested_by_person(c->kind);
	p->only_switches = !fr_trigger_config_dumps(c);
	p->cooldown_ns = c->cooldown_ns;
	p->min_fill_ns = c->min_fill_ns;
}

static struct fr_trigger *trigger_new(const struct fr_triggers *t, const struct fr_trigger_config *config,
	const struct fr_triggers_config *all)
{
	struct fr_trigger *g = calloc(1, sizeof(*g));

	if (!g || fr_trigger_config_copy(&g->config, config) < 0) {
		free(g);
		return NULL;
	}
	g->class = t->ops.classes ? t->ops.classes[config->kind] : fr_source_class_for_kind(config->kind);
	apply_defaults(&g->config, all);
	update_policy(g);
	fr_trigger_describe(g);
	return g;
}

static const struct fr_trigger_config *find_config(
	const struct fr_trigger_config *configs, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(configs[i].name, name))
			return &configs[i];
	return NULL;
}

static bool is_fixed(const char *name)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(fixed); i++)
		if (!strcmp(fixed[i].name, name))
			return true;
	return false;
}

/* Returns the configuration of a trigger that has no section. */
static struct fr_trigger_config default_config(const char *name, enum fr_trigger_kind kind, bool enabled)
{
	return (struct fr_trigger_config){
		.name = (char *)name,
		.kind = kind,
		.subject = kind == FR_TRIGGER_PROBE ? (char *)name : NULL,
		.interval_ns = FR_TRIGGER_UNSET,
		.enabled = enabled,
		.cooldown_ns = FR_TRIGGER_UNSET,
		.min_fill_ns = FR_TRIGGER_UNSET,
		.window_ns = FR_TRIGGER_UNSET,
		.post_ns = FR_TRIGGER_UNSET,
	};
}

/* The new list of triggers. No trigger in it is armed. */
struct plan {
	const struct fr_triggers *t;
	const struct fr_triggers_config *all;
	struct fr_trigger **list;
	size_t n;
	bool failed;
};

static void add_trigger(struct plan *plan, const struct fr_trigger_config *c)
{
	struct fr_trigger *g = plan->failed ? NULL : trigger_new(plan->t, c, plan->all);

	if (g)
		plan->list[plan->n++] = g;
	else
		plan->failed = true;
}

static int make_plan(struct plan *plan, const struct fr_trigger_config *configs, size_t n)
{
	size_t n_probes;
	const struct fr_probe *probes = fr_probes(&n_probes);

	plan->list = calloc(n + n_probes + FR_ARRAY_SIZE(fixed), sizeof(struct fr_trigger *));
	plan->failed = !plan->list;
	for (size_t i = 0; i < FR_ARRAY_SIZE(fixed); i++) {
		const struct fr_trigger_config *c = find_config(configs, n, fixed[i].name);
		const bool enabled = fixed[i].kind != FR_TRIGGER_APPLICATION || plan->all->socket[0];
		const struct fr_trigger_config d = default_config(fixed[i].name, fixed[i].kind, enabled);

		add_trigger(plan, c ? c : &d);
	}
	for (size_t i = 0; i < n; i++)
		if (!is_fixed(configs[i].name))
			add_trigger(plan, &configs[i]);
	for (size_t i = 0; i < n_probes; i++) {
		const struct fr_trigger_config d = default_config(
			probes[i].name, FR_TRIGGER_PROBE, probes[i].armed && !plan->all->probes_by_section);

		if (!find_config(configs, n, probes[i].name))
			add_trigger(plan, &d);
	}
	if (!plan->failed)
		return 0;
	for (size_t i = 0; i < plan->n; i++)
		fr_trigger_free(plan->list[i]);
	free(plan->list);
	return -ENOMEM;
}

/* `old` and `added` are triggers with the same name. Moves the configuration of `added`, which is new, to
   `old`, and frees `added`. If the new configuration needs another source, disarms `old`. */
static void adopt_config(struct fr_trigger *old, struct fr_trigger *added)
{
	struct fr_trigger_config *c = &old->config, *new = &added->config, previous = *c;

	if (!fr_trigger_config_same_source(c, new)) {
		const struct fr_source_stats *s = &old->closed_stats;

		fr_trigger_disarm(old);
		/* Keep only the counters. The last value and the threshold belong to the closed source, so
		   they are dropped. */
		old->closed_stats = (struct fr_source_stats){
			.fired = s->fired, .cooled = s->cooled, .lost = s->lost, .bad = s->bad};
	}
	if (old->source) { /* the source uses the other strings of C, which are equal to the
			      strings of `new` */
		c->origin = new->origin;
		new->origin = previous.origin;
		c->enabled = new->enabled;
		c->cooldown_ns = new->cooldown_ns;
		c->min_fill_ns = new->min_fill_ns;
		c->window_ns = new->window_ns;
		c->post_ns = new->post_ns;
		c->actions = new->actions;
		c->actions_len = new->actions_len;
		new->actions = previous.actions;
		new->actions_len = previous.actions_len;
	} else {
		*c = *new;
		*new = previous;
		old->class = added->class;
	}
	update_policy(old);
	fr_trigger_describe(old);
	fr_trigger_free(added);
}

/* Sets the path of the socket, which all sources of Application= share. If the path changes, first closes all
   these sources. */
static void change_socket(struct fr_triggers *t, char *path)
{
	if (strcmp(t->socket, path) != 0)
		for (size_t i = 0; i < t->n; i++)
			if (t->list[i]->config.kind == FR_TRIGGER_APPLICATION)
				fr_trigger_disarm(t->list[i]);
	free(t->socket);
	t->socket = path;
	t->env.application_socket = path;
}

/* Makes PLAN's list the list of T. If a trigger with the same name is in both lists, the object of the old
   list is kept. */
static void replace_list(struct fr_triggers *t, struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		struct fr_trigger *old = fr_trigger_find(t, plan->list[i]->config.name);

		if (!old || old->is_kept)
			continue;
		adopt_config(old, plan->list[i]);
		old->is_kept = true;
		plan->list[i] = old;
	}
	for (size_t i = 0; i < t->n; i++)
		if (!t->list[i]->is_kept)
			fr_trigger_free(t->list[i]);
	free(t->list);
	t->list = plan->list;
	t->n = plan->n;
	for (size_t i = 0; i < t->n; i++)
		t->list[i]->is_kept = false;
}

int fr_triggers_configure(struct fr_triggers *t, const struct fr_triggers_config *all,
	const struct fr_trigger_config *configs, size_t n)
{
	struct fr_triggers_config defaults = *all;
	struct plan plan = {.t = t, .all = &defaults};
	char *socket;

	fr_thread_assert(FR_THREAD_MAIN);
	defaults.socket = all->socket ? all->socket : (char[]){""};
	socket = strdup(defaults.socket);
	if (!socket || make_plan(&plan, configs, n) < 0) {
		free(socket);
		return -ENOMEM;
	}
	change_socket(t, socket);
	replace_list(t, &plan);
	fr_policy_change(&t->policy, all->rate_burst, all->rate_interval_ns, fr_monotonic_ns());
	/* Disarm the disabled triggers first, because a disabled trigger can hold a resource that another
	   trigger needs. */
	for (size_t i = 0; i < t->n; i++)
		if (!t->list[i]->policy.enabled) {
			fr_trigger_disarm(t->list[i]);
			t->list[i]->diag = (struct fr_diag){0};
		}
	for (size_t i = 0; i < t->n; i++)
		if (t->list[i]->policy.enabled)
			(void)fr_trigger_arm(
				t, t->list[i], fr_trigger_is_stale(t->list[i]) ? FR_ARM_INSTEAD : 0);
	return 0;
}
