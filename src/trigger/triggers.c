// SPDX-License-Identifier: GPL-2.0-or-later
/* Which triggers there are, and which of them are armed. */
#include "trigger/triggers.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"
#include "trigger/probes.h"
#include "trigger/triggers_private.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

/* Without it, a storm of a million anomalies in a minute would take 17 % of a CPU; with it 1 %. */
#define BPF_QUIET_NS (10 * FR_NSEC_PER_MSEC)

static const struct fr_source_class *const real_classes[FR_TRIGGER_KINDS] = {
	[FR_TRIGGER_PROBE] = &fr_source_bpf,
	[FR_TRIGGER_PROGRAM] = &fr_source_bpf,
	[FR_TRIGGER_FUNCTION] = &fr_source_function,
	[FR_TRIGGER_USDT] = &fr_source_function,
	[FR_TRIGGER_PRESSURE] = &fr_source_pressure,
	[FR_TRIGGER_EVENT] = &fr_source_event,
	[FR_TRIGGER_TIMER] = &fr_source_timer,
	[FR_TRIGGER_APPLICATION] = &fr_source_application,
};

const struct fr_source_class *fr_source_class_of(enum fr_trigger_kind kind)
{
	return (unsigned)kind < FR_TRIGGER_KINDS ? real_classes[kind] : NULL;
}

/* Always there, first in the list. */
static const struct {
	const char *name;
	enum fr_trigger_kind kind;
} fixed[] = {
	{"signal", FR_TRIGGER_SIGNAL},
	{"control", FR_TRIGGER_CONTROL},
	{"application", FR_TRIGGER_APPLICATION},
};

/* To what a source says, add what those before it counted, and their last value where it has seen none. */
static void add_before(const struct fr_source_stats *before, struct fr_source_stats *now)
{
	if (!now->last_ns) {
		now->last = before->last;
		now->last_ns = before->last_ns;
	}
	now->fired += before->fired;
	now->cooled += before->cooled;
	now->lost += before->lost;
	now->bad += before->bad;
}

void fr_trigger_close(struct fr_trigger *g, struct fr_source *source)
{
	struct fr_source_stats stats = {0};

	if (!source)
		return;
	g->class->stats(source, &stats);
	g->class->close(source);
	add_before(&g->before, &stats);
	stats.gone = NULL; /* nobody listens */
	g->before = stats;
}

void fr_trigger_disarm(struct fr_trigger *g)
{
	if (g->job)
		fr_arming_cancel(TAKE_PTR(g->job));
	fr_trigger_close(g, TAKE_PTR(g->older));
	fr_trigger_close(g, TAKE_PTR(g->source));
}

static struct fr_trigger *trigger_free(struct fr_trigger *g)
{
	if (!g)
		return NULL;
	fr_trigger_disarm(g);
	fr_trigger_config_deinit(&g->config);
	free(g);
	return NULL;
}

static void free_list(struct fr_trigger **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		trigger_free(list[i]);
	free(list);
}

struct fr_triggers *fr_triggers_free(struct fr_triggers *t)
{
	if (!t)
		return NULL;
	for (int i = 0; i < FR_ARMING_LANES; i++)
		sd_event_source_disable_unref(t->armed_io[i]);
	free_list(t->list, t->n);
	free(t->socket);
	free(t);
	return NULL;
}

struct fr_trigger *fr_trigger_find(const struct fr_triggers *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->list[i]->config.name, name))
			return t->list[i];
	return NULL;
}

static const char *name_of(const void *triggers, size_t i)
{
	const struct fr_triggers *t = triggers;

	return t->list[i]->config.name;
}

struct fr_trigger *fr_trigger_wanted(const struct fr_triggers *t, const char *name, struct fr_diag *d)
{
	struct fr_trigger *g = fr_trigger_find(t, name);
	const char *near = g ? NULL : fr_nearest_name(name, name_of, t, t->n);
	char hint[128] = "`flightrecctl triggers` lists them";

	if (near)
		snprintf(hint, sizeof(hint), "did you mean %s? `flightrecctl triggers` lists all", near);
	if (!g)
		fr_fail(d, -ENOENT, hint, "there is no trigger %s", name);
	return g;
}

static void tell_armed(struct fr_triggers *t, struct fr_trigger *g, int r, struct fr_diag *d)
{
	if (r >= 0) {
		g->diag = (struct fr_diag){0};
		if (g->failed_before)
			t->ops.armed(t->ops.ctx, g->config.name, NULL);
		return;
	}
	if (!d->code)
		fr_fail_errno(d, r, NULL, "cannot arm it");
	if (g->config.origin)
		fr_diag_prefix(d, "%s", g->config.origin);
	fr_utf8_sanitize(d->what); /* it may quote a file of somebody else: symbols, markers */
	fr_utf8_sanitize(d->hint);
	if (!(g->how & FR_ARM_AGAIN) || strcmp(g->diag.what, d->what) != 0)
		t->ops.armed(t->ops.ctx, g->config.name, d);
	g->diag = *d;
}

/* SOURCE (NULL: R is why not) was opened for G. */
static int opened(
	struct fr_triggers *t, struct fr_trigger *g, struct fr_source *source, int r, struct fr_diag *d)
{
	const bool beside = g->how & FR_ARM_BESIDE;
	struct fr_source *was = TAKE_PTR(g->source);

	if (source) {
		source->env = &t->env;
		source->config = &g->config;
		source->trigger = g;
	}
	if (source && g->class->listen)
		r = g->class->listen(source, d);
	if (source && r < 0) {
		g->class->close(source);
		source = NULL;
	}
	g->source = source ? source : beside ? was : NULL;
	if (!beside || source)
		fr_trigger_close(g, TAKE_PTR(g->older));
	if (!beside)
		fr_trigger_close(g, was);
	else if (source)
		g->older = was;
	tell_armed(t, g, r, d);
	if (g->how & FR_ARM_AGAIN)
		fr_trigger_followed(t, g, r);
	return r;
}

static struct fr_arming_job *take_opened(struct fr_triggers *t)
{
	struct fr_arming_job *job = NULL;

	for (int i = 0; !job && i < FR_ARMING_LANES; i++)
		if (t->ops.arming[i])
			job = fr_arming_take(t->ops.arming[i]);
	return job;
}

static int on_opened(sd_event_source *io, int fd, uint32_t revents, void *ctx)
{
	struct fr_triggers *t = ctx;
	struct fr_arming_job *job;

	while ((job = take_opened(t))) {
		struct fr_trigger *g = job->trigger;

		g->job = NULL;
		(void)opened(t, g, TAKE_PTR(job->source), job->code, &job->diag);
		fr_arming_job_free(job);
	}
	if (t->ops.settled)
		t->ops.settled(t->ops.ctx);
	return 0;
}

int fr_trigger_arm(struct fr_triggers *t, struct fr_trigger *g, unsigned how)
{
	struct fr_arming *arming =
		t->ops.arming[g->config.kind == FR_TRIGGER_PROBE ? FR_ARMING_OWN : FR_ARMING_FILES];
	struct fr_source *source = NULL;
	struct fr_diag d = {0};
	int r;

	if (g->job)
		return 1;
	if (g->class && !g->class->listen && (how & FR_ARM_INSTEAD))
		fr_trigger_disarm(g);
	g->failed_before = g->diag.code;
	if (!(how & FR_ARM_AGAIN))
		g->diag = (struct fr_diag){0};
	if (!g->class || (g->source && !(how & (FR_ARM_BESIDE | FR_ARM_INSTEAD))))
		return 0;
	g->how = how;
	fr_trigger_tried(g);
	if (g->class->listen && arming) {
		g->job = fr_arming_submit(arming, g->class, &t->env, &g->config, g);
		if (g->job)
			return 1;
		r = -ENOMEM;
	} else {
		r = g->class->open(&t->env, &g->config, g, &source, &d);
	}
	return opened(t, g, r < 0 ? NULL : source, r, &d);
}

int fr_triggers_new(
	const struct fr_source_env *env, const struct fr_triggers_ops *ops, struct fr_triggers **ret)
{
	struct fr_triggers *t = calloc(1, sizeof(*t));
	int r = 0;

	if (t)
		t->socket = strdup("");
	if (!t || !t->socket) {
		free(t);
		return -ENOMEM;
	}
	t->env = *env;
	t->env.fire = fr_trigger_fire;
	t->env.ctx = t;
	t->env.application_socket = t->socket;
	t->env.bpf_quiet_ns = BPF_QUIET_NS;
	t->ops = *ops;
	if (!t->ops.classes)
		t->ops.classes = real_classes;
	t->next_id = 1;
	fr_policy_init(&t->policy, 0, 0, fr_monotonic_ns());
	*ret = t;
	for (int i = 0; r >= 0 && i < FR_ARMING_LANES; i++)
		if (t->ops.arming[i])
			r = sd_event_add_io(t->env.event, &t->armed_io[i],
				fr_arming_done_fd(t->ops.arming[i]), EPOLLIN, on_opened, t);
	if (r < 0)
		*ret = fr_triggers_free(t);
	return r < 0 ? r : 0;
}

static bool is_persons(enum fr_trigger_kind kind)
{
	return kind == FR_TRIGGER_SIGNAL || kind == FR_TRIGGER_CONTROL;
}

/* What a person or a clock asked for needs no pause after it. */
static bool needs_cooldown(enum fr_trigger_kind kind)
{
	return !is_persons(kind) && kind != FR_TRIGGER_TIMER;
}

static void resolve(struct fr_trigger_config *c, const struct fr_triggers_config *all)
{
	if (c->cooldown_ns == FR_TRIGGER_UNSET)
		c->cooldown_ns = needs_cooldown(c->kind) ? all->cooldown_ns : 0;
	if (c->min_fill_ns == FR_TRIGGER_UNSET)
		c->min_fill_ns = all->min_fill_ns;
	/* A person's has that of [Dump]. */
	if (c->window_ns == FR_TRIGGER_UNSET && !is_persons(c->kind))
		c->window_ns = all->window_ns;
}

/* A cool-down that has begun is as long as the new configuration says. */
static void set_policy(struct fr_trigger *g)
{
	struct fr_policy_trigger *p = &g->policy;
	const struct fr_trigger_config *c = &g->config;

	if (p->quiet_until_ns)
		p->quiet_until_ns = p->quiet_until_ns - p->cooldown_ns + c->cooldown_ns;
	p->enabled = c->enabled;
	p->free = is_persons(c->kind);
	p->cooldown_ns = c->cooldown_ns;
	p->min_fill_ns = c->min_fill_ns;
}

static void describe(struct fr_trigger *g)
{
	char every[FR_UNIT_SIZE];

	g->subject[0] = '\0';
	if (g->config.kind == FR_TRIGGER_TIMER)
		snprintf(g->subject, sizeof(g->subject), "every %s",
			fr_duration_format(g->config.every_ns, every));
}

static struct fr_trigger *trigger_new(const struct fr_triggers *t, const struct fr_trigger_config *config,
	const struct fr_triggers_config *all)
{
	struct fr_trigger *g = calloc(1, sizeof(*g));

	if (!g || fr_trigger_config_copy(&g->config, config) < 0) {
		free(g);
		return NULL;
	}
	g->class = t->ops.classes[g->config.kind];
	resolve(&g->config, all);
	set_policy(g);
	describe(g);
	return g;
}

static const struct fr_trigger_config *named(
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

/* Of one without a section. */
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

/* What there will be, not armed. */
struct wanted {
	const struct fr_triggers *t;
	const struct fr_triggers_config *all;
	struct fr_trigger **list;
	size_t n;
	bool failed;
};

static void want(struct wanted *w, const struct fr_trigger_config *c)
{
	struct fr_trigger *g = w->failed ? NULL : trigger_new(w->t, c, w->all);

	if (g)
		w->list[w->n++] = g;
	else
		w->failed = true;
}

static int want_all(struct wanted *w, const struct fr_trigger_config *configs, size_t n)
{
	size_t n_probes;
	const struct fr_probe *probes = fr_probes(&n_probes);

	w->list = calloc(n + n_probes + FR_ARRAY_SIZE(fixed), sizeof(struct fr_trigger *));
	w->failed = !w->list;
	for (size_t i = 0; i < FR_ARRAY_SIZE(fixed); i++) {
		const struct fr_trigger_config *c = named(configs, n, fixed[i].name);
		const bool there = fixed[i].kind != FR_TRIGGER_APPLICATION || w->all->socket[0];
		const struct fr_trigger_config d = default_config(fixed[i].name, fixed[i].kind, there);

		want(w, c ? c : &d);
	}
	for (size_t i = 0; i < n; i++)
		if (!is_fixed(configs[i].name))
			want(w, &configs[i]);
	for (size_t i = 0; i < n_probes; i++) {
		const struct fr_trigger_config d = default_config(
			probes[i].name, FR_TRIGGER_PROBE, probes[i].armed && !w->all->probes_by_section);

		if (!named(configs, n, probes[i].name))
			want(w, &d);
	}
	if (!w->failed)
		return 0;
	free_list(w->list, w->n);
	return -ENOMEM;
}

/* The counters are the trigger's; what was measured, and against what, is that of a source that is no more.
 */
static void forget_values(struct fr_source_stats *s)
{
	*s = (struct fr_source_stats){.fired = s->fired, .cooled = s->cooled, .lost = s->lost, .bad = s->bad};
}

/* OLD goes on with the configuration of FRESH, which is freed. */
static void adopt(struct fr_trigger *old, struct fr_trigger *fresh)
{
	struct fr_trigger_config *was = &old->config, *is = &fresh->config, swap;

	if (!fr_trigger_config_same_source(was, is)) {
		fr_trigger_disarm(old);
		forget_values(&old->before);
	}
	old->stale = fr_trigger_is_stale(old);
	if (old->source) { /* it has pointers to what WAS says, which is the same */
		char *origin = TAKE_PTR(was->origin);

		was->origin = TAKE_PTR(is->origin);
		is->origin = origin;
		was->enabled = is->enabled;
		was->cooldown_ns = is->cooldown_ns;
		was->min_fill_ns = is->min_fill_ns;
		was->window_ns = is->window_ns;
		was->post_ns = is->post_ns;
	} else {
		swap = *was;
		*was = *is;
		*is = swap;
		old->class = fresh->class;
	}
	set_policy(old);
	describe(old);
	trigger_free(fresh);
}

/* Sources of applications share the socket: none of them may be open when it changes. */
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

/* W's triggers are the list now; those of the old one that go on are the same objects. */
static void replace(struct fr_triggers *t, struct wanted *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct fr_trigger *old = fr_trigger_find(t, w->list[i]->config.name);

		if (!old || old->kept)
			continue;
		adopt(old, w->list[i]);
		old->kept = true;
		w->list[i] = old;
	}
	for (size_t i = 0; i < t->n; i++)
		if (!t->list[i]->kept)
			trigger_free(t->list[i]);
	free(t->list);
	t->list = w->list;
	t->n = w->n;
	for (size_t i = 0; i < t->n; i++)
		t->list[i]->kept = false;
}

int fr_triggers_configure(struct fr_triggers *t, const struct fr_triggers_config *all,
	const struct fr_trigger_config *configs, size_t n)
{
	struct fr_triggers_config ours = *all;
	struct wanted w = {.t = t, .all = &ours};
	char *socket;

	ours.socket = all->socket ? all->socket : (char[]){""};
	socket = strdup(ours.socket);
	if (!socket || want_all(&w, configs, n) < 0) {
		free(socket);
		return -ENOMEM;
	}
	change_socket(t, socket);
	replace(t, &w);
	fr_policy_change(&t->policy, all->rate_burst, all->rate_interval_ns, fr_monotonic_ns());
	for (size_t i = 0; i < t->n; i++)
		if (!t->list[i]->policy.enabled)
			fr_trigger_disarm(t->list[i]);
	for (size_t i = 0; i < t->n; i++)
		if (t->list[i]->policy.enabled)
			(void)fr_trigger_arm(t, t->list[i], t->list[i]->stale ? FR_ARM_INSTEAD : 0);
		else
			t->list[i]->diag = (struct fr_diag){0};
	return 0;
}

int fr_triggers_enable(struct fr_triggers *t, const char *name, bool enable, struct fr_diag *d)
{
	struct fr_trigger *g = fr_trigger_wanted(t, name, d);
	int r;

	if (!g)
		return -ENOENT;
	g->policy.enabled = enable;
	if (!enable) {
		fr_trigger_disarm(g);
		g->diag = (struct fr_diag){0};
		return 0;
	}
	r = fr_trigger_arm(t, g, 0);
	if (r < 0 && d)
		*d = g->diag;
	return r;
}

void fr_triggers_cpus_came(struct fr_triggers *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct fr_trigger *g = t->list[i];

		if (!g->source || g->config.kind != FR_TRIGGER_EVENT || g->config.pid)
			continue;
		(void)fr_trigger_arm(t, g, FR_ARM_INSTEAD); /* ops.armed() hears why not */
	}
}

size_t fr_triggers_count(const struct fr_triggers *t)
{
	return t->n;
}

/* Of a probe that is not armed, what would be in force. */
static void probe_stats(const struct fr_trigger_config *c, struct fr_source_stats *s)
{
	const struct fr_probe *probe =
		c->kind == FR_TRIGGER_PROBE && c->subject ? fr_probe_find(c->subject) : NULL;
	const char *threshold = c->threshold ? c->threshold : probe ? probe->threshold : NULL;

	if (!probe)
		return;
	s->unit = probe->unit;
	if (threshold)
		(void)fr_threshold_parse(threshold, probe->unit, &s->threshold);
}

static void sum_stats(const struct fr_trigger *g, struct fr_source_stats *ret)
{
	struct fr_source_stats now = {0}, older = {0};

	*ret = g->before;
	if (!g->class || !g->source) {
		probe_stats(&g->config, ret);
		return;
	}
	g->class->stats(g->source, &now);
	if (g->older) {
		g->class->stats(g->older, &older);
		add_before(&older, &now);
	}
	add_before(&g->before, &now);
	*ret = now;
}

static enum fr_trigger_state state_of(const struct fr_trigger *g)
{
	if (!g->policy.enabled)
		return FR_TRIGGER_DISABLED;
	if (g->diag.code)
		return FR_TRIGGER_FAILED;
	/* What the clock arms it for instead is there, and what it is armed for is not. */
	if (g->job && (!g->source || g->how == (FR_ARM_AGAIN | FR_ARM_INSTEAD)))
		return FR_TRIGGER_ARMING;
	return FR_TRIGGER_ARMED;
}

size_t fr_triggers_arming(const struct fr_triggers *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += state_of(t->list[i]) == FR_TRIGGER_ARMING;
	return n;
}

void fr_triggers_info(struct fr_triggers *t, size_t i, struct fr_trigger_info *ret)
{
	const struct fr_trigger *g = t->list[i];

	*ret = (struct fr_trigger_info){
		.name = g->config.name,
		.source = g->class ? g->class->name : g->config.name,
		.subject = g->subject[0] ? g->subject : g->config.subject,
		.state = state_of(g),
		.diag = &g->diag,
		.last_fired_ns = g->last_fired_ns,
		.last_file = g->last_file,
		.quiet_until_ns = g->policy.quiet_until_ns,
		.config = &g->config,
	};
	if (ret->state == FR_TRIGGER_ARMING) {
		ret->arming_ns = fr_monotonic_ns() - g->tried_ns;
		(void)fr_arming_waits(g->job, ret->behind);
	}
	memcpy(ret->counts, g->policy.counts, sizeof(ret->counts));
	sum_stats(g, &ret->stats);
}

struct fr_policy fr_triggers_bucket(const struct fr_triggers *t)
{
	return t->policy;
}
