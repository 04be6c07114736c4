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

/* The parameters of Dump. */
struct dump_call {
	struct fr_window_bounds bounds;
	const char *reason;
	bool waits, no_compression;
};

/* Read the parameters of Dump. Returns NULL, or the name of a parameter that is not valid. */
static const char *read_dump(const cJSON *parameters, struct dump_call *ret)
{
	struct {
		const char *name;
		uint64_t *value;
		bool *given;
		uint64_t most;
	} numbers[] = {
		{"last_ns", &ret->bounds.last_ns, &ret->bounds.has_last, UINT64_MAX},
		{"post_ns", &ret->bounds.post_ns, &ret->bounds.has_post, POST_MAX_NS},
		{"from_usec", &ret->bounds.from_usec, &ret->bounds.has_from, UINT64_MAX},
		{"to_usec", &ret->bounds.to_usec, &ret->bounds.has_to, UINT64_MAX},
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
	struct fr_history_stats ring;
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
	fr_history_stats(m->history, &ring);
	asked = fr_daemon_asked(m, "control");
	r = fr_window_from_bounds(&c.bounds, now_ns, ring.first_ns, &asked, &diag);
	if (r < 0) {
		fr_call_fail(call, &diag, r);
		return;
	}
	d.request = (struct fr_dump_request){.uid = fr_call_peer(call)->uid,
		.asked = asked,
		.no_compression = c.no_compression,
		.call = c.waits ? call : NULL};
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

/* Returns the parameter "ids", or with "all" the ids of all dumps that wait. Returns NULL if the parameters
   are not valid. */
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

/* If a dump cannot be canceled, go on with the next one. With "all", a dump that this user may not cancel is
   not an error. */
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
		FR_PARAMETERS(
			"last_ns", "post_ns", "from_usec", "to_usec", "reason", "wait", "no_compression")},
	{FR_METHOD(Cancel), FR_ACCESS_GROUP, verb_cancel, FR_PARAMETERS("ids", "all")},
	{FR_METHOD(List), FR_ACCESS_GROUP, verb_list, FR_PARAMETERS(NULL)},
	{FR_METHOD(Vacuum), FR_ACCESS_ROOT, verb_vacuum,
		FR_PARAMETERS("max_use", "keep_free", "max_files", "max_age_usec")},
	{FR_METHOD(Remove), FR_ACCESS_ROOT, verb_remove, FR_PARAMETERS("files")},
	{.name = NULL},
};
