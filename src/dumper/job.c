// SPDX-License-Identifier: GPL-2.0-or-later
#include "dumper/job.h"

#include <errno.h>
#include <stdlib.h>

struct fr_dump_job *fr_dump_job_new(enum fr_job_kind kind)
{
	struct fr_dump_job *job = calloc(1, sizeof(*job));

	if (job)
		job->kind = kind;
	return job;
}

int fr_dump_job_add_caller(struct fr_dump_job *job, void *caller)
{
	void **grown = reallocarray(job->callers, job->n_callers + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	job->callers = grown;
	grown[job->n_callers++] = caller;
	return 0;
}

struct fr_dump_job *fr_dump_job_free(struct fr_dump_job *job)
{
	if (!job)
		return NULL;
	fr_job_aux_free(job->aux);
	fr_buf_deinit(&job->waits);
	cJSON_Delete(job->meta);
	free(job->callers);
	for (char **name = job->names; name && *name; name++)
		free(*name);
	free(job->names);
	fr_vacuum_report_deinit(&job->vacuum);
	free(job->directory);
	free(job);
	return NULL;
}
