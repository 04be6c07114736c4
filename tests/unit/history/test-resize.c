// SPDX-License-Identifier: GPL-2.0-or-later

/* A ring changes its size while records are appended. Some tests kill the process during the change. */

#include "ring_process.h"
#include "base/cleanup.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(a_ring_in_use_changes_its_size)
{
	uint64_t random = 99, left_out = 0;
	struct progress *p = progress_new();
	struct fr_history *h = ring_with_records(4 << 20, 600, p, &random);
	struct fr_snapshot *s;
	struct fr_diag d = {0};
	struct fr_history_adopted adopted;

	assert_int_equal(fr_history_snapshot(h, &s), 0);
	assert_int_equal(test_resize(&h, 8 << 20, &adopted, &d), -EBUSY);
	assert_non_null(strstr(d.what, "dump"));
	fr_snapshot_free(s);
	assert_int_equal(test_resize(&h, 1, &adopted, NULL), -EINVAL);

	for (unsigned i = 0; i < 14; i++) {
		uint64_t size = test_between(&random, 1 << 20, i % 5 ? 3 << 20 : 16 << 20);
		struct fr_snapshot *retained = NULL;
		struct fr_history_stats before, after;
		struct test_contents c;

		for (unsigned k = 0; k < 150; k++)
			assert_int_equal(random_step(h, p, &retained, &random), 0);
		fr_snapshot_free(retained);
		before = test_stats(h);
		assert_int_equal(test_resize(&h, size, &adopted, &d), 0);
		after = test_stats(h);
		c = read_all(h);
		expect_described(&c, &adopted, h);
		/* The ring has called evicted() for exactly those records that are no longer in the ring. */
		for (int k = 0; k < 2; k++)
			assert_true(c.n[k] == 0 || (c.first[k] == p->evicted[k] && c.next[k] == p->done[k]));
		assert_int_equal(after.samples_evicted, p->evicted[TEST_SAMPLES]);
		assert_int_equal(after.samples + after.samples_evicted, p->done[TEST_SAMPLES]);
		assert_int_equal(adopted.frames_left_out, after.frames_evicted - before.frames_evicted);
		left_out += adopted.frames_left_out;
	}
	assert_true(left_out > 0);
	fr_history_free(h);
	progress_free(p);
}

/* Appends records between the steps of a change of size, as the recorder thread does. After the change,
   appends to the new ring. */
static _Noreturn void resize_until_killed(
	struct fr_resize *z, struct fr_history *h, struct progress *p, uint64_t random)
{
	struct fr_history_adopted adopted;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	do
		for (unsigned i = 0; i < 3; i++)
			if (append_run(h, p, (enum test_kind)(test_random(&random) % 2), &random) != 0)
				p->wrong++;
	while (fr_resize_step(z) > 0);
	h = fr_resize_finish(z, &adopted);
	append_until_killed(h, p, random);
}

static struct fr_history *adopt_both(const int fds[2], const uint64_t sizes[2], struct progress *p)
{
	struct fr_history_adopted adopted;
	struct fr_history *from = adopt(fds[0], sizes[0], NULL, &adopted),
			  *to = adopt(fds[1], sizes[1], NULL, &adopted);
	struct fr_resize *z;
	int r;

	assert_int_equal(fr_resize_resume(from, to, &z), 0);
	while (fr_resize_step(z) > 0)
		;
	assert_ptr_equal(fr_resize_finish(z, &adopted), to);
	while ((r = fr_resize_populate(z)) > 0)
		;
	assert_int_equal(r, 0);
	fr_resize_free(z);
	return to;
}

TEST(a_kill_while_the_size_changes_loses_no_record)
{
	uint64_t random = 1410, frames = 0;

	for (unsigned i = 0; i < 20; i++) {
		struct progress *p = progress_new();
		uint64_t sizes[2] = {test_between(&random, 6, 10) << 20, test_between(&random, 4, 16) << 20};
		struct fr_history *h = ring_with_records(sizes[0], 500, p, &random);
		struct test_contents c;
		struct fr_resize *z;
		int fds[2];
		pid_t pid;

		assert_int_equal(fr_resize_begin(h, sizes[1], &z, NULL), 0);
		fds[0] = dup_fd(fr_history_fd(h));
		fds[1] = dup_fd(fr_resize_fd(z));
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			resize_until_killed(z, h, p, test_random(&random));
		kill_after(pid, (useconds_t)test_between(&random, 0, 20000));
		assert_int_equal(p->wrong, 0);
		fr_resize_free(z);
		h = adopt_both(fds, sizes, p);
		c = read_all(h);
		/* A new ring that is smaller can have evicted more records. */
		expect_newest(p, &c, sizes[1] >= sizes[0]);
		frames += c.frames;
		continue_from(p, &c);
		for (unsigned k = 0; k < 50; k++)
			assert_int_equal(append_run(h, p, TEST_SAMPLES, &random), 0);
		(void)read_all(h);
		fr_history_free(h);
		progress_free(p);
	}
	assert_true(frames > 0);
}

static uint64_t allocated_bytes(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

TEST(a_resize_never_has_the_memory_of_both_rings)
{
	static const uint64_t sizes[][2] = {{48 << 20, 51 << 20}, {48 << 20, 45 << 20}};
	uint64_t random = 5;

	for (size_t i = 0; i < FR_ARRAY_SIZE(sizes); i++) {
		struct progress *p = progress_new();
		struct fr_history_config config = config_of(sizes[i][0], p);
		const uint64_t most = FR_MAX(sizes[i][0], sizes[i][1]) + (20 << 20);
		struct fr_history_adopted adopted;
		struct fr_history *h;
		struct fr_resize *z;
		int fds[2], r;

		assert_int_equal(fr_history_new(&config, &h, NULL), 0);
		for (unsigned k = 0; k < 600; k++)
			assert_int_equal(append_run(h, p, TEST_SAMPLES, &random), 0);
		assert_true(allocated_bytes(fr_history_fd(h)) >= sizes[i][0]);
		assert_int_equal(fr_resize_begin(h, sizes[i][1], &z, NULL), 0);
		fds[0] = dup_fd(fr_history_fd(h));
		fds[1] = dup_fd(fr_resize_fd(z));
		do {
			assert_in_range(allocated_bytes(fds[0]) + allocated_bytes(fds[1]), 1, most);
			assert_int_equal(append_run(h, p, TEST_SAMPLES, &random), 0);
		} while (fr_resize_step(z) > 0);
		h = fr_resize_finish(z, &adopted);
		assert_in_range(allocated_bytes(fds[0]) + allocated_bytes(fds[1]), 1, most);
		close(fds[0]);
		while ((r = fr_resize_populate(z)) > 0)
			assert_in_range(allocated_bytes(fds[1]), 1, sizes[i][1]);
		assert_int_equal(r, 0);
		assert_int_equal(allocated_bytes(fds[1]), sizes[i][1]);
		close(fds[1]);
		fr_resize_free(z);
		fr_history_free(h);
		progress_free(p);
	}
}
