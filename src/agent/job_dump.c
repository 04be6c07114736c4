// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads the recorder's description of a dump, and checks each member. */
#include "agent/job.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "fleet/clock.h"

#include <errno.h>
#include <string.h>

#define FILE_PREFIX "perf.data.sample."

static const cJSON *member(const cJSON *o, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(o, name);
}

/* Returns the number NAME of O; 0 if there is none. */
static uint64_t number(const cJSON *o, const char *name)
{
	const double v = cJSON_GetNumberValue(member(o, name));

	return v > 0 && v < 0x1p63 ? (uint64_t)v : 0;
}

static uint64_t count_losses(const cJSON *meta)
{
	const cJSON *loss;
	uint64_t sum = 0;

	cJSON_ArrayForEach (loss, member(meta, "losses"))
		sum += FR_MIN(number(loss, "count"), (uint64_t)1 << 52);
	return FR_MIN(sum, (uint64_t)1 << 53);
}

static bool is_file_name(const char *file)
{
	return !strncmp(file, FILE_PREFIX, strlen(FILE_PREFIX)) &&
	       strlen(file) < sizeof(((struct fr_fleet_manifest *)0)->file) &&
	       strspn(file, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
		       strlen(file);
}

static int fail(struct fr_diag *d, const char *name)
{
	return fr_fail(d, -EBADMSG, "check that the agent and flightrecd have the same version",
		"the recorder's answer has no valid \"%s\"", name);
}

/* Sets the names of the dump. */
static int set_file(struct fr_job *j, const cJSON *meta, struct fr_diag *d)
{
	const char *file = fr_json_text(meta, "file"), *path = fr_json_text(meta, "path");
	const char *slash = strrchr(path, '/');

	if (!is_file_name(file))
		return fail(d, "file");
	if (*path != '/' || strcmp(slash + 1, file) != 0 || strlen(path) >= sizeof(j->path))
		return fail(d, "path");
	strcpy(j->path, path);
	strcpy(j->manifest.file, file);
	return 0;
}

static void set_times(struct fr_job *j, const cJSON *meta)
{
	const cJSON *window = member(meta, "window");
	const uint64_t from_ns = j->from_ns ? j->from_ns : number(window, "from_ns");
	struct fr_fleet_manifest *m = &j->manifest;

	m->clock = j->clock;
	m->from_ns = fr_fleet_clock_to_fleet(&j->clock, from_ns);
	m->to_ns = fr_fleet_clock_to_fleet(&j->clock, j->to_ns);
	m->at_ns = FR_MIN(FR_MAX(j->stored_ns, m->from_ns), m->to_ns);
}

int fr_job_set_dump(struct fr_job *j, const cJSON *meta, struct fr_diag *d)
{
	const struct fr_fleet_command *c = &j->command;
	struct fr_fleet_manifest *m = &j->manifest;
	int r = set_file(j, meta, d);

	if (r < 0)
		return r;
	if (!number(meta, "bytes"))
		return fail(d, "bytes");
	set_times(j, meta);
	snprintf(m->id, sizeof(m->id), "%s", c->id);
	snprintf(m->machine, sizeof(m->machine), "%s", j->answer.machine);
	snprintf(m->boot_id, sizeof(m->boot_id), "%s", fr_json_text(meta, "boot_id"));
	snprintf(m->trigger, sizeof(m->trigger), "%s", c->trigger[0] ? c->trigger : "fleet");
	snprintf(m->cause, sizeof(m->cause), "%s", c->reason);
	snprintf(m->by, sizeof(m->by), "%s", c->by);
	m->bytes = number(meta, "bytes");
	m->samples = number(meta, "samples");
	m->lost = count_losses(meta);
	snprintf(j->answer.path, sizeof(j->answer.path), "%s", j->path);
	j->answer.bytes = m->bytes;
	return 0;
}

static bool is_cause(const struct fr_job *j, const cJSON *cause)
{
	return !strcmp(fr_json_text(cause, "fleet"), j->command.id);
}

bool fr_job_is_dump(const struct fr_job *j, const cJSON *meta)
{
	const cJSON *cause;

	if (is_cause(j, member(meta, "cause")))
		return true;
	cJSON_ArrayForEach (cause, member(meta, "causes"))
		if (is_cause(j, cause))
			return true;
	return false;
}
