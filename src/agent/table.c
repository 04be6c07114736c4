// SPDX-License-Identifier: GPL-2.0-or-later
#include "agent/agent_private.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define HANDLED "handled"
#define HANDLED_MAX (FR_HANDLED_MAX * (FR_HANDLED_KEY_SIZE + 24))
#define SUFFIX ".json"

static void file_name(const char *id, char ret[FR_TABLE_NAME_SIZE])
{
	snprintf(ret, FR_TABLE_NAME_SIZE, "%s" SUFFIX, id);
}

void fr_table_parts_name(const struct fr_job *j, char ret[FR_TABLE_NAME_SIZE])
{
	snprintf(ret, FR_TABLE_NAME_SIZE, "%s.parts", j->command.id);
}

struct fr_job *fr_table_find(struct fr_agent *a, const char *id)
{
	for (size_t i = 0; i < a->n_jobs; i++)
		if (!strcmp(a->jobs[i]->command.id, id))
			return a->jobs[i];
	return NULL;
}

int fr_table_add(struct fr_agent *a, const struct fr_job *j)
{
	struct fr_job *copy;

	if (a->n_jobs == AGENT_JOBS_MAX)
		return -ENOSPC;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *j;
	copy->since_ns = fr_monotonic_ns();
	a->jobs[a->n_jobs++] = copy;
	return 0;
}

void fr_table_remove(struct fr_agent *a, struct fr_job *j)
{
	char name[FR_TABLE_NAME_SIZE];
	size_t kept = 0;

	file_name(j->command.id, name);
	(void)unlinkat(a->jobs_fd, name, 0);
	fr_table_parts_name(j, name);
	(void)unlinkat(a->jobs_fd, name, 0);
	for (size_t i = 0; i < a->n_jobs; i++)
		if (a->jobs[i] != j)
			a->jobs[kept++] = a->jobs[i];
	a->n_jobs = kept;
	free(j);
}

int fr_table_save(struct fr_agent *a, const struct fr_job *j)
{
	char name[FR_TABLE_NAME_SIZE];
	_cleanup_free_ char *text = fr_job_json(j);
	int r;

	file_name(j->command.id, name);
	r = text ? fr_file_replace(a->jobs_fd, name, 0600, (gid_t)-1, text, strlen(text)) : -ENOMEM;
	if (r < 0)
		fr_log(LOG_ERR,
			"the state of %s cannot be written: %s\n  after a restart, the agent can repeat "
			"steps of it",
			j->command.id, strerror(-r));
	return r < 0 ? r : 0;
}

int fr_table_save_handled(struct fr_agent *a)
{
	_cleanup_free_ char *text = NULL;
	size_t n = 0;
	int r;

	fr_lock(&a->lock);
	text = fr_handled_text(&a->handled, &n);
	fr_unlock(&a->lock);
	r = text ? fr_file_replace(a->state_fd, HANDLED, 0600, (gid_t)-1, text, n) : -ENOMEM;
	if (r < 0)
		fr_log(LOG_ERR, "the list of handled commands cannot be written: %s", strerror(-r));
	return r < 0 ? r : 0;
}

void fr_table_pass(struct fr_agent *a, struct fr_job *j, enum fr_job_phase phase)
{
	struct fr_job copy;

	/* The file is written before the next owner gets the job. */
	fr_lock(&a->lock);
	copy = *j;
	fr_unlock(&a->lock);
	copy.phase = phase;
	(void)fr_table_save(a, &copy);
	fr_lock(&a->lock);
	j->phase = phase;
	j->is_taken = false;
	j->due_ns = 0;
	j->pause_ns = 0;
	fr_cond_broadcast(&a->cond);
	fr_unlock(&a->lock);
}

/* Counts and logs the end of a job. */
static void tell_end(struct fr_agent *a, const struct fr_job *j, enum fr_fleet_state state, const char *why)
{
	const struct fr_log_field fields[] = {{"FLIGHTREC_FLEET", j->command.id},
		{"FLIGHTREC_BY", j->command.by}, {"FLIGHTREC_FILE", j->manifest.file}};

	if (state == FR_FLEET_REFUSED || state == FR_FLEET_FAILED)
		fr_log_struct(LOG_WARNING, FR_MSG_FLEET_REFUSED, fields, FR_ARRAY_SIZE(fields), "%s: %s: %s",
			j->command.id, fr_fleet_state_name(state), why);
	fr_lock(&a->lock);
	a->stats.refused += state == FR_FLEET_REFUSED;
	a->stats.failed += state == FR_FLEET_FAILED;
	fr_unlock(&a->lock);
}

void fr_table_end(struct fr_agent *a, struct fr_job *j, enum fr_fleet_state state, const char *why)
{
	fr_lock(&a->lock);
	fr_job_answer(j, state, why);
	fr_unlock(&a->lock);
	tell_end(a, j, state, why);
	fr_table_pass(a, j, j->is_held ? FR_JOB_RELEASE : FR_JOB_END);
}

void fr_table_uploads(struct fr_agent *a, uint64_t *ret_n, uint64_t *ret_bytes)
{
	*ret_n = *ret_bytes = 0;
	for (size_t i = 0; a->has_location && i < a->n_jobs; i++)
		if (a->jobs[i]->phase >= FR_JOB_UPLOAD && a->jobs[i]->phase <= FR_JOB_INDEX) {
			(*ret_n)++;
			*ret_bytes += a->jobs[i]->answer.bytes;
		}
}

/* Reads the file NAME. A file that makes no sense is ignored, and stays for people. */
static void load_job(struct fr_agent *a, const char *name, const char *id)
{
	_cleanup_buf_ struct fr_buf text = {0};
	struct fr_diag d = {0};
	struct fr_job j = {0};
	int r = fr_read_file(a->jobs_fd, name, FR_JOB_FILE_MAX, &text);

	if (r == 0)
		r = fr_job_read((const char *)text.data, text.len, id, a->name, &j, &d);
	if (r < 0) {
		fr_log(LOG_WARNING, "the file of the command %s is ignored: %s", id,
			d.what[0] ? d.what : strerror(-r));
		return;
	}
	/* A dump needs the clock of now. */
	if (j.phase == FR_JOB_DUMP)
		j.phase = FR_JOB_CHECK;
	fr_lock(&a->lock);
	r = fr_table_add(a, &j);
	fr_unlock(&a->lock);
	if (r < 0)
		fr_log(LOG_WARNING, "the file of the command %s is ignored: %s", id, strerror(-r));
}

static int load_handled(struct fr_agent *a, struct fr_diag *d)
{
	_cleanup_buf_ struct fr_buf text = {0};
	int r = fr_read_file(a->state_fd, HANDLED, HANDLED_MAX, &text);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = fr_handled_parse(&a->handled, (const char *)text.data, text.len);
	if (r > 0)
		fr_log(LOG_WARNING, "%d lines of the list of handled commands are damaged", r);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot read the list of handled commands") : 0;
}

int fr_table_load(struct fr_agent *a, struct fr_diag *d)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(a->jobs_fd, ".");
	char id[FR_FLEET_ID_SIZE];
	const struct dirent *e;

	if (!dir)
		return fr_fail_errno(d, -errno, NULL, "cannot read the directory of the state");
	while ((e = readdir(dir))) {
		const char *suffix = strstr(e->d_name, SUFFIX);

		if (!suffix || strlen(suffix) != strlen(SUFFIX) || suffix - e->d_name >= FR_FLEET_ID_SIZE)
			continue;
		snprintf(id, sizeof(id), "%.*s", (int)(suffix - e->d_name), e->d_name);
		if (fr_fleet_id_is_valid(id))
			load_job(a, e->d_name, id);
	}
	return load_handled(a, d);
}

void fr_table_deinit(struct fr_agent *a)
{
	for (size_t i = 0; i < a->n_jobs; i++)
		free(a->jobs[i]);
	a->n_jobs = 0;
	fr_handled_deinit(&a->handled);
}
