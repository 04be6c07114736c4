// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/triggers.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/pidns.h"
#include "config/compare.h"
#include "flightrecd/dumps.h"
#include "flightrecd/switches.h"
#include "flightrecd/view.h"
#include "reporting/cause.h"
#include "reporting/trigger_json.h"

#include <argz.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int on_dump(
	void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns, uint64_t *ret_id)
{
	struct fr_daemon *m = ctx;
	const struct fr_dump_request q = {
		.cause = cause,
		.uid = m->tester,
		.asked = fr_daemon_asked_window(m, window_ns, post_ns),
		.automatic = true,
	};

	return fr_daemon_dump(m, &q, ret_id);
}

static int on_join(
	void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns, uint64_t *ret_id)
{
	struct fr_daemon *m = ctx;
	const struct fr_dump_asked asked = fr_daemon_asked_window(m, window_ns, post_ns);
	cJSON *json = fr_cause_json(cause, (uid_t)-1, NULL);
	int r = json ? fr_dumper_coalesce(m->dumper, json, &asked, cause->time_ns, ret_id) : -ENOMEM;

	if (r < 0)
		cJSON_Delete(json);
	else
		m->counters.dumps_joined++;
	return r;
}

static void on_window(void *ctx, uint64_t window_ns, uint64_t post_ns, uint64_t time_ns,
	uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
	const struct fr_dump_asked asked = fr_daemon_asked_window(ctx, window_ns, post_ns);

	*ret_from_ns = asked.last_ns && asked.last_ns < time_ns ? time_ns - asked.last_ns : 0;
	*ret_to_ns = time_ns + asked.post_ns;
}

/* Returns the age of the oldest sample in the ring, or 0 if there is no sample. */
static uint64_t on_ring_span(void *ctx)
{
	const uint64_t now_ns = fr_monotonic_ns();
	struct fr_daemon *m = ctx;
	struct fr_history_stats stats;

	fr_rings_stats(&m->rings, &stats);
	return stats.first_ns && stats.first_ns < now_ns ? now_ns - stats.first_ns : 0;
}

static void on_decided(void *ctx, const struct fr_decision *d)
{
	struct fr_daemon *m = ctx;
	cJSON *json;

	if (d->first && d->verdict != FR_VERDICT_FIRE && d->verdict != FR_VERDICT_COALESCE)
		fr_decision_log_suppressed(d);
	if (fr_subscribers_is_empty(&m->watchers))
		return;
	json = fr_decision_json(d);
	fr_subscribers_send(&m->watchers, "decision", json);
	cJSON_Delete(json);
}

static void on_armed(void *ctx, const char *name, const struct fr_diag *d)
{
	const struct fr_log_field field = {"FLIGHTREC_TRIGGER", name};

	if (!d)
		fr_log(LOG_INFO, "trigger %s is armed now", name);
	else
		fr_log_struct(LOG_WARNING, FR_MSG_NOT_ARMED, &field, 1, "trigger %s is not armed: %s%s%s",
			name, d->what, d->hint[0] ? "\n  " : "", d->hint);
}

static void on_settled(void *ctx)
{
	fr_daemon_notify_status(ctx);
}

/* An action that fails is logged: an anomaly has no caller who could get the error. */
static void on_act(void *ctx, const struct fr_trigger_config *config, const struct fr_cause *cause, char *ret,
	size_t size)
{
	struct fr_daemon *m = ctx;
	char by[FR_SWITCH_BY_SIZE];
	size_t len = 0;

	snprintf(by, sizeof(by), "trigger %s", config->name);
	for (char *line = config->actions; line;
		line = argz_next(config->actions, config->actions_len, line)) {
		struct fr_trigger_action a;
		struct fr_switch_request q = {.by = by,
			.why = cause->reason,
			.pid = cause->pid,
			.cpu = cause->cpu,
			.only_extends = true};
		struct fr_diag d = {0};

		if (fr_trigger_action_parse(line, &a) < 0 || a.is_dump || a.fleet)
			continue;
		q.event = a.event;
		q.action = a.action;
		q.rate = a.rate;
		q.for_ns = a.for_ns;
		if (fr_daemon_switch_event(m, &q, NULL, &d) < 0) {
			fr_diag_prefix(&d, "trigger %s: Action=%s", config->name, line);
			fr_log_diag(LOG_WARNING, &d, d.code);
		} else if (len < size) {
			len += (size_t)snprintf(ret + len, size - len, "%s%s", len ? ", " : "", line);
		}
	}
}

/* The thread that arms a trigger calls this function. */
static int on_find_switch(void *ctx, const char *event, uint32_t *ret_slot, struct fr_diag *d)
{
	struct fr_daemon *m = ctx;
	int r;

	fr_lock(&m->parts_lock);
	r = fr_capture_find_kernel_switch(m->recording.capture, event, ret_slot, d);
	fr_unlock(&m->parts_lock);
	return r;
}

static void on_switched(void *ctx, const char *name, const struct fr_switch_record *record)
{
	fr_daemon_saw_switch(ctx, record, name);
}

/* Returns the settings of [Triggers]. In a personal recorder, or if only a command or tasks are recorded, a
   built-in probe is armed only if it has a section: anomalies of the rest of the machine must make no
   dumps. */
static struct fr_triggers_config of_all(const struct fr_config *c)
{
	struct fr_triggers_config all = c->triggers;

	all.probes_by_section = c->is_personal || fr_config_follows_tasks(c);
	return all;
}

/* Logs the message of the kernel's verifier about a program that it rejects. */
static void on_log(void *ctx, const char *text)
{
	fr_log(LOG_DEBUG, "%s", text);
}

static size_t n_disabled(const struct fr_config *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_trigger; i++)
		n += !c->trigger[i].enabled;
	return n;
}

int fr_daemon_triggers_open(struct fr_daemon *m, struct fr_diag *d)
{
	const struct fr_triggers_ops ops = {
		.dump = on_dump,
		.coalesce = on_join,
		.act = on_act,
		.window = on_window,
		.ring_span_ns = on_ring_span,
		.decided = on_decided,
		.armed = on_armed,
		.settled = on_settled,
		.find_switch = on_find_switch,
		.switched = on_switched,
		.ctx = m,
		.arming = {m->arming[FR_ARMING_OWN], m->arming[FR_ARMING_FILES]},
	};
	const struct fr_source_env env = {.event = m->event,
		.self = getpid(),
		.pidns = fr_own_pidns(),
		.gid = m->gid,
		.log = on_log,
		.switches_fd = fr_switches_fd(m->switches)};
	const struct fr_triggers_config all = of_all(m->config);
	const size_t disabled = m->config->is_personal ? n_disabled(m->config) : 0;
	int r = fr_triggers_new(&env, &ops, &m->triggers);

	if (r >= 0)
		r = fr_triggers_configure(m->triggers, &all, m->config->trigger, m->config->n_trigger);
	if (r >= 0 && disabled)
		fr_log(LOG_INFO,
			"%zu triggers of the machine's configuration belong to the service and are not armed "
			"here; "
			"--trigger=NAME arms one, --config=FILE those of FILE",
			disabled);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot set up the triggers") : 0;
}

void fr_daemon_triggers_close(struct fr_daemon *m)
{
	m->triggers = fr_triggers_free(m->triggers);
}

int fr_daemon_triggers_reload(struct fr_daemon *m, struct fr_config *fresh)
{
	const struct fr_triggers_config all = of_all(fresh);
	int r = m->triggers ? fr_triggers_configure(m->triggers, &all, fresh->trigger, fresh->n_trigger) : 0;

	if (r >= 0)
		fr_config_swap_triggers(m->config, fresh);
	return r;
}

/* The context of a dump that a signal asked for. */
struct signal_dump {
	struct fr_daemon *m;
	uid_t uid;
};

static int dump_for_signal(void *ctx, const struct fr_cause *cause, uint64_t *ret_id)
{
	const struct signal_dump *s = ctx;
	const struct fr_dump_request q = {
		.cause = cause, .uid = s->uid, .asked = fr_daemon_asked(s->m, "signal")};

	return fr_daemon_dump(s->m, &q, ret_id);
}

void fr_daemon_dump_by_signal(struct fr_daemon *m, const struct signalfd_siginfo *si)
{
	struct fr_cause c = {
		.trigger = "signal", .reason = "SIGUSR1", .time_ns = fr_monotonic_ns(), .cpu = -1};
	struct signal_dump s = {m, (uid_t)-1};

	if (si->ssi_code <= 0) { /* SI_USER and similar codes: a process sent the signal, not the kernel */
		c.pid = (pid_t)si->ssi_pid;
		s.uid = si->ssi_uid;
	}
	(void)fr_triggers_request(m->triggers, c.trigger, &c, dump_for_signal, &s);
}
