// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/cgroups.h"
#include "base/cleanup.h"
#include "merge/cgroups.h"
#include "sideband/blob.h"
#include "sideband/hash.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define PROCESSES_MAX (1u << 20)
#define PARENTS_MAX 32
#define INIT 1 /* the processes that it makes belong to many services */

/* A process that was there when a dump was made. */
struct member {
	UT_hash_handle hh;
	uint32_t pid;
	bool is_wanted;
};

struct fr_cgroups {
	const char *wanted;
	struct member *members;
	bool has_any, has_wanted; /* of the cgroups in the JSON */
	bool in_samples;
};

bool fr_cgroup_matches(const char *wanted, const char *path, size_t len)
{
	const bool from_root = wanted[0] == '/';
	const size_t skip = strspn(wanted, "/");
	size_t n = strlen(wanted) - skip;

	wanted += skip;
	while (n > 0 && wanted[n - 1] == '/')
		n--;
	if (n == 0) /* the root: all cgroups are below it */
		return true;
	for (size_t at = 0; at < len; at++) {
		const char *end = path + at + 1 + n;

		if (path[at] != '/' || (from_root && at > 0))
			continue;
		if (len - at - 1 >= n && memcmp(path + at + 1, wanted, n) == 0 &&
			(end == path + len || *end == '/'))
			return true;
	}
	return false;
}

static int add_member(struct fr_cgroups *c, uint32_t pid, bool is_wanted)
{
	struct member *m = FR_HASH_FIND(c->members, pid, pid);

	if (!m && HASH_COUNT(c->members) < PROCESSES_MAX) {
		m = FR_HASH_NEW(c->members, pid, pid);
		if (!m)
			return -ENOMEM;
	}
	if (m)
		m->is_wanted = is_wanted;
	return 0;
}

static int add_sidecar(struct fr_cgroups *c, const cJSON *meta)
{
	const cJSON *group, *pid;
	int r = 0;

	cJSON_ArrayForEach (group, cJSON_GetObjectItemCaseSensitive(meta, FR_SIDECAR_CGROUPS)) {
		const bool is_wanted =
			group->string && fr_cgroup_matches(c->wanted, group->string, strlen(group->string));

		c->has_any = true;
		c->has_wanted |= is_wanted;
		cJSON_ArrayForEach (pid, group)
			if (r == 0 && cJSON_IsNumber(pid) && pid->valuedouble > 0 &&
				pid->valuedouble <= INT_MAX)
				r = add_member(c, (uint32_t)pid->valuedouble, is_wanted);
	}
	return r;
}

static int read_sidecar(struct fr_cgroups *c, const char *path)
{
	cJSON *meta = fr_sidecar_read(path);
	const int r = add_sidecar(c, meta);

	cJSON_Delete(meta);
	return r;
}

int fr_cgroups_new(const char *wanted, const char *path, const struct fr_recording *r,
	struct fr_cgroups **ret, struct fr_diag *d)
{
	struct fr_cgroups *c = calloc(1, sizeof(*c));
	int x;

	if (!c)
		return -ENOMEM;
	c->wanted = wanted;
	for (size_t i = 0; i < fr_recording_n_events(r); i++)
		c->in_samples |= !!(fr_recording_event(r, i)->attr->sample_type & PERF_SAMPLE_CGROUP);
	x = read_sidecar(c, path);
	if (x == 0 && !c->has_any && !c->in_samples)
		x = fr_fail(d, -ENODATA, "record with flightrecd, or with perf record --all-cgroups",
			"--cgroup: %s does not say in which cgroups its processes were", path);
	else if (x == 0 && !c->has_wanted && !c->in_samples)
		x = fr_fail(d, -ENOENT,
			"give its path, or the end of its path, as system.slice/nginx.service",
			"--cgroup: no process in %s was in the cgroup '%s'", path, wanted);
	if (x < 0) {
		fr_cgroups_free(c);
		return x;
	}
	*ret = c;
	return 0;
}

struct fr_cgroups *fr_cgroups_free(struct fr_cgroups *c)
{
	if (c)
		FR_HASH_CLEAR(c->members, free);
	free(c);
	return NULL;
}

bool fr_cgroups_have(
	const struct fr_cgroups *c, const struct fr_recording *r, const struct fr_sample_fields *s)
{
	const struct fr_model *model = fr_recording_model(r);
	const struct fr_blob *path = s->cgroup ? fr_model_cgroup(model, s->cgroup) : NULL;
	uint32_t pid = s->pid;

	if (path)
		return fr_cgroup_matches(c->wanted, (const char *)path->data, path->len);
	for (int i = 0; i < PARENTS_MAX && pid != 0; i++) {
		const struct member *m = i > 0 && pid == INIT ? NULL : FR_HASH_FIND(c->members, pid, pid);

		if (m)
			return m->is_wanted;
		pid = pid == INIT ? 0 : fr_model_parent(model, pid);
	}
	return false;
}
