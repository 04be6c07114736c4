// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/input.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <fcntl.h>
#include <limits.h>

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

char *fr_sidecar_unite(const struct fr_inputs *in, const char *name)
{
	cJSON *all = cJSON_CreateObject(), *dumps;
	bool ok = all && cJSON_AddNumberToObject(all, "version", 1) &&
		  cJSON_AddStringToObject(all, "file", name);
	char *text;

	dumps = ok ? cJSON_AddArrayToObject(all, "dumps") : NULL;
	ok = dumps;
	for (size_t i = 0; i < in->n && ok; i++)
		if (in->v[i].meta)
			ok = add_dumps(dumps, in->v[i].meta);
	text = ok ? cJSON_Print(all) : NULL;
	cJSON_Delete(all);
	return text;
}
