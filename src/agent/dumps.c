// SPDX-License-Identifier: GPL-2.0-or-later
/* The dump threads. Each takes a job of the phase DUMP, and asks the recorder. The recorder can restart
   meanwhile, or the agent; so a dump that exists already is looked for before another one is made. */
#include "agent/agent_private.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/thread.h"
#include "control/interface.h"

#include <errno.h>
#include <string.h>

#define LIST_TIMEOUT_NS (30 * FR_NSEC_PER_SEC)
#define WRITE_TIMEOUT_NS (600 * FR_NSEC_PER_SEC) /* after the end of the window */
#define LIMIT_MIN_NS (30 * FR_NSEC_PER_SEC)
#define LIMIT_MAX_NS (3600 * FR_NSEC_PER_SEC)

/* Waits for a job, and takes it. Returns NULL when the agent stops. */
static struct fr_job *take(struct fr_agent *a)
{
	struct fr_job *j = NULL;

	fr_lock(&a->lock);
	while (!j && !atomic_load(&a->stop)) {
		for (size_t i = 0; i < a->n_jobs && !j; i++)
			if (a->jobs[i]->phase == FR_JOB_DUMP && !a->jobs[i]->is_taken)
				j = a->jobs[i];
		if (!j)
			fr_cond_wait(&a->cond, &a->lock);
	}
	if (j)
		j->is_taken = true;
	fr_unlock(&a->lock);
	return j;
}

/* Adds a time as text: a number is exact up to 2^53 only. */
static void add_time(cJSON *o, const char *name, uint64_t ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, ns);
	cJSON_AddStringToObject(o, name, text);
}

static cJSON *parameters(const struct fr_agent *a, const struct fr_job *j)
{
	cJSON *o = cJSON_CreateObject();
	const struct fr_fleet_command *c = &j->command;

	if (j->from_ns)
		add_time(o, "from_ns", j->from_ns);
	add_time(o, "to_ns", j->to_ns);
	cJSON_AddStringToObject(o, "fleet", c->id);
	if (c->by[0])
		cJSON_AddStringToObject(o, "by", c->by);
	if (c->reason[0])
		cJSON_AddStringToObject(o, "reason", c->reason);
	cJSON_AddTrueToObject(o, "wait");
	if (a->has_location)
		cJSON_AddTrueToObject(o, "hold");
	return o;
}

/* Takes the window that the recorder was asked for: the clock was another one then. */
static void take_window(struct fr_job *j, const cJSON *meta)
{
	const cJSON *asked = cJSON_GetObjectItemCaseSensitive(meta, "asked");
	const double from = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(asked, "from_ns"));
	const double to = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(asked, "to_ns"));

	if (from >= 0 && to > 0 && from <= to && to < 0x1p63) {
		j->from_ns = (uint64_t)from;
		j->to_ns = (uint64_t)to;
	}
}

/* Looks for the dump in the list of the recorder. Returns 1 and sets the dump of the job if it is there; 0;
   or a negative errno. */
static int find_dump(struct fr_agent *a, struct fr_job *j, struct fr_diag *d)
{
	cJSON *reply = NULL, *meta, *found = NULL;
	_cleanup_free_ char *path = NULL;
	int r = fr_recorder_call(a, FR_METHOD(List), NULL, LIST_TIMEOUT_NS, &reply, d);

	if (r < 0)
		return r;
	cJSON_ArrayForEach (meta, cJSON_GetObjectItemCaseSensitive(reply, "dumps"))
		if (fr_job_is_dump(j, meta))
			found = meta;
	if (found && asprintf(&path, "%s/%s", fr_json_text(reply, "directory"),
			     fr_json_text(found, "file")) >= 0) {
		cJSON_AddStringToObject(found, "path", path);
		take_window(j, found);
		r = fr_job_set_dump(j, found, d);
		r = r == 0 ? 1 : r;
	}
	cJSON_Delete(reply);
	return r;
}

static int ask(struct fr_agent *a, struct fr_job *j, struct fr_diag *d)
{
	const uint64_t now_ns = fr_monotonic_ns();
	const uint64_t ahead_ns = j->to_ns > now_ns ? j->to_ns - now_ns : 0;
	cJSON *meta = NULL;
	int r = j->is_adopted ? find_dump(a, j, d) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	r = fr_recorder_call(a, FR_METHOD(Dump), parameters(a, j),
		FR_MIN(ahead_ns, LIMIT_MAX_NS) + WRITE_TIMEOUT_NS, &meta, d);
	/* The recorder has the call perhaps, so the dump can be there at the next try. */
	if (r < 0)
		j->is_adopted = true;
	if (r == 0)
		r = fr_job_set_dump(j, meta, d);
	cJSON_Delete(meta);
	return r;
}

static void done(struct fr_agent *a, struct fr_job *j)
{
	const struct fr_log_field fields[] = {{"FLIGHTREC_FLEET", j->command.id},
		{"FLIGHTREC_BY", j->command.by}, {"FLIGHTREC_FILE", j->manifest.file}};

	fr_log_struct(LOG_INFO, NULL, fields, FR_ARRAY_SIZE(fields), "%s: %s", j->command.id, j->path);
	j->manifest.labels = a->labels;
	j->is_held = a->has_location;
	fr_lock(&a->lock);
	a->stats.recorder[0] = '\0';
	a->stats.done++;
	fr_job_answer(j, FR_FLEET_DONE, "");
	fr_unlock(&a->lock);
	fr_table_pass(a, j, FR_JOB_UPLOAD);
}

static uint64_t limit_ns(const struct fr_job *j)
{
	return FR_MIN(FR_MAX(j->command.limit_ns, LIMIT_MIN_NS), LIMIT_MAX_NS);
}

/* Ends the job after the error R, or returns true if it is tried again. */
static bool goes_on(struct fr_agent *a, struct fr_job *j, const struct fr_diag *d, int r)
{
	static const char prefix[] = "suppressed: ";
	const char *why = d->what[0] ? d->what : strerror(-r);

	if (r == -EAGAIN) {
		if (!strncmp(why, prefix, strlen(prefix)))
			why += strlen(prefix);
		fr_table_end(a, j, FR_FLEET_REFUSED, why);
		return false;
	}
	if (fr_recorder_is_away(r) && fr_monotonic_ns() - j->since_ns < limit_ns(j))
		return true;
	fr_table_end(a, j, FR_FLEET_FAILED, why);
	return false;
}

/* Makes the dump. If the agent stops meanwhile, the next one goes on. */
static void make(struct fr_agent *a, struct fr_job *j)
{
	for (;;) {
		struct fr_diag d = {0};
		int r = ask(a, j, &d);

		if (r == 0)
			return done(a, j);
		if (r == -ECANCELED || atomic_load(&a->stop) || !goes_on(a, j, &d, r))
			return;
		fr_lock(&a->lock);
		snprintf(a->stats.recorder, sizeof(a->stats.recorder), "%.255s", d.what);
		fr_agent_wait(a, fr_monotonic_ns() + FR_NSEC_PER_SEC);
		fr_unlock(&a->lock);
	}
}

void *fr_agent_dump_main(void *agent)
{
	struct fr_agent *a = agent;
	struct fr_job *j;

	fr_thread_begin(FR_THREAD_COMMAND);
	while ((j = take(a)))
		make(a, j);
	return NULL;
}
