// SPDX-License-Identifier: GPL-2.0-or-later
#include "dumping.h"
#include "synthetic.h"
#include "base/cleanup.h"
#include "perfdata/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static int model(
	void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret, struct fr_buf *ret_since)
{
	synthetic_state(ret, time_ns);
	return 0;
}

static void append_all(struct fr_history *h, unsigned runs, unsigned run)
{
	_cleanup_buf_ struct fr_buf b = {0};

	for (unsigned i = 0; i < runs; i++) {
		uint64_t time = SYNTHETIC_START_NS + i * run * 1000ULL;

		b.len = 0;
		synthetic_samples(&b, time, run, 64, false);
		fr_history_begin_round(h, 0);
		assert_int_equal(fr_history_append(h, b.data, b.len, run, time, time + (run - 1) * 1000), 0);
		fr_history_end_round(h);
	}
	assert_int_equal(fr_history_seal(h), 0);
}

int dumping_setup(void **state, const char *where, unsigned runs, unsigned run)
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
	append_all(f->history, runs, run);
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
		.writer = {64u << 10, 4},
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

int dumping_dump(struct dumping *f, struct fr_dump_result *ret)
{
	cJSON *meta = cJSON_CreateObject();
	struct fr_diag d = {0};
	struct fr_snapshot *s;
	int r;

	assert_int_equal(fr_history_snapshot(f->history, &s), 0);
	r = fr_dump_write(s, &f->params, meta, ret, &d);
	fr_snapshot_free(s);
	cJSON_Delete(meta);
	if (r < 0)
		assert_true(d.what[0]);
	return r;
}

/* All records of the file are there and in order of their writing. Returns how many samples. */
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
		fail_msg("%s: %s", path, fr_reader_damage(r)->what);
	fr_reader_free(r);
	return samples;
}

/* Whatever stands in the directory under a name of ours is whole. Empties it; returns how many files there
 * were. */
unsigned dumping_check_directory(struct dumping *f, bool may_leave_temporary)
{
	_cleanup_closedir_ DIR *dir = opendir(f->dir);
	const struct dirent *e;
	unsigned n = 0;

	while ((e = readdir(dir))) {
		size_t len = strlen(e->d_name);

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (e->d_name[0] == '.') {
			if (!may_leave_temporary)
				fail_msg("%s was left behind", e->d_name);
		} else if (len < 5 || strcmp(e->d_name + len - 5, ".json") != 0) {
			assert_int_equal(read_whole(f, e->d_name), f->samples);
			n++;
		}
		assert_int_equal(unlinkat(f->dirfd, e->d_name, 0), 0);
	}
	return n;
}

void dumping_check_ring(struct dumping *f)
{
	struct fr_history_stats stats;

	fr_history_stats(f->history, &stats);
	assert_int_equal(stats.pinned_bytes, 0);
	assert_int_equal(stats.samples, f->samples);
}
