// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/daemon.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "control/interface.h"
#include "flightrecd/activation.h"
#include "flightrecd/metrics.h"
#include "flightrecd/start.h"
#include "flightrecd/triggers.h"

#include <errno.h>
#include <string.h>

/* Clocks of two programs are read one after the other. */
#define AHEAD_MAX_NS FR_NSEC_PER_SEC
/* Less than a reply may have, with the commas between. */
#define LIST_BYTES (3u << 20)
#define POST_MAX_NS (3600 * FR_NSEC_PER_SEC)

static void fail(struct fr_call *call, int code, const char *hint, const char *what)
{
	struct fr_diag diag = {0};

	fr_fail(&diag, code, hint, "%s", what);
	fr_call_fail(call, &diag, code);
}

/* Wall time of a call's parameter, as this recorder's clock; 0: before its machine was up. */
static uint64_t to_monotonic(uint64_t usec)
{
	const struct fr_clock_pair now = fr_clock_pair_now();
	const int64_t ahead_ns = (int64_t)(usec * FR_NSEC_PER_USEC) - (int64_t)now.realtime_ns;

	return ahead_ns < 0 && (uint64_t)-ahead_ns >= now.monotonic_ns
		       ? 0
		       : now.monotonic_ns + (uint64_t)ahead_ns;
}

/* The parameters of Dump. */
struct dump_call {
	uint64_t last_ns, post_ns, from_usec, to_usec;
	const char *reason;
	bool waits, no_compression, has_last, has_post, has_from, has_to;
};

/* NULL, or the name of the parameter that is no good. */
static const char *read_dump(const cJSON *parameters, struct dump_call *ret)
{
	struct {
		const char *name;
		uint64_t *value;
		bool *given;
		uint64_t most;
	} numbers[] = {
		{"last_ns", &ret->last_ns, &ret->has_last, UINT64_MAX},
		{"post_ns", &ret->post_ns, &ret->has_post, POST_MAX_NS},
		{"from_usec", &ret->from_usec, &ret->has_from, UINT64_MAX},
		{"to_usec", &ret->to_usec, &ret->has_to, UINT64_MAX},
	};

	*ret = (struct dump_call){.waits = true};
	for (size_t i = 0; i < FR_ARRAY_SIZE(numbers); i++) {
		int r = fr_param_u64(parameters, numbers[i].name, numbers[i].value);

		if (r < 0 || *numbers[i].value > numbers[i].most)
			return numbers[i].name;
		*numbers[i].given = r > 0;
	}
	if (fr_param_string(parameters, "reason", &ret->reason) < 0)
		return "reason";
	if (fr_param_bool(parameters, "no_compression", &ret->no_compression) < 0)
		return "no_compression";
	return fr_param_bool(parameters, "wait", &ret->waits) < 0 ? "wait" : NULL;
}

/* A window between two moments. */
static int absolute_window(struct fr_daemon *m, const struct dump_call *c, uint64_t now_ns,
	struct fr_dump_asked *ret, struct fr_diag *d)
{
	const uint64_t to_ns = c->has_to ? to_monotonic(c->to_usec) : now_ns;
	struct fr_history_stats stats;
	uint64_t from_ns = 0;

	if (c->has_from)
		from_ns = to_monotonic(c->from_usec);
	else if (c->last_ns && c->last_ns < to_ns)
		from_ns = to_ns - c->last_ns;
	if (to_ns > now_ns + AHEAD_MAX_NS)
		return fr_fail(
			d, -EINVAL, "--post goes on recording for a while", "the window ends in the future");
	if (from_ns > to_ns)
		return fr_fail(d, -EINVAL, "--from is the earlier one", "the window ends before it begins");
	fr_history_stats(m->history, &stats);
	if (to_ns == 0 || to_ns < stats.first_ns)
		return fr_fail(d, -ENODATA,
			"flightrecctl status says how far it reaches; a larger RingSize= holds more",
			"the ring no longer holds anything of that window");
	*ret = (struct fr_dump_asked){.from_ns = from_ns, .to_ns = c->has_to ? to_ns : 0};
	return 0;
}

static int asked_window(struct fr_daemon *m, const struct dump_call *c, uint64_t now_ns,
	struct fr_dump_asked *ret, struct fr_diag *d)
{
	*ret = fr_daemon_asked(m, "control");
	if ((c->has_from && c->has_last) || (c->has_post && (c->has_from || c->has_to)))
		return fr_fail(d, -EINVAL, "give --last, --from and --to, or --post",
			"these bounds of a window exclude each other");
	if (c->has_from || c->has_to)
		return absolute_window(m, c, now_ns, ret, d);
	if (c->has_last)
		ret->last_ns = c->last_ns;
	if (c->has_post)
		ret->post_ns = c->post_ns;
	return 0;
}

/* What a call's dump is made with, where the policy has nothing against it. */
struct control_dump {
	struct fr_daemon *m;
	struct fr_dump_request request;
	int code;
};

static int dump_for_call(void *ctx, const struct fr_cause *cause, uint64_t *ret_id)
{
	struct control_dump *c = ctx;

	c->request.cause = cause;
	c->code = fr_daemon_dump(c->m, &c->request, ret_id);
	return c->code;
}

static struct fr_cause control_cause(const struct fr_call *call, const char *reason, uint64_t now_ns)
{
	const struct fr_peer *peer = fr_call_peer(call);
	struct fr_cause c = {.trigger = "control", .time_ns = now_ns, .pid = peer->pid, .cpu = -1};

	snprintf(c.reason, sizeof(c.reason), "%s", reason ? reason : "flightrecctl dump");
	memcpy(c.comm, peer->comm, sizeof(c.comm));
	return c;
}

static void suppressed(struct fr_call *call, const struct fr_decision *d, int code)
{
	char text[sizeof(d->why) + 16];

	if (code == -EDQUOT) {
		fail(call, -EAGAIN, "`flightrecctl status` lists them, `flightrecctl cancel` takes one back",
			"suppressed: too many dumps of yours, or of users, are waiting already");
		return;
	}
	snprintf(text, sizeof(text), "suppressed: %s", d->why);
	fail(call, -EAGAIN,
		d->verdict == FR_VERDICT_BUSY ? "try again when `flightrecctl status` shows fewer queued"
					      : "[Trigger control] in flightrecd.conf(5); "
						"`flightrecctl enable control` arms it",
		text);
}

static void verb_dump(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	const uint64_t now_ns = fr_monotonic_ns();
	struct fr_daemon *m = ctx;
	struct fr_dump_asked asked;
	struct fr_diag diag = {0};
	struct dump_call c;
	const char *bad = read_dump(parameters, &c);
	struct control_dump d = {.m = m};
	const struct fr_decision *decision;
	enum fr_verdict verdict;
	struct fr_cause cause;
	int r;

	if (bad) {
		fr_call_invalid_parameter(call, bad);
		return;
	}
	if (m->stop != FR_STOP_NO) {
		fail(call, -ESHUTDOWN, "look at the merged perf.data", "flightrecd is stopping");
		return;
	}
	r = asked_window(m, &c, now_ns, &asked, &diag);
	if (r < 0) {
		fr_call_fail(call, &diag, r);
		return;
	}
	d.request = (struct fr_dump_request){.uid = fr_call_peer(call)->uid,
		.asked = asked,
		.no_compression = c.no_compression,
		.caller = c.waits ? call : NULL};
	cause = control_cause(call, c.reason, now_ns);
	verdict = fr_triggers_request(m->triggers, "control", &cause, dump_for_call, &d);
	decision = fr_triggers_get_decision(m->triggers, 0);
	if (verdict != FR_VERDICT_FIRE && verdict != FR_VERDICT_COALESCE) {
		suppressed(call, decision, d.code);
		return;
	}
	if (!c.waits) {
		cJSON *reply = cJSON_CreateObject();

		cJSON_AddNumberToObject(reply, "id", (double)decision->dump_id);
		fr_call_reply(call, reply);
	}
}

static void dump_done(struct fr_daemon *m, struct fr_call *call, const struct fr_dump_job *job)
{
	_cleanup_free_ char *path = NULL;
	struct fr_diag diag = job->diag;
	cJSON *reply;

	if (job->code < 0 && job->outcome == FR_OUTCOME_KEPT && diag.code) {
		size_t n = strlen(diag.what);

		snprintf(diag.what + n, sizeof(diag.what) - n,
			"; its data is kept in memory and is tried again every 10 s");
	}
	if (job->code < 0) {
		fr_call_fail(call, &diag, job->code);
		return;
	}
	/* The file's own JSON is the answer: the same words whether one asks or looks. */
	reply = cJSON_Duplicate(job->meta, true);
	if (asprintf(&path, "%s/%s", job->directory ? job->directory : m->config->directory,
		    job->result.name) >= 0)
		cJSON_AddStringToObject(reply, "path", path);
	cJSON_AddNumberToObject(reply, "id", (double)job->id);
	cJSON_AddNumberToObject(reply, "window_closed_s", (double)job->snapshot_ns / 1e9);
	fr_call_reply(call, reply);
}

static void vacuum_done(struct fr_call *call, const struct fr_dump_job *job)
{
	const struct fr_vacuum_report *v = &job->vacuum;
	cJSON *reply, *removed;

	if (job->code < 0) {
		fr_call_fail(call, &job->diag, job->code);
		return;
	}
	reply = cJSON_CreateObject();
	removed = cJSON_AddArrayToObject(reply, "removed");
	for (size_t i = 0; i < v->n_removed; i++)
		cJSON_AddItemToArray(removed, cJSON_CreateString(v->removed[i]));
	cJSON_AddNumberToObject(reply, "freed", (double)v->freed_bytes);
	if (job->kind == FR_JOB_VACUUM) {
		cJSON_AddNumberToObject(reply, "files", (double)v->files);
		cJSON_AddNumberToObject(reply, "bytes", (double)v->bytes);
	}
	fr_call_reply(call, reply);
}

void fr_verb_job_done(struct fr_daemon *m, struct fr_call *call, const struct fr_dump_job *job)
{
	if (job->kind == FR_JOB_DUMP)
		dump_done(m, call, job);
	else
		vacuum_done(call, job);
}

/* JOB (consumed) answers CALL when it is done. */
static void submit(struct fr_daemon *m, struct fr_call *call, struct fr_dump_job *job)
{
	int r = fr_dump_job_add_caller(job, call);

	if (r == 0)
		r = fr_dumper_submit(m->dumper, job, NULL);
	if (r >= 0)
		return;
	fr_dump_job_free(job);
	fail(call, r, "try again when `flightrecctl status` shows fewer queued",
		"too many dumps are waiting already");
}

/* "ids", or with "all" what waits. NULL: the parameters are no good. */
static cJSON *ids_to_cancel(struct fr_daemon *m, const cJSON *parameters)
{
	const cJSON *given = cJSON_GetObjectItemCaseSensitive(parameters, "ids"), *item;
	cJSON *ids, *waiting;
	bool all = false;

	if (fr_param_bool(parameters, "all", &all) < 0 || all == (given && !cJSON_IsNull(given)))
		return NULL;
	if (!all)
		return cJSON_IsArray(given) ? cJSON_Duplicate(given, true) : NULL;
	ids = cJSON_CreateArray();
	waiting = fr_dumper_waiting(m->dumper);
	cJSON_ArrayForEach (item, waiting)
		cJSON_AddItemToArray(
			ids, cJSON_CreateNumber(cJSON_GetNumberValue(cJSON_GetObjectItem(item, "id"))));
	cJSON_Delete(waiting);
	return ids;
}

/* All that can be taken back is, whatever one of them says; with "all", of others is no mistake. */
static void verb_cancel(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	cJSON *ids = ids_to_cancel(ctx, parameters), *reply, *canceled, *item;
	const bool all = !cJSON_GetObjectItemCaseSensitive(parameters, "ids");
	struct fr_diag diag = {0};
	int code = 0;

	if (!ids) {
		fr_call_invalid_parameter(call, "ids");
		return;
	}
	reply = cJSON_CreateObject();
	canceled = cJSON_AddArrayToObject(reply, "canceled");
	cJSON_ArrayForEach (item, ids) {
		const double id = cJSON_IsNumber(item) ? item->valuedouble : 0;
		struct fr_diag one = {0};
		int r = fr_daemon_cancel(ctx, call, id > 0 && id < 0x1p53 ? (uint64_t)id : 0, &one);

		if (r == 0)
			cJSON_AddItemToArray(canceled, cJSON_CreateNumber(id));
		if (r < 0 && !code && !all) {
			code = r;
			diag = one;
		}
	}
	cJSON_Delete(ids);
	if (code == 0) {
		fr_call_reply(call, reply);
		return;
	}
	cJSON_Delete(reply);
	fr_call_fail(call, &diag, code);
}

static void verb_vacuum(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	struct fr_daemon *m = ctx;
	struct fr_retention limits = m->config->retention;
	uint64_t age_usec = limits.max_age_ns / FR_NSEC_PER_USEC;
	const struct {
		const char *name;
		uint64_t *value;
	} numbers[] = {
		{"max_use", &limits.max_use},
		{"keep_free", &limits.keep_free},
		{"max_files", &limits.max_files},
		{"max_age_usec", &age_usec},
	};
	struct fr_dump_job *job;

	for (size_t i = 0; i < FR_ARRAY_SIZE(numbers); i++)
		if (fr_param_u64(parameters, numbers[i].name, numbers[i].value) < 0) {
			fr_call_invalid_parameter(call, numbers[i].name);
			return;
		}
	limits.max_age_ns = age_usec * FR_NSEC_PER_USEC;
	job = fr_dump_job_new(FR_JOB_VACUUM);
	if (!job) {
		fail(call, -ENOMEM, NULL, "no memory");
		return;
	}
	job->limits = limits;
	submit(m, call, job);
}

/* The strings of ARRAY, NULL-terminated; NULL where one is none, or without memory. */
static char **strings(const cJSON *array)
{
	char **ret = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof(*ret));
	const cJSON *item;
	size_t n = 0;

	cJSON_ArrayForEach (item, array) {
		if (ret && cJSON_IsString(item) && (ret[n] = strdup(item->valuestring))) {
			n++;
			continue;
		}
		while (n > 0)
			free(ret[--n]);
		free(ret);
		return NULL;
	}
	return ret;
}

static void verb_remove(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	const cJSON *names = cJSON_GetObjectItemCaseSensitive(parameters, "files");
	struct fr_dump_job *job;

	job = cJSON_IsArray(names) ? fr_dump_job_new(FR_JOB_REMOVE) : NULL;
	if (job)
		job->names = strings(names);
	if (!job || !job->names) {
		fr_dump_job_free(job);
		fr_call_invalid_parameter(call, "files");
		return;
	}
	submit(ctx, call, job);
}

static void verb_status(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	cJSON *reply = cJSON_CreateObject();

	cJSON_AddItemToObject(reply, "status", fr_status(ctx));
	fr_call_reply(call, reply);
}

/* The newest that one reply can hold: on a large machine each may have thousands of losses to tell. */
static cJSON *newest_dumps(const cJSON *dumps)
{
	cJSON *ret = cJSON_CreateArray();
	size_t room = LIST_BYTES;

	for (int i = cJSON_GetArraySize(dumps); i-- > 0;) {
		char *text = cJSON_PrintUnformatted(cJSON_GetArrayItem(dumps, i));
		size_t len = text ? strlen(text) : SIZE_MAX;

		if (len > room) {
			cJSON_free(text);
			break;
		}
		room -= len;
		cJSON_InsertItemInArray(ret, 0, cJSON_CreateRaw(text));
		cJSON_free(text);
	}
	return ret;
}

static void verb_list(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	struct fr_daemon *m = ctx;
	cJSON *reply = cJSON_CreateObject();

	cJSON_AddStringToObject(reply, "directory", m->config->directory);
	cJSON_AddItemToObject(reply, "dumps", newest_dumps(m->dumps));
	fr_call_reply(call, reply);
}

static void verb_stop(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	bool merge = false;

	if (fr_param_bool(parameters, "merge", &merge) < 0) {
		fr_call_invalid_parameter(call, "merge");
		return;
	}
	fr_log(LOG_INFO, "stop asked for by pid %d (%s)", (int)fr_call_peer(call)->pid,
		fr_call_peer(call)->comm);
	fr_call_reply(call, NULL);
	fr_daemon_stop(ctx, merge ? FR_STOP_MERGE : FR_STOP_CLEAN);
}

static void verb_reload(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	struct fr_reloaded what;
	struct fr_diag diag = {0};
	int r = fr_daemon_reload(ctx, &what, &diag);
	cJSON *reply = cJSON_CreateObject();

	if (r < 0) {
		fr_call_fail(call, &diag, r);
		cJSON_Delete(reply);
	} else {
		cJSON_AddItemToObject(reply, "changed", TAKE_PTR(what.changed));
		cJSON_AddItemToObject(reply, "waiting", TAKE_PTR(what.waiting));
		fr_call_reply(call, reply);
	}
	fr_reloaded_deinit(&what);
}

static const char *const none[] = {NULL}, *const of_remove[] = {"files", NULL},
			 *const of_stop[] = {"merge", NULL}, *const of_cancel[] = {"ids", "all", NULL},
			 *const of_vacuum[] = {"max_use", "keep_free", "max_files", "max_age_usec", NULL},
			 *const of_name[] = {"name", NULL},
			 *const of_set_trigger[] = {"name", "enabled", NULL},
			 *const of_decisions[] = {"max", NULL},
			 *const of_dump[] = {"last_ns", "post_ns", "from_usec", "to_usec", "reason", "wait",
				 "no_compression", NULL};

/* Who is in the group may look and make dumps (a trigger's test is one); what takes something away from
   others (files, triggers, the recorder) is root's. */
static const struct fr_method methods[] = {
	{FR_METHOD_DUMP, FR_ACCESS_GROUP, verb_dump, of_dump},
	{FR_METHOD_CANCEL, FR_ACCESS_GROUP, verb_cancel, of_cancel},
	{FR_METHOD_STATUS, FR_ACCESS_GROUP, verb_status, none},
	{FR_METHOD_METRICS, FR_ACCESS_GROUP, fr_verb_metrics, none},
	{FR_METHOD_LIST, FR_ACCESS_GROUP, verb_list, none},
	{FR_METHOD_VACUUM, FR_ACCESS_ROOT, verb_vacuum, of_vacuum},
	{FR_METHOD_REMOVE, FR_ACCESS_ROOT, verb_remove, of_remove},
	{FR_METHOD_STOP, FR_ACCESS_ROOT, verb_stop, of_stop},
	{FR_METHOD_RELOAD, FR_ACCESS_ROOT, verb_reload, none},
	{FR_METHOD_TRIGGERS, FR_ACCESS_GROUP, fr_verb_triggers, none},
	{FR_METHOD_TEST_TRIGGER, FR_ACCESS_GROUP, fr_verb_test_trigger, of_name},
	{FR_METHOD_SET_TRIGGER, FR_ACCESS_ROOT, fr_verb_set_trigger, of_set_trigger},
	{FR_METHOD_DECISIONS, FR_ACCESS_GROUP, fr_verb_decisions, of_decisions},
	{FR_METHOD_WATCH, FR_ACCESS_GROUP, fr_verb_watch, none},
};

int fr_verbs_serve(struct fr_daemon *m, struct fr_diag *d)
{
	struct fr_server_config config = {
		.gate = fr_start_gate,
		.methods = methods,
		.n_methods = FR_ARRAY_SIZE(methods),
		.description = fr_interface_description,
		.ctx = m,
	};
	int r;

	if (!m->config->socket[0])
		return 0;
	/* The configuration may become another one. */
	config.path = m->socket = strdup(m->config->socket);
	config.group = m->group = strdup(m->config->group);
	if (!m->socket || !m->group)
		return -ENOMEM;
	r = fr_activated_control(d);
	if (r < 0)
		return r;
	config.fd = r;
	r = fr_server_new(m->event, &config, &m->server, d);
	if (r >= 0 && fr_server_notice(m->server))
		fr_log(LOG_NOTICE, "%s", fr_server_notice(m->server));
	return r;
}
