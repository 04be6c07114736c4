// SPDX-License-Identifier: GPL-2.0-or-later
#include "dumper/job_cgroups.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "base/utf8.h"
#include "sideband/hash.h"
#include "source/cause.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>

#define MEMBER "cgroups"
#define PROCESSES_MAX 65536u

struct group {
	UT_hash_handle hh;
	char path[FR_CAUSE_CGROUP_SIZE]; /* padded with zeros */
	cJSON *pids;			 /* belongs to the object */
};

struct groups {
	cJSON *object;
	struct group *by_path;
};

static struct group *find_group(struct groups *g, const char path[static FR_CAUSE_CGROUP_SIZE])
{
	struct group *found;

	HASH_FIND_STR(g->by_path, path, found);
	if (found)
		return found;
	found = calloc(1, sizeof(*found));
	if (!found)
		return NULL;
	memcpy(found->path, path, sizeof(found->path));
	found->pids = cJSON_AddArrayToObject(g->object, found->path);
	HASH_ADD_STR(g->by_path, path, found);
	if (!found->pids || !found->hh.tbl) {
		if (found->hh.tbl)
			HASH_DEL(g->by_path, found);
		free(found);
		return NULL;
	}
	return found;
}

static bool add_process(struct groups *g, uint64_t pid)
{
	char path[FR_CAUSE_CGROUP_SIZE] = "";
	struct group *group;
	cJSON *number;

	if (fr_cgroup_of_process((pid_t)pid, path) < 0)
		return true; /* it has ended, or is hidden */
	fr_utf8_sanitize(path);
	group = find_group(g, path);
	number = group ? cJSON_CreateNumber((double)pid) : NULL;
	return number && cJSON_AddItemToArray(group->pids, number);
}

void fr_job_drop_cgroups(cJSON *meta)
{
	cJSON_DeleteItemFromObjectCaseSensitive(meta, MEMBER);
}

void fr_job_add_cgroups(cJSON *meta)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc");
	struct groups g = {.object = cJSON_CreateObject()};
	const struct dirent *e;
	bool ok = dir && g.object;
	unsigned n = 0;
	uint64_t pid;

	while (ok && n < PROCESSES_MAX && (e = readdir(dir)))
		if (fr_u64_parse(e->d_name, &pid) == 0 && pid > 0 && pid <= INT_MAX) {
			ok = add_process(&g, pid);
			n++;
		}
	FR_HASH_CLEAR(g.by_path, free);
	if (ok && g.object->child) {
		fr_job_drop_cgroups(meta);
		ok = cJSON_AddItemToObject(meta, MEMBER, g.object);
	} else {
		ok = false;
	}
	if (!ok)
		cJSON_Delete(g.object);
}
