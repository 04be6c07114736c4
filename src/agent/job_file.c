// SPDX-License-Identifier: GPL-2.0-or-later
/* The file of a job. The messages in it have the same form as on the bus, and are checked in the same way. */
#include "agent/job.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/units.h"

#include <errno.h>
#include <string.h>

#define VERSION 1

/* Adds the text of a message, which this function frees, to O. */
static bool add_message(cJSON *o, const char *name, char *text)
{
	const bool ok = text && cJSON_AddRawToObject(o, name, text);

	free(text);
	return ok;
}

static bool add_time(cJSON *o, const char *name, uint64_t ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, ns);
	return cJSON_AddStringToObject(o, name, text);
}

static bool has_dump(const struct fr_job *j)
{
	return j->manifest.file[0] != '\0';
}

static bool add_all(cJSON *o, const struct fr_job *j)
{
	bool ok = cJSON_AddNumberToObject(o, "version", VERSION) &&
		  cJSON_AddStringToObject(o, "phase", fr_job_phase_name(j->phase)) &&
		  add_time(o, "stored_ns", j->stored_ns) &&
		  add_message(o, "command", fr_fleet_command_json(&j->command)) &&
		  add_message(o, "answer", fr_fleet_answer_json(&j->answer)) &&
		  cJSON_AddBoolToObject(o, "held", j->is_held);

	if (has_dump(j))
		ok = ok && add_message(o, "manifest", fr_fleet_manifest_json(&j->manifest)) &&
		     cJSON_AddStringToObject(o, "path", j->path) &&
		     cJSON_AddStringToObject(o, "location", j->location) &&
		     cJSON_AddStringToObject(o, "upload", j->upload);
	return ok;
}

char *fr_job_json(const struct fr_job *j)
{
	cJSON *o = cJSON_CreateObject();
	char *text = o && add_all(o, j) ? cJSON_Print(o) : NULL;

	cJSON_Delete(o);
	return text;
}

static int fail(struct fr_diag *d, const char *name)
{
	return fr_fail(d, -EBADMSG, NULL, "the member \"%s\" is missing or wrong", name);
}

static int read_text(const cJSON *o, const char *name, char *ret, size_t size, struct fr_diag *d)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));

	if (!text || strlen(text) >= size)
		return fail(d, name);
	strcpy(ret, text);
	return 0;
}

/* Sets *RET to the text of the message NAME, which the caller frees. */
static int message_text(const cJSON *o, const char *name, char **ret, struct fr_diag *d)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);

	if (!cJSON_IsObject(item))
		return fail(d, name);
	*ret = cJSON_PrintUnformatted(item);
	return *ret ? 0 : -ENOMEM;
}

static int read_messages(const cJSON *o, struct fr_job *j, struct fr_diag *d)
{
	_cleanup_free_ char *command = NULL, *answer = NULL;
	int r = message_text(o, "command", &command, d);

	if (r == 0)
		r = message_text(o, "answer", &answer, d);
	if (!command || !answer)
		return r;
	if (r == 0)
		r = fr_fleet_command_read(command, strlen(command), &j->command, d);
	return r == 0 ? fr_fleet_answer_read(answer, strlen(answer), &j->answer, d) : r;
}

static int read_dump(const cJSON *o, struct fr_job *j, struct fr_diag *d)
{
	_cleanup_free_ char *manifest = NULL;
	int r = message_text(o, "manifest", &manifest, d);

	if (!manifest)
		return r;
	if (r == 0)
		r = fr_fleet_manifest_read(manifest, strlen(manifest), &j->manifest, d);
	if (r == 0)
		r = read_text(o, "path", j->path, sizeof(j->path), d);
	if (r == 0)
		r = read_text(o, "location", j->location, sizeof(j->location), d);
	return r == 0 ? read_text(o, "upload", j->upload, sizeof(j->upload), d) : r;
}

static int read_phase(const cJSON *o, struct fr_job *j, struct fr_diag *d)
{
	const char *name = fr_json_text(o, "phase");

	for (enum fr_job_phase p = 0; p < FR_JOB_PHASES; p++)
		if (!strcmp(fr_job_phase_name(p), name)) {
			j->phase = p;
			return 0;
		}
	return fail(d, "phase");
}

static int read_all(const cJSON *o, struct fr_job *j, struct fr_diag *d)
{
	int r = read_phase(o, j, d);

	if (r < 0)
		return r;
	if (cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(o, "version")) != VERSION)
		return fail(d, "version");
	if (fr_u64_parse(fr_json_text(o, "stored_ns"), &j->stored_ns) < 0)
		return fail(d, "stored_ns");
	j->is_held = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "held"));
	r = read_messages(o, j, d);
	if (r < 0)
		return r;
	/* A job that ended without a dump has no manifest. */
	if (cJSON_HasObjectItem(o, "manifest"))
		return read_dump(o, j, d);
	return (j->phase >= FR_JOB_UPLOAD && j->phase <= FR_JOB_STORED) || j->is_held ? fail(d, "manifest")
										      : 0;
}

/* Checks that all messages are about the job ID of this machine. */
static int check_ids(const struct fr_job *j, const char *id, const char *name, struct fr_diag *d)
{
	if (strcmp(j->command.id, id) != 0 || strcmp(j->answer.id, id) != 0 ||
		(has_dump(j) && strcmp(j->manifest.id, id) != 0))
		return fr_fail(d, -EBADMSG, NULL, "it is about another command");
	if (strcmp(j->answer.machine, name) != 0 || (has_dump(j) && strcmp(j->manifest.machine, name) != 0))
		return fr_fail(d, -EBADMSG, NULL, "it is about another machine: %s", j->answer.machine);
	return 0;
}

int fr_job_read(
	const char *data, size_t n, const char *id, const char *name, struct fr_job *ret, struct fr_diag *d)
{
	struct fr_job j = {.is_adopted = true};
	cJSON *o = n <= FR_JOB_FILE_MAX ? cJSON_ParseWithLength(data, n) : NULL;
	int r = cJSON_IsObject(o) ? read_all(o, &j, d) : fr_fail(d, -EBADMSG, NULL, "it is not JSON");

	cJSON_Delete(o);
	if (r == 0)
		r = check_ids(&j, id, name, d);
	if (r < 0)
		return r;
	/* The answer is stored again: the broker may not have it. */
	j.answer_version = 1;
	*ret = j;
	return 0;
}
