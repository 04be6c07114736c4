// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/dump.h"
#include "dump/aux.h"
#include "dump/bpf.h"
#include "dump/file_system.h"
#include "dump/frames.h"
#include "dump/hold.h"
#include "dump/order.h"
#include "dump/sidecar.h"
#include "dump/waits.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/owner.h"
#include "base/thread.h"
#include "base/units.h"
#include "perfdata/features.h"
#include "perfdata/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define MODE 0640
#define NAME_TRIES 1000
/* The frames of a snapshot overlap in time by less than this, which is the longest time between two rounds of
   the recorder. */
#define OVERLAP_NS FR_NSEC_PER_SEC
#define HEAD_BYTES (1u << 20) /* an estimate for the header and the feature sections */

struct dump {
	const struct fr_dump_params *params;
	struct fr_snapshots *snapshots;
	struct fr_frames_plan plan;
	struct fr_session session; /* a copy, to which the dump adds features and an event */
	struct fr_build_ids *build_ids;
	/* The records in `state` describe the processes, threads and maps just before the low watermark of
	   the snapshot: this is the tail model. The frames of the snapshot have no record that is older than
	   the low watermark, except samples of overwritable kernel rings. */
	struct fr_buf state;
	/* Side-band (records that are not samples) that the ring has already evicted, but that is not older
	   than the low watermark. */
	struct fr_buf since;
	struct fr_jit *jit;    /* NULL: other_boot */
	struct fr_buf maps;    /* map records that the dump adds; they follow `since` in the file */
	uint64_t head_last_ns; /* no record before the frames is newer */
	struct fr_jit_stats jit_stats;
	struct fr_trigger_samples trigger_samples;
	struct fr_waits waits;
	bool published;
	struct fr_frames frames;
	struct fr_dump_result result;
	struct fr_file_writer out;
	struct fr_writer *writer;
	int fd;
	char tmp[NAME_MAX + 1]; /* name of the temporary file; empty: there is none */
	uint64_t later_us;	/* microseconds added to the time of the trigger, to get a free name */
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
	fr_buf_deinit(&x->maps);
	fr_trigger_samples_deinit(&x->trigger_samples);
	fr_waits_deinit(&x->waits);
	fr_build_ids_free(x->build_ids);
	fr_buf_deinit(&x->state);
	fr_buf_deinit(&x->since);
	fr_session_deinit(&x->session);
	fr_buf_deinit(&x->out.aux_index);
}

static void make_name(struct dump *x)
{
	uint64_t wall = fr_clock_to_realtime(&x->params->clock, x->params->trigger_ns);

	fr_dump_name(wall + x->later_us * FR_NSEC_PER_USEC, x->result.name);
}

/* Chooses the first free name for the dump. The dump is written to a temporary file, which publish() renames
   at the end. But the directory NAME.jit gets its name before that, so the name has to be chosen before the
   file is written. */
static void choose_name(struct dump *x)
{
	struct stat st;

	for (make_name(x); x->later_us < NAME_TRIES; make_name(x)) {
		if (fstatat(x->params->dirfd, x->result.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return;
		x->later_us++;
	}
}

static int open_file(struct dump *x, struct fr_diag *d)
{
	const struct fr_dump_params *p = x->params;
	struct fr_file_writer_config writer = p->writer;
	char dir[PATH_MAX];

	choose_name(x);
	x->fd = fr_tmp_create(p->dirfd, x->result.name, MODE, x->tmp, sizeof(x->tmp));
	if (x->fd < 0) {
		x->tmp[0] = '\0';
		fr_directory_name(p->dirfd, dir, sizeof(dir));
		return fr_fail_errno(
			d, x->fd, fr_file_system_hint(x->fd), "cannot create %s in %s", x->result.name, dir);
	}
	if (p->gid != (gid_t)-1 && fchown(x->fd, (uid_t)-1, p->gid) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot give %s to group %u", x->result.name, p->gid);
	writer.expected_bytes = x->plan.bytes + HEAD_BYTES;
	return fr_writer_new(x->fd, &writer, &x->writer, d);
}

/* Removes from x->since the records that are later than the window. */
static int filter_since(struct dump *x)
{
	struct fr_section_kept kept;
	ssize_t n = fr_section_filter(x->since.data, x->since.len, 0, x->params->to_ns, &kept);

	if (n < 0)
		return (int)n;
	x->since.len = (size_t)n;
	x->head_last_ns = FR_MAX(x->head_last_ns, kept.last_ns);
	x->result.sideband += kept.records;
	return 0;
}

static int collect_build_ids(struct dump *x, const struct fr_buf *records, struct fr_buf *ret_follow)
{
	return fr_build_ids_collect(x->build_ids, &x->session, records->data, records->len, ret_follow);
}

/* Gets the tail model (x->state), and the side-band since the low watermark (x->since). Both buffers have map
   records. Collects the build-ids of the files in these map records, and makes the map records that the dump
   adds (x->maps). The records of the tail model get a time that is older than the time of each later
   record. */
static int add_model(struct dump *x, struct fr_diag *d)
{
	const struct fr_dump_params *p = x->params;
	uint64_t low_watermark = fr_snapshots_low_watermark(x->snapshots),
		 oldest = low_watermark ? low_watermark : x->plan.oldest_ns;
	int r;

	if (oldest == UINT64_MAX)
		oldest = FR_MIN(p->to_ns, p->trigger_ns);
	x->head_last_ns = oldest ? oldest - 1 : 0;
	r = p->model(p->ctx, low_watermark, x->head_last_ns, &x->state, &x->since);
	if (r < 0)
		return fr_fail_errno(
			d, r, NULL, "cannot get the state of the processes for %s", x->result.name);
	r = filter_since(x);
	if (r == 0)
		r = collect_build_ids(x, &x->state, &x->maps);
	if (r == 0)
		r = collect_build_ids(x, &x->since, &x->maps);
	if (r == 0)
		r = fr_jit_append_maps(x->jit, x->state.data, x->state.len, &x->maps);
	if (r == 0)
		r = fr_jit_append_functions(x->jit, oldest ? oldest - 1 : 0, &x->maps);
	if (r == 0)
		r = fr_jit_append_maps(x->jit, x->since.data, x->since.len, &x->maps);
	return r < 0 ? r : collect_build_ids(x, &x->maps, NULL);
}

static int new_jit(struct dump *x)
{
	char dir[PATH_MAX], name[NAME_MAX];
	const struct fr_jit_config config = {
		x->params->dirfd, dir, name, x->params->jit_open_files, x->params->gid};

	/* The processes of another boot are gone, and a process that runs now can have the id of one of them.
	 */
	if (x->params->other_boot)
		return 0;
	fr_directory_name(x->params->dirfd, dir, sizeof(dir));
	snprintf(name, sizeof(name), "%s.jit", x->result.name);
	return fr_jit_new(&config, &x->jit);
}

/* Adds the samples that do not come from the rings, and their events: waits that have not ended, and trigger
   samples. If there are none of a kind, the file does not have the event. */
static int add_samples(struct dump *x)
{
	const struct fr_dump_params *p = x->params;
	int r = p->waits ? fr_waits_init(&x->waits, &x->session, p->waits, p->to_ns) : 0;

	if (r == 0 && p->n_trigger_samples)
		r = fr_trigger_samples_add_event(&x->session);
	if (r == 0)
		r = fr_trigger_samples_init(
			&x->trigger_samples, &x->session, p->trigger_samples, p->n_trigger_samples);
	if (r == 0 && x->waits.n)
		r = fr_trigger_samples_add_records(&x->trigger_samples, &x->waits.records, x->waits.time_ns);
	return r;
}

static int prepare(struct dump *x, struct fr_diag *d)
{
	int r = fr_session_copy(x->params->session, &x->session);

	if (r < 0)
		return r;
	fr_session_drop_closed_events(&x->session, fr_snapshots_oldest_ns(x->snapshots));
	r = fr_session_join_equal_events(&x->session);
	fr_session_set_sideband_stacks(&x->session);
	if (r == 0)
		r = fr_feature_set_event_desc(&x->session);
	if (r == 0)
		r = add_samples(x);
	if (r == 0)
		r = fr_build_ids_new(x->params, &x->build_ids);
	if (r == 0)
		r = new_jit(x);
	if (r == 0)
		r = fr_frames_init(&x->frames, x->params, &x->out, &x->session, x->build_ids, x->jit,
			&x->trigger_samples, &x->result);
	if (r == 0)
		r = add_model(x, d);
	if (r == 0 && x->params->make_room)
		x->params->make_room(
			x->params->ctx, x->plan.bytes + x->state.len + x->waits.records.len + HEAD_BYTES);
	return r;
}

static int write_frames(struct dump *x)
{
	struct fr_piece piece;
	struct fr_order order;
	int r;

	fr_order_init(&order, x->snapshots, x->params->no_rounds);
	fr_order_add_record(&order, x->head_last_ns);
	fr_order_add_round(&order);
	fr_order_expect(&order, fr_trigger_samples_next_ns(&x->trigger_samples));
	while ((r = fr_order_next(&order, &piece)) > 0) {
		r = fr_frames_write(&x->frames, &piece);
		fr_order_expect(&order, fr_trigger_samples_next_ns(&x->trigger_samples));
		if (r < 0)
			return r;
	}
	/* Write the remaining trigger samples, which can be later than all frames. At a FINISHED_ROUND, such
	   a late sample would make a reader deliver other records too early. But no FINISHED_ROUND follows
	   here. */
	return r < 0 ? r : fr_trigger_samples_write(&x->trigger_samples, &x->out, UINT64_MAX);
}

static int add_features(struct dump *x)
{
	const struct fr_frames *f = &x->frames;
	uint64_t ratio = f->packed_bytes ? f->raw_bytes / f->packed_bytes : 1;
	int r = 0;

	if (x->result.samples)
		r = fr_feature_set_sample_time(&x->session, x->result.from_ns, x->result.to_ns);
	if (r == 0 && x->params->compress)
		r = fr_feature_set_compressed(&x->session, x->params->level, (uint32_t)FR_MAX(ratio, 1u),
			(uint32_t)x->params->section_max);
	return r;
}

static int write_aux_records(struct dump *x)
{
	const uint64_t before_ns = x->params->from_ns + OVERLAP_NS;

	if (x->params->aux)
		x->head_last_ns = FR_MAX(x->head_last_ns, before_ns);
	return fr_dump_aux_write_records(&x->out, x->params->aux, before_ns);
}

static int write_content(struct dump *x)
{
	const struct fr_sink sink = {fr_writer_append, x->writer};
	uint8_t header[FR_FILE_HEADER_SIZE];
	int r = fr_file_begin(&x->out, &x->session, &sink);

	if (r == 0)
		r = fr_dump_aux_write_head(&x->out, x->params->aux, &x->session);
	if (r == 0)
		r = fr_file_write_records(&x->out, x->state.data, x->state.len);
	if (r == 0)
		r = write_aux_records(x);
	if (r == 0)
		r = fr_file_write_records(&x->out, &fr_finished_round, sizeof(fr_finished_round));
	if (r == 0)
		r = fr_file_write_records(&x->out, x->since.data, x->since.len);
	/* flightrec-merge can leave out the records before the FINISHED_ROUND, because perf.data.auxiliary
	   also has them. perf.data.auxiliary does not have the records of x->maps, so they follow the
	   FINISHED_ROUND. */
	if (r == 0)
		r = fr_file_write_records(&x->out, x->maps.data, x->maps.len);
	if (r == 0)
		r = write_frames(x);
	if (r == 0)
		r = fr_dump_aux_write_pieces(&x->out, x->params->aux);
	if (r == 0)
		r = fr_jit_finish(x->jit, &x->jit_stats);
	if (r == 0)
		r = add_features(x);
	if (r == 0 && !x->params->other_boot)
		r = fr_dump_add_bpf(&x->session);
	if (r == 0)
		r = fr_file_end(&x->out, &x->session, header);
	return r < 0 ? r : fr_writer_finish(x->writer, header, sizeof(header));
}

/* Gives the file its name. The hold comes first: after a crash, there is no dump without its hold. */
static int publish_name(struct dump *x)
{
	const struct fr_dump_params *p = x->params;
	int r = p->hold ? fr_hold_make(p->dirfd, x->result.name) : 0;

	if (r < 0)
		return r;
	r = fr_tmp_publish(p->dirfd, x->tmp, x->result.name);
	if (r < 0 && p->hold)
		fr_hold_remove(p->dirfd, x->result.name);
	return r;
}

static int publish(struct dump *x, struct fr_diag *d)
{
	char dir[PATH_MAX];
	int r;

	x->result.owner_error = fr_owner_give(x->fd, (gid_t)-1);
	r = publish_name(x);
	while (r == -EEXIST && x->later_us++ < NAME_TRIES) {
		make_name(x);
		r = publish_name(x);
	}
	if (r >= 0) {
		x->tmp[0] = '\0';
		x->published = true;
		x->result.not_durable = r;
		return 0;
	}
	fr_directory_name(x->params->dirfd, dir, sizeof(dir));
	return fr_fail_errno(d, r, fr_file_system_hint(r), "cannot rename the finished file to %s in %s",
		x->result.name, dir);
}

/* Reports which file system refused the dump, how much space the dump needs, and how much is free. */
static int report_failure(const struct dump *x, int code, struct fr_diag *d)
{
	char dir[PATH_MAX], fs[PATH_MAX], need[FR_UNIT_SIZE], have[FR_UNIT_SIZE];
	struct statvfs v;

	if (code == -ENOMEM)
		return fr_fail_errno(d, code, NULL, "cannot prepare %s", x->result.name);
	fr_directory_name(x->params->dirfd, dir, sizeof(dir));
	fr_file_system_describe(x->params->dirfd, fs, sizeof(fs));
	if (fstatvfs(x->fd, &v) < 0)
		v = (struct statvfs){0};
	fr_size_format(x->plan.bytes + x->state.len, need);
	/* The temporary file will be removed, so its blocks count as free. */
	fr_size_format((uint64_t)v.f_bavail * v.f_frsize + fr_file_allocated_bytes(x->fd), have);
	return fr_fail_errno(d, code, fr_file_system_hint(code),
		"cannot write %s to %s (%s): about %s needed, %s free there", x->result.name, dir, fs, need,
		have);
}

static void complete_result(struct dump *x, uint64_t start_ns)
{
	struct fr_dump_result *r = &x->result;

	r->bytes = fr_writer_bytes(x->writer);
	r->write_ns = fr_monotonic_ns() - start_ns;
	r->trigger_samples = x->trigger_samples.n;
	r->waits = x->waits.n;
	r->samples += x->waits.n;
	r->jit_objects = x->jit_stats.objects;
	r->jit_functions = x->jit_stats.functions;
	r->jit_bytes = x->jit_stats.bytes;
	r->jit_cut = x->jit_stats.truncated;
	snprintf(r->how, sizeof(r->how), "%s", fr_writer_describe(x->writer));
}

int fr_dump_write(struct fr_snapshots *snapshots, const struct fr_dump_params *params, cJSON *meta,
	struct fr_dump_result *ret, struct fr_diag *d)
{
	struct fr_dump_params exact = *params;
	_cleanup_(dump_deinit) struct dump x = {.params = &exact, .snapshots = snapshots, .fd = -1};
	uint64_t start = fr_monotonic_ns();
	int r;

	fr_thread_assert_may_wait();
	/* Leave out the samples that are older than the low watermark, because the processes of their time
	   are unknown. Only overwritable kernel rings deliver such samples: the recorder reads these rings
	   only for a dump and at a cut-over, so their samples can be older than the low watermarks of all
	   frames. */
	exact.from_ns = FR_MAX(params->from_ns, fr_snapshots_low_watermark(snapshots));
	x.result.n_rings = snapshots->n_rings;
	fr_frames_plan(x.snapshots, x.params, &x.plan);
	x.plan.bytes += fr_dump_aux_bytes(params->aux);
	r = open_file(&x, d);
	if (r < 0)
		return r;
	r = prepare(&x, d);
	if (r == 0)
		r = write_content(&x);
	if (r < 0)
		return report_failure(&x, r, d);
	r = publish(&x, d);
	if (r < 0)
		return r;
	complete_result(&x, start);
	x.result.sidecar_error = fr_sidecar_write(meta, &exact, &x.result);
	*ret = x.result;
	return 0;
}
