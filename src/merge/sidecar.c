// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/input.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "perfdata/features.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define SIDECAR_MAX (4u << 20)

cJSON *fr_sidecar_read(const char *path)
{
	_cleanup_buf_ struct fr_buf b = {0};
	char name[PATH_MAX];
	cJSON *json;
	int n = snprintf(name, sizeof(name), "%s.json", path);

	if (n < 0 || (size_t)n >= sizeof(name) || fr_read_file(AT_FDCWD, name, SIDECAR_MAX, &b) < 0 || !b.len)
		return NULL;
	json = cJSON_ParseWithLength((const char *)b.data, b.len);
	if (json && !cJSON_IsObject(json)) {
		cJSON_Delete(json);
		json = NULL;
	}
	return json;
}

/* A dump's own object, or those of an earlier merge. */
static bool add_dumps(cJSON *dumps, const cJSON *meta)
{
	const cJSON *inner = cJSON_GetObjectItemCaseSensitive(meta, "dumps"), *one;

	if (!cJSON_IsArray(inner)) {
		cJSON *copy = cJSON_Duplicate(meta, true);

		return copy && cJSON_AddItemToArray(dumps, copy);
	}
	cJSON_ArrayForEach (one, inner) {
		cJSON *copy = cJSON_Duplicate(one, true);

		if (!copy || !cJSON_AddItemToArray(dumps, copy))
			return false;
	}
	return true;
}

/* cJSON has doubles only, which are too short for nanoseconds from 104 days of uptime on. */
static bool add_u64(cJSON *o, const char *key, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	return cJSON_AddRawToObject(o, key, text);
}

static bool add_time(cJSON *o, const char *key, uint64_t realtime_ns)
{
	char text[FR_STAMP_SIZE];

	fr_rfc3339_format(realtime_ns, text);
	return cJSON_AddStringToObject(o, key, text);
}

/* First and last sample; wall times where an input has its clock beside that of the machine. */
static bool add_window(cJSON *all, const struct fr_inputs *in, const struct fr_merge_report *r)
{
	cJSON *o = cJSON_AddObjectToObject(all, "window");
	const struct fr_input *with_clock = NULL;
	bool ok = o && add_u64(o, "from_ns", r->first_ns) && add_u64(o, "to_ns", r->last_ns) &&
		  cJSON_AddNumberToObject(
			  o, "seconds", (double)(r->last_ns - r->first_ns) / (double)FR_NSEC_PER_SEC);

	for (size_t i = 0; i < in->n && !with_clock; i++)
		if (in->v[i].has_clock)
			with_clock = &in->v[i];
	if (!ok || !with_clock)
		return ok;
	return add_time(o, "from", r->first_ns + (uint64_t)with_clock->clock_offset_ns) &&
	       add_time(o, "to", r->last_ns + (uint64_t)with_clock->clock_offset_ns);
}

/* What made the dumps. */
static bool add_causes(cJSON *all, const cJSON *dumps)
{
	cJSON *causes = cJSON_AddArrayToObject(all, "causes");
	const cJSON *dump, *first;
	bool ok = causes;

	cJSON_ArrayForEach (dump, dumps) {
		const cJSON *list = cJSON_GetObjectItemCaseSensitive(dump, "causes"), *one;

		cJSON_ArrayForEach (one, list) {
			cJSON *copy = ok ? cJSON_Duplicate(one, true) : NULL;

			ok = copy && cJSON_AddItemToArray(causes, copy);
		}
	}
	first = causes ? causes->child : NULL;
	return ok && (!first || cJSON_AddItemToObject(all, "cause", cJSON_Duplicate(first, true)));
}

/* One entry of the "losses" of a dump. */
struct loss {
	const cJSON *entry;
	const char *cause, *event;
	double cpu, count;
	size_t order; /* of the dump */
};

static const char *text_of(const cJSON *o, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));

	return text ? text : "";
}

static double number_of(const cJSON *o, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static int by_counter(const struct loss *x, const struct loss *y)
{
	const int cause = strcmp(x->cause, y->cause), event = strcmp(x->event, y->event);

	return cause ? cause : event ? event : x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static int by_counter_and_dump(const void *a, const void *b)
{
	const struct loss *x = a, *y = b;
	const int r = by_counter(x, y);

	return r ? r : x->order < y->order ? -1 : x->order > y->order;
}

/* Those of all DUMPS, to be freed; NULL without memory. */
static struct loss *collect_losses(const cJSON *dumps, size_t *ret_n)
{
	struct loss *v = calloc(1, sizeof(*v)), *grown;
	size_t n = 0, order = 0;
	const cJSON *dump;

	cJSON_ArrayForEach (dump, dumps) {
		const cJSON *list = cJSON_GetObjectItemCaseSensitive(dump, "losses"), *one;

		grown = v ? reallocarray(v, n + (size_t)cJSON_GetArraySize(list) + 1, sizeof(*v)) : NULL;
		if (!grown) {
			free(v);
			return NULL;
		}
		v = grown;
		cJSON_ArrayForEach (one, list)
			v[n++] = (struct loss){.entry = one,
				.cause = text_of(one, "cause"),
				.event = text_of(one, "event"),
				.cpu = number_of(one, "cpu"),
				.count = number_of(one, "count"),
				.order = order};
		order++;
	}
	*ret_n = n;
	return v;
}

/* A dump has what its recorder had lost so far: of the dumps of one run the last counts, and a count that is
   smaller than the one before is of another run. */
static bool add_losses(cJSON *all, const cJSON *dumps)
{
	cJSON *losses = cJSON_AddArrayToObject(all, "losses");
	size_t n = 0;
	_cleanup_free_ struct loss *v = losses ? collect_losses(dumps, &n) : NULL;
	bool ok = v;

	if (ok)
		qsort(v, n, sizeof(*v), by_counter_and_dump);
	for (size_t i = 0; ok && i < n;) {
		double sum = 0;
		size_t end = i;
		cJSON *copy;

		for (; end < n && by_counter(&v[i], &v[end]) == 0; end++)
			if (end + 1 == n || by_counter(&v[i], &v[end + 1]) || v[end + 1].count < v[end].count)
				sum += v[end].count;
		copy = cJSON_Duplicate(v[end - 1].entry, true);
		cJSON_DeleteItemFromObjectCaseSensitive(copy, "count");
		ok = copy && cJSON_AddNumberToObject(copy, "count", sum) &&
		     cJSON_AddItemToArray(losses, copy);
		i = end;
	}
	return ok;
}

static bool add_members(cJSON *all, const struct fr_inputs *in, const struct fr_merge_report *r,
	const char *name, bool compressed)
{
	const char *boot_id = "", *host = NULL;

	for (size_t i = 0; i < in->n; i++) {
		boot_id = *boot_id ? boot_id : in->v[i].boot_id;
		host = host ? host : fr_feature_get_string(&in->v[i].head, FR_FEATURE_HOSTNAME);
	}
	return cJSON_AddNumberToObject(all, "version", 1) && cJSON_AddStringToObject(all, "file", name) &&
	       (!*boot_id || cJSON_AddStringToObject(all, "boot_id", boot_id)) &&
	       (!host || cJSON_AddStringToObject(all, "host", host)) &&
	       add_time(all, "time", fr_now_ns(CLOCK_REALTIME)) && add_window(all, in, r) &&
	       add_u64(all, "samples", r->samples) && add_u64(all, "inputs", r->n_inputs) &&
	       cJSON_AddBoolToObject(all, "compressed", compressed);
}

char *fr_sidecar_unite(
	const struct fr_inputs *in, const struct fr_merge_report *report, const char *name, bool compressed)
{
	cJSON *all = cJSON_CreateObject(), *dumps;
	bool ok = all && add_members(all, in, report, name, compressed);
	char *text;

	dumps = ok ? cJSON_CreateArray() : NULL;
	ok = dumps;
	for (size_t i = 0; i < in->n && ok; i++)
		if (in->v[i].meta)
			ok = add_dumps(dumps, in->v[i].meta);
	ok = ok && add_causes(all, dumps) && add_losses(all, dumps);
	/* Behind what it sums up. */
	if (!dumps || !cJSON_AddItemToObject(all, "dumps", dumps))
		cJSON_Delete(dumps);
	text = ok ? cJSON_Print(all) : NULL;
	cJSON_Delete(all);
	return text;
}
