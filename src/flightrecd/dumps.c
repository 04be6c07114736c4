// SPDX-License-Identifier: GPL-2.0-or-later
/* From a trigger to a job of the dumper, and from its outcome to the log, the counters and who waits. */
#include "flightrecd/daemon.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"
#include "flightrecd/triggers.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* How many dumps of this run `List` can tell of; the directory knows them all. */
#define DUMPS_REMEMBERED 256

struct fr_dump_asked fr_daemon_asked(const struct fr_daemon *m, const char *name)
{
	const struct fr_trigger_config *t = fr_config_find_trigger(m->config, name);
	struct fr_dump_asked asked = {.last_ns = m->config->window_ns, .post_ns = m->config->post_trigger_ns};

	if (t && t->window_ns != FR_TRIGGER_UNSET)
		asked.last_ns = t->window_ns;
	if (t && t->post_ns != FR_TRIGGER_UNSET)
		asked.post_ns = t->post_ns;
	return asked;
}

static void set_window(struct fr_dump_job *job)
{
	const struct fr_dump_asked *a = &job->asked;

	if (a->from_ns || a->to_ns) {
		job->from_ns = a->from_ns;
		job->to_ns = a->to_ns ? a->to_ns : job->trigger_ns;
		return;
	}
	job->from_ns = a->last_ns && a->last_ns < job->trigger_ns ? job->trigger_ns - a->last_ns : 0;
	job->to_ns = job->trigger_ns + a->post_ns;
	job->ready_ns = a->post_ns ? job->to_ns : 0;
	if (job->automatic && !job->final)
		job->ready_ns = FR_MAX(job->to_ns, job->trigger_ns + FR_DUMPER_TOGETHER_NS);
}

/* "cause" is the first trigger's, "causes" has that of each. NULL: no memory. */
static cJSON *new_meta(const struct fr_daemon *m, const struct fr_dump_request *q)
{
	cJSON *meta = cJSON_CreateObject(), *cause = fr_cause_json(q->cause, q->uid), *causes;

	if (!cause || !cJSON_AddItemToObject(meta, "cause", cause)) {
		cJSON_Delete(cause);
		cJSON_Delete(meta);
		return NULL;
	}
	causes = cJSON_AddArrayToObject(meta, "causes");
	if (cJSON_AddItemToArray(causes, cJSON_Duplicate(cause, true)) &&
		cJSON_AddStringToObject(meta, "boot_id", m->boot_id))
		return meta;
	cJSON_Delete(meta);
	return NULL;
}

static struct fr_dump_job *new_job(struct fr_daemon *m, const struct fr_dump_request *q)
{
	struct fr_dump_job *job = fr_dump_job_new(FR_JOB_DUMP);

	if (!job || (q->caller && fr_dump_job_add_caller(job, q->caller) < 0) ||
		!(job->meta = new_meta(m, q)))
		return fr_dump_job_free(job);
	job->id = m->next_job_id++;
	job->uid = q->uid == getuid() ? 0 : q->uid;
	job->trigger_ns = q->cause->time_ns;
	job->asked = q->asked;
	job->automatic = q->automatic;
	job->final = m->stop == FR_STOP_DUMP || m->stop == FR_STOP_MERGE;
	if (job->final)
		job->asked.post_ns = 0;
	set_window(job);
	job->compress = m->config->dump_compress && !q->no_compression;
	job->writer = (struct fr_file_writer_config){
		.block_bytes = m->config->block_bytes, .depth = m->config->queue_depth};
	return job;
}

int fr_daemon_dump(struct fr_daemon *m, const struct fr_dump_request *q, uint64_t *ret_id)
{
	struct fr_dump_job *job = new_job(m, q);
	int r;

	if (!job)
		return -ENOMEM;
	r = fr_dumper_submit(m->dumper, job, ret_id);
	if (r < 0) {
		m->dumps_suppressed++;
		fr_dump_job_free(job);
	}
	m->dumps_joined += r > 0;
	return r;
}

static int refuse_cancel(int code, uint64_t id, struct fr_diag *d)
{
	const unsigned long long n = id;

	switch (code) {
	case -EPERM:
		return fr_fail(d, code, "root may take back any", "dump %llu is not yours alone", n);
	case -EBUSY:
		return fr_fail(d, code, "wait for it, and remove the file: flightrecctl rm",
			"dump %llu is being written already", n);
	default:
		return fr_fail(d, code, "`flightrecctl status` lists what waits",
			"no dump with the number %llu waits", n);
	}
}

int fr_daemon_cancel(struct fr_daemon *m, struct fr_call *call, uint64_t id, struct fr_diag *d)
{
	const struct fr_peer *by = fr_call_peer(call);
	struct fr_dump_job *job;
	int r = fr_dumper_cancel(m->dumper, id, by->uid == getuid() ? 0 : by->uid, &job);
	const cJSON *cause;

	if (r < 0)
		return refuse_cancel(r, id, d);
	cause = cJSON_GetObjectItem(job->meta, "cause");
	m->dumps_canceled++;
	job->code = fr_fail(&job->diag, -ECANCELED, "`flightrecctl dump` asks for another one",
		"dump %llu was canceled by pid %d (%s), uid %u", (unsigned long long)id, (int)by->pid,
		by->comm, (unsigned)by->uid);
	fr_log(LOG_NOTICE, "%s; %s: %s, %d causes", job->diag.what,
		cJSON_GetStringValue(cJSON_GetObjectItem(cause, "trigger")),
		cJSON_GetStringValue(cJSON_GetObjectItem(cause, "reason")),
		cJSON_GetArraySize(cJSON_GetObjectItem(job->meta, "causes")));
	for (size_t i = 0; i < job->n_callers; i++)
		fr_verb_job_done(m, job->callers[i], job);
	fr_dump_job_free(job);
	return 0;
}

cJSON *fr_daemon_waiting(struct fr_daemon *m)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	cJSON *waiting = fr_dumper_waiting(m->dumper), *o;
	char stamp[FR_STAMP_SIZE];

	cJSON_ArrayForEach (o, waiting) {
		const uint64_t ready_ns = (uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(o, "ready_ns"));

		cJSON_DeleteItemFromObject(o, "ready_ns");
		/* Without: it waits for its turn alone. */
		if (ready_ns <= pair.monotonic_ns)
			continue;
		fr_rfc3339_format(fr_clock_to_realtime(&pair, ready_ns), stamp);
		cJSON_AddStringToObject(o, "until", stamp);
		cJSON_AddNumberToObject(o, "seconds", (double)(ready_ns - pair.monotonic_ns) / 1e9);
	}
	return waiting;
}

static const char *why(const struct fr_dump_job *job)
{
	return job->diag.code ? job->diag.what : strerror(-job->code);
}

static void log_failure(const struct fr_dump_job *job, const struct fr_log_field *fields, unsigned n)
{
	static const char *const then[] = {
		[FR_OUTCOME_DONE] = "",
		[FR_OUTCOME_KEPT] = "; its data is kept in memory and is tried again every 10 s",
		[FR_OUTCOME_RESCUED] = "",
		[FR_OUTCOME_GIVEN_UP] = "; given up, its data is no longer kept",
	};

	fr_log_struct(LOG_ERR, FR_MSG_DUMP_FAILED, fields, n, "dump failed: %s%s%s%s", why(job),
		then[job->outcome], job->diag.hint[0] ? "\n  " : "", job->diag.hint);
}

static void log_dump(struct fr_daemon *m, const struct fr_dump_job *job)
{
	char bytes[FR_UNIT_SIZE], span[FR_UNIT_SIZE], took[FR_UNIT_SIZE];
	const char *directory = job->directory ? job->directory : m->config->directory;
	const cJSON *cause = cJSON_GetObjectItem(job->meta, "cause");
	struct fr_log_field fields[FR_CAUSE_FIELDS + 2];
	struct fr_cause_field_texts texts;
	unsigned n = fr_cause_fields(cause, fields, &texts);

	if (job->followed)
		fr_log(LOG_NOTICE, "%s is another directory than before: files go there now",
			m->config->directory);
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
		cJSON_GetStringValue(cJSON_GetObjectItem(cause, "trigger")),
		cJSON_GetStringValue(cJSON_GetObjectItem(cause, "reason")));
	if (job->result.owner_error < 0)
		fr_log(LOG_WARNING, "%s/%s could not be given to root: %s\n  perf opens it with -f",
			directory, job->result.name, strerror(-job->result.owner_error));
	if (job->result.not_durable)
		fr_log(LOG_WARNING,
			"%s/%s is not durable: its directory could not be synced: %s\n"
			"  it is whole, but a power cut may take it away: copy it elsewhere, and see "
			"journalctl -k",
			directory, job->result.name, strerror(job->result.not_durable));
	if (job->result.sidecar_error < 0)
		fr_log(LOG_WARNING, "%s/%s.json could not be written: %s", directory, job->result.name,
			strerror(-job->result.sidecar_error));
}

static void remember_dump(struct fr_daemon *m, const struct fr_dump_job *job)
{
	cJSON *o = job->meta ? cJSON_Duplicate(job->meta, true) : cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "id", (double)job->id);
	if (job->code < 0)
		cJSON_AddStringToObject(o, "error", why(job));
	cJSON_Delete(m->last_dump);
	m->last_dump = o;
	if (job->code < 0)
		return;
	snprintf(m->writer, sizeof(m->writer), "%s", job->result.how);
	if (!m->dumps)
		m->dumps = cJSON_CreateArray();
	cJSON_AddItemToArray(m->dumps, cJSON_Duplicate(o, true));
	if (cJSON_GetArraySize(m->dumps) > DUMPS_REMEMBERED)
		cJSON_DeleteItemFromArray(m->dumps, 0);
}

static void forget_dump(struct fr_daemon *m, const char *name)
{
	int n = cJSON_GetArraySize(m->dumps);

	for (int i = 0; i < n; i++) {
		const char *file =
			cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(m->dumps, i), "file"));

		if (file && !strcmp(file, name)) {
			cJSON_DeleteItemFromArray(m->dumps, i);
			return;
		}
	}
}

static void take_removals(struct fr_daemon *m, const struct fr_dump_job *job)
{
	const struct fr_vacuum_report *v = &job->vacuum;
	char bytes[FR_UNIT_SIZE];

	for (size_t i = 0; i < v->n_removed; i++)
		forget_dump(m, v->removed[i]);
	m->dumps_removed += v->n_removed;
	if (v->n_removed)
		fr_log(LOG_INFO, "removed %zu dumps, %s, from %s on", v->n_removed,
			fr_size_format(v->freed_bytes, bytes), v->removed[0]);
	if (job->vacuum_diag.code)
		fr_log_diag(LOG_WARNING, &job->vacuum_diag, job->vacuum_diag.code);
}

static void count_dump(struct fr_daemon *m, const struct fr_dump_job *job)
{
	m->dumps_not_durable += job->code >= 0 && job->result.not_durable;
	switch (job->outcome) {
	case FR_OUTCOME_DONE:
	case FR_OUTCOME_KEPT:
		if (job->code < 0)
			m->dumps_failed++;
		else
			m->dumps_done++;
		break;
	case FR_OUTCOME_RESCUED:
		m->dumps_rescued++;
		break;
	case FR_OUTCOME_GIVEN_UP:
		m->dumps_given_up++;
		break;
	}
}

void fr_daemon_reap(struct fr_daemon *m)
{
	struct fr_dump_job *job;

	while ((job = fr_dumper_reap(m->dumper))) {
		take_removals(m, job);
		if (job->kind == FR_JOB_DUMP) {
			count_dump(m, job);
			log_dump(m, job);
			/* One that was kept tells of itself again, as a file or given up. */
			if (m->triggers)
				fr_triggers_set_dump_file(
					m->triggers, job->id, job->code < 0 ? NULL : job->result.name);
			if (job->code == 0 && job->result.name[0])
				fr_collector_submit(m->collector, job->result.name);
			remember_dump(m, job);
		}
		for (size_t i = 0; i < job->n_callers; i++)
			fr_verb_job_done(m, job->callers[i], job);
		if (job->final)
			sd_event_exit(m->event, fr_exit_code(job->code));
		fr_dump_job_free(job);
	}
}
