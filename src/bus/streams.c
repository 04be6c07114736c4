// SPDX-License-Identifier: GPL-2.0-or-later
#include "bus/bus_private.h"
#include "base/json.h"

#include <errno.h>
#include <string.h>

static int check_name(const char *stream, struct fr_diag *d)
{
	return bus_name_is_valid(stream)
		       ? 0
		       : fr_fail(d, -EINVAL, NULL, "\"%.60s\" is not the name of a stream", stream);
}

cJSON *bus_stream_get(
	struct fr_bus *b, const char *stream, uint64_t timeout_ns, int *ret_code, struct fr_diag *d)
{
	char subject[128];
	const char *name;
	cJSON *info;

	snprintf(subject, sizeof(subject), "$JS.API.STREAM.INFO.%s", stream);
	info = bus_api(b, subject, NULL, timeout_ns, ret_code, d);
	if (!info)
		return NULL;
	name = fr_json_text(cJSON_GetObjectItemCaseSensitive(info, "config"), "name");
	if (strcmp(name, stream) == 0 && cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(info, "state")))
		return info;
	cJSON_Delete(info);
	*ret_code = fr_fail(d, -EBADMSG, NULL, "the reply to %s is about another stream", subject);
	return NULL;
}

static void set(cJSON *config, const char *name, cJSON *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(config, name);
	cJSON_AddItemToObject(config, name, value);
}

static void set_number(cJSON *config, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	set(config, name, cJSON_CreateRaw(text));
}

/* Sets what the fleet needs, and keeps what an administrator has set beside it. */
static void configure(cJSON *config, const struct fr_bus_stream *s)
{
	cJSON *subjects = cJSON_CreateArray();

	cJSON_AddItemToArray(subjects, cJSON_CreateString(s->subject));
	set(config, "name", cJSON_CreateString(s->name));
	set(config, "subjects", subjects);
	if (s->description)
		set(config, "description", cJSON_CreateString(s->description));
	set_number(config, "max_msgs_per_subject", 1);
	set_number(config, "max_age", (int64_t)s->max_age_ns);
	set_number(config, "max_bytes", s->max_bytes ? (int64_t)s->max_bytes : -1);
	set_number(config, "num_replicas", s->replicas ? (int64_t)s->replicas : 1);
	set(config, "discard", cJSON_CreateString("old"));
	set(config, "allow_direct", cJSON_CreateTrue());
}

static void configure_new(cJSON *config)
{
	set(config, "retention", cJSON_CreateString("limits"));
	set(config, "storage", cJSON_CreateString("file"));
	set_number(config, "max_consumers", -1);
	set_number(config, "max_msgs", -1);
	set_number(config, "max_msg_size", FR_BUS_MESSAGE_MAX + 1024); /* and the headers */
}

static bool has_number(const cJSON *config, const char *name, double value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(config, name);

	return (cJSON_IsNumber(item) ? item->valuedouble : 0) == value;
}

static bool is_configured(const cJSON *config, const struct fr_bus_stream *s)
{
	const cJSON *subjects = cJSON_GetObjectItemCaseSensitive(config, "subjects");
	const char *subject = cJSON_GetStringValue(cJSON_GetArrayItem(subjects, 0));

	return cJSON_GetArraySize(subjects) == 1 && subject && strcmp(subject, s->subject) == 0 &&
	       (!s->description || strcmp(fr_json_text(config, "description"), s->description) == 0) &&
	       has_number(config, "max_msgs_per_subject", 1) &&
	       has_number(config, "max_age", (double)s->max_age_ns) &&
	       has_number(config, "max_bytes", s->max_bytes ? (double)s->max_bytes : -1) &&
	       has_number(config, "num_replicas", s->replicas ? s->replicas : 1) &&
	       strcmp(fr_json_text(config, "discard"), "old") == 0 &&
	       cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(config, "allow_direct"));
}

static int send_config(struct fr_bus *b, const char *verb, cJSON *config, const struct fr_bus_stream *s,
	uint64_t timeout_ns, struct fr_diag *d)
{
	char subject[128];
	cJSON *reply;
	int r;

	snprintf(subject, sizeof(subject), "$JS.API.STREAM.%s.%s", verb, s->name);
	reply = bus_api(b, subject, config, timeout_ns, &r, d);
	if (reply &&
		strcmp(fr_json_text(cJSON_GetObjectItemCaseSensitive(reply, "config"), "name"), s->name) != 0)
		r = fr_fail(d, -EBADMSG, NULL, "the reply to %s is about another stream", subject);
	cJSON_Delete(reply);
	return r;
}

int fr_bus_stream_ensure(struct fr_bus *b, const struct fr_bus_stream *s, uint64_t timeout_ns,
	const char **ret_done, struct fr_diag *d)
{
	struct fr_diag why = {0};
	const char *done = "unchanged";
	cJSON *info, *config, *fresh = NULL;
	int r = check_name(s->name, d);

	if (r < 0)
		return r;
	info = bus_stream_get(b, s->name, timeout_ns, &r, &why);
	if (!info && r != -ENOENT) {
		if (d)
			*d = why;
		return r;
	}
	config = info ? cJSON_GetObjectItemCaseSensitive(info, "config") : (fresh = cJSON_CreateObject());
	if (fresh)
		configure_new(fresh);
	r = 0;
	if (!info || !is_configured(config, s)) {
		done = info ? "changed" : "created";
		configure(config, s);
		r = send_config(b, info ? "UPDATE" : "CREATE", config, s, timeout_ns, d);
	}
	cJSON_Delete(info);
	cJSON_Delete(fresh);
	if (r == 0 && ret_done)
		*ret_done = done;
	return r;
}

int fr_bus_stream_info(struct fr_bus *b, const char *stream, uint64_t timeout_ns,
	struct fr_bus_stream_info *ret, struct fr_diag *d)
{
	struct fr_bus_stream_info of = {0};
	const cJSON *state, *config, *max_bytes;
	bool ok = true;
	cJSON *info;
	int r = check_name(stream, d);

	if (r < 0)
		return r;
	info = bus_stream_get(b, stream, timeout_ns, &r, d);
	if (!info)
		return r;
	state = cJSON_GetObjectItemCaseSensitive(info, "state");
	config = cJSON_GetObjectItemCaseSensitive(info, "config");
	max_bytes = cJSON_GetObjectItemCaseSensitive(config, "max_bytes");
	of.messages = bus_json_u64(state, "messages", &ok);
	of.bytes = bus_json_u64(state, "bytes", &ok);
	of.max_age_ns = bus_json_u64(config, "max_age", &ok);
	of.max_bytes = cJSON_IsNumber(max_bytes) && max_bytes->valuedouble > 0
			       ? bus_json_u64(config, "max_bytes", &ok)
			       : 0;
	cJSON_Delete(info);
	if (!ok)
		return fr_fail(
			d, -EBADMSG, NULL, "the broker's state of the stream %s makes no sense", stream);
	*ret = of;
	return 0;
}

int fr_bus_purge(
	struct fr_bus *b, const char *stream, const char *subject, uint64_t timeout_ns, struct fr_diag *d)
{
	char request[128];
	cJSON *body, *reply;
	int r = check_name(stream, d);

	if (r < 0)
		return r;
	if (!bus_subject_is_valid(subject, true))
		return fr_fail(d, -EINVAL, NULL, "\"%.100s\" is no subject", subject);
	snprintf(request, sizeof(request), "$JS.API.STREAM.PURGE.%s", stream);
	body = cJSON_CreateObject();
	cJSON_AddStringToObject(body, "filter", subject);
	reply = bus_api(b, request, body, timeout_ns, &r, d);
	if (reply && !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "success")))
		r = fr_fail(d, -EBADMSG, NULL, "the broker does not say that it removed %s", subject);
	cJSON_Delete(body);
	cJSON_Delete(reply);
	return r;
}
