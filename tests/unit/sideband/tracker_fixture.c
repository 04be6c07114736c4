// SPDX-License-Identifier: GPL-2.0-or-later
#include "tracker_fixture.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "perfdata/features.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int keep_injected(
	void *ctx, const void *records, size_t len, uint32_t n, uint64_t first_ns, uint64_t last_ns)
{
	struct fixture *f = ctx;
	int r;

	pthread_mutex_lock(&f->lock);
	r = fr_buf_append(&f->injected, records, len);
	pthread_mutex_unlock(&f->lock);
	return r;
}

static uint64_t freeze(void *ctx)
{
	struct fixture *f = ctx;

	pthread_mutex_lock(&f->lock);
	assert_false(f->is_frozen);
	f->is_frozen = true;
	f->freeze_ns = fr_monotonic_ns();
	pthread_mutex_unlock(&f->lock);
	return f->freeze_ns;
}

static void unfreeze(void *ctx)
{
	struct fixture *f = ctx;

	pthread_mutex_lock(&f->lock);
	assert_true(f->is_frozen);
	f->is_frozen = false;
	pthread_mutex_unlock(&f->lock);
}

int fixture_setup(void **state)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = FR_SAMPLE_TYPE,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC};
	uint64_t id = EVENT_ID;
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->path, "/tmp/fr-tracker-XXXXXX");
	if (!mkdtemp(f->path))
		return -1;
	f->dirfd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pthread_mutex_init(&f->lock, NULL);
	if (fr_session_add_event(&f->session, &attr, "dummy:HG", &id, 1, NULL) < 0)
		return -1;
	f->config = (struct fr_tracker_config){.dirfd = f->dirfd,
		.session = &f->session,
		.sideband_id = id,
		.section_max = SECTION_MAX,
		.freeze = freeze,
		.inject = keep_injected,
		.unfreeze = unfreeze,
		.ctx = f};
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	fr_tracker_free(f->tracker);
	fr_session_deinit(&f->session);
	fr_buf_deinit(&f->injected);
	close(f->dirfd);
	if (unit_shell("rm -rf '%s'", f->path) != 0)
		return -1;
	free(f);
	return 0;
}

void fixture_start(struct fixture *f)
{
	struct fr_diag d = {0};

	if (fr_tracker_new(&f->config, &f->tracker, &d) < 0)
		fail_msg("%s", d.what);
	assert_int_equal(fr_tracker_tid(f->tracker), 0);
	assert_int_equal(fr_tracker_start(f->tracker, &d), 0);
	assert_true(fr_tracker_tid(f->tracker) > 0);
}

void fixture_add_features(struct fixture *f)
{
	struct fr_clock_pair pair = fr_clock_pair_now();
	char *argv[] = {(char *)"flightrecd", NULL};

	assert_int_equal(fr_features_gather(&f->session, 1, argv, &pair, NULL), 0);
}

struct fr_tracker_stats fixture_stats(struct fixture *f)
{
	struct fr_tracker_stats s;

	fr_tracker_stats(f->tracker, &s);
	return s;
}

struct fr_buf fixture_take_injected(struct fixture *f)
{
	struct fr_buf records;

	pthread_mutex_lock(&f->lock);
	records = f->injected;
	f->injected = (struct fr_buf){0};
	pthread_mutex_unlock(&f->lock);
	return records;
}

uint64_t fixture_limit_ns(struct fixture *f)
{
	return 60 * FR_NSEC_PER_SEC + 20 * fixture_stats(f).scan_ns;
}

int fixture_count_in_model(struct fixture *f, uint64_t low_watermark_ns, const char *s)
{
	_cleanup_buf_ struct fr_buf b = {0}, since = {0};
	int n = 0;

	assert_int_equal(fr_tracker_write_model(
				 f->tracker, low_watermark_ns, 1, EVENT_ID, fixture_limit_ns(f), &b, &since),
		0);
	for (const uint8_t *p = b.data; (p = memmem(p, b.len - (size_t)(p - b.data), s, strlen(s))); p++)
		n++;
	return n;
}

int fixture_count_files(struct fixture *f, const char *prefix)
{
	_cleanup_closedir_ DIR *dir = opendir(f->path);
	struct dirent *e;
	int n = 0;

	while ((e = readdir(dir)))
		n += !strncmp(e->d_name, prefix, strlen(prefix));
	return n;
}

void require_perf(void)
{
	if (system("perf --version >/dev/null 2>&1") != 0)
		unit_skip("perf is not installed");
}

int fixture_count_perf_lines(
	struct fixture *f, const char *file, const char *word, const char *other, char error[static 256])
{
	char command[512], line[4096];
	FILE *p;
	int n = 0;

	snprintf(command, sizeof(command),
		"perf script -i '%s/%s' --show-mmap-events --show-task-events 2>'%s/stderr'", f->path, file,
		f->path);
	p = popen(command, "r");
	assert_non_null(p);
	while (fgets(line, sizeof(line), p))
		n += strstr(line, word) && strstr(line, other);
	if (pclose(p) != 0)
		n = -1;
	snprintf(command, sizeof(command), "%s/stderr", f->path);
	fr_read_line(command, error, 256);
	return n;
}
