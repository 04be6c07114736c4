// SPDX-License-Identifier: GPL-2.0-or-later
#include "ring_process.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "history/internal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct progress *progress_new(void)
{
	void *p = mmap(
		NULL, sizeof(struct progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

void progress_free(struct progress *p)
{
	munmap(p, sizeof(*p));
}

void on_evicted(void *ctx, const struct fr_frame *frame)
{
	struct progress *p = ctx;

	p->evicted[TEST_SIDEBAND] += frame->n_sideband;
	p->evicted[TEST_SAMPLES] += frame->n_samples;
}

struct fr_history_config config_of(uint64_t size, struct progress *p)
{
	return (struct fr_history_config){.size_bytes = size,
		.level = 1,
		.evicted = p ? on_evicted : NULL,
		.ctx = p,
		.populate = size % 3 == 0};
}

int append_run(struct fr_history *h, struct progress *p, enum test_kind kind, uint64_t *random)
{
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t first = p->done[kind], n = first;
	uint64_t want = test_between(random, 1, kind == TEST_SAMPLES ? 300 : 20);
	bool noise = test_random(random) % 4 == 0;
	int r;

	for (; n < first + want; n++) {
		uint64_t max = test_random(random) % 32 ? 512 : 16384;
		uint32_t size = (uint32_t)test_between(random, TEST_RECORD_MIN, max) / 8 * 8;

		if (b.len + size > FR_HISTORY_RUN_MAX)
			break;
		test_put(&b, kind, n, size, noise);
	}
	p->started[kind] = n;
	r = (kind == TEST_SAMPLES ? fr_history_append : fr_history_append_sideband)(
		h, b.data, b.len, (uint32_t)(n - first), first + 1, n);
	p->done[kind] = n;
	return r;
}

struct fr_snapshot *retain(struct fr_history *h)
{
	struct fr_snapshot *s;
	uint64_t lost;

	if (fr_history_snapshot(h, &s) < 0 || fr_snapshot_retain(s, &lost) != 0)
		return fr_snapshot_free(s);
	fr_snapshot_unpin(s);
	return s;
}

int random_step(struct fr_history *h, struct progress *p, struct fr_snapshot **retained, uint64_t *random)
{
	switch (test_random(random) % 64) {
	case 0:
		return fr_history_seal(h);
	case 1 ... 8:
		return append_run(h, p, TEST_SIDEBAND, random);
	case 9 ... 12:
		fr_history_end_round(h);
		fr_history_begin_round(h, fr_monotonic_ns());
		return 0;
	case 13:
		*retained = *retained ? fr_snapshot_free(*retained) : retain(h);
		return 0;
	default:
		return append_run(h, p, TEST_SAMPLES, random);
	}
}

_Noreturn void append_until_killed(struct fr_history *h, struct progress *p, uint64_t random)
{
	struct fr_snapshot *retained = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (random_step(h, p, &retained, &random) != 0)
			p->wrong++;
}

struct test_contents read_all(struct fr_history *h)
{
	struct test_contents c = test_read(h);

	if (c.frames)
		assert_int_equal(h->seq, c.seq + 1);
	test_count_records(&c, h->sideband.data, h->sideband.fill);
	test_count_records(&c, h->samples.data, h->samples.fill);
	return c;
}

void expect_described(
	const struct test_contents *c, const struct fr_history_adopted *adopted, const struct fr_history *h)
{
	assert_int_equal(adopted->frames, c->frames);
	assert_int_equal(adopted->samples, c->n[TEST_SAMPLES]);
	assert_int_equal(adopted->sideband, c->n[TEST_SIDEBAND]);
	assert_int_equal(adopted->last_ns, c->n[TEST_SAMPLES] ? c->next[TEST_SAMPLES] : 0);
	assert_int_equal(adopted->first_ns, c->n[TEST_SAMPLES] ? c->first[TEST_SAMPLES] + 1 : 0);
	assert_int_equal(adopted->drained_ns, h->image->drained_ns);
}

void expect_newest(struct progress *p, const struct test_contents *c, bool is_whole)
{
	for (int k = 0; k < 2; k++) {
		if (c->n[k] == 0) {
			assert_true(!is_whole || p->evicted[k] == p->done[k]);
			continue;
		}
		assert_true(c->next[k] == p->done[k] || c->next[k] == p->started[k]);
		assert_true(!is_whole || c->first[k] <= p->evicted[k]);
	}
}

void continue_from(struct progress *p, const struct test_contents *c)
{
	for (int k = 0; k < 2; k++) {
		if (c->n[k])
			p->done[k] = c->next[k];
		p->started[k] = p->done[k];
		p->evicted[k] = c->n[k] ? c->first[k] : p->done[k];
	}
}

int dup_fd(int fd)
{
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	assert_true(fd >= 0);
	return fd;
}

void kill_after(pid_t pid, useconds_t us)
{
	usleep(us);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int run_and_kill(struct fr_history *h, struct progress *p, bool full, uint64_t *random)
{
	uint64_t before = p->done[TEST_SAMPLES], seed = test_random(random);
	pid_t pid = fork();
	int fd;

	assert_true(pid >= 0);
	if (pid == 0)
		append_until_killed(h, p, seed);
	while (p->done[TEST_SAMPLES] == before || (full && p->evicted[TEST_SAMPLES] == 0))
		usleep(50);
	kill_after(pid, (useconds_t)test_between(random, 0, 20000));
	assert_int_equal(p->wrong, 0);
	fd = dup_fd(fr_history_fd(h));
	fr_history_free(h);
	return fd;
}

struct fr_history *adopt(int fd, uint64_t size, struct progress *p, struct fr_history_adopted *ret)
{
	struct fr_history_config config = config_of(size, p);
	struct fr_history *h = NULL;
	struct fr_diag d = {0};

	assert_int_equal(fr_history_adopt(&config, fd, &h, ret, &d), 0);
	assert_string_equal(d.what, "");
	return h;
}

struct fr_history *ring_with_records(uint64_t size, unsigned steps, struct progress *p, uint64_t *random)
{
	struct fr_history *h = test_history(size, on_evicted, p);
	struct fr_snapshot *retained = NULL;

	for (unsigned i = 0; i < steps; i++)
		assert_int_equal(random_step(h, p, &retained, random), 0);
	fr_snapshot_free(retained);
	return h;
}
