// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/dump.h"
#include "dump/bpf.h"
#include "dump/frames.h"
#include "dump/names.h"
#include "dump/sidecar.h"
#include "dump/where.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/owner.h"
#include "base/units.h"
#include "perfdata/features.h"
#include "perfdata/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define MODE 0640
#define NAME_TRIES 1000
#define HEAD_BYTES (1u << 20) /* of the head and the features, roughly */

struct dump {
	const struct fr_dump_params *params;
	struct fr_snapshot *snapshot;
	struct fr_frames_plan plan;
	struct fr_session session; /* with what this dump adds */
	struct fr_build_ids *build_ids;
	struct fr_buf model; /* the state just before the low watermark */
	struct fr_buf since; /* side-band that the ring gave up and that is not older than it */
	struct fr_jit *jit;
	struct fr_buf jit_maps; /* what it, and the build-ids, have to say of the model */
	struct fr_jit_stats jit_stats;
	struct fr_marks marks;
	bool published;
	int owner_error, not_durable;
	struct fr_frames frames;
	struct fr_file_writer out;
	struct fr_writer *writer;
	int fd;
	char tmp[NAME_MAX + 1]; /* empty: there is none */
	char name[FR_DUMP_NAME_SIZE];
	uint64_t later_us; /* than the trigger, in the name */
};

static void dump_deinit(struct dump *x)
{
	fr_writer_free(x->writer);
	if (x->fd >= 0)
		close(x->fd);
	if (x->tmp[0])
		(void)unlinkat(x->params->dirfd, x->tmp, 0);
	fr_frames_deinit(&x->frames);
	if (x->jit && !x->published)
		fr_jit_discard(x->jit);
	fr_jit_free(x->jit);
	fr_buf_deinit(&x->jit_maps);
	fr_marks_deinit(&x->marks);
	fr_build_ids_free(x->build_ids);
	fr_buf_deinit(&x->model);
	fr_buf_deinit(&x->since);
	fr_session_deinit(&x->session);
}

void fr_dump_name(uint64_t realtime_ns, char ret[static FR_DUMP_NAME_SIZE])
{
	char stamp[FR_STAMP_SIZE];

	fr_stamp_format(realtime_ns, stamp);
	snprintf(ret, FR_DUMP_NAME_SIZE, FR_DUMP_PREFIX "%s", stamp);
}

/* The name of the trigger's microsecond, or of one later. */
static void make_name(struct dump *x)
{
	uint64_t wall = fr_clock_to_realtime(&x->params->clock, x->params->trigger_ns);

	fr_dump_name(wall + x->later_us * FR_NSEC_PER_USEC, x->name);
}

/* The first that nobody has: what stands beside the file goes by it, and is there before the file is. */
static void choose_name(struct dump *x)
{
	struct stat st;

	for (make_name(x); x->later_us < NAME_TRIES; make_name(x)) {
		if (fstatat(x->params->dirfd, x->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return;
		x->later_us++;
	}
}

static int open_file(struct dump *x, struct fr_diag *d)
{
	const struct fr_dump_params *p = x->params;
	struct fr_file_writer_config writer;
	char dir[PATH_MAX];

	choose_name(x);
	x->fd = fr_tmp_create(p->dirfd, x->name, MODE, x->tmp, sizeof(x->tmp));
	if (x->fd < 0) {
		x->tmp[0] = '\0';
		fr_directory_name(p->dirfd, dir, sizeof(dir));
		return fr_fail_errno(d, x->fd, fr_where_hint(x->fd), "cannot create %s in %s", x->name, dir);
	}
	if (p->gid != (gid_t)-1 && fchown(x->fd, (uid_t)-1, p->gid) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot give %s to group %u", x->name, p->gid);
	writer = p->writer;
	writer.expected_bytes = x->plan.bytes + HEAD_BYTES;
	return fr_writer_new(x->fd, &writer, &x->writer, d);
}

/* What happened after the window is none of this file's. */
static int cut_since(struct dump *x)
{
	struct fr_section_kept kept;
	ssize_t n = fr_section_filter(x->since.data, x->since.len, 0, x->params->to_ns, true, &kept);

	if (n < 0)
		return (int)n;
	x->since.len = (size_t)n;
	x->frames.sideband += kept.records;
	return 0;
}

/* The state before the first record: everything of it is older than what follows. */
static int take_model(struct dump *x, struct fr_diag *d)
{
	const struct fr_dump_params *p = x->params;
	uint64_t low_watermark = fr_snapshot_low_watermark(x->snapshot),
		 oldest = low_watermark ? low_watermark : x->plan.oldest_ns;
	int r;

	if (oldest == UINT64_MAX)
		oldest = FR_MIN(p->to_ns, p->trigger_ns);
	r = p->model(p->ctx, low_watermark, oldest ? oldest - 1 : 0, &x->model, &x->since);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot get the state of the processes for %s", x->name);
	r = cut_since(x);
	if (r == 0)
		r = fr_build_ids_collect(
			x->build_ids, &x->session, x->model.data, x->model.len, &x->jit_maps);
	if (r == 0)
		r = fr_build_ids_collect(
			x->build_ids, &x->session, x->since.data, x->since.len, &x->jit_maps);
	if (r == 0)
		r = fr_jit_append_maps(x->jit, x->model.data, x->model.len, &x->jit_maps);
	if (r == 0)
		r = fr_jit_append_functions(x->jit, oldest ? oldest - 1 : 0, &x->jit_maps);
	if (r == 0)
		r = fr_jit_append_maps(x->jit, x->since.data, x->since.len, &x->jit_maps);
	return r < 0 ? r
		     : fr_build_ids_collect(
			       x->build_ids, &x->session, x->jit_maps.data, x->jit_maps.len, NULL);
}

/* Beside the file, under its name. */
static int new_jit(struct dump *x)
{
	char dir[PATH_MAX], name[NAME_MAX];
	const struct fr_jit_config config = {
		x->params->dirfd, dir, name, x->params->jit_open_files, x->params->gid};

	fr_directory_name(x->params->dirfd, dir, sizeof(dir));
	snprintf(name, sizeof(name), "%s.jit", x->name);
	return fr_jit_new(&config, &x->jit);
}

/* A file without marks has no event for them. */
static int add_marks(struct dump *x)
{
	const struct fr_dump_params *p = x->params;
	int r = p->n_marks ? fr_marks_add_event(&x->session) : 0;

	return r < 0 ? r : fr_marks_init(&x->marks, &x->session, p->marks, p->n_marks);
}

static int prepare(struct dump *x, struct fr_diag *d)
{
	int r = fr_session_copy(x->params->session, &x->session);

	if (r < 0)
		return r;
	fr_session_drop_closed(&x->session, fr_snapshot_low_watermark(x->snapshot));
	r = fr_session_join_same(&x->session);
	fr_session_set_sideband_stacks(&x->session);
	if (r == 0)
		r = fr_feature_set_event_desc(&x->session);
	if (r == 0)
		r = add_marks(x);
	if (r == 0)
		r = fr_build_ids_new(x->params->vdso_kept, x->params->early_ids, &x->build_ids);
	if (r == 0)
		r = new_jit(x);
	if (r == 0)
		r = fr_frames_init(
			&x->frames, x->params, &x->out, &x->session, x->build_ids, x->jit, &x->marks);
	if (r < 0)
		return r;
	r = take_model(x, d);
	if (r == 0 && x->params->make_room)
		x->params->make_room(x->params->ctx, x->plan.bytes + x->model.len + HEAD_BYTES);
	return r;
}

static int write_frames(struct dump *x)
{
	struct fr_frame frame;
	int r;

	while ((r = fr_snapshot_next(x->snapshot, &frame)) > 0) {
		r = fr_frames_write(&x->frames, &frame);
		if (r < 0)
			return r;
	}
	/* What is younger than all frames: no round comes after it. */
	return r < 0 ? r : fr_marks_write(&x->marks, &x->out, UINT64_MAX);
}

static int add_features(struct dump *x)
{
	const struct fr_frames *f = &x->frames;
	uint64_t ratio = f->packed_bytes ? f->raw_bytes / f->packed_bytes : 1;
	int r = 0;

	if (f->samples)
		r = fr_feature_set_sample_time(&x->session, f->first_ns, f->last_ns);
	if (r == 0 && x->params->compress)
		r = fr_feature_set_compressed(&x->session, x->params->level, (uint32_t)FR_MAX(ratio, 1u),
			(uint32_t)x->params->section_max);
	return r;
}

static int compose(struct dump *x)
{
	const struct fr_sink sink = {fr_writer_append, x->writer};
	uint8_t header[FR_FILE_HEADER_SIZE];
	int r = fr_file_begin(&x->out, &x->session, &sink);

	if (r == 0)
		r = fr_file_records(&x->out, x->model.data, x->model.len);
	if (r == 0)
		r = fr_file_records(&x->out, &fr_finished_round, sizeof(fr_finished_round));
	if (r == 0)
		r = fr_file_records(&x->out, x->since.data, x->since.len);
	/* Behind the round: no auxiliary file tells of these, so they are no state that a merge may drop. */
	if (r == 0)
		r = fr_file_records(&x->out, x->jit_maps.data, x->jit_maps.len);
	if (r == 0)
		r = write_frames(x);
	if (r == 0)
		r = fr_jit_finish(x->jit, &x->jit_stats);
	if (r == 0)
		r = add_features(x);
	if (r == 0)
		r = fr_dump_add_bpf(&x->session);
	if (r == 0)
		r = fr_file_end(&x->out, &x->session, header);
	return r < 0 ? r : fr_writer_finish(x->writer, header, sizeof(header));
}

static int publish(struct dump *x, struct fr_diag *d)
{
	char dir[PATH_MAX];
	int r;

	x->owner_error = fr_owner_give(x->fd, (gid_t)-1);
	r = fr_tmp_publish(x->params->dirfd, x->tmp, x->name);
	while (r == -EEXIST && x->later_us++ < NAME_TRIES) {
		make_name(x);
		r = fr_tmp_publish(x->params->dirfd, x->tmp, x->name);
	}
	if (r >= 0) {
		x->tmp[0] = '\0';
		x->published = true;
		x->not_durable = r;
		return 0;
	}
	fr_directory_name(x->params->dirfd, dir, sizeof(dir));
	return fr_fail_errno(d, r, fr_where_hint(r), "cannot give %s its name in %s", x->name, dir);
}

/* What the disk refused, in words: which file system, how much was needed, how much there is. */
static int say_why(const struct dump *x, int code, struct fr_diag *d)
{
	char dir[PATH_MAX], fs[PATH_MAX], need[FR_UNIT_SIZE], have[FR_UNIT_SIZE];
	struct statvfs v;

	if (code == -ENOMEM)
		return fr_fail_errno(d, code, NULL, "cannot put %s together", x->name);
	fr_directory_name(x->params->dirfd, dir, sizeof(dir));
	fr_where_file_system(x->params->dirfd, fs, sizeof(fs));
	if (fstatvfs(x->fd, &v) < 0)
		v = (struct statvfs){0};
	fr_size_format(x->plan.bytes + x->model.len, need);
	/* The temporary file's own blocks come back when it goes. */
	fr_size_format((uint64_t)v.f_bavail * v.f_frsize + fr_where_allocated(x->fd), have);
	return fr_fail_errno(d, code, fr_where_hint(code),
		"cannot write %s to %s (%s): about %s needed, %s free there", x->name, dir, fs, need, have);
}

static void fill_result(const struct dump *x, uint64_t start_ns, struct fr_dump_result *ret)
{
	const struct fr_frames *f = &x->frames;

	*ret = (struct fr_dump_result){
		.bytes = fr_writer_bytes(x->writer),
		.samples = f->samples,
		.sideband = f->sideband,
		.from_ns = f->first_ns,
		.to_ns = f->last_ns,
		.write_ns = fr_monotonic_ns() - start_ns,
		.marks = x->marks.n,
		.damaged = f->damaged,
		.jit_objects = x->jit_stats.objects,
		.jit_functions = x->jit_stats.functions,
		.jit_bytes = x->jit_stats.bytes,
		.jit_cut = x->jit_stats.truncated,
		.owner_error = x->owner_error,
		.not_durable = x->not_durable,
	};
	snprintf(ret->name, sizeof(ret->name), "%s", x->name);
	snprintf(ret->how, sizeof(ret->how), "%s", fr_writer_describe(x->writer));
}

int fr_dump_write(struct fr_snapshot *snapshot, const struct fr_dump_params *params, cJSON *meta,
	struct fr_dump_result *ret, struct fr_diag *d)
{
	struct fr_dump_params exact = *params;
	_cleanup_(dump_deinit) struct dump x = {.params = &exact, .snapshot = snapshot, .fd = -1};
	struct fr_dump_result result;
	uint64_t start = fr_monotonic_ns();
	int r;

	/* Before the low watermark the state is not known; only overwritable rings hold samples that are
	 * older. */
	exact.from_ns = FR_MAX(params->from_ns, fr_snapshot_low_watermark(snapshot));
	fr_frames_plan(x.snapshot, x.params, &x.plan);
	r = open_file(&x, d);
	if (r < 0)
		return r;
	r = prepare(&x, d);
	if (r == 0)
		r = compose(&x);
	if (r < 0)
		return say_why(&x, r, d);
	r = publish(&x, d);
	if (r < 0)
		return r;
	fill_result(&x, start, &result);
	result.sidecar_error = fr_sidecar_write(meta, &exact, &result);
	*ret = result;
	return 0;
}
