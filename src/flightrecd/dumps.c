// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/dumps.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "dumper/window.h"
#include "reporting/cause.h"
#include "reporting/dump_report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct fr_dump_asked fr_daemon_asked_window(const struct fr_daemon *m, uint64_t window_ns, uint64_t post_ns)
{
	return (struct fr_dump_asked){
		.last_ns = window_ns == FR_TRIGGER_UNSET ? m->config->window_ns : window_ns,
		.post_ns = post_ns == FR_TRIGGER_UNSET ? m->config->post_trigger_ns : post_ns};
}

struct fr_dump_asked fr_daemon_asked(const struct fr_daemon *m, const char *name)
{
	const struct fr_trigger_config *t = fr_config_find_trigger(m->config, name);

	return fr_daemon_asked_window(
		m, t ? t->window_ns : FR_TRIGGER_UNSET, t ? t->post_ns : FR_TRIGGER_UNSET);
}

static void set_rings(const struct fr_daemon *m, struct fr_dump_job *job)
{
	job->n_rings = m->rings.n > 1 ? m->rings.n : 0;
	for (unsigned i = 0; i < job->n_rings; i++) {
		snprintf(job->rings[i].name, sizeof(job->rings[i].name), "%s", m->rings.name[i]);
		job->rings[i].window_ns = i ? m->config->ring[i - 1].window_ns : 0;
	}
}

static struct fr_dump_job *new_job(struct fr_daemon *m, const struct fr_dump_request *q)
{
	struct fr_dump_job *job = fr_dump_job_new(FR_JOB_DUMP);

	if (!job || (q->call && fr_dump_job_add_caller(job, q->call) < 0) ||
		!(job->meta = fr_cause_new_meta(q->cause, q->uid, m->boot_id, NULL)))
		return fr_dump_job_free(job);
	job->id = m->counters.next_job_id++;
	job->uid = q->uid == getuid() ? 0 : q->uid;
	job->trigger_ns = q->cause->time_ns;
	job->asked = q->asked;
	job->automatic = q->automatic;
	job->final = m->stop == FR_STOP_DUMP || m->stop == FR_STOP_MERGE;
	if (job->final)
		job->asked.post_ns = 0;
	fr_dump_job_set_window(job);
	set_rings(m, job);
	job->hold = q->hold;
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
		m->counters.dumps_suppressed++;
		fr_dump_job_free(job);
	}
	m->counters.dumps_joined += r > 0;
	return r;
}

void fr_daemon_submit(struct fr_daemon *m, struct fr_call *call, struct fr_dump_job *job)
{
	struct fr_diag d = {0};
	int r = fr_dump_job_add_caller(job, call);

	if (r == 0)
		r = fr_dumper_submit(m->dumper, job, NULL);
	if (r >= 0)
		return;
	fr_dump_job_free(job);
	fr_fail(&d, r, "try again when `flightrecctl status` shows fewer queued dumps",
		"too many dumps are waiting already");
	fr_call_fail(call, &d, r);
}

static cJSON *reply_of(const struct fr_daemon *m, const struct fr_dump_job *job)
{
	switch (job->kind) {
	case FR_JOB_DUMP:
		return fr_dump_reply(job, m->config->directory);
	case FR_JOB_RELEASE:
		return NULL;
	case FR_JOB_VACUUM:
	case FR_JOB_REMOVE:
		break;
	}
	return fr_vacuum_reply(job);
}

static void answer_callers(const struct fr_daemon *m, const struct fr_dump_job *job)
{
	const struct fr_diag failure = fr_dump_failure(job);

	for (size_t i = 0; i < job->n_callers; i++)
		if (job->code < 0)
			fr_call_fail(job->callers[i], &failure, job->code);
		else
			fr_call_reply(job->callers[i], reply_of(m, job));
}

int fr_daemon_cancel(struct fr_daemon *m, struct fr_call *call, uint64_t id, struct fr_diag *d)
{
	const struct fr_peer *by = fr_call_peer(call);
	struct fr_dump_job *job;
	int r = fr_dumper_cancel(m->dumper, id, by->uid == getuid() ? 0 : by->uid, &job, d);
	const cJSON *cause;

	if (r < 0)
		return r;
	cause = cJSON_GetObjectItem(job->meta, "cause");
	m->counters.dumps_canceled++;
	job->code = fr_fail(&job->diag, -ECANCELED, "`flightrecctl dump` asks for another one",
		"dump %llu was canceled by pid %d (%s), uid %u", (unsigned long long)id, (int)by->pid,
		by->comm, (unsigned)by->uid);
	fr_log(LOG_NOTICE, "%s; %s: %s, %d causes", job->diag.what, fr_json_text(cause, "trigger"),
		fr_json_text(cause, "reason"), cJSON_GetArraySize(cJSON_GetObjectItem(job->meta, "causes")));
	answer_callers(m, job);
	fr_dump_job_free(job);
	return 0;
}

static void take_removals(struct fr_daemon *m, const struct fr_dump_job *job)
{
	const struct fr_vacuum_report *v = &job->vacuum;
	char bytes[FR_UNIT_SIZE];

	for (size_t i = 0; i < v->n_removed; i++)
		fr_recent_dumps_forget(&m->recent_dumps, v->removed[i]);
	m->counters.dumps_removed += v->n_removed;
	if (v->n_removed)
		fr_log(LOG_INFO, "removed %zu dumps, %s, from %s on", v->n_removed,
			fr_size_format(v->freed_bytes, bytes), v->removed[0]);
	if (v->n_held_removed)
		fr_log(LOG_WARNING,
			"%llu of the removed dumps were not uploaded yet: the disk had no room\n"
			"  give it more room, or look at `flightrecctl status` and at flightrec-agent",
			(unsigned long long)v->n_held_removed);
	if (v->n_holds_expired)
		fr_log(LOG_WARNING, "%llu dumps are no longer held: nobody has uploaded them within a day",
			(unsigned long long)v->n_holds_expired);
	if (job->vacuum_diag.code)
		fr_log_diag(LOG_WARNING, &job->vacuum_diag, job->vacuum_diag.code);
}

static void count_dump(struct fr_daemon *m, const struct fr_dump_job *job)
{
	struct fr_counters *c = &m->counters;
	uint64_t *const counters[] = {
		[FR_OUTCOME_DONE] = job->code < 0 ? &c->dumps_failed : &c->dumps_done,
		[FR_OUTCOME_KEPT] = &c->dumps_failed,
		[FR_OUTCOME_RESCUED] = &c->dumps_rescued,
		[FR_OUTCOME_GIVEN_UP] = &c->dumps_given_up,
	};

	(*counters[job->outcome])++;
	c->dumps_not_durable += job->code >= 0 && job->result.not_durable;
}

void fr_daemon_reap(struct fr_daemon *m)
{
	struct fr_dump_job *job;

	while ((job = fr_dumper_reap(m->dumper))) {
		take_removals(m, job);
		if (job->kind == FR_JOB_DUMP) {
			count_dump(m, job);
			fr_dump_log(job, m->config->directory);
			/* If the outcome is FR_OUTCOME_KEPT, this job has failed now, but the dumper tries
			   the write again. Later, the same dump comes here a second time: with a file, or as
			   given up. */
			if (m->triggers)
				fr_triggers_set_dump_file(
					m->triggers, job->id, job->code < 0 ? NULL : job->result.name);
			if (job->code == 0 && job->result.name[0])
				fr_collector_submit(m->collector, job->result.name);
			fr_recent_dumps_add(&m->recent_dumps, job);
		}
		answer_callers(m, job);
		if (job->final)
			sd_event_exit(m->event, fr_exit_code(job->code));
		fr_dump_job_free(job);
	}
}
