// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/cgroups.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "perfdata/features.h"

#include <errno.h>
#include <fcntl.h>
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

/* Appends copies of the items of LIST to TO. LIST may be NULL, or not a list. */
static bool copy_items(cJSON *to, const cJSON *list)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, list)
		if (!cJSON_AddItemToArray(to, cJSON_Duplicate(item, true)))
			return false;
	return true;
}

/* Appends a copy of the sidecar META to DUMPS. The merged file has the cgroups of all dumps, so that its JSON
   does not become large. */
static bool add_dump(cJSON *dumps, const cJSON *meta)
{
	cJSON *copy = cJSON_Duplicate(meta, true);

	cJSON_DeleteItemFromObjectCaseSensitive(copy, FR_SIDECAR_CGROUPS);
	return cJSON_AddItemToArray(dumps, copy);
}

/* Adds the sidecars of the inputs. If an input is the output of an earlier merge, adds instead the sidecars
   that its sidecar has in "dumps". */
static bool add_dumps(cJSON *dumps, const struct fr_inputs *in)
{
	bool ok = true;

	for (size_t i = 0; i < in->n && ok; i++) {
		const cJSON *meta = in->v[i].meta;
		const cJSON *merged = cJSON_GetObjectItemCaseSensitive(meta, "dumps"), *dump;

		if (!cJSON_IsArray(merged))
			ok = !meta || add_dump(dumps, meta);
		else
			cJSON_ArrayForEach (dump, merged)
				ok = ok && add_dump(dumps, dump);
	}
	return ok;
}

/* Adds the times of the first and the last sample, also as wall time if an input has CLOCK_DATA. */
static bool add_window(cJSON *all, const struct fr_inputs *in, const struct fr_merge_report *r)
{
	cJSON *o = cJSON_AddObjectToObject(all, "window");
	const struct fr_input *with_clock = NULL;
	bool ok = o && fr_json_add_u64(o, "from_ns", r->first_ns) &&
		  fr_json_add_u64(o, "to_ns", r->last_ns) &&
		  cJSON_AddNumberToObject(
			  o, "seconds", (double)(r->last_ns - r->first_ns) / (double)FR_NSEC_PER_SEC);

	for (size_t i = 0; i < in->n && !with_clock; i++)
		if (in->v[i].has_clock)
			with_clock = &in->v[i];
	if (!ok || !with_clock)
		return ok;
	return fr_json_add_time(o, "from", r->first_ns + (uint64_t)with_clock->clock_offset_ns) &&
	       fr_json_add_time(o, "to", r->last_ns + (uint64_t)with_clock->clock_offset_ns);
}

/* Adds "causes", the causes of all dumps, and "cause", the first of these causes. */
static bool add_causes(cJSON *all, const cJSON *dumps)
{
	cJSON *causes = cJSON_AddArrayToObject(all, "causes");
	bool ok = causes;
	const cJSON *dump;

	cJSON_ArrayForEach (dump, dumps)
		ok = ok && copy_items(causes, cJSON_GetObjectItemCaseSensitive(dump, "causes"));
	if (ok && causes->child)
		ok = cJSON_AddItemToObject(all, "cause", cJSON_Duplicate(causes->child, true));
	return ok;
}

/* An item of the array "losses" of a dump. */
struct loss {
	const cJSON *entry;
	const char *cause, *event;
	double cpu, count;
	size_t dump;
};

static double get_number(const cJSON *o, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* Compares the counters of two losses: cause, event and CPU. Returns 0 if the two losses are of the same
   counter. */
static int compare_counters(const struct loss *x, const struct loss *y)
{
	const int cause = strcmp(x->cause, y->cause), event = strcmp(x->event, y->event);

	return cause ? cause : event ? event : x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static int compare_losses(const void *a, const void *b)
{
	const struct loss *x = a, *y = b;
	const int r = compare_counters(x, y);

	return r ? r : x->dump < y->dump ? -1 : x->dump > y->dump;
}

/* Returns the losses of all dumps, which the caller frees; or NULL if there is no memory. */
static struct loss *collect_losses(const cJSON *dumps, size_t *ret_n)
{
	const cJSON *dump, *list, *one;
	size_t n = 0, order = 0;
	struct loss *v;

	cJSON_ArrayForEach (dump, dumps)
		n += (size_t)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(dump, "losses"));
	v = calloc(n + 1, sizeof(*v));
	if (!v)
		return NULL;
	*ret_n = n;
	n = 0;
	cJSON_ArrayForEach (dump, dumps) {
		list = cJSON_GetObjectItemCaseSensitive(dump, "losses");
		order++;
		cJSON_ArrayForEach (one, list)
			v[n++] = (struct loss){.entry = one,
				.cause = fr_json_text(one, "cause"),
				.event = fr_json_text(one, "event"),
				.cpu = get_number(one, "cpu"),
				.count = get_number(one, "count"),
				.dump = order};
	}
	return v;
}

/* Adds "losses": the sum of each counter. A counter counts from the start of a recorder on, so the last dump
   of a recorder has the losses of all its dumps. If a count is smaller than in the previous dump, another
   recorder has begun to count from 0. In this case the count of the previous dump is added to the sum. */
static bool add_losses(cJSON *all, const cJSON *dumps)
{
	cJSON *losses = cJSON_AddArrayToObject(all, "losses");
	size_t n = 0;
	_cleanup_free_ struct loss *v = losses ? collect_losses(dumps, &n) : NULL;
	bool ok = v;
	double sum = 0;

	if (ok)
		qsort(v, n, sizeof(*v), compare_losses);
	for (size_t i = 0; ok && i < n; i++) {
		bool is_last = i + 1 == n || compare_counters(&v[i], &v[i + 1]) != 0;
		cJSON *copy;

		if (is_last || v[i + 1].count < v[i].count)
			sum += v[i].count;
		if (!is_last)
			continue;
		copy = cJSON_Duplicate(v[i].entry, true);
		cJSON_DeleteItemFromObjectCaseSensitive(copy, "count");
		ok = copy && cJSON_AddNumberToObject(copy, "count", sum) &&
		     cJSON_AddItemToArray(losses, copy);
		sum = 0;
	}
	return ok;
}

static bool add_members(cJSON *all, const struct fr_inputs *in, const struct fr_merge_report *r,
	const char *name, bool compressed)
{
	sd_id128_t boot_id = SD_ID128_NULL;
	const char *host = NULL;

	for (size_t i = 0; i < in->n; i++) {
		boot_id = sd_id128_is_null(boot_id) ? in->v[i].boot_id : boot_id;
		host = host ? host : fr_feature_get_string(&in->v[i].head, FR_FEATURE_HOSTNAME);
	}
	return cJSON_AddNumberToObject(all, "version", 1) && cJSON_AddStringToObject(all, "file", name) &&
	       (sd_id128_is_null(boot_id) ||
		       cJSON_AddStringToObject(all, "boot_id", SD_ID128_TO_STRING(boot_id))) &&
	       (!host || cJSON_AddStringToObject(all, "host", host)) &&
	       fr_json_add_time(all, "time", fr_now_ns(CLOCK_REALTIME)) && add_window(all, in, r) &&
	       fr_json_add_u64(all, "samples", r->samples) && fr_json_add_u64(all, "inputs", r->n_inputs) &&
	       cJSON_AddBoolToObject(all, "compressed", compressed);
}

int fr_sidecar_unite(const struct fr_inputs *in, const struct fr_merge_report *report, const char *name,
	bool compressed, char **ret)
{
	cJSON *all = cJSON_CreateObject(), *dumps = cJSON_CreateArray();
	bool ok = all && dumps && add_members(all, in, report, name, compressed) && add_dumps(dumps, in) &&
		  add_causes(all, dumps) && add_losses(all, dumps) && fr_merge_add_cgroups(all, in);
	bool is_needed = cJSON_GetArraySize(dumps) > 0;

	/* Add the dumps as the last member, after the sums over all dumps. */
	if (!dumps || !cJSON_AddItemToObject(all, "dumps", dumps))
		cJSON_Delete(dumps);
	*ret = ok && is_needed ? cJSON_Print(all) : NULL;
	cJSON_Delete(all);
	return ok && (*ret || !is_needed) ? 0 : -ENOMEM;
}
