// SPDX-License-Identifier: GPL-2.0-or-later
#include "dumping.h"
#include "synthetic.h"
#include "perfdata/reader.h"

#include <dirent.h>
#include <ftw.h>

/* The process model of the fixture. It has one process, to which all samples belong. */
static int model(
	void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret, struct fr_buf *ret_since)
{
	struct dumping *f = ctx;

	f->model_ns = time_ns;
	synthetic_state(ret, time_ns);
	return 0;
}

static void append_round(struct fr_history *h, uint64_t time, unsigned run, bool noise, bool sideband)
{
	_cleanup_buf_ struct fr_buf b = {0};

	synthetic_samples(&b, time, run, 64, noise);
	fr_history_begin_round(h, time);
	assert_int_equal(fr_history_append(h, b.data, b.len, run, time, time + (run - 1) * 1000), 0);
	b.len = 0;
	synthetic_state(&b, time + 1);
	if (sideband)
		assert_int_equal(fr_history_append_sideband(h, b.data, b.len, 2, time + 1, time + 1), 0);
	fr_history_end_round(h);
}

int dumping_setup(void **state, const char *where, unsigned runs, unsigned run, bool sideband)
{
	static const struct fr_history_config config = {.size_bytes = 64u << 20, .level = 1};
	struct dumping *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	f->samples = (uint64_t)runs * run;
	snprintf(f->dir, sizeof(f->dir), "%s/flightrec-dumping.XXXXXX", where);
	if (!mkdtemp(f->dir))
		return -1;
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!synthetic_session(&f->session, false) || fr_history_new(&config, &f->history, NULL) < 0)
		return -1;
	for (unsigned i = 0; i < runs; i++)
		append_round(f->history, SYNTHETIC_START_NS + (uint64_t)i * run * 1000, run,
			sideband && i % 40 == 0, sideband);
	assert_int_equal(fr_history_seal(f->history), 0);
	f->params = (struct fr_dump_params){
		.dirfd = f->dirfd,
		.session = &f->session,
		.clock = {SYNTHETIC_START_NS, SYNTHETIC_WALL_NS},
		.trigger_ns = SYNTHETIC_START_NS + f->samples * 1000,
		.to_ns = UINT64_MAX,
		.level = 1,
		.section_max = fr_history_section_max(f->history),
		.model = model,
		.ctx = f,
		.writer = {.block_bytes = 64u << 10, .depth = 4},
		.gid = (gid_t)-1,
	};
	*state = f;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

int dumping_teardown(void **state)
{
	struct dumping *f = *state;

	close(f->dirfd);
	nftw(f->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	fr_session_deinit(&f->session);
	fr_history_free(f->history);
	free(f);
	return 0;
}

int dumping_dump(struct dumping *f, struct fr_dump_result *ret, struct fr_diag *d)
{
	cJSON *meta = cJSON_CreateObject();
	struct fr_diag own = {0};
	const struct fr_rings rings = {.ring = {f->history}, .n = 1};
	struct fr_snapshots s;
	int r;

	d = d ? d : &own;
	cJSON_AddStringToObject(meta, "cause", "a test");
	assert_int_equal(fr_rings_snapshot(&rings, &s), 0);
	r = fr_dump_write(&s, &f->params, meta, ret, d);
	fr_snapshots_free(&s);
	cJSON_Delete(meta);
	if (r < 0)
		assert_true(d->what[0]);
	return r;
}

void dumping_perf(
	const struct dumping *f, const char *verb, const char *name, const char *args, struct fr_buf *ret)
{
	_cleanup_buf_ struct fr_buf err = {0};
	char command[512];
	int status;

	snprintf(command, sizeof(command), "TZ=UTC LC_ALL=C PERF_CONFIG=/dev/null perf %s -i %s/%s %s", verb,
		f->dir, name, args);
	status = synthetic_run(command, ret, &err);
	if (WEXITSTATUS(status) == 127)
		unit_skip("perf is not installed");
	assert_int_equal(status, 0);
	if (err.len)
		fail_msg("%s: %.*s", command, (int)err.len, (char *)err.data);
	assert_int_equal(fr_buf_append(ret, "", 1), 0);
}

/* Read all records of the file NAME, which must not be damaged. Returns the number of samples. */
static uint64_t read_whole(const struct dumping *f, const char *name)
{
	const struct perf_event_header *h;
	struct fr_reader *r;
	struct fr_diag d = {0};
	uint64_t samples = 0;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	if (fr_reader_open(path, &r, &d) < 0)
		fail_msg("%s", d.what);
	while (fr_reader_next(r, &h, NULL) == 1)
		samples += h->type == PERF_RECORD_SAMPLE;
	if (fr_reader_damage(r)->damaged)
		fail_msg("%s: %s", path, fr_reader_damage(r)->text);
	fr_reader_free(r);
	return samples;
}

static int is_entry(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

unsigned dumping_count_files(const struct dumping *f)
{
	_cleanup_closedir_ DIR *dir = opendir(f->dir);
	const struct dirent *e;
	unsigned n = 0;

	while ((e = readdir(dir)))
		n += is_entry(e);
	return n;
}

unsigned dumping_check_directory(struct dumping *f)
{
	struct dirent **files;
	int n = scandir(f->dir, &files, is_entry, NULL);
	unsigned dumps = 0;

	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		const char *name = files[i]->d_name, *dot = strrchr(name, '.');

		if (name[0] == '.')
			fail_msg("%s was left behind", name);
		if (!dot || strcmp(dot, ".json") != 0) {
			assert_int_equal(read_whole(f, name), f->samples);
			dumps++;
		}
		assert_int_equal(unlinkat(f->dirfd, name, 0), 0);
		free(files[i]);
	}
	free(files);
	return dumps;
}

void dumping_check_ring(struct dumping *f)
{
	struct fr_history_stats stats;

	fr_history_stats(f->history, &stats);
	assert_int_equal(stats.pinned_bytes, 0);
	assert_int_equal(stats.samples, f->samples);
}
