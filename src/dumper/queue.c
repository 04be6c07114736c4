// SPDX-License-Identifier: GPL-2.0-or-later
/* The jobs that wait: decides which jobs get a place and which jobs become one dump, and cancels jobs. */
#include "dumper/dumper_private.h"
#include "base/cleanup.h"
#include "base/json.h"

#include <errno.h>
#include <string.h>

static cJSON *causes_of(const struct fr_dump_job *job)
{
	return cJSON_GetObjectItem(job->meta, "causes");
}

static bool has_room_for_cause(const struct fr_dump_job *job)
{
	return cJSON_GetArraySize(causes_of(job)) < FR_DUMPER_COALESCE_MAX;
}

/* Returns whether both dumps are for the same command of the fleet, or for none. */
static bool has_same_fleet(const struct fr_dump_job *a, const struct fr_dump_job *b)
{
	return strcmp(fr_json_text(cJSON_GetObjectItem(a->meta, "cause"), "fleet"),
		       fr_json_text(cJSON_GetObjectItem(b->meta, "cause"), "fleet")) == 0;
}

/* Returns whether NEW may become one dump with OLD, which waits. The window of OLD ends at most two
   post-trigger times after the first trigger of OLD, even if many jobs join OLD. Without this limit, many
   triggers in short intervals could delay OLD for ever. */
static bool can_join(const struct fr_dump_job *old, const struct fr_dump_job *new)
{
	const struct fr_dump_asked *a = &old->asked, *b = &new->asked;

	return old->kind == FR_JOB_DUMP && new->kind == FR_JOB_DUMP && !old->final && !new->final &&
	       a->exact == b->exact && a->last_ns == b->last_ns && a->post_ns == b->post_ns &&
	       a->from_ns == b->from_ns && a->to_ns == b->to_ns && old->compress == new->compress &&
	       old->hold == new->hold && (has_same_fleet(old, new)) &&
	       (a->post_ns == 0 || new->to_ns - old->trigger_ns <= 2 * a->post_ns) && has_room_for_cause(old);
}

/* Adds the cause and the callers of NEW to OLD, and frees NEW. Returns 1; or -ENOMEM. After -ENOMEM, OLD and
   NEW have not changed. */
static int join(struct fr_dump_job *old, struct fr_dump_job *new)
{
	const size_t n_callers = old->n_callers;

	for (size_t i = 0; i < new->n_callers; i++)
		if (fr_dump_job_add_caller(old, new->callers[i]) < 0) {
			old->n_callers = n_callers;
			return -ENOMEM;
		}
	cJSON_AddItemToArray(causes_of(old), cJSON_DetachItemFromArray(causes_of(new), 0));
	old->shared |= old->uid != new->uid;
	old->from_ns = FR_MIN(old->from_ns, new->from_ns);
	old->to_ns = FR_MAX(old->to_ns, new->to_ns);
	old->ready_ns = FR_MAX(old->ready_ns, new->ready_ns);
	fr_dump_job_free(new);
	return 1;
}

/* Returns 0 if there is a place for JOB; -EAGAIN if the queue is full; -EDQUOT if the user of JOB already has
   FR_DUMPER_PER_USER_MAX places, or all users have FR_DUMPER_USERS_MAX places together. */
static int check_place(const struct fr_dumper *p, const struct fr_dump_job *job) FR_REQUIRES(p->lock)
{
	const unsigned reserved = job->uid == 0 ? 0 : FR_DUMPER_RESERVED_FOR_ROOT;
	const struct fr_dump_job *old;
	unsigned n_own = 0, n_users = 0;

	if (job->final)
		return 0;
	if (p->queued >= FR_DUMPER_QUEUE_MAX - reserved)
		return -EAGAIN;
	if (job->uid == 0 || job->uid == FR_UID_MACHINE)
		return 0;
	TAILQ_FOREACH (old, &p->waiting, link) {
		n_users += old->uid != 0 && old->uid != FR_UID_MACHINE;
		n_own += old->uid == job->uid && old->kind == job->kind;
	}
	return n_own >= FR_DUMPER_PER_USER_MAX || n_users >= FR_DUMPER_USERS_MAX ? -EDQUOT : 0;
}

static int submit(struct fr_dumper *p, struct fr_dump_job *job, uint64_t *ret_id) FR_REQUIRES(p->lock)
{
	struct fr_dump_job *old;
	int r;

	TAILQ_FOREACH (old, &p->waiting, link)
		if (can_join(old, job)) {
			*ret_id = old->id;
			return join(old, job);
		}
	r = check_place(p, job);
	if (r < 0)
		return r;
	*ret_id = job->id;
	/* Jobs of the other kinds can free disk space, so they go first. */
	if (job->kind == FR_JOB_DUMP)
		TAILQ_INSERT_TAIL(&p->waiting, job, link);
	else
		TAILQ_INSERT_HEAD(&p->waiting, job, link);
	p->queued++;
	fr_cond_broadcast(&p->changed);
	return 0;
}

int fr_dumper_submit(struct fr_dumper *p, struct fr_dump_job *job, uint64_t *ret_id)
{
	uint64_t id = 0;
	int r;

	fr_lock(&p->lock);
	r = submit(p, job, &id);
	fr_unlock(&p->lock);
	if (r >= 0 && ret_id)
		*ret_id = id;
	return r;
}

static struct fr_dump_job *find_automatic(struct fr_dumper *p, uint64_t time_ns) FR_REQUIRES(p->lock)
{
	struct fr_dump_job *job;

	TAILQ_FOREACH (job, &p->waiting, link)
		if (job->automatic && !job->final && time_ns >= job->from_ns &&
			time_ns <= job->to_ns + FR_DUMPER_TOGETHER_NS && has_room_for_cause(job))
			return job;
	return NULL;
}

/* Widens the window of JOB for one more cause, which happened at TIME_NS. ASKED is the window that the
   trigger of this cause asks for. */
static void widen_window(struct fr_dump_job *job, const struct fr_dump_asked *asked, uint64_t time_ns)
{
	const uint64_t from_ns = asked->last_ns && asked->last_ns < time_ns ? time_ns - asked->last_ns : 0;

	job->from_ns = FR_MIN(job->from_ns, from_ns);
	job->to_ns = FR_MAX(job->to_ns, time_ns);
	/* If the new cause came at most FR_DUMPER_TOGETHER_NS after the first trigger, the cause and the
	   trigger belong to the same anomaly. In this case the dump needs the longer of their post-trigger
	   times. */
	if (time_ns <= job->trigger_ns + FR_DUMPER_TOGETHER_NS && asked->post_ns > job->asked.post_ns) {
		job->asked.post_ns = asked->post_ns;
		job->to_ns = FR_MAX(job->to_ns, time_ns + asked->post_ns);
		job->ready_ns = FR_MAX(job->ready_ns, job->to_ns);
	}
}

int fr_dumper_coalesce(struct fr_dumper *p, cJSON *cause, const struct fr_dump_asked *asked, uint64_t time_ns,
	uint64_t *ret_id)
{
	struct fr_dump_job *job;
	int r = -ENOENT;

	fr_lock(&p->lock);
	job = find_automatic(p, time_ns);
	if (job && cJSON_AddItemToArray(causes_of(job), cause)) {
		*ret_id = job->id;
		job->shared |= job->uid != FR_UID_MACHINE;
		widen_window(job, asked, time_ns);
		r = 0;
	}
	fr_unlock(&p->lock);
	return r;
}

static int cancel(struct fr_dumper *p, uint64_t id, uid_t uid, struct fr_dump_job **ret) FR_REQUIRES(p->lock)
{
	struct fr_dump_job *job;

	TAILQ_FOREACH (job, &p->waiting, link) {
		if (job->kind != FR_JOB_DUMP || job->id != id || job->final)
			continue;
		if (uid != 0 && (job->uid != uid || job->shared))
			return -EPERM;
		TAILQ_REMOVE(&p->waiting, job, link);
		*ret = job;
		p->queued--;
		return 0;
	}
	return id && p->running_id == id ? -EBUSY : -ENOENT;
}

static int fail_cancel(int code, uint64_t id, struct fr_diag *d)
{
	const unsigned long long n = id;

	switch (code) {
	case -EPERM:
		return fr_fail(d, code, "only root can cancel it",
			"dump %llu belongs to another user, or has causes of other users", n);
	case -EBUSY:
		return fr_fail(d, code,
			"wait until it is written, then remove the file with `flightrecctl rm`",
			"dump %llu is being written already", n);
	default:
		return fr_fail(d, code, "`flightrecctl status` lists the waiting dumps",
			"no dump with the number %llu waits", n);
	}
}

int fr_dumper_cancel(struct fr_dumper *p, uint64_t id, uid_t uid, struct fr_dump_job **ret, struct fr_diag *d)
{
	int r;

	fr_lock(&p->lock);
	r = cancel(p, id, uid, ret);
	fr_unlock(&p->lock);
	return r < 0 ? fail_cancel(r, id, d) : 0;
}

static cJSON *describe(const struct fr_dump_job *job)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "id", (double)job->id);
	if (job->uid != FR_UID_MACHINE)
		cJSON_AddNumberToObject(o, "uid", job->uid);
	cJSON_AddNumberToObject(o, "ready_ns", (double)job->ready_ns);
	cJSON_AddNumberToObject(o, "causes", cJSON_GetArraySize(causes_of(job)));
	cJSON_AddItemToObject(o, "cause", cJSON_Duplicate(cJSON_GetObjectItem(job->meta, "cause"), true));
	return o;
}

cJSON *fr_dumper_waiting(struct fr_dumper *p)
{
	cJSON *ret = cJSON_CreateArray();
	const struct fr_dump_job *job;

	fr_lock(&p->lock);
	TAILQ_FOREACH (job, &p->waiting, link)
		if (ret && job->kind == FR_JOB_DUMP)
			cJSON_AddItemToArray(ret, describe(job));
	fr_unlock(&p->lock);
	return ret;
}
