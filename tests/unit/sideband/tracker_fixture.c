// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tracker_fixture.h"
#include "base/clock.h"

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

/* The ring's part, and the recorder's. */
static uint64_t hold(void *ctx)
{
	struct fixture *f = ctx;

	pthread_mutex_lock(&f->lock);
	assert_false(f->held);
	f->held = true;
	f->hold_ns = fr_monotonic_ns();
	pthread_mutex_unlock(&f->lock);
	return f->hold_ns;
}

static void release(void *ctx)
{
	struct fixture *f = ctx;

	pthread_mutex_lock(&f->lock);
	assert_true(f->held);
	f->held = false;
	pthread_mutex_unlock(&f->lock);
}

int keeping_setup(void **state)
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
		.freeze = hold,
		.inject = keep_injected,
		.unfreeze = release,
		.ctx = f};
	*state = f;
	return 0;
}

int keeping_teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	fr_tracker_free(f->tracker);
	fr_session_deinit(&f->session);
	fr_buf_deinit(&f->injected);
	close(f->dirfd);
	snprintf(command, sizeof(command), "rm -rf '%s'", f->path);
	if (system(command) != 0)
		return -1;
	free(f);
	return 0;
}

void keeping_start(struct fixture *f)
{
	struct fr_diag d = {0};

	if (fr_tracker_new(&f->config, &f->tracker, &d) < 0)
		fail_msg("%s", d.what);
	assert_int_equal(fr_tracker_tid(f->tracker), 0);
	assert_int_equal(fr_tracker_start(f->tracker, &d), 0);
	assert_true(fr_tracker_tid(f->tracker) > 0);
}

uint64_t keeping_limit_ns(struct fixture *f)
{
	struct fr_tracker_stats s;

	fr_tracker_stats(f->tracker, &s);
	return 60 * FR_NSEC_PER_SEC + 20 * s.scan_ns;
}
