// SPDX-License-Identifier: GPL-2.0-or-later
/* The methods of the control socket that are about dumps. */
#include "base/cleanup.h"
#include "base/log.h"
#include "control/interface.h"
#include "dumper/window.h"
#include "flightrecd/dumps.h"
#include "flightrecd/verbs.h"

#include <errno.h>
#include <string.h>

#define POST_MAX_NS (3600 * FR_NSEC_PER_SEC)

static void fail(struct fr_call *call, int code, const char *hint, const char *what)
{
	struct fr_diag diag = {0};

	fr_fail(&diag, code, hint, "%s", what);
	fr_call_fail(call, &diag, code);
}

static struct fr_window_bounds read_bounds(const cJSON *parameters)
{
	struct fr_window_bounds b = {0};

	b.has_last = fr_param_u64(parameters, "last_ns", &b.last_ns) > 0;
	b.has_post = fr_param_u64(parameters, "post_ns", &b.post_ns) > 0;
	b.has_from = fr_param_u64(parameters, "from_usec", &b.from_usec) > 0;
	b.has_to = fr_param_u64(parameters, "to_usec", &b.to_usec) > 0;
	b.has_exact = fr_param_time(parameters, "from_ns", &b.from_ns) > 0;
	b.has_exact |= fr_param_time(parameters, "to_ns", &b.to_ns) > 0;
	return b;
}

/* The context of a dump that a call asked for. */
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

	snprintf(c.reason, sizeof(c.reason), "%s", reason);
	memcpy(c.comm, peer->comm, sizeof(c.comm));
	return c;
}

/* Returns whether ID can be the id of a dump of the fleet. */
static bool is_fleet_id(const char *id)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	const size_t n = strlen(id);

	return n && n < FR_CAUSE_FLEET_SIZE && strspn(id, allowed) == n;
}

/* Reads the parameters of a dump of the fleet into CAUSE. Returns NULL; or the name of a parameter that is
   wrong. */
static const char *read_fleet(const cJSON *parameters, struct fr_cause *cause)
{
	const char *id = NULL, *by = NULL;

	(void)fr_param_string(parameters, "fleet", &id);
	(void)fr_param_string(parameters, "by", &by);
	if (id && !is_fleet_id(id))
		return "fleet";
	if (by && !id)
		return "by";
	if (!id)
		return NULL;
	snprintf(cause->trigger, sizeof(cause->trigger), "fleet");
	snprintf(cause->fleet, sizeof(cause->fleet), "%s", id);
	snprintf(cause->by, sizeof(cause->by), "%s", by ? by : "");
	return NULL;
}

static void suppressed(struct fr_call *call, const struct fr_decision *d, int code)
{
	char text[sizeof(d->why) + 16], hint[256];
	const char *trigger = d->cause.trigger;

	if (code == -EDQUOT) {
		fail(call, -EAGAIN, "`flightrecctl status` lists them, `flightrecctl cancel` cancels one",
			"suppressed: too many dumps of yours, or of all users together, are waiting already");
		return;
	}
	snprintf(text, sizeof(text), "suppressed: %s", d->why);
	if (d->verdict == FR_VERDICT_BUSY)
		snprintf(hint, sizeof(hint), "try again when `flightrecctl status` shows fewer queued dumps");
	else if (d->verdict == FR_VERDICT_DISABLED)
		snprintf(hint, sizeof(hint),
			"[Trigger %s] in flightrecd.conf(5); `flightrecctl enable %s` arms it", trigger,
			trigger);
	else
		snprintf(hint, sizeof(hint), "[Trigger %s] and POLICY in flightrecd.conf(5)", trigger);
	fail(call, -EAGAIN, hint, text);
}

static void verb_dump(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	const uint64_t now_ns = fr_monotonic_ns();
	struct fr_daemon *m = ctx;
	struct fr_history_stats ring;
	struct fr_dump_asked asked;
	struct fr_diag diag = {0};
	const struct fr_window_bounds bounds = read_bounds(parameters);
	struct control_dump d = {.m = m};
	const char *reason = "flightrecctl dump", *bad;
	bool waits = true, no_compression = false, hold = false;
	const struct fr_decision *decision;
	enum fr_verdict verdict;
	struct fr_cause cause;
	int r;

	if (bounds.post_ns > POST_MAX_NS) {
		fr_call_invalid_parameter(call, "post_ns");
		return;
	}
	if (m->stop != FR_STOP_NO) {
		fail(call, -ESHUTDOWN, "look at the last dump, or at the merged perf.data",
			"flightrecd is stopping");
		return;
	}
	(void)fr_param_string(parameters, "reason", &reason);
	cause = control_cause(call, reason, now_ns);
	bad = read_fleet(parameters, &cause);
	if (bad) {
		fr_call_invalid_parameter(call, bad);
		return;
	}
	(void)fr_param_bool(parameters, "wait", &waits);
	(void)fr_param_bool(parameters, "hold", &hold);
	(void)fr_param_bool(parameters, "no_compression", &no_compression);
	fr_rings_stats(&m->rings, &ring);
	asked = fr_daemon_asked(m, cause.trigger);
	r = fr_window_from_bounds(&bounds, now_ns, ring.first_ns, &asked, &diag);
	if (r < 0) {
		fr_call_fail(call, &diag, r);
		return;
	}
	d.request = (struct fr_dump_request){.uid = fr_call_peer(call)->uid,
		.asked = asked,
		.no_compression = no_compression,
		.hold = hold,
		.call = waits ? call : NULL};
	verdict = fr_triggers_request(m->triggers, cause.trigger, &cause, dump_for_call, &d);
	decision = fr_triggers_get_decision(m->triggers, 0);
	if (verdict != FR_VERDICT_FIRE && verdict != FR_VERDICT_COALESCE) {
		suppressed(call, decision, d.code);
		return;
	}
	if (!waits) {
		cJSON *reply = cJSON_CreateObject();

		cJSON_AddNumberToObject(reply, "id", (double)decision->dump_id);
		fr_call_reply(call, reply);
	}
}

/* Returns a copy of the parameter "ids", or, if "all" is true, the ids of all dumps that wait. Returns NULL
   if neither "ids" nor "all" is given, or if both are given. */
static cJSON *ids_to_cancel(struct fr_daemon *m, const cJSON *parameters)
{
	const cJSON *given = cJSON_GetObjectItemCaseSensitive(parameters, "ids"), *item;
	cJSON *ids, *waiting;
	bool all = false;

	(void)fr_param_bool(parameters, "all", &all);
	if (all == (given && !cJSON_IsNull(given)))
		return NULL;
	if (!all)
		return cJSON_Duplicate(given, true);
	ids = cJSON_CreateArray();
	waiting = fr_dumper_waiting(m->dumper);
	cJSON_ArrayForEach (item, waiting)
		cJSON_AddItemToArray(
			ids, cJSON_CreateNumber(cJSON_GetNumberValue(cJSON_GetObjectItem(item, "id"))));
	cJSON_Delete(waiting);
	return ids;
}

/* If one of the dumps cannot be canceled, the other dumps are canceled nevertheless. With "all", it is not an
   error if a dump cannot be canceled, for example because the dump belongs to another user. */
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
	struct fr_dump_job *job;

	(void)fr_param_u64(parameters, "max_use", &limits.max_use);
	(void)fr_param_u64(parameters, "keep_free", &limits.keep_free);
	(void)fr_param_u64(parameters, "max_files", &limits.max_files);
	(void)fr_param_u64(parameters, "max_age_usec", &age_usec);
	limits.max_age_ns = age_usec * FR_NSEC_PER_USEC;
	job = fr_dump_job_new(FR_JOB_VACUUM);
	if (!job) {
		fail(call, -ENOMEM, NULL, "no memory");
		return;
	}
	job->limits = limits;
	fr_daemon_submit(m, call, job);
}

/* Returns copies of the strings of ARRAY, ended by NULL. Returns NULL if an item is not a string, or if there
   is no memory. */
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
	struct fr_dump_job *job = fr_dump_job_new(FR_JOB_REMOVE);

	if (job)
		job->names = strings(cJSON_GetObjectItemCaseSensitive(parameters, "files"));
	if (!job || !job->names) {
		fr_dump_job_free(job);
		fr_call_invalid_parameter(call, "files");
		return;
	}
	fr_daemon_submit(ctx, call, job);
}

static void verb_uploaded(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	struct fr_dump_job *job = fr_dump_job_new(FR_JOB_RELEASE);
	const uid_t uid = fr_call_peer(call)->uid;
	const char *file = NULL;

	(void)fr_param_string(parameters, "file", &file);
	if (job && (job->names = calloc(2, sizeof(*job->names))))
		job->names[0] = strdup(file);
	if (!job || !job->names || !job->names[0]) {
		fr_dump_job_free(job);
		fail(call, -ENOMEM, NULL, "no memory");
		return;
	}
	job->uid = uid == getuid() ? 0 : uid;
	fr_daemon_submit(ctx, call, job);
}

static void verb_list(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	struct fr_daemon *m = ctx;
	cJSON *reply = cJSON_CreateObject();

	cJSON_AddStringToObject(reply, "directory", m->config->directory);
	cJSON_AddItemToObject(reply, "dumps", fr_recent_dumps_list(&m->recent_dumps));
	fr_call_reply(call, reply);
}

const struct fr_method fr_verbs_of_dumps[] = {
	{FR_METHOD(Dump), FR_ACCESS_GROUP, verb_dump,
		FR_PARAMETERS({"last_ns", fr_param_is_u64, false}, {"post_ns", fr_param_is_u64, false},
			{"from_usec", fr_param_is_u64, false}, {"to_usec", fr_param_is_u64, false},
			{"reason", cJSON_IsString, false}, {"wait", cJSON_IsBool, false},
			{"no_compression", cJSON_IsBool, false}, {"from_ns", fr_param_is_time, false},
			{"to_ns", fr_param_is_time, false}, {"fleet", cJSON_IsString, false},
			{"by", cJSON_IsString, false}, {"hold", cJSON_IsBool, false})},
	{FR_METHOD(Cancel), FR_ACCESS_GROUP, verb_cancel,
		FR_PARAMETERS({"ids", cJSON_IsArray, false}, {"all", cJSON_IsBool, false})},
	{FR_METHOD(List), FR_ACCESS_GROUP, verb_list, FR_PARAMETERS({0})},
	{FR_METHOD(Vacuum), FR_ACCESS_ROOT, verb_vacuum,
		FR_PARAMETERS({"max_use", fr_param_is_u64, false}, {"keep_free", fr_param_is_u64, false},
			{"max_files", fr_param_is_u64, false}, {"max_age_usec", fr_param_is_u64, false})},
	{FR_METHOD(Remove), FR_ACCESS_ROOT, verb_remove, FR_PARAMETERS({"files", cJSON_IsArray, true})},
	{FR_METHOD(Uploaded), FR_ACCESS_GROUP, verb_uploaded, FR_PARAMETERS({"file", cJSON_IsString, true})},
	{.name = NULL},
};
