// SPDX-License-Identifier: GPL-2.0-or-later
#include "reporting/dump_report.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "reporting/cause.h"

#include <stdio.h>
#include <string.h>

static const char *why(const struct fr_dump_job *job)
{
	return job->diag.code ? job->diag.what : strerror(-job->code);
}

static void log_failure(const struct fr_dump_job *job, const struct fr_log_field *fields, unsigned n)
{
	static const char *const then[] = {
		[FR_OUTCOME_DONE] = "",
		[FR_OUTCOME_KEPT] = "; its data stays in memory, and the write is tried again every 10 s",
		[FR_OUTCOME_RESCUED] = "",
		[FR_OUTCOME_GIVEN_UP] = "; given up, its data is no longer kept",
	};

	fr_log_struct(LOG_ERR, FR_MSG_DUMP_FAILED, fields, n, "dump failed: %s%s%s%s", why(job),
		then[job->outcome], job->diag.hint[0] ? "\n  " : "", job->diag.hint);
}

void fr_dump_log(const struct fr_dump_job *job, const char *configured)
{
	char bytes[FR_UNIT_SIZE], span[FR_UNIT_SIZE], took[FR_UNIT_SIZE];
	const char *directory = job->directory ? job->directory : configured;
	const cJSON *cause = cJSON_GetObjectItem(job->meta, "cause");
	struct fr_log_field fields[FR_CAUSE_FIELDS + 2];
	struct fr_cause_field_texts texts;
	unsigned n = fr_cause_fields(cause, fields, &texts);

	if (job->followed)
		fr_log(LOG_NOTICE, "%s is another directory than before: files go there now", configured);
	fields[n++] = (struct fr_log_field){"FLIGHTREC_DIRECTORY", directory};
	if (job->code < 0) {
		log_failure(job, fields, n);
		return;
	}
	fields[n++] = (struct fr_log_field){"FLIGHTREC_FILE", job->result.name};
	fr_log_struct(LOG_INFO, FR_MSG_DUMPED, fields, n,
		"%s/%s: %llu samples of %s in %s, window closed after %.1f ms, written in %s%s; %s: %s",
		directory, job->result.name, (unsigned long long)job->result.samples,
		fr_duration_format(job->result.to_ns - job->result.from_ns, span),
		fr_size_format(job->result.bytes, bytes), (double)job->snapshot_ns / 1e6,
		fr_duration_format(job->result.write_ns, took),
		job->outcome == FR_OUTCOME_RESCUED ? " after it had failed" : "",
		fr_json_text(cause, "trigger"), fr_json_text(cause, "reason"));
	if (job->result.owner_error < 0)
		fr_log(LOG_WARNING, "%s/%s could not be given to root: %s\n  perf opens it with -f",
			directory, job->result.name, strerror(-job->result.owner_error));
	if (job->result.not_durable)
		fr_log(LOG_WARNING,
			"%s/%s is not durable: its directory could not be synced: %s\n"
			"  it is whole, but a power failure can remove it: copy it elsewhere, and see "
			"journalctl -k",
			directory, job->result.name, strerror(job->result.not_durable));
	if (job->result.sidecar_error < 0)
		fr_log(LOG_WARNING, "%s/%s.json could not be written: %s", directory, job->result.name,
			strerror(-job->result.sidecar_error));
}

cJSON *fr_dump_reply(const struct fr_dump_job *job, const char *directory)
{
	_cleanup_free_ char *path = NULL;
	/* The reply has the members of the sidecar, so that a person reads the same words in the reply and in
	   the sidecar. */
	cJSON *reply = cJSON_Duplicate(job->meta, true);

	if (asprintf(&path, "%s/%s", job->directory ? job->directory : directory, job->result.name) >= 0)
		cJSON_AddStringToObject(reply, "path", path);
	cJSON_AddNumberToObject(reply, "id", (double)job->id);
	cJSON_AddNumberToObject(reply, "window_closed_s", (double)job->snapshot_ns / 1e9);
	return reply;
}

cJSON *fr_vacuum_reply(const struct fr_dump_job *job)
{
	const struct fr_vacuum_report *v = &job->vacuum;
	cJSON *reply = fr_vacuum_json(v);

	if (job->kind == FR_JOB_VACUUM) {
		cJSON_AddNumberToObject(reply, "files", (double)v->files);
		cJSON_AddNumberToObject(reply, "bytes", (double)v->bytes);
	}
	return reply;
}

struct fr_diag fr_dump_failure(const struct fr_dump_job *job)
{
	struct fr_diag d = job->diag;
	size_t n = strlen(d.what);

	if (job->kind == FR_JOB_DUMP && job->outcome == FR_OUTCOME_KEPT && d.code)
		snprintf(d.what + n, sizeof(d.what) - n,
			"; its data stays in memory, and the write is tried again every 10 s");
	return d;
}

cJSON *fr_waiting_dumps_json(struct fr_dumper *dumper)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	cJSON *waiting = fr_dumper_waiting(dumper), *o;

	cJSON_ArrayForEach (o, waiting) {
		const uint64_t ready_ns = (uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(o, "ready_ns"));

		cJSON_DeleteItemFromObject(o, "ready_ns");
		/* If the end of the window has passed, the dump only waits for its turn, and its object gets
		   no "until". */
		if (ready_ns <= pair.monotonic_ns)
			continue;
		fr_json_add_time(o, "until", fr_clock_to_realtime(&pair, ready_ns));
		cJSON_AddNumberToObject(o, "seconds", (double)(ready_ns - pair.monotonic_ns) / 1e9);
	}
	return waiting;
}
