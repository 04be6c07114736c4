// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the tracker, the thread that writes perf.data.auxiliary and keeps the process models. It works in
   a real directory, and stock perf reads its files. */
#include "tracker_fixture.h"
#include "sideband/auxfile.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zstd.h>

#define SECOND FR_NSEC_PER_SEC

/* A pid that no process of the machine has. */
#define PID 5000001

static int push_evicted(struct fr_tracker *t, const struct fr_buf *b, uint64_t low_watermark_ns)
{
	size_t room = ZSTD_compressBound(b->len);
	_cleanup_free_ uint8_t *z = malloc(room);
	size_t n = ZSTD_compress(z, room, b->data, b->len, 1);

	assert_false(ZSTD_isError(n));
	return fr_tracker_push_evicted(t, 1, low_watermark_ns, z, n);
}

/* Call the tracker as the ring does when it evicts a frame with the side-band records of B. Empties B. */
static void evict(struct fixture *f, struct fr_buf *b, uint64_t low_watermark_ns)
{
	assert_int_equal(push_evicted(f->tracker, b, low_watermark_ns), 0);
	b->len = 0;
}

static void push_fresh(struct fixture *f, const struct fr_buf *b)
{
	assert_int_equal(fr_tracker_push_fresh(f->tracker, b->data, b->len), 0);
}

static void assert_in_model(struct fixture *f, uint64_t low_watermark_ns, const char *s, int n)
{
	assert_int_equal(fixture_count_in_model(f, low_watermark_ns, s), n);
}

/* The records that the tracker has put into the ring since the last call have S. NULL: there are none. */
static void assert_injected(struct fixture *f, const char *s)
{
	_cleanup_buf_ struct fr_buf records = fixture_take_injected(f);

	if (s)
		assert_non_null(memmem(records.data, records.len, s, strlen(s)));
	else
		assert_int_equal(records.len, 0);
}

FIXTURE(fixture_setup, fixture_teardown)

TEST(perf_reads_the_open_file)
{
	static const struct {
		const char *record, *word;
	} lines[] = {{"PERF_RECORD_COMM exec", "short-lived"}, {"PERF_RECORD_MMAP2", "/opt/short-lived"},
		{"PERF_RECORD_EXIT", "(5000001:5000001)"}};
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t now = fr_monotonic_ns();
	struct fr_tracker_stats s;
	char self[32], error[256];

	require_perf();
	fixture_add_features(f);
	fixture_start(f);
	s = fixture_stats(f);
	print_message("first scan: %llu records, %llu bytes, %.1f ms; model %llu bytes\n",
		(unsigned long long)s.records, (unsigned long long)s.bytes, (double)s.scan_ns / 1e6,
		(unsigned long long)s.model_bytes);
	ev_fork(&b, now, PID, PID, getpid(), getpid());
	ev_comm(&b, now + 1, PID, PID, "short-lived", 1);
	ev_mmap(&b, now + 2, PID, 0x400000, 0x1000, 0, "/opt/short-lived");
	ev_exit(&b, now + 3, PID, PID);
	push_fresh(f, &b);
	fixture_wait_until(f, fixture_stats(f).records >= s.records + 4);
	snprintf(self, sizeof(self), " %d/%d:", getpid(), getpid());
	assert_true(fixture_count_perf_lines(f, FR_AUXFILE_NAME, "PERF_RECORD_MMAP2", self, error) >= 3);
	assert_string_equal(error, "");
	for (size_t i = 0; i < FR_ARRAY_SIZE(lines); i++)
		assert_int_equal(
			fixture_count_perf_lines(f, FR_AUXFILE_NAME, lines[i].record, lines[i].word, error),
			1);
	s = fixture_stats(f);
	assert_int_equal(s.scans, 1);
	assert_int_equal(s.queue_drops, 0);
	assert_int_equal(s.write_errors, 0);
}

TEST(evicted_records_get_into_the_model_in_order)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};

	fixture_start(f);
	/* The kernel ring with the exec of the child is drained before the kernel ring with its fork. */
	ev_comm(&b, 1002, PID, PID, "evicted-child", 1);
	ev_mmap(&b, 1003, PID, 0x400000, 0x1000, 0, "/opt/evicted-child");
	ev_fork(&b, 1001, PID, PID, getpid(), getpid());
	evict(f, &b, 500);
	assert_in_model(f, 1001, "/opt/evicted-child", 0);
	assert_in_model(f, 1003, "/opt/evicted-child", 0);
	assert_in_model(f, 1004, "/opt/evicted-child", 1);
	b.len = 0;
	ev_exit(&b, 3000, PID, PID);
	evict(f, &b, 2000);
	assert_in_model(f, 3000, "/opt/evicted-child", 1);
	b.len = 0;
	ev_comm(&b, 4000, 5000002, 5000002, "next", 1);
	evict(f, &b, 3500);
	assert_in_model(f, 3500, "/opt/evicted-child", 0);
}

TEST(evicted_records_since_the_low_watermark_keep_their_times)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0}, model = {0}, since = {0};
	const struct perf_event_header *h;
	size_t at = 0;

	fixture_start(f);
	ev_comm(&b, 1200, PID, PID, "late", 0);
	ev_comm(&b, 1100, PID, PID, "early", 0);
	ev_comm(&b, 900, PID, PID, "before", 0);
	evict(f, &b, 800);
	assert_int_equal(
		fr_tracker_write_model(f->tracker, 1000, 999, EVENT_ID, fixture_limit_ns(f), &model, &since),
		0);
	assert_non_null(memmem(model.data, model.len, "before", 7));
	assert_null(memmem(model.data, model.len, "early", 6));
	while ((h = ev_next(&model, &at)))
		assert_int_equal(fr_record_time(h), 999);
	at = 0;
	assert_int_equal(fr_record_time(ev_next(&since, &at)), 1100);
	assert_int_equal(fr_record_time(ev_next(&since, &at)), 1200);
	assert_null(ev_next(&since, &at));
}

TEST(damaged_section_is_counted_and_leads_to_a_scan)
{
	struct fixture *f = *state;
	struct fr_tracker_stats s;

	fixture_start(f);
	assert_int_equal(fr_tracker_push_evicted(f->tracker, 1, 1, "no zstd at all", 14), 0);
	assert_in_model(f, 1, "nobody has this name", 0);
	s = fixture_stats(f);
	assert_int_equal(s.damaged, 1);
	fixture_wait_until(f, fixture_stats(f).scans >= 2);
}

static bool is_exit_of_pid(const struct perf_event_header *h)
{
	return h->type == PERF_RECORD_EXIT && ((const struct fr_record_task *)h)->pid == PID;
}

static atomic_int exits_seen;

static void see_exits(void *ctx, const void *records, size_t len, uint64_t low_watermark_ns)
{
	const struct fr_buf b = {.data = (void *)records, .len = len};
	const struct perf_event_header *h;
	size_t at = 0;

	while ((h = ev_next(&b, &at)))
		exits_seen += is_exit_of_pid(h);
}

TEST(scan_finds_a_process_whose_exit_was_lost)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0}, injected = {0};
	uint64_t before = fr_monotonic_ns(), now;
	const struct perf_event_header *h;
	size_t at = 0;

	exits_seen = 0;
	f->config.observe = see_exits;
	fixture_start(f);
	ev_comm(&b, before, PID, PID, "its-exit-was-lost", 1);
	push_fresh(f, &b);
	evict(f, &b, before);
	fr_tracker_request_scan(f->tracker);
	fixture_wait_until(f, fixture_stats(f).scans >= 2);
	assert_true(fr_monotonic_ns() - before >= SECOND);
	assert_in_model(f, before + 1, "its-exit-was-lost", 1);

	pthread_mutex_lock(&f->lock);
	assert_false(f->is_frozen);
	now = f->freeze_ns;
	pthread_mutex_unlock(&f->lock);
	assert_true(now > before);
	injected = fixture_take_injected(f);
	while ((h = ev_next(&injected, &at))) {
		assert_int_equal(fr_record_time(h), now);
		if (is_exit_of_pid(h))
			assert_int_equal(fr_buf_append(&b, h, h->size), 0);
	}
	assert_int_equal(b.len, sizeof(struct fr_record_task) + sizeof(struct fr_sample_id)); /* one EXIT */
	assert_int_equal(exits_seen, 1);
	/* Only the EXIT is evicted. If the machine has many processes, the other records can be larger than a
	   section of a frame. */
	evict(f, &b, now);
	assert_in_model(f, now, "its-exit-was-lost", 1);
	assert_in_model(f, now + 1, "its-exit-was-lost", 0);
}

TEST(full_queue_is_counted_and_leads_to_a_scan)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_tracker_stats s;
	int dropped = 0;

	f->config.queue_bytes = 8192;
	fixture_start(f);
	for (int i = 0; i < 20; i++)
		ev_comm(&b, 1, PID, PID, "x", 0);
	for (int i = 0; i < 10000 || !dropped; i++)
		dropped += fr_tracker_push_fresh(f->tracker, b.data, b.len);
	s = fixture_stats(f);
	assert_int_equal(s.queue_drops, dropped);
	fixture_wait_until(f, fixture_stats(f).scans >= 2);
}

/* A scan of /proc ends only after the recorder's next round, and this test makes no round. So the scan has
   not ended when the tracker is stopped. A scan freezes the low watermarks of new frames of the ring. */
TEST(stop_during_a_scan_unfreezes_the_ring)
{
	struct fixture *f = *state;
	uint64_t until, first_scan_ns;

	fixture_start(f);
	first_scan_ns = fixture_stats(f).scan_ns;
	until = fr_monotonic_ns() + fixture_limit_ns(f);
	fr_tracker_request_scan(f->tracker);
	while (fixture_stats(f).scan_ns == first_scan_ns && fr_monotonic_ns() < until)
		usleep(10000);
	assert_int_not_equal(fixture_stats(f).scan_ns, first_scan_ns);
	assert_int_equal(fixture_stats(f).scans, 1); /* the second scan has read /proc, but has not ended */
	f->tracker = fr_tracker_free(f->tracker);
	assert_true(f->freeze_ns > 0);
	assert_false(f->is_frozen);
}

TEST(old_file_is_kept_while_there_are_samples)
{
	struct fixture *f = *state;
	struct fr_auxfile *a;
	struct stat st;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(fr_auxfile_open(f->dirfd, "12345678", 8, &a, NULL), 0);
		assert_null(fr_auxfile_close(a));
	}
	assert_int_equal(fixture_count_files(f, FR_AUXFILE_NAME), 1);
	assert_int_equal(fr_file_replace(f->dirfd, "perf.data.sample.20261120T231137.123456Z", 0600,
				 (gid_t)-1, "x", 1),
		0);
	assert_int_equal(fr_auxfile_open(f->dirfd, "87654321", 8, &a, NULL), 0);
	assert_int_equal(fixture_count_files(f, FR_AUXFILE_NAME "."), 1);
	assert_int_equal(fr_auxfile_append(a, "abcdefgh", 8), 0);
	assert_int_equal(fr_auxfile_bytes(a), 16);
	assert_null(fr_auxfile_close(a));
	assert_int_equal(fstatat(f->dirfd, FR_AUXFILE_NAME, &st, 0), 0);
	assert_int_equal(st.st_size, 16);
	assert_int_equal(st.st_mode & 07777, 0640);
}

TEST(full_disk_leaves_whole_records_and_leads_to_a_scan)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	struct rlimit old, tight;
	struct fr_tracker_stats s;

	signal(SIGXFSZ, SIG_IGN);
	fixture_start(f);
	s = fixture_stats(f);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	tight = (struct rlimit){s.file_bytes + 4, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	ev_comm(&b, 1, PID, PID, "x", 0);
	push_fresh(f, &b);
	fixture_wait_until(f, fixture_stats(f).write_errors > 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	fixture_wait_until(f, fixture_stats(f).scans >= 2);
	fr_tracker_stop(f->tracker);
	s = fixture_stats(f);
	assert_int_equal(s.last_errno, EFBIG);
	b.len = 0;
	assert_int_equal(fr_read_file(f->dirfd, FR_AUXFILE_NAME, 64 << 20, &b), 0);
	assert_int_equal(b.len, s.file_bytes);
	for (size_t at = 16; at < b.len;) { /* from the end of the pipe header on */
		const struct perf_event_header *h = (const void *)(b.data + at);

		assert_true(h->size >= 8 && h->size <= b.len - at);
		at += h->size;
	}
}

struct load {
	struct fr_tracker *tracker;
	const struct fr_buf *records;
	atomic_bool stop;
};

static void *recorder(void *arg)
{
	struct load *l = arg;

	while (!atomic_load(&l->stop)) {
		(void)fr_tracker_push_fresh(l->tracker, l->records->data, l->records->len);
		fr_tracker_end_round(l->tracker, fr_monotonic_ns());
		(void)push_evicted(l->tracker, l->records, 12);
		usleep(50);
	}
	return NULL;
}

TEST(recorder_and_dumper_use_the_tracker_together)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	struct load l = {.records = &b};
	pthread_t t;

	for (int i = 1; i < 50; i++) {
		ev_fork(&b, 10, 5000000 + i, 5000000 + i, 1, 1);
		ev_mmap(&b, 11, 5000000 + i, 0x1000, 0x1000, 0, "/opt/x");
	}
	f->config.queue_bytes = 128 << 10; /* 1,000 of these records need 1 KiB, compressed */
	fixture_start(f);
	l.tracker = f->tracker;
	assert_int_equal(pthread_create(&t, NULL, recorder, &l), 0);
	for (int i = 0; i < 100; i++) {
		_cleanup_buf_ struct fr_buf m = {0}, since = {0};
		struct fr_tracker_stats s;

		assert_int_equal(
			fr_tracker_write_model(f->tracker, 12, 1, EVENT_ID, fixture_limit_ns(f), &m, &since),
			0);
		s = fixture_stats(f);
		assert_true(s.processes > 0);
		if (i % 20 == 0)
			fr_tracker_request_scan(f->tracker);
	}
	atomic_store(&l.stop, true);
	pthread_join(t, NULL);
}

/* Append a COMM with the event id ID. */
static void ev_comm_of(struct fr_buf *b, uint64_t id, const char *comm)
{
	const size_t at = b->len;

	ev_comm(b, fr_monotonic_ns(), 5100000, 5100000, comm, 1);
	memcpy(b->data + b->len - sizeof(id), &id, sizeof(id)); /* the id is the last field of a record */
	assert_true(b->len > at);
}

static void reopen(struct fixture *f, uint64_t id, uint64_t since)
{
	struct fr_session next = {0};

	assert_int_equal(
		fr_session_add_event(&next, &f->session.events[0].attr, "dummy:HG", &id, 1, NULL), 0);
	fr_session_drop_closed_events(&f->session, since);
	assert_int_equal(fr_session_add_older_events(&next, &f->session), 0);
	fr_session_close_events(&next, id);
	memcpy(next.features, f->session.features, sizeof(next.features));
	memset(f->session.features, 0, sizeof(f->session.features));
	fr_session_deinit(&f->session);
	f->session = next;
	assert_int_equal(fr_tracker_set_session(f->tracker, &f->session, id), 0);
}

/* Less than 1000 (DESCRIBED_MAX): after 1000 reopenings the tracker compacts the file, and the test could no
   longer count its records. */
#define REOPENINGS 900

/* The next instance can also adopt the file. Its session no longer has the first events of the file, because
   the ring has no records of these events. */
TEST(each_record_has_an_event_after_reopenings)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_tracker_stats s;
	char error[256] = "";

	require_perf();
	fixture_add_features(f);
	fixture_start(f);
	s = fixture_stats(f);
	for (uint64_t id = 1000; id < 1000 + REOPENINGS; id++) {
		reopen(f, id, id > 1400 ? id - 400 : 0);
		b.len = 0;
		ev_comm_of(&b, id, "lives-on");
		push_fresh(f, &b);
		if (id % 200 == 0) {
			fixture_wait_until(f, fixture_stats(f).records >= s.records + id - 1000 + 1);
		}
	}
	assert_true(f->session.n_events < 500);
	fr_tracker_stop(f->tracker);
	assert_int_equal(fixture_count_perf_lines(f, FR_AUXFILE_NAME, "lives-on", "COMM", error), REOPENINGS);
	assert_string_equal(error, "");
	f->tracker = fr_tracker_free(f->tracker);
	f->config.adopt = true;
	f->config.adopt_low_watermark_ns = fr_monotonic_ns();
	f->config.sideband_id = 1000 + REOPENINGS - 1;
	fixture_start(f);
	assert_true(fixture_count_in_model(f, fr_monotonic_ns(), "lives-on") > 0);
	assert_int_equal(fixture_count_files(f, FR_AUXFILE_NAME "."), 0);
}

static const char one[] = "one 16384 0 - Live 0xffffffffc0100000\n";
static const char one_and_two[] =
	"one 16384 3 two, Live 0xffffffffc0100000\ntwo 8192 1 - Live 0xffffffffc0200000 (OE)\n";
static const char in_the_place_of_one[] = "other 8192 1 - Live 0xffffffffc0102000\n";

static void set_modules(struct fixture *f, const char *text)
{
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, (gid_t)-1, text, strlen(text)), 0);
}

static void start_with_modules(struct fixture *f, const char *text)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/modules", f->path);
	f->config.modules_path = path;
	set_modules(f, text);
	fixture_start(f);
}

TEST(new_module_is_in_the_next_dump_from_its_begin)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};

	start_with_modules(f, one);
	assert_in_model(f, 1, "[two]", 0);
	assert_injected(f, NULL);
	set_modules(f, one_and_two);
	assert_in_model(f, 1, "[two]", 1);
	assert_injected(f, "[two]");
	assert_in_model(f, 2, "[two]", 1);
	assert_injected(f, NULL); /* the modules have not changed, so there is no record */
	fr_tracker_stop(f->tracker);
	assert_int_equal(fr_read_file(f->dirfd, FR_AUXFILE_NAME, 64 << 20, &b), 0);
	assert_non_null(memmem(b.data, b.len, "[two]", 5));
}

/* The ring can still have samples of the old module. So at first the tail model (which has the time of the
   oldest frame) keeps the old module, and the new module is only in a record. */
TEST(module_in_the_place_of_another_waits_for_the_ring)
{
	struct fixture *f = *state;

	start_with_modules(f, "");
	set_modules(f, one);
	assert_in_model(f, 1, "[one]", 1);
	set_modules(f, in_the_place_of_one);
	assert_in_model(f, 2, "[other]", 0);
	assert_in_model(f, 3, "[one]", 1);
	assert_injected(f, "[other]");
}
