// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * With KeepFailed=, the dumper keeps a dump that it could not write. The frames of the dump become a retained
 * snapshot: the ring can evict them, but does not overwrite them. The dumper also copies the tail model: the
 * processes, threads and maps at the low watermark of the oldest of these frames (no record in the frames is
 * older). The dumper tries to write the dump again every 10 s, and when another job may have made room. It
 * keeps only the newest failed dump, because the ring cannot use the memory of a retained snapshot.
 */
#include "dumper/dumper_private.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define RETRY_NS (10 * FR_NSEC_PER_SEC)

/* Publishes the numbers of the kept dump. N_LOST is the number of samples that were given up since the last
   call. */
static void update_stats(struct fr_dumper *p, uint64_t n_lost)
{
	const struct fr_kept *k = &p->kept;
	uint64_t frames, bytes = 0;

	if (k->job)
		fr_snapshots_size(&k->snapshots, &frames, &bytes);
	fr_lock(&p->lock);
	p->stats.kept = k->job;
	p->stats.kept_bytes = bytes;
	p->stats.kept_trigger_ns = k->job ? k->job->trigger_ns : 0;
	p->stats.samples_given_up += n_lost;
	if (k->job)
		snprintf(p->stats.kept_why, sizeof(p->stats.kept_why), "%s", k->job->diag.what);
	fr_unlock(&p->lock);
}

/* For each process that exited at SINCE_NS or later, keeps its perf map (a file with the names of run-time
   code) open. If SINCE_NS is UINT64_MAX, keeps no perf map open for a kept dump. */
static void keep_jit_files(struct fr_dumper *p, uint64_t since_ns)
{
	if (p->config.jit_open_files)
		fr_jit_open_files_keep_since(p->config.jit_open_files, since_ns);
}

static void forget(struct fr_dumper *p)
{
	keep_jit_files(p, UINT64_MAX);
	fr_snapshots_free(&p->kept.snapshots);
	fr_buf_deinit(&p->kept.state);
	fr_buf_deinit(&p->kept.since);
	fr_session_deinit(&p->kept.session);
	p->kept = (struct fr_kept){0};
}

/* Copies JOB for a later write. The copy has no callers, because the callers of JOB get their answer now. */
static struct fr_dump_job *copy_job(const struct fr_dump_job *job)
{
	struct fr_dump_job *copy = fr_dump_job_new(FR_JOB_DUMP);

	if (!copy)
		return NULL;
	*copy = *job;
	copy->callers = NULL;
	copy->n_callers = 0;
	copy->vacuum = (struct fr_vacuum_report){0};
	copy->directory = NULL;
	copy->aux = NULL;
	copy->meta = cJSON_Duplicate(job->meta, true);
	if (!copy->meta)
		return fr_dump_job_free(copy);
	return copy;
}

/* Copies the tail model, and counts the samples of SNAPSHOTS. Call this while the oldest frame of SNAPSHOTS
   is pinned, because its eviction would change the tail model. */
static int copy_model(struct fr_dumper *p, struct fr_snapshots *snapshots, struct fr_kept *k)
{
	uint64_t oldest_ns = UINT64_MAX;
	struct fr_frame f;

	for (unsigned i = 0; i < snapshots->n; i++)
		while (fr_snapshot_next(snapshots->of[i], &f) > 0) {
			k->samples += f.n_samples;
			if (f.n_samples)
				oldest_ns = FR_MIN(oldest_ns, f.first_ns);
			if (f.n_sideband && i == snapshots->sideband)
				oldest_ns = FR_MIN(oldest_ns, f.sideband_first_ns);
		}
	fr_snapshots_rewind(snapshots);
	return fr_dumper_model(p, fr_snapshots_low_watermark(snapshots), oldest_ns ? oldest_ns - 1 : 0,
		&k->state, &k->since);
}

/* Retains SNAPSHOTS, and copies its tail model and the session to K. *RET_LOST gets the number of samples
   that did not fit into the retained snapshots. Unpins SNAPSHOTS in any case. Returns 0, or another value if
   one of the steps failed. */
static int retain(struct fr_dumper *p, struct fr_snapshots *snapshots, struct fr_kept *k, uint64_t *ret_lost)
{
	int r = fr_snapshots_retain(snapshots, ret_lost);

	if (r == 0)
		r = copy_model(p, snapshots, k);
	if (r == 0)
		r = fr_session_copy(&p->session, &k->session);
	fr_snapshots_unpin(snapshots);
	return r;
}

/* Gives up the kept dump. LAST is true if the recorder ends. Otherwise a newer failed dump replaces the kept
   dump. Returns the job of the kept dump. */
static struct fr_dump_job *give_up(struct fr_dumper *p, bool last)
{
	struct fr_dump_job *job = TAKE_PTR(p->kept.job);
	uint64_t samples = last ? p->kept.samples : fr_snapshots_evicted_samples(&p->kept.snapshots);

	forget(p);
	fr_dumper_give_up_aux(p, job);
	job->aux = fr_job_aux_free(job->aux);
	job->outcome = FR_OUTCOME_GIVEN_UP;
	update_stats(p, samples);
	return job;
}

void fr_kept_take(struct fr_dumper *p, struct fr_dump_job *job, struct fr_snapshots *snapshots)
{
	struct fr_kept k = {.retry_ns = fr_monotonic_ns() + RETRY_NS};
	uint64_t lost = 0;

	if (!fr_dumper_settings(p).keep_failed || job->final)
		return;
	if (p->kept.job)
		fr_dumper_finish(p, give_up(p, false), false);
	keep_jit_files(p, fr_snapshots_low_watermark(snapshots));
	k.job = copy_job(job);
	if (!k.job || retain(p, snapshots, &k, &lost) != 0) {
		fr_dump_job_free(k.job);
		fr_buf_deinit(&k.state);
		fr_buf_deinit(&k.since);
		keep_jit_files(p, UINT64_MAX);
		return;
	}
	k.snapshots = *snapshots;
	*snapshots = (struct fr_snapshots){0};
	k.job->aux = TAKE_PTR(job->aux);
	p->kept = k;
	job->outcome = FR_OUTCOME_KEPT;
	update_stats(p, lost);
}

/* A function of the type fr_dump_model that returns the copy of the tail model. */
static int copied_model(void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret_state,
	struct fr_buf *ret_since)
{
	const struct fr_kept *k = &((struct fr_dumper *)ctx)->kept;
	int r = fr_buf_append(ret_state, k->state.data, k->state.len);

	return r < 0 ? r : fr_buf_append(ret_since, k->since.data, k->since.len);
}

struct fr_dump_job *fr_kept_retry(struct fr_dumper *p, bool last)
{
	struct fr_kept *k = &p->kept;
	struct fr_dump_job *job = k->job;

	if (!job)
		return NULL;
	fr_snapshots_rewind(&k->snapshots);
	fr_vacuum_report_deinit(&job->vacuum);
	job->diag = (struct fr_diag){0};
	job->vacuum_diag = (struct fr_diag){0};
	job->code = fr_dumper_write(p, job, &k->snapshots, &k->session, copied_model);
	if (job->code < 0 && last)
		return give_up(p, true);
	if (job->code < 0) {
		k->retry_ns = fr_monotonic_ns() + RETRY_NS;
		update_stats(p, 0);
		return NULL;
	}
	k->job = NULL;
	job->aux = fr_job_aux_free(job->aux);
	forget(p);
	job->outcome = FR_OUTCOME_RESCUED;
	update_stats(p, 0);
	return job;
}
