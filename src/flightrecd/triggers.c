// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/triggers.h"
#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* Of the machine's first pid namespace (PROC_PID_INIT_INO of the kernel). */
#define FIRST_PIDNS 0xeffffffcu

const char *fr_unit_of_cause_name(enum fr_unit_of_cause unit)
{
	static const char *const names[] = {[FR_CAUSE_NONE] = "",
		[FR_CAUSE_NS] = "ns",
		[FR_CAUSE_COUNT] = "count",
		[FR_CAUSE_BYTES] = "bytes",
		[FR_CAUSE_PERCENT] = "percent"};

	return (size_t)unit < FR_ARRAY_SIZE(names) ? names[unit] : "";
}

/* cJSON has doubles only, which are too short. */
static void add_u64(cJSON *o, const char *name, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	cJSON_AddRawToObject(o, name, text);
}

static void add_text(cJSON *o, const char *name, const char *text)
{
	if (text && *text)
		cJSON_AddStringToObject(o, name, text);
}

static void add_whom(cJSON *o, const struct fr_cause *c, uid_t uid)
{
	if (c->pid > 0)
		cJSON_AddNumberToObject(o, "pid", c->pid);
	if (c->tid > 0)
		cJSON_AddNumberToObject(o, "tid", c->tid);
	if (uid != (uid_t)-1)
		cJSON_AddNumberToObject(o, "uid", uid);
	add_text(o, "comm", c->comm);
	add_text(o, "cgroup", c->cgroup);
	if (c->cpu >= 0)
		cJSON_AddNumberToObject(o, "cpu", c->cpu);
}

cJSON *fr_cause_json(const struct fr_cause *c, uid_t uid)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	cJSON *o = cJSON_CreateObject();
	char text[FR_STAMP_SIZE];

	if (!o)
		return NULL;
	cJSON_AddStringToObject(o, "trigger", c->trigger);
	add_text(o, "source", c->source);
	cJSON_AddStringToObject(o, "reason", c->reason);
	add_text(o, "detail", c->detail);
	if (c->value || c->threshold)
		add_u64(o, "value", c->value);
	if (c->threshold)
		add_u64(o, "threshold", c->threshold);
	add_text(o, "unit", fr_unit_of_cause_name(c->unit));
	add_whom(o, c, uid);
	fr_rfc3339_format(fr_clock_to_realtime(&pair, c->time_ns), text);
	cJSON_AddStringToObject(o, "time", text);
	add_u64(o, "monotonic_ns", c->time_ns);
	return o;
}

unsigned fr_cause_fields(const cJSON *cause, struct fr_log_field fields[static FR_CAUSE_FIELDS],
	struct fr_cause_field_texts *texts)
{
	static const struct fr_log_field names[FR_CAUSE_FIELDS] = {
		{"FLIGHTREC_TRIGGER", "trigger"},
		{"FLIGHTREC_REASON", "reason"},
		{"FLIGHTREC_DETAIL", "detail"},
		{"FLIGHTREC_VALUE", "value"},
		{"FLIGHTREC_THRESHOLD", "threshold"},
		{"FLIGHTREC_UNIT", "unit"},
		{"FLIGHTREC_PID", "pid"},
		{"FLIGHTREC_TID", "tid"},
		{"FLIGHTREC_COMM", "comm"},
		{"FLIGHTREC_CGROUP", "cgroup"},
	};
	unsigned n = 0;

	for (size_t i = 0; i < FR_CAUSE_FIELDS; i++) {
		const cJSON *o = cJSON_GetObjectItemCaseSensitive(cause, names[i].value);
		const char *value;

		if (!o)
			continue;
		value = o->valuestring; /* of text, and of raw numbers */
		if (cJSON_IsNumber(o)) {
			snprintf(texts->number[n], sizeof(texts->number[n]), "%.0f", o->valuedouble);
			value = texts->number[n];
		}
		fields[n++] = (struct fr_log_field){names[i].key, value};
	}
	return n;
}

/* What a trigger's section says, or else [Dump]. */
static struct fr_dump_asked asked_of(const struct fr_daemon *m, uint64_t window_ns, uint64_t post_ns)
{
	return (struct fr_dump_asked){
		.last_ns = window_ns == FR_TRIGGER_UNSET ? m->config->window_ns : window_ns,
		.post_ns = post_ns == FR_TRIGGER_UNSET ? m->config->post_trigger_ns : post_ns};
}

static int on_dump(
	void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns, uint64_t *ret_id)
{
	struct fr_daemon *m = ctx;
	const struct fr_dump_request q = {
		.cause = cause,
		.uid = m->tester,
		.asked = asked_of(m, window_ns, post_ns),
		.automatic = true,
	};

	return fr_daemon_dump(m, &q, ret_id);
}

static int on_join(
	void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns, uint64_t *ret_id)
{
	struct fr_daemon *m = ctx;
	const struct fr_dump_asked asked = asked_of(m, window_ns, post_ns);
	cJSON *json = fr_cause_json(cause, (uid_t)-1);
	int r = json ? fr_dumper_join(m->dumper, json, &asked, cause->time_ns, ret_id) : -ENOMEM;

	if (r < 0)
		cJSON_Delete(json);
	else
		m->dumps_joined++;
	return r;
}

/* So far back a dump of now would reach, though nothing need have happened for a while. */
static uint64_t on_ring_span(void *ctx)
{
	const uint64_t now_ns = fr_monotonic_ns();
	struct fr_daemon *m = ctx;
	struct fr_history_stats stats;

	fr_history_stats(m->history, &stats);
	return stats.first_ns && stats.first_ns < now_ns ? now_ns - stats.first_ns : 0;
}

/* "run-queue latency, 12.3ms of 5ms, pid 7 (mysqld)" */
static void describe(const struct fr_cause *c, char *ret, size_t size)
{
	char value[FR_CAUSE_VALUE_SIZE], threshold[FR_CAUSE_VALUE_SIZE];
	size_t n;

	snprintf(ret, size, "%s%s%s", c->reason[0] ? c->reason : c->trigger, c->detail[0] ? ", " : "",
		c->detail);
	n = strlen(ret);
	if (c->threshold) {
		fr_cause_format_value(c->unit, c->value, value);
		fr_cause_format_value(c->unit, c->threshold, threshold);
		snprintf(ret + n, size - n, ", %s of %s", value, threshold);
	}
	n = strlen(ret);
	if (c->pid > 0 && c->comm[0])
		snprintf(ret + n, size - n, ", pid %d (%s)", (int)c->pid, c->comm);
}

static void log_suppressed(const struct fr_decision *d)
{
	char text[2 * FR_CAUSE_TEXT_SIZE + 2 * FR_CAUSE_VALUE_SIZE + 64];
	struct fr_log_field fields[FR_CAUSE_FIELDS + 1];
	cJSON *cause = fr_cause_json(&d->cause, (uid_t)-1);
	struct fr_cause_field_texts texts;
	unsigned n = fr_cause_fields(cause, fields, &texts);

	fields[n++] = (struct fr_log_field){"FLIGHTREC_VERDICT", fr_verdict_name(d->verdict)};
	describe(&d->cause, text, sizeof(text));
	fr_log_struct(LOG_NOTICE, FR_MSG_SUPPRESSED, fields, n, "%s: %s: suppressed, %s", d->cause.trigger,
		text, d->why);
	cJSON_Delete(cause);
}

static void on_decided(void *ctx, const struct fr_decision *d)
{
	if (d->first && d->verdict != FR_VERDICT_FIRE && d->verdict != FR_VERDICT_COALESCE)
		log_suppressed(d);
	fr_watchers_tell(ctx, d);
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

/* Somebody's recorder of a command makes no dumps for what the rest of the machine does. */
static struct fr_triggers_config of_all(const struct fr_config *c)
{
	struct fr_triggers_config all = c->triggers;

	all.probes_by_section = c->own || fr_config_follows_tasks(c);
	return all;
}

static uint32_t own_pidns(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == FIRST_PIDNS)
		return 0;
	return (uint32_t)st.st_ino;
}

/* What the verifier said of a program that it rejects. */
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
		.ring_span_ns = on_ring_span,
		.decided = on_decided,
		.armed = on_armed,
		.settled = on_settled,
		.ctx = m,
		.arming = {m->arming[FR_ARMING_OWN], m->arming[FR_ARMING_FILES]},
	};
	const struct fr_source_env env = {
		.event = m->event, .self = getpid(), .pidns = own_pidns(), .gid = m->gid, .log = on_log};
	const struct fr_triggers_config all = of_all(m->config);
	const size_t disabled = m->config->own ? n_disabled(m->config) : 0;
	int r = fr_triggers_new(&env, &ops, &m->triggers);

	if (r >= 0)
		r = fr_triggers_configure(m->triggers, &all, m->config->trigger, m->config->n_trigger);
	if (r >= 0 && disabled)
		fr_log(LOG_INFO,
			"%zu triggers of the machine's configuration are the service's and not armed here; "
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
	const struct fr_triggers_config all = of_all(fresh), was = m->config->triggers;
	struct fr_trigger_config *trigger = m->config->trigger;
	const size_t n = m->config->n_trigger;
	int r = m->triggers ? fr_triggers_configure(m->triggers, &all, fresh->trigger, fresh->n_trigger) : 0;

	if (r < 0)
		return r;
	m->config->triggers = fresh->triggers;
	m->config->trigger = fresh->trigger;
	m->config->n_trigger = fresh->n_trigger;
	fresh->triggers = was;
	fresh->trigger = trigger;
	fresh->n_trigger = n;
	return 0;
}

/* What a signal's dump is made with. */
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

void fr_daemon_signalled(struct fr_daemon *m, const struct signalfd_siginfo *si)
{
	struct fr_cause c = {
		.trigger = "signal", .reason = "SIGUSR1", .time_ns = fr_monotonic_ns(), .cpu = -1};
	struct signal_dump s = {m, (uid_t)-1};

	if (si->ssi_code <= 0) { /* SI_USER and the like: a process, not the kernel */
		c.pid = (pid_t)si->ssi_pid;
		s.uid = si->ssi_uid;
	}
	(void)fr_triggers_request(m->triggers, c.trigger, &c, dump_for_signal, &s);
}

void fr_status_add_triggers(struct fr_daemon *m, cJSON *status)
{
	cJSON *o = cJSON_AddObjectToObject(status, "triggers"), *suppressed;
	const size_t n = m->triggers ? fr_triggers_count(m->triggers) : 0;
	uint64_t counts[FR_VERDICTS] = {0}, states[FR_TRIGGER_STATES] = {0};

	for (size_t i = 0; i < n; i++) {
		struct fr_trigger_info info;

		fr_triggers_get_info(m->triggers, i, &info);
		states[info.state]++;
		for (int v = 0; v < FR_VERDICTS; v++)
			counts[v] += info.counts[v];
	}
	cJSON_AddNumberToObject(o, "armed", (double)states[FR_TRIGGER_ARMED]);
	cJSON_AddNumberToObject(o, "arming", (double)states[FR_TRIGGER_ARMING]);
	cJSON_AddNumberToObject(o, "disabled", (double)states[FR_TRIGGER_DISABLED]);
	cJSON_AddNumberToObject(o, "failed", (double)states[FR_TRIGGER_FAILED]);
	cJSON_AddNumberToObject(o, "fired", (double)counts[FR_VERDICT_FIRE]);
	cJSON_AddNumberToObject(o, "joined", (double)counts[FR_VERDICT_COALESCE]);
	suppressed = cJSON_AddObjectToObject(o, "suppressed");
	for (int v = FR_VERDICT_DISABLED; v < FR_VERDICTS; v++)
		cJSON_AddNumberToObject(suppressed, fr_verdict_name(v), (double)counts[v]);
}
