// SPDX-License-Identifier: GPL-2.0-or-later
/* Runs one job of the dumper, from the snapshot to the file, and applies the limits of the directory. */
#include "dumper/dumper_private.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "dump/hold.h"
#include "dumper/job_cgroups.h"
#include "dumper/job_samples.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* How long a dump waits until the side-band tracker (sideband/tracker.h) has applied the evicted side-band to
   its process model. If the tracker needs more time, the disk of perf.data.auxiliary hangs. The dump would be
   written to the same disk, and would hang, too. */
#define TRACKER_TIMEOUT_NS (30 * FR_NSEC_PER_SEC)

/* The most bytes of waits that have not ended. A wait has about 300 bytes. */
#define WAITS_MAX ((size_t)64 << 20)

/* The context of fr_dump_write()'s callbacks. */
struct writing {
	struct fr_dumper *p;
	struct fr_dump_job *job;
	fr_dump_model model;
	uint64_t time_ns; /* the wall time in the name of the file */
};

int fr_dumper_model(void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret_state,
	struct fr_buf *ret_since)
{
	struct fr_dumper *p = ctx;
	const struct fr_event_desc *sideband = &p->session.events[p->session.n_events - 1];

	return fr_tracker_write_model(p->config.tracker, low_watermark_ns, time_ns, sideband->ids[0],
		TRACKER_TIMEOUT_NS, ret_state, ret_since);
}

static int model(void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret_state,
	struct fr_buf *ret_since)
{
	struct writing *w = ctx;

	return w->model(w->p, low_watermark_ns, time_ns, ret_state, ret_since);
}

static void vacuum(struct fr_dumper *p, struct fr_dump_job *job, uint64_t need_bytes, uint64_t keep_from_ns)
{
	const struct fr_dumper_settings settings = fr_dumper_settings(p);

	(void)fr_vacuum(
		p->config.dirfd, &settings.limits, need_bytes, keep_from_ns, &job->vacuum, &job->vacuum_diag);
}

/* Counts the dumps that are held, after a job that can have changed them. */
static void count_holds(struct fr_dumper *p, const struct fr_dump_job *job)
{
	uint64_t n, bytes;

	if (fr_holds_count(p->config.dirfd, &n, &bytes) < 0)
		return;
	fr_lock(&p->lock);
	p->stats.held = n;
	p->stats.held_bytes = bytes;
	p->stats.held_removed += job->vacuum.n_held_removed;
	p->stats.holds_expired += job->vacuum.n_holds_expired;
	fr_unlock(&p->lock);
}

/* Removes old dumps to make room for BYTES. Only dumps that are older than the dump of this job are removed.
   (If the job is a kept dump, there can be newer dumps.) */
static void make_room(void *ctx, uint64_t bytes)
{
	struct writing *w = ctx;

	vacuum(w->p, w->job, bytes, w->time_ns);
}

/* Stores for `flightrecctl status` which dump is being written. REALTIME_NS is the time in the name of the
   dump, or 0 if no dump is being written. */
static void report_writing(struct fr_dumper *p, uint64_t realtime_ns)
{
	fr_lock(&p->lock);
	p->stats.writing_since_ns = realtime_ns ? fr_monotonic_ns() : 0;
	if (realtime_ns)
		fr_dump_name(realtime_ns, p->stats.writing_name);
	fr_unlock(&p->lock);
}

/* Uses the newest session (the events of the recording). Call this after the snapshot has been made: the
   snapshot has no records of events that only a later session has. */
static void update_session(struct fr_dumper *p)
{
	fr_lock(&p->lock);
	if (p->session_next.n_events) {
		fr_session_deinit(&p->session);
		p->session = p->session_next;
		p->session_next = (struct fr_session){0};
	}
	p->config.no_rounds |= p->no_rounds;
	fr_unlock(&p->lock);
}

/* If the configured path names another directory now, uses that directory. Returns 0; or a negative errno,
   with a message in D. */
static int follow_directory(struct fr_dumper *p, struct fr_dump_job *job, struct fr_diag *d)
{
	int r = fr_directory_follow(p->config.dirfd, p->directory);

	job->followed |= r > 0;
	if (r >= 0)
		return 0;
	return fr_fail_errno(d, r,
		r == -ENOENT ? "make the directory again; if the recorder is a service, restart it: it keeps "
			       "its ring"
			     : "let the recorder write there, or restart it: as a service, it keeps its ring",
		"cannot use the directory %s any more", p->directory);
}

/* If somebody renamed or removed the directory during the write, stores in job->directory where the file is.
   Returns 0 or a negative errno. */
static int note_directory(struct fr_dumper *p, struct fr_dump_job *job)
{
	char path[PATH_MAX];
	struct stat st;

	if (fr_directory_is_at(p->config.dirfd, p->directory))
		return 0;
	if (fstatat(p->config.dirfd, job->result.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fr_fail_errno(&job->diag, -errno, NULL,
			"%s was removed with its directory while it was written", job->result.name);
	fr_directory_name(p->config.dirfd, path, sizeof(path));
	free(job->directory);
	job->directory = strdup(path);
	return job->directory ? 0 : -ENOMEM;
}

/* Returns whether the window of JOB ended before its trigger. */
static bool is_in_the_past(const struct fr_dump_job *job)
{
	return job->to_ns < job->trigger_ns;
}

/* Returns the begin of the window of the ring with the number I in JOB. */
static uint64_t from_ns(const struct fr_dump_job *job, unsigned i)
{
	const uint64_t window_ns = job->asked.exact || job->final ? 0 : job->rings[i].window_ns;

	if (!window_ns)
		return job->from_ns;
	return window_ns < job->trigger_ns ? job->trigger_ns - window_ns : 0;
}

/* Returns the begin of the longest window of JOB. */
static uint64_t oldest_ns(const struct fr_dump_job *job)
{
	uint64_t ret = job->from_ns;

	for (unsigned i = 0; i < job->n_rings; i++)
		ret = FR_MIN(ret, from_ns(job, i));
	return ret;
}

/* Fills RET with the windows of the rings of S. A reload can have changed the rings since the job was made.
 */
static void ring_windows(const struct fr_dump_job *job, const struct fr_snapshots *s,
	struct fr_dump_ring ret[static FR_RINGS_MAX])
{
	for (unsigned i = 0; i < s->n_rings; i++) {
		ret[i] = (struct fr_dump_ring){s->name[i], job->from_ns};
		for (unsigned k = 0; k < job->n_rings; k++)
			if (!strcmp(job->rings[k].name, s->name[i]))
				ret[i].from_ns = from_ns(job, k);
	}
}

int fr_dumper_write(struct fr_dumper *p, struct fr_dump_job *job, struct fr_snapshots *snapshots,
	const struct fr_session *session, fr_dump_model model_of)
{
	const struct fr_clock_pair clock = fr_clock_pair_now();
	const uint64_t time_ns = fr_clock_to_realtime(&clock, job->trigger_ns);
	_cleanup_(fr_job_samples_deinit) struct fr_job_samples samples = {0};
	struct writing w = {p, job, model_of, time_ns / FR_NSEC_PER_USEC * FR_NSEC_PER_USEC};
	int r = fr_job_samples_init(&samples, job->meta);
	struct fr_dump_ring rings[FR_RINGS_MAX];
	const struct fr_dump_params params = {
		.dirfd = p->config.dirfd,
		.session = session,
		.clock = clock,
		.trigger_ns = job->trigger_ns,
		.from_ns = snapshots->n_rings > 1 ? oldest_ns(job) : job->from_ns,
		/* The records of the stops of the AUX areas belong to the dump, too. */
		.to_ns = job->aux && !is_in_the_past(job) ? FR_MAX(job->to_ns, job->aux->snapshot.last_ns)
							  : job->to_ns,
		.rings = snapshots->n_rings > 1 ? rings : NULL,
		.compress = job->compress,
		.level = p->config.level,
		.section_max = p->config.section_max,
		.trigger_samples = samples.v,
		.n_trigger_samples = samples.n,
		.waits = &job->waits,
		.aux = job->aux ? &job->aux->data : NULL,
		.no_rounds = p->config.no_rounds,
		.vdso_kept = p->config.vdso_kept,
		.jit_open_files = p->config.jit_open_files,
		.early_ids = fr_tracker_early_ids(p->config.tracker),
		.model = model,
		.make_room = make_room,
		.ctx = &w,
		.hold = job->hold,
		.writer = job->writer,
		.gid = p->config.gid,
	};

	if (r < 0)
		return fr_fail_errno(&job->diag, r, NULL, "cannot make the trigger samples of the dump");
	ring_windows(job, snapshots, rings);
	r = follow_directory(p, job, &job->diag);
	if (r < 0)
		return r;
	report_writing(p, time_ns);
	r = fr_dump_write(snapshots, &params, job->meta, &job->result, &job->diag);
	report_writing(p, 0);
	if (r >= 0) {
		fr_job_drop_cgroups(job->meta);
		r = note_directory(p, job);
	}
	if (r >= 0)
		vacuum(p, job, 0, w.time_ns);
	count_holds(p, job);
	return r;
}

/* Copies the AUX areas, one after the other. This comes before the snapshot of the ring, because the copy
   stops each area, and the kernel then writes records that belong to the dump. Without memory, the dump has
   no AUX data, and a later dump can have it. */
static void take_aux(struct fr_dumper *p, struct fr_dump_job *job)
{
	const uint64_t window_ns = fr_dumper_settings(p).aux_window_ns;
	const uint64_t limit_ns = window_ns && window_ns < job->trigger_ns ? job->trigger_ns - window_ns : 0;
	struct fr_aux_areas areas = {0};
	int r = p->config.ref_aux(p->config.ctx, &areas);

	if (r == 0)
		r = fr_job_aux_take(&areas, FR_MAX(oldest_ns(job), limit_ns),
			is_in_the_past(job) ? job->to_ns : UINT64_MAX, &job->aux);
	if (r < 0)
		cJSON_AddStringToObject(job->meta, "aux_error", strerror(-r));
}

void fr_dumper_give_up_aux(struct fr_dumper *p, const struct fr_dump_job *job)
{
	fr_lock(&p->lock);
	for (size_t i = 0; job->aux && i < job->aux->snapshot.n; i++)
		p->stats.aux_given_up += job->aux->snapshot.copies[i].t.len > 0;
	fr_unlock(&p->lock);
}

/* If the AUX data cannot be described, the dump has all but the AUX data. */
static void finish_aux(struct fr_dumper *p, struct fr_dump_job *job)
{
	const int r = fr_job_aux_finish(job->aux, job->meta);

	if (r == 0)
		return;
	fr_dumper_give_up_aux(p, job);
	job->aux = fr_job_aux_free(job->aux);
	cJSON_AddStringToObject(job->meta, "aux_error", strerror(-r));
}

/* Reads the waits that have not ended. This comes before the snapshot of the ring: a wait that ends later
   ends after the window. Without them, the dump has all else. */
static void take_waits(struct fr_dumper *p, struct fr_dump_job *job)
{
	const int fd = p->config.open_waits(p->config.ctx);
	int r = fd;

	if (fd >= 0) {
		r = fr_read_fd(fd, WAITS_MAX, &job->waits);
		close(fd);
	}
	if (r < 0 && r != -ENOENT)
		cJSON_AddStringToObject(job->meta, "waiting_error", strerror(-r));
}

static void run_dump(struct fr_dumper *p, struct fr_dump_job *job)
{
	struct fr_snapshots snapshots = {0};
	uint64_t due_ns, now_ns;
	cJSON *asked;

	take_aux(p, job);
	take_waits(p, job);
	job->code = fr_recorder_snapshot(p->config.recorder, &snapshots);
	if (job->code < 0) {
		fr_fail_errno(&job->diag, job->code, NULL, "cannot take a snapshot of the ring");
		fr_dumper_give_up_aux(p, job);
		return;
	}
	finish_aux(p, job);
	update_session(p);
	/* When the recorder ends, jobs do not wait for the end of their post-trigger time, so `ready_ns` can
	   be in the future. */
	due_ns = FR_MAX(job->trigger_ns, job->ready_ns);
	now_ns = fr_monotonic_ns();
	job->snapshot_ns = now_ns > due_ns ? now_ns - due_ns : 0;
	fr_json_add_u64(job->meta, "window_closed_ns", now_ns);
	p->config.add_losses(p->config.ctx, job->meta);
	fr_job_add_cgroups(job->meta);
	/* "asked" is the window of the request. fr_dump_write() adds "window": the time from the first to the
	   last sample. */
	asked = cJSON_AddObjectToObject(job->meta, "asked");
	fr_json_add_u64(asked, "from_ns", job->from_ns);
	fr_json_add_u64(asked, "to_ns", job->to_ns);
	p->config.add_steps(p->config.ctx, FR_MAX(oldest_ns(job), fr_snapshots_low_watermark(&snapshots)),
		job->to_ns, job->meta);
	job->code = fr_dumper_write(p, job, &snapshots, &p->session, fr_dumper_model);
	if (job->code < 0)
		fr_kept_take(p, job, &snapshots);
	if (job->code < 0 && job->outcome != FR_OUTCOME_KEPT)
		fr_dumper_give_up_aux(p, job);
	job->aux = fr_job_aux_free(job->aux);
	fr_snapshots_free(&snapshots);
}

/* Removes the dumps that JOB names. If a dump cannot be removed, goes on with the next one. Returns the first
   error. */
static int remove_named(struct fr_dumper *p, struct fr_dump_job *job)
{
	int code = 0;

	for (char **name = job->names; name && *name; name++) {
		int r = fr_vacuum_remove(p->config.dirfd, *name, &job->vacuum, &job->diag);

		code = code ? code : r;
	}
	return code;
}

static int release_named(struct fr_dumper *p, struct fr_dump_job *job)
{
	int code = 0;

	for (char **name = job->names; code == 0 && name && *name; name++)
		code = fr_hold_release(p->config.dirfd, *name, &job->diag);
	return code;
}

static int vacuum_asked(struct fr_dumper *p, struct fr_dump_job *job)
{
	int r = follow_directory(p, job, &job->diag);

	if (r == 0 && job->kind == FR_JOB_REMOVE)
		return remove_named(p, job);
	if (r == 0 && job->kind == FR_JOB_RELEASE)
		return release_named(p, job);
	return r < 0 ? r : fr_vacuum(p->config.dirfd, &job->limits, 0, UINT64_MAX, &job->vacuum, &job->diag);
}

void fr_dumper_run(struct fr_dumper *p, struct fr_dump_job *job)
{
	if (job->kind == FR_JOB_DUMP) {
		run_dump(p, job);
		return;
	}
	job->code = vacuum_asked(p, job);
	count_holds(p, job);
}

void fr_dumper_tidy(struct fr_dumper *p, bool first)
{
	struct fr_dump_job *job = fr_dump_job_new(FR_JOB_VACUUM);

	p->tidied_ns = fr_monotonic_ns();
	if (!job)
		return;
	if (first)
		(void)fr_vacuum_leftovers(p->config.dirfd);
	if (follow_directory(p, job, &job->vacuum_diag) == 0)
		vacuum(p, job, 0, UINT64_MAX);
	count_holds(p, job);
	job->code = job->vacuum_diag.code;
	job->diag = job->vacuum_diag;
	if (job->code < 0 || job->vacuum.n_holds_expired || job->vacuum.n_removed)
		fr_dumper_finish(p, job, false);
	else
		fr_dump_job_free(job);
}
