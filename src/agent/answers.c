// SPDX-License-Identifier: GPL-2.0-or-later
/* Stores what the broker lacks of each job. Only the bus thread does this, so `done` cannot come after
 * `stored`. */
#include "agent/agent_private.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

/* Stores the newest answer of the job. The lock is not held; the job cannot go, since only this thread
   removes jobs. */
static int send_answer(struct fr_agent *a, struct fr_job *j)
{
	char subject[FR_FLEET_SUBJECT_SIZE];
	_cleanup_free_ char *text = NULL;
	struct fr_fleet_answer answer;
	struct fr_diag d = {0};
	unsigned version;
	int r;

	fr_lock(&a->lock);
	answer = j->answer;
	version = j->answer_version;
	fr_unlock(&a->lock);
	text = fr_fleet_answer_json(&answer);
	if (!text)
		return -ENOMEM;
	fr_fleet_subject(FR_SUBJECT_ANSWER, answer.id, a->name, subject);
	r = fr_bus_store(a->bus, FR_STREAM_ANSWERS, subject, text, strlen(text), FR_BUS_ANY,
		AGENT_BUS_TIMEOUT_NS, NULL, &d);
	if (r < 0) {
		fr_agent_bus_failed(a, &d, r);
		return r;
	}
	fr_lock(&a->lock);
	j->sent_version = version;
	fr_unlock(&a->lock);
	return 0;
}

/* Puts the dump into the index. The store has it. */
static int send_index(struct fr_agent *a, struct fr_job *j)
{
	char subject[FR_FLEET_SUBJECT_SIZE];
	_cleanup_free_ char *text = fr_fleet_manifest_json(&j->manifest);
	struct fr_diag d = {0};
	int r;

	if (!text)
		return -ENOMEM;
	fr_fleet_subject(FR_SUBJECT_INDEX, j->command.id, a->name, subject);
	r = fr_bus_store(a->bus, FR_STREAM_INDEX, subject, text, strlen(text), FR_BUS_ANY,
		AGENT_BUS_TIMEOUT_NS, NULL, &d);
	if (r < 0) {
		fr_agent_bus_failed(a, &d, r);
		return r;
	}
	if (j->manifest.object[0]) {
		fr_lock(&a->lock);
		snprintf(j->answer.object, sizeof(j->answer.object), "%s", j->manifest.object);
		j->answer.uploaded_bytes = 0;
		fr_job_answer(j, FR_FLEET_STORED, "");
		a->stats.stored++;
		fr_unlock(&a->lock);
		fr_log_struct(LOG_INFO, FR_MSG_FLEET_STORED, NULL, 0, "%s: the store has %s", j->command.id,
			j->manifest.object);
	}
	fr_table_pass(a, j, FR_JOB_STORED);
	return 0;
}

/* The last answer is stored: the command has no further effect. */
static void finish(struct fr_agent *a, struct fr_job *j)
{
	fr_lock(&a->lock);
	(void)fr_handled_add(&a->handled, j->command.id, j->stored_ns);
	fr_unlock(&a->lock);
	if (fr_table_save_handled(a) < 0)
		return;
	fr_lock(&a->lock);
	fr_table_remove(a, j);
	fr_unlock(&a->lock);
}

/* Does for the job what this thread has to do. Returns 0; 1 if the job is gone; or a negative errno. */
static int serve(struct fr_agent *a, struct fr_job *j)
{
	enum fr_job_phase phase;
	bool is_sent, is_held;
	int r = 0;

	fr_lock(&a->lock);
	phase = j->phase;
	is_sent = j->answer_version == j->sent_version;
	fr_unlock(&a->lock);
	if (phase == FR_JOB_INDEX)
		r = send_index(a, j);
	if (r == 0 && (!is_sent || phase == FR_JOB_INDEX))
		r = send_answer(a, j);
	if (r < 0)
		return r;
	fr_lock(&a->lock);
	phase = j->phase;
	is_sent = j->answer_version == j->sent_version;
	fr_unlock(&a->lock);
	if (!is_sent || (phase != FR_JOB_STORED && phase != FR_JOB_END))
		return 0;
	is_held = phase == FR_JOB_STORED && j->is_held;
	if (phase == FR_JOB_STORED)
		fr_table_pass(a, j, is_held ? FR_JOB_RELEASE : FR_JOB_END);
	if (is_held)
		return 0;
	finish(a, j);
	return 1;
}

/* Returns the job with the number I, or NULL. */
static struct fr_job *job_at(struct fr_agent *a, size_t i)
{
	struct fr_job *j;

	fr_lock(&a->lock);
	j = i < a->n_jobs ? a->jobs[i] : NULL;
	fr_unlock(&a->lock);
	return j;
}

int fr_agent_send_answers(struct fr_agent *a)
{
	struct fr_job *j;

	for (size_t i = 0; (j = job_at(a, i));) {
		int r;

		atomic_store(&a->bus_beat_ns, fr_monotonic_ns());
		r = serve(a, j);
		if (r < 0)
			return r;
		i += r == 0;
	}
	return 0;
}
