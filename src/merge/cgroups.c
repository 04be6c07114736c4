// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/cgroups.h"
#include "base/cleanup.h"

#define PIDS_MAX (1u << 22) /* the kernel's PID_MAX_LIMIT */
#define GROUPS_MAX 4096

struct cgroups {
	cJSON *object;
	int n_groups;
	uint8_t *seen; /* a bit for each pid */
};

static bool is_new(struct cgroups *c, const cJSON *pid)
{
	const double number = cJSON_IsNumber(pid) ? pid->valuedouble : 0;
	uint32_t i;

	if (!(number >= 1 && number < PIDS_MAX))
		return false;
	i = (uint32_t)number;
	if (c->seen[i / 8] & 1u << i % 8)
		return false;
	c->seen[i / 8] |= (uint8_t)(1u << i % 8);
	return true;
}

static bool add_group(struct cgroups *c, const cJSON *group)
{
	cJSON *to = cJSON_GetObjectItemCaseSensitive(c->object, group->string);
	const cJSON *pid;

	if (!to) {
		if (c->n_groups++ >= GROUPS_MAX)
			return true;
		to = cJSON_AddArrayToObject(c->object, group->string);
	}
	cJSON_ArrayForEach (pid, group)
		if (is_new(c, pid) && !cJSON_AddItemToArray(to, cJSON_CreateNumber(pid->valuedouble)))
			return false;
	return to;
}

bool fr_merge_add_cgroups(cJSON *all, const struct fr_inputs *in)
{
	_cleanup_free_ uint8_t *seen = calloc(1, PIDS_MAX / 8);
	struct cgroups c = {.object = cJSON_CreateObject(), .seen = seen};
	bool ok = c.object && seen;
	const cJSON *group;

	for (size_t i = in->n; i > 0 && ok; i--)
		cJSON_ArrayForEach (
			group, cJSON_GetObjectItemCaseSensitive(in->v[i - 1].meta, FR_SIDECAR_CGROUPS))
			ok = ok && (!group->string || add_group(&c, group));
	if (ok && c.n_groups > 0 && cJSON_AddItemToObject(all, FR_SIDECAR_CGROUPS, c.object))
		return true;
	cJSON_Delete(c.object);
	return ok && c.n_groups == 0;
}
