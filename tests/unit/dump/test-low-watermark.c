// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The reader of a dump finds for each sample the name that its process had at the time of the sample.
 *
 * A simulated machine makes the records. Its CPUs go on writing while their kernel rings are drained one
 * after the other. Frames are tiny, so most of them begin and end within a round. The ring is small, so it
 * evicts frames all the time. The test does what the recorder does, with the real ring and the real tracker.
 * Names are numbers: each new process and each exec gets the next number. The ip of a sample is the name that
 * its process has at the time of the sample, so the test knows which name is right.
 */

#include "../unit.h"
#include "../sideband/events.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "history/history.h"
#include "history/unpack.h"
#include "sideband/tracker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_CPUS 4
#define PIDS 40
#define FIRST_PID 5000000 /* higher than all pids that the scan of /proc finds (PID_MAX_LIMIT) */
#define RUN_MAX 60000u
#define SAMPLE_BYTES 256u
#define SECOND FR_NSEC_PER_SEC

struct machine {
	struct fr_history *history;
	struct fr_tracker *tracker;
	struct fr_session session;
	char dir[64];
	int dirfd;
	struct fr_buf sideband[N_CPUS], samples[N_CPUS]; /* kernel rings */
	uint64_t now, last_name;
	uint64_t name[PIDS]; /* the current name; 0 if there is no such process */
	uint64_t random;
	bool wrong; /* set the low watermarks too late */
};

/* Returns a pseudo-random number below OF. */
static uint64_t chance(struct machine *m, uint64_t of)
{
	m->random = m->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (m->random >> 33) % of;
}

static void append_sample(struct machine *m, struct fr_buf *b, unsigned i)
{
	struct {
		struct fr_sample s;
		uint8_t rest[SAMPLE_BYTES - sizeof(struct fr_sample)];
	} r = {.s = {.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(r)},
		       .id = EVENT_ID,
		       .ip = m->name[i],
		       .pid = FIRST_PID + i,
		       .tid = FIRST_PID + i,
		       .time = m->now}};

	for (size_t k = 0; k < sizeof(r.rest); k++) /* zstd cannot compress these bytes */
		r.rest[k] = (uint8_t)chance(m, 256);
	assert_int_equal(fr_buf_append(b, &r, sizeof(r)), 0);
}

static void exec_new_name(struct machine *m, struct fr_buf *sideband, unsigned i, bool exec)
{
	char name[32];

	m->name[i] = ++m->last_name;
	snprintf(name, sizeof(name), "n%ju", (uintmax_t)m->name[i]);
	ev_comm(sideband, m->now, FIRST_PID + (pid_t)i, FIRST_PID + (pid_t)i, name, exec);
}

/* Make one record on a random CPU: a sample, the start or the end of a process, or an exec. An exec gives its
   process a new name. */
static void step_machine(struct machine *m)
{
	const unsigned i = (unsigned)chance(m, PIDS), parent = (unsigned)chance(m, PIDS);
	const pid_t pid = FIRST_PID + (pid_t)i, ppid = FIRST_PID + (pid_t)parent;
	struct fr_buf *sideband = &m->sideband[chance(m, N_CPUS)];

	m->now += 1 + chance(m, 1000);
	if (chance(m, 10)) {
		if (m->name[i])
			append_sample(m, &m->samples[chance(m, N_CPUS)], i);
	} else if (!m->name[i] && (!m->name[parent] || parent == i)) {
		exec_new_name(m, sideband, i, true);
	} else if (!m->name[i]) {
		ev_fork(sideband, m->now, pid, pid, ppid, ppid);
		m->name[i] = m->name[parent];
	} else if (chance(m, 3) == 0) {
		ev_exit(sideband, m->now, pid, pid);
		m->name[i] = 0;
	} else {
		exec_new_name(m, sideband, i, chance(m, 2));
	}
}

static void append_run(struct machine *m, const uint8_t *data, size_t len, uint32_t n, uint64_t first,
	uint64_t last, bool sideband)
{
	if (!n)
		return;
	if (!sideband) {
		assert_int_equal(fr_history_append(m->history, data, len, n, first, last), 0);
		return;
	}
	assert_int_equal(fr_history_append_sideband(m->history, data, len, n, first, last), 0);
	while (fr_tracker_push_fresh(m->tracker, data, len) != 0)
		fail_msg("the queue is full");
}

static void drain(struct machine *m, struct fr_buf *ring, bool sideband)
{
	uint64_t first = 0, last = 0;
	size_t from = 0, at = 0;
	uint32_t n = 0;

	while (at < ring->len) {
		const struct perf_event_header *h = (const void *)(ring->data + at);

		if (at - from + h->size > RUN_MAX) {
			append_run(m, ring->data + from, at - from, n, first, last, sideband);
			from = at;
			n = 0;
		}
		last = fr_record_time(h);
		first = n++ ? first : last;
		at += h->size;
	}
	append_run(m, ring->data + from, at - from, n, first, last, sideband);
	ring->len = 0;
}

static void one_round(struct machine *m)
{
	uint64_t since = m->now + 1;

	/* If `wrong` is set, the low watermark is too late by a few rounds. */
	fr_history_begin_round(m->history, m->wrong ? since + 1000000 : since);
	for (unsigned i = 0; i < 2 * N_CPUS; i++) {
		drain(m, i < N_CPUS ? &m->sideband[i] : &m->samples[i - N_CPUS], i < N_CPUS);
		for (uint64_t n = chance(m, 200); n > 0; n--)
			step_machine(m);
		if (chance(m, 4) == 0)
			assert_int_equal(fr_history_seal(m->history), 0);
	}
	fr_history_end_round(m->history);
	fr_tracker_end_round(m->tracker, since);
}

struct item {
	const struct perf_event_header *record;
	uint64_t time;
	size_t order;
};

static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* A reader of a dump, and its results. */
struct reader {
	uint64_t name[PIDS];
	uint64_t samples, right; /* numbers of samples: all, and those with the right name */
	uint64_t old;		 /* number of samples older than the low watermark */
};

static void read_record(
	struct reader *r, const struct perf_event_header *h, uint64_t low_watermark, uint64_t trigger)
{
	const struct fr_record_task *task = (const void *)h;
	const struct fr_record_comm *comm = (const void *)h;
	const struct fr_sample *s = (const void *)h;
	uint32_t i;

	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		if (s->time > trigger)
			return;
		r->samples++;
		r->old += s->time < low_watermark;
		r->right += r->name[s->pid - FIRST_PID] == s->ip;
		return;
	case PERF_RECORD_COMM:
		i = comm->pid - FIRST_PID;
		if (i < PIDS)
			r->name[i] = strtoull(comm->comm + 1, NULL, 10);
		return;
	case PERF_RECORD_FORK:
		i = task->pid - FIRST_PID;
		if (i < PIDS)
			r->name[i] = task->ppid - FIRST_PID < PIDS ? r->name[task->ppid - FIRST_PID] : 0;
		return;
	default:
		return;
	}
}

/* Collect in RET all records that a dump of this snapshot would have. */
static void collect_records(struct machine *m, struct fr_snapshot *s, struct fr_buf *ret)
{
	_cleanup_buf_ struct fr_buf since = {0};
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	_cleanup_free_ uint8_t *raw = malloc(fr_history_section_max(m->history));
	uint64_t low_watermark = fr_snapshot_low_watermark(s);
	struct fr_frame f;

	assert_int_equal(fr_unpack_new(&u), 0);
	assert_int_equal(fr_tracker_write_model(m->tracker, low_watermark,
				 low_watermark ? low_watermark - 1 : 0, EVENT_ID, 60 * SECOND, ret, &since),
		0);
	assert_int_equal(fr_buf_append(ret, since.data, since.len), 0);
	while (fr_snapshot_next(s, &f) > 0) {
		ssize_t n = fr_frame_sideband(u, &f, raw, fr_history_section_max(m->history));

		assert_true(f.low_watermark_ns >= low_watermark);
		assert_int_equal(fr_buf_append(ret, raw, (size_t)n), 0);
		n = fr_frame_samples(u, &f, raw, fr_history_section_max(m->history));
		assert_int_equal(fr_buf_append(ret, raw, (size_t)n), 0);
	}
}

/* Make a round, and read a dump of all records up to the start of this round. Later records of the round do
   not count, because side-band for them can still be in a kernel ring. */
static struct reader dump(struct machine *m)
{
	uint64_t trigger = m->now;
	_cleanup_buf_ struct fr_buf all = {0};
	_cleanup_free_ struct item *items = NULL;
	struct fr_record_iter it;
	struct reader r = {0};
	struct fr_snapshot *s;
	uint64_t low_watermark;
	size_t n = 0;

	one_round(m);
	assert_int_equal(fr_history_seal(m->history), 0);
	assert_int_equal(fr_history_snapshot(m->history, &s), 0);
	low_watermark = fr_snapshot_low_watermark(s);
	collect_records(m, s, &all);
	fr_snapshot_free(s);
	it = fr_record_iter(all.data, all.len);
	items = malloc((all.len / 8 + 1) * sizeof(*items));
	for (const struct perf_event_header *h; (h = fr_record_next(&it)); n++)
		items[n] = (struct item){h, fr_record_time(h), n};
	qsort(items, n, sizeof(*items), by_time);
	for (size_t i = 0; i < n; i++)
		read_record(&r, items[i].record, low_watermark, trigger);
	return r;
}

static void on_evicted(void *ctx, const struct fr_frame *f)
{
	struct machine *m = ctx;

	if (fr_tracker_push_evicted(m->tracker, f->seq, f->low_watermark_ns, f->sideband, f->sideband_len) !=
		0)
		fail_msg("the queue is full");
}

static uint64_t on_hold(void *ctx)
{
	struct machine *m = ctx;

	return fr_history_freeze(m->history);
}

static void on_release(void *ctx)
{
	struct machine *m = ctx;

	fr_history_unfreeze(m->history);
}

static int on_inject(void *ctx, const void *records, size_t len, uint32_t n, uint64_t first, uint64_t last)
{
	return 0;
}

static void machine_init(struct machine *m, uint64_t seed)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = FR_SAMPLE_TYPE,
		.sample_id_all = 1};
	const struct fr_history_config history = {
		.size_bytes = 2 << 20, .level = 1, .evicted = on_evicted, .ctx = m};
	pid_t self = getpid();
	uint64_t id = EVENT_ID;

	*m = (struct machine){.now = 1000, .random = seed};
	strcpy(m->dir, "/tmp/fr-low-watermark-XXXXXX");
	assert_non_null(mkdtemp(m->dir));
	m->dirfd = open(m->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fr_session_add_event(&m->session, &attr, "dummy:HG", &id, 1, NULL), 0);
	assert_int_equal(fr_history_new(&history, &m->history, NULL), 0);

	const struct fr_tracker_config tracker = {.dirfd = m->dirfd,
		.session = &m->session,
		.sideband_id = id,
		.section_max = fr_history_section_max(m->history),
		.queue_bytes = 64 << 20,
		.pids = &self,
		.n_pids = 1,
		.freeze = on_hold,
		.inject = on_inject,
		.unfreeze = on_release,
		.ctx = m};
	assert_int_equal(fr_tracker_new(&tracker, &m->tracker, NULL), 0);
	assert_int_equal(fr_tracker_start(m->tracker, NULL), 0);
}

static void machine_deinit(struct machine *m)
{
	fr_tracker_stop(m->tracker);
	fr_history_free(m->history);
	fr_tracker_free(m->tracker);
	for (int i = 0; i < N_CPUS; i++) {
		fr_buf_deinit(&m->sideband[i]);
		fr_buf_deinit(&m->samples[i]);
	}
	fr_session_deinit(&m->session);
	assert_int_equal(unlinkat(m->dirfd, "perf.data.auxiliary", 0), 0);
	close(m->dirfd);
	assert_int_equal(rmdir(m->dir), 0);
}

/* Simulate a machine and read dumps. If WRONG is true, the low watermarks are too late. Returns the sums of
 * the results of all dumps. */
static struct reader simulate(uint64_t seed, bool wrong, uint64_t *ret_evicted)
{
	struct machine m;
	struct reader all = {0};
	struct fr_history_stats stats;

	machine_init(&m, seed);
	m.wrong = wrong;
	for (int i = 0; i < 400; i++) {
		struct reader r = {0};

		one_round(&m);
		if (i % 20 == 19)
			r = dump(&m);
		all.samples += r.samples;
		all.right += r.right;
		all.old += r.old;
	}
	fr_history_stats(m.history, &stats);
	*ret_evicted = stats.frames_evicted;
	machine_deinit(&m);
	return all;
}

TEST(every_sample_finds_the_name_of_its_process)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		uint64_t evicted;
		struct reader r = simulate(seed, false, &evicted);

		print_message("%ju samples, %ju frames evicted\n", (uintmax_t)r.samples, (uintmax_t)evicted);
		assert_true(evicted > 100);
		assert_true(r.samples > 10000);
		assert_int_equal(r.old, 0);
		assert_int_equal(r.right, r.samples);
	}
}

/* This test shows that the test above can fail. */
TEST(a_wrong_low_watermark_gives_samples_wrong_names)
{
	uint64_t evicted;
	struct reader r = simulate(1, true, &evicted);

	assert_true(r.samples > 10000);
	assert_true(r.right < r.samples);
	assert_true(r.old > 0);
	print_message("wrong: %ju of %ju have their name\n", (uintmax_t)r.right, (uintmax_t)r.samples);
}
