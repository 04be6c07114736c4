// SPDX-License-Identifier: GPL-2.0-or-later
/* From a bell to a job. A bell is only a hint: the stored message counts. Everything in it is untrusted. */
#include "agent/agent_private.h"
#include "base/cleanup.h"
#include "base/units.h"

#include <errno.h>
#include <string.h>

/* A clock that is known less exactly is measured once more, but not again and again: if all machines measure
   at once, the broker is slow for all. */
#define CLOCK_ERROR_NS FR_NSEC_PER_MSEC

/* Returns whether the last token of SUBJECT is an id. Operators measure the clock with another one. */
static bool is_command(const char *subject)
{
	char id[FR_FLEET_ID_SIZE];

	return fr_fleet_subject_parse(subject, FR_SUBJECT_COMMAND, id, NULL) == 0;
}

/* Called on a thread of the bus: must not wait. */
void fr_agent_on_bell(void *agent, const char *subject)
{
	struct fr_agent *a = agent;
	bool known = false;

	if (strlen(subject) >= FR_FLEET_SUBJECT_SIZE || !is_command(subject))
		return;
	fr_lock(&a->lock);
	for (size_t i = 0; i < a->n_bells && !known; i++)
		known = !strcmp(a->bells[i], subject);
	if (!known && a->n_bells < AGENT_BELLS_MAX)
		strcpy(a->bells[a->n_bells++], subject);
	else if (!known)
		a->rescan = true;
	fr_cond_broadcast(&a->cond);
	fr_unlock(&a->lock);
}

/* Returns why no further command is accepted, or NULL. */
static const char *why_full(struct fr_agent *a, char text[256]) FR_REQUIRES(a->lock);
static const char *why_full(struct fr_agent *a, char text[256])
{
	char have[FR_UNIT_SIZE], most[FR_UNIT_SIZE];
	uint64_t n, bytes;
	size_t waiting = 0;

	for (size_t i = 0; i < a->n_jobs; i++)
		waiting += a->jobs[i]->phase <= FR_JOB_DUMP;
	if (waiting > AGENT_WAITING_MAX + AGENT_DUMPS) {
		snprintf(text, 256, "%zu commands wait already for the recorder", waiting - 1);
		return text;
	}
	fr_table_uploads(a, &n, &bytes);
	if (!a->fleet->hold_max || bytes < a->fleet->hold_max)
		return NULL;
	snprintf(text, 256, "the queue of uploads is full: %s of UploadQueue=%s wait for the store",
		fr_size_format(bytes, have), fr_size_format(a->fleet->hold_max, most));
	return text;
}

/* Makes a job of the command. */
static void accept(struct fr_agent *a, const struct fr_fleet_command *c, uint64_t stored_ns)
{
	const struct fr_log_field fields[] = {{"FLIGHTREC_FLEET", c->id}, {"FLIGHTREC_BY", c->by}};
	struct fr_job job = {.command = *c, .stored_ns = stored_ns, .phase = FR_JOB_CHECK}, *j;
	const char *full = NULL;
	char text[256];
	int r;

	snprintf(job.answer.id, sizeof(job.answer.id), "%s", c->id);
	snprintf(job.answer.machine, sizeof(job.answer.machine), "%s", a->name);
	fr_lock(&a->lock);
	r = fr_table_add(a, &job);
	j = r == 0 ? fr_table_find(a, c->id) : NULL;
	if (j) {
		a->stats.commands++;
		full = why_full(a, text);
	}
	fr_unlock(&a->lock);
	if (!j) {
		fr_log(LOG_WARNING, "the command %s is ignored: %s", c->id,
			r == -ENOSPC ? "too many commands are not complete yet" : strerror(-r));
		return;
	}
	fr_log_struct(LOG_INFO, FR_MSG_FLEET_COMMAND, fields, FR_ARRAY_SIZE(fields), "%s: %s%s%s asks for %s",
		c->id, c->trigger[0] ? c->trigger : "", c->trigger[0] ? " of " : "",
		c->by[0] ? c->by : "somebody", c->reason[0] ? c->reason : "a dump");
	if (full)
		fr_table_end(a, j, FR_FLEET_REFUSED, full);
	else
		(void)fr_table_save(a, j);
}

/* Looks at a stored command. Returns 0; or a negative errno if it makes no sense. */
static int consider(struct fr_agent *a, const struct fr_bus_message *m, struct fr_diag *d)
{
	const uint64_t now_ns = fr_agent_now_fleet(a);
	struct fr_fleet_command c = {0};
	char id[FR_FLEET_ID_SIZE];
	bool known;
	int r = fr_fleet_subject_parse(m->subject, FR_SUBJECT_COMMAND, id, NULL);

	if (r < 0)
		return 0;
	r = fr_fleet_command_read(m->data, m->n, &c, d);
	if (r < 0)
		return r;
	if (strcmp(c.id, id) != 0)
		return fr_fail(d, -EBADMSG, NULL, "the command %s has the subject of another one", id);
	if (now_ns > m->time_ns && now_ns - m->time_ns > AGENT_COMMAND_AGE_NS)
		return 0;
	if (!fr_selector_matches(c.selector, a->name, &a->labels))
		return 0;
	fr_lock(&a->lock);
	known = fr_table_find(a, id) || fr_handled_has(&a->handled, id);
	fr_unlock(&a->lock);
	if (!known)
		accept(a, &c, m->time_ns);
	return 0;
}

static bool on_message(void *ctx, const struct fr_bus_message *m)
{
	struct fr_agent *a = ctx;
	struct fr_diag d = {0};

	atomic_store(&a->bus_beat_ns, fr_monotonic_ns());
	if (consider(a, m, &d) < 0) {
		fr_lock(&a->lock);
		a->stats.commands_bad++;
		fr_unlock(&a->lock);
		fr_log(LOG_NOTICE, "a command is ignored: %s", d.what);
	}
	return !atomic_load(&a->stop);
}

static int read_one(struct fr_agent *a, const char *subject)
{
	struct fr_bus_message m = {0};
	struct fr_diag d = {0};
	int r = fr_bus_last(a->bus, FR_STREAM_COMMANDS, subject, AGENT_BUS_TIMEOUT_NS, &m, &d);

	if (r < 0)
		fr_agent_bus_failed(a, &d, r);
	if (r == 0) {
		(void)on_message(a, &m);
		fr_bus_message_deinit(&m);
	}
	return r < 0 ? r : 0;
}

static int read_all(struct fr_agent *a)
{
	const uint64_t now_ns = fr_agent_now_fleet(a);
	const struct fr_bus_read what = {.stream = FR_STREAM_COMMANDS,
		.subject = FR_SUBJECT_COMMAND ".*",
		.since_ns = now_ns > AGENT_COMMAND_AGE_NS ? now_ns - AGENT_COMMAND_AGE_NS : 0,
		.timeout_ns = AGENT_BUS_TIMEOUT_NS};
	struct fr_diag d = {0};
	int r = fr_bus_read(a->bus, &what, on_message, a, &d);

	if (r < 0)
		fr_agent_bus_failed(a, &d, r);
	return r;
}

int fr_agent_read_commands(struct fr_agent *a)
{
	char bells[AGENT_BELLS_MAX][FR_FLEET_SUBJECT_SIZE];
	bool all;
	size_t n;
	int r = 0;

	fr_lock(&a->lock);
	n = a->n_bells;
	memcpy(bells, a->bells, sizeof(bells));
	a->n_bells = 0;
	all = a->rescan;
	a->rescan = false;
	fr_unlock(&a->lock);
	if (all)
		r = read_all(a);
	for (size_t i = 0; !all && i < n && r == 0; i++)
		r = read_one(a, bells[i]);
	if (r < 0) {
		fr_lock(&a->lock);
		a->rescan = true;
		fr_unlock(&a->lock);
	}
	return r;
}

/* Returns whether the stored answer A of this machine is its last one. */
static bool is_final(const struct fr_agent *a, const struct fr_fleet_answer *answer)
{
	return answer->state != FR_FLEET_RECORDING && (answer->state != FR_FLEET_DONE || !a->has_location);
}

/* Looks for an answer of this machine, in case that the state was lost. Returns 1 if there is a last one. */
static int is_answered(struct fr_agent *a, struct fr_job *j, struct fr_diag *d)
{
	struct fr_fleet_answer answer = {0};
	char subject[FR_FLEET_SUBJECT_SIZE];
	struct fr_bus_message m = {0};
	int r;

	fr_fleet_subject(FR_SUBJECT_ANSWER, j->command.id, a->name, subject);
	r = fr_bus_last(a->bus, FR_STREAM_ANSWERS, subject, AGENT_BUS_TIMEOUT_NS, &m, d);
	if (r != 0)
		return r < 0 ? r : 0;
	r = fr_fleet_answer_read(m.data, m.n, &answer, NULL);
	fr_bus_message_deinit(&m);
	if (r < 0 || strcmp(answer.id, j->command.id) != 0 || strcmp(answer.machine, a->name) != 0)
		return 0;
	/* The recorder can have the dump already. */
	if (!j->is_adopted && is_final(a, &answer))
		return 1;
	j->is_adopted = true;
	return 0;
}

static void forget(struct fr_agent *a, struct fr_job *j)
{
	fr_lock(&a->lock);
	(void)fr_handled_add(&a->handled, j->command.id, j->stored_ns);
	fr_unlock(&a->lock);
	(void)fr_table_save_handled(a);
	fr_lock(&a->lock);
	fr_table_remove(a, j);
	fr_unlock(&a->lock);
}

/* Starts the job. Returns 0; or a negative errno, and the job waits. */
static int start(struct fr_agent *a, struct fr_job *j)
{
	struct fr_diag d = {0};
	int r = is_answered(a, j, &d);

	/* An agent that may not read answers relies on its state. */
	if (r < 0 && r != -EACCES) {
		fr_agent_bus_failed(a, &d, r);
		return r;
	}
	if (r > 0) {
		forget(a, j);
		return 0;
	}
	j->clock = a->clock;
	fr_job_set_window(j);
	fr_lock(&a->lock);
	fr_job_answer(j, FR_FLEET_RECORDING, "");
	fr_unlock(&a->lock);
	r = fr_agent_send_answers(a);
	fr_table_pass(a, j, FR_JOB_DUMP);
	return r;
}

static struct fr_job *next_to_check(struct fr_agent *a)
{
	struct fr_job *j = NULL;

	fr_lock(&a->lock);
	for (size_t i = 0; i < a->n_jobs && !j; i++)
		if (a->jobs[i]->phase == FR_JOB_CHECK)
			j = a->jobs[i];
	fr_unlock(&a->lock);
	return j;
}

int fr_agent_check_jobs(struct fr_agent *a)
{
	struct fr_job *j = next_to_check(a);
	int r = j ? fr_agent_measure(a, 1) : 0;

	if (r == 0 && j && a->clock.error_ns > CLOCK_ERROR_NS)
		r = fr_agent_measure(a, 1);

	/* Without the clock of the broker, nobody knows which seconds are meant. */
	if (r < 0 || (j && a->clock.error_ns == UINT64_MAX))
		return r < 0 ? r : -EAGAIN;
	for (; j && r == 0; j = next_to_check(a))
		r = start(a, j);
	return r;
}
