// SPDX-License-Identifier: GPL-2.0-or-later
/* The tracker with a real directory, and stock perf as the judge of what it leaves there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tracker_fixture.h"
#include "perfdata/features.h"
#include "sideband/auxfile.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zstd.h>

#define SECOND FR_NSEC_PER_SEC

static void gather(struct fixture *f)
{
	struct fr_clock_pair pair = fr_clock_pair_now();
	char *argv[] = {(char *)"flightrecd", NULL};

	assert_int_equal(fr_features_gather(&f->session, 1, argv, &pair, NULL), 0);
}

static int evict(struct fr_tracker *k, const struct fr_buf *b, uint64_t low_watermark_ns)
{
	size_t room = ZSTD_compressBound(b->len);
	_cleanup_free_ uint8_t *z = malloc(room);
	size_t n = ZSTD_compress(z, room, b->data, b->len, 1);

	assert_false(ZSTD_isError(n));
	return fr_tracker_evicted(k, z, n, low_watermark_ns);
}

/* How often a string stands in the state before the low watermark. */
static int model_mentions(struct fixture *f, uint64_t low_watermark_ns, const char *s)
{
	_cleanup_buf_ struct fr_buf b = {0}, since = {0};
	const uint8_t *p;
	int n = 0;

	assert_int_equal(
		fr_tracker_model(f->tracker, low_watermark_ns, 1, EVENT_ID, keeping_limit_ns(f), &b, &since),
		0);
	for (p = b.data; (p = memmem(p, b.len - (size_t)(p - b.data), s, strlen(s))); p++)
		n++;
	return n;
}

static bool wait_until(struct fixture *f, bool (*is)(struct fixture *, const struct fr_tracker_stats *))
{
	uint64_t until = fr_monotonic_ns() + keeping_limit_ns(f);
	struct fr_tracker_stats s;

	while (fr_monotonic_ns() < until) {
		fr_tracker_round(f->tracker, fr_monotonic_ns());
		fr_tracker_stats(f->tracker, &s);
		if (is(f, &s))
			return true;
		usleep(5000);
	}
	return false;
}

static bool second_scan(struct fixture *f, const struct fr_tracker_stats *s)
{
	return s->scans >= 2;
}

static bool file_broken(struct fixture *f, const struct fr_tracker_stats *s)
{
	return s->write_errors > 0;
}

static void require_perf(void)
{
	if (system("perf --version >/dev/null 2>&1") != 0) {
		print_message("skipped: perf is not installed\n");
		skip();
	}
}

/* Lines of perf script for FILE that have both words; -1: perf failed. */
static int perf_lines(struct fixture *f, const char *file, const char *word, const char *other, char *error)
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
	if (error) {
		snprintf(command, sizeof(command), "%s/stderr", f->path);
		fr_read_line(command, error, 256);
	}
	return n;
}

static void test_perf_reads_the_file(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t now = fr_monotonic_ns();
	char self[32], error[256];
	struct fr_tracker_stats first, s;
	uint64_t until;

	require_perf();
	gather(f);
	keeping_start(f);
	fr_tracker_stats(f->tracker, &first);
	ev_fork(&b, now, 5000001, 5000001, getpid(), getpid());
	ev_comm(&b, now + 1, 5000001, 5000001, "short-lived", 1);
	ev_mmap(&b, now + 2, 5000001, 0x400000, 0x1000, 0, "/opt/short-lived");
	ev_exit(&b, now + 3, 5000001, 5000001);
	assert_int_equal(fr_tracker_fresh(f->tracker, b.data, b.len), 0);
	/* Read while it is still open. */
	until = fr_monotonic_ns() + keeping_limit_ns(f);
	do {
		usleep(5000);
		fr_tracker_stats(f->tracker, &s);
	} while (s.bytes < first.bytes + b.len && fr_monotonic_ns() < until);
	snprintf(self, sizeof(self), " %d/%d:", getpid(), getpid());
	assert_true(perf_lines(f, FR_AUXFILE_NAME, "PERF_RECORD_MMAP2", self, error) >= 3);
	assert_string_equal(error, "");
	assert_int_equal(perf_lines(f, FR_AUXFILE_NAME, "PERF_RECORD_COMM exec", "short-lived", NULL), 1);
	assert_int_equal(perf_lines(f, FR_AUXFILE_NAME, "PERF_RECORD_MMAP2", "/opt/short-lived", NULL), 1);
	assert_int_equal(perf_lines(f, FR_AUXFILE_NAME, "PERF_RECORD_EXIT", "(5000001:5000001)", NULL), 1);
	fr_tracker_stats(f->tracker, &s);
	print_message("first scan: %llu records, %llu bytes, %.1f ms; model %llu bytes\n",
		(unsigned long long)s.records, (unsigned long long)s.bytes, (double)s.scan_ns / 1e6,
		(unsigned long long)s.model_bytes);
	assert_int_equal(s.scans, 1);
	assert_int_equal(s.queue_drops, 0);
	assert_int_equal(s.write_errors, 0);
}

/* Behind the first record of TYPE of a pipe file. */
static size_t behind_first(const struct fr_buf *b, uint32_t type)
{
	for (size_t at = 16; at + sizeof(struct perf_event_header) <= b->len;) {
		const struct perf_event_header *h = (const void *)(b->data + at);

		assert_true(h->size >= sizeof(*h));
		at += h->size;
		if (h->type == type)
			return at;
	}
	fail_msg("no record of type %u", type);
	return 0;
}

static void test_truncated_anywhere(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	size_t first;
	int whole;

	require_perf();
	gather(f);
	keeping_start(f);
	fr_tracker_stop(f->tracker);
	assert_int_equal(fr_read_file(f->dirfd, FR_AUXFILE_NAME, 64 << 20, &b), 0);
	whole = perf_lines(f, FR_AUXFILE_NAME, "PERF_RECORD_COMM", "", NULL);
	assert_true(whole > 1);
	first = behind_first(&b, PERF_RECORD_COMM);
	srand(1);
	for (int i = 0; i < 10; i++) {
		/* Behind head, kernel and the first name, at any byte. */
		size_t cut = first + (size_t)rand() % (b.len - first);
		int n;

		assert_int_equal(fr_file_replace(f->dirfd, "cut", 0600, (gid_t)-1, b.data, cut), 0);
		n = perf_lines(f, "cut", "PERF_RECORD_COMM", "", NULL);
		assert_true(n > 0 && n <= whole);
	}
}

static void test_evicted_moves_the_model(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};

	keeping_start(f);
	/* The child's exec comes from a ring that is drained before the one with its fork. */
	ev_comm(&b, 1002, 5000001, 5000001, "evicted-child", 1);
	ev_mmap(&b, 1003, 5000001, 0x400000, 0x1000, 0, "/opt/evicted-child");
	ev_fork(&b, 1001, 5000001, 5000001, getpid(), getpid());
	assert_int_equal(evict(f->tracker, &b, 500), 0);
	assert_int_equal(model_mentions(f, 1001, "/opt/evicted-child"), 0);
	assert_int_equal(model_mentions(f, 1003, "/opt/evicted-child"), 0);
	assert_int_equal(model_mentions(f, 1004, "/opt/evicted-child"), 1);
	b.len = 0;
	ev_exit(&b, 3000, 5000001, 5000001);
	assert_int_equal(evict(f->tracker, &b, 2000), 0);
	assert_int_equal(model_mentions(f, 3000, "/opt/evicted-child"), 1);
	b.len = 0;
	ev_comm(&b, 4000, 5000002, 5000002, "next", 1);
	assert_int_equal(evict(f->tracker, &b, 3500), 0);
	assert_int_equal(model_mentions(f, 3500, "/opt/evicted-child"), 0);
}

/* What the ring gave up and is too young for the state comes beside it, with its own times, in order. */
static void test_since_the_low_watermark(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0}, model = {0}, since = {0};
	const struct perf_event_header *h;
	size_t at = 0;

	keeping_start(f);
	ev_comm(&b, 1200, 5000001, 5000001, "late", 0);
	ev_comm(&b, 1100, 5000001, 5000001, "early", 0);
	ev_comm(&b, 900, 5000001, 5000001, "before", 0);
	assert_int_equal(evict(f->tracker, &b, 800), 0);
	assert_int_equal(
		fr_tracker_model(f->tracker, 1000, 999, EVENT_ID, keeping_limit_ns(f), &model, &since), 0);
	assert_non_null(memmem(model.data, model.len, "before", 7));
	assert_null(memmem(model.data, model.len, "early", 6));
	while ((h = ev_next(&model, &at)))
		assert_int_equal(fr_record_time(h), 999);
	at = 0;
	assert_int_equal(fr_record_time(ev_next(&since, &at)), 1100);
	assert_int_equal(fr_record_time(ev_next(&since, &at)), 1200);
	assert_null(ev_next(&since, &at));
}

static void test_damaged_section(void **state)
{
	struct fixture *f = *state;
	struct fr_tracker_stats s;

	keeping_start(f);
	assert_int_equal(fr_tracker_evicted(f->tracker, "no zstd at all", 14, 1), 0);
	assert_int_equal(model_mentions(f, 1, "nobody has this name"), 0);
	fr_tracker_stats(f->tracker, &s);
	assert_int_equal(s.damaged, 1);
	assert_true(wait_until(f, second_scan));
}

/* A scan's records go to the file and into the ring; and so do the ends of those whose end was lost. */
static atomic_int exits_seen;

static void see_exits(void *ctx, const void *records, size_t len, uint64_t low_watermark_ns)
{
	const struct fr_buf b = {.data = (void *)records, .len = len};
	const struct perf_event_header *h;
	size_t at = 0;

	while ((h = ev_next(&b, &at)))
		exits_seen +=
			h->type == PERF_RECORD_EXIT && ((const struct fr_record_task *)h)->pid == 5000001;
}

static void test_scan_after_loss(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t before = fr_monotonic_ns(), now;
	const struct perf_event_header *h;
	size_t at = 0;
	int exits = 0;

	exits_seen = 0;
	f->config.see = see_exits;
	keeping_start(f);
	ev_comm(&b, before, 5000001, 5000001, "its-exit-was-lost", 1);
	assert_int_equal(fr_tracker_fresh(f->tracker, b.data, b.len), 0);
	assert_int_equal(evict(f->tracker, &b, before), 0);
	fr_tracker_request_scan(f->tracker);
	assert_true(wait_until(f, second_scan));
	assert_true(fr_monotonic_ns() - before >= SECOND);
	assert_int_equal(model_mentions(f, before + 1, "its-exit-was-lost"), 1);

	pthread_mutex_lock(&f->lock);
	assert_false(f->held);
	now = f->hold_ns;
	assert_true(now > before);
	while ((h = ev_next(&f->injected, &at))) {
		assert_int_equal(fr_record_time(h), now);
		exits += h->type == PERF_RECORD_EXIT && ((const struct fr_record_task *)h)->pid == 5000001;
	}
	assert_int_equal(exits, 1);
	assert_int_equal(exits_seen, 1);
	assert_true(f->injected.len <= SECTION_MAX);
	assert_int_equal(evict(f->tracker, &f->injected, now), 0);
	pthread_mutex_unlock(&f->lock);
	assert_int_equal(model_mentions(f, now, "its-exit-was-lost"), 1);
	assert_int_equal(model_mentions(f, now + 1, "its-exit-was-lost"), 0);
}

static void test_overflow_is_counted_and_scanned(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_tracker_stats s;
	int dropped = 0;

	f->config.queue_bytes = 8192;
	keeping_start(f);
	for (int i = 0; i < 20; i++)
		ev_comm(&b, 1, 5000001, 5000001, "x", 0);
	for (int i = 0; i < 10000 || !dropped; i++)
		dropped += fr_tracker_fresh(f->tracker, b.data, b.len);
	fr_tracker_stats(f->tracker, &s);
	assert_int_equal(s.queue_drops, dropped);
	assert_true(wait_until(f, second_scan));
}

static void test_second_tracker_is_refused(void **state)
{
	struct fixture *f = *state;
	struct fr_tracker *second = NULL;
	struct fr_diag d = {0};

	keeping_start(f);
	assert_int_equal(fr_tracker_new(&f->config, &second, &d), -EBUSY);
	assert_null(second);
	assert_non_null(strstr(d.what, f->path));
	assert_true(d.hint[0]);
	fr_tracker_stop(f->tracker);
	assert_int_equal(fr_tracker_new(&f->config, &second, NULL), 0);
	fr_tracker_free(second);
}

/* Stopped while a scan waits for a round that will not come: the ring is given back. */
static void test_stop_after_a_scan(void **state)
{
	struct fixture *f = *state;
	struct fr_tracker_stats first, s;
	uint64_t until;

	keeping_start(f);
	until = fr_monotonic_ns() + keeping_limit_ns(f);
	fr_tracker_stats(f->tracker, &first);
	fr_tracker_request_scan(f->tracker);
	do {
		usleep(10000);
		fr_tracker_stats(f->tracker, &s);
	} while (s.scan_ns == first.scan_ns && fr_monotonic_ns() < until);
	assert_int_not_equal(s.scan_ns, first.scan_ns);
	assert_int_equal(s.scans, 1); /* it is read, and not over */
	f->tracker = fr_tracker_free(f->tracker);
	assert_true(f->hold_ns > 0);
	assert_false(f->held);
}

/* From another process the message has the pid. */
static void test_owner_is_named(void **state)
{
	struct fixture *f = *state;
	char pid[32];
	int status;
	pid_t child;

	keeping_start(f);
	snprintf(pid, sizeof(pid), "(pid %d)", getpid());
	child = fork();
	if (child == 0) {
		struct fr_auxfile *a;
		struct fr_diag d = {0};
		int r = fr_auxfile_open(f->dirfd, "x", 1, &a, &d);

		_exit(r == -EBUSY && strstr(d.what, pid) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int count_named(struct fixture *f, const char *prefix)
{
	_cleanup_closedir_ DIR *dir = opendir(f->path);
	struct dirent *e;
	int n = 0;

	while ((e = readdir(dir)))
		n += !strncmp(e->d_name, prefix, strlen(prefix));
	return n;
}

static void test_older_file(void **state)
{
	struct fixture *f = *state;
	struct fr_auxfile *a;
	struct stat st;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(fr_auxfile_open(f->dirfd, "12345678", 8, &a, NULL), 0);
		assert_null(fr_auxfile_close(a));
	}
	assert_int_equal(count_named(f, FR_AUXFILE_NAME), 1);
	assert_int_equal(fr_file_replace(f->dirfd, "perf.data.sample.20261120T231137.123456Z", 0600,
				 (gid_t)-1, "x", 1),
		0);
	assert_int_equal(fr_auxfile_open(f->dirfd, "87654321", 8, &a, NULL), 0);
	assert_int_equal(count_named(f, FR_AUXFILE_NAME "."), 1);
	assert_int_equal(fr_auxfile_append(a, "abcdefgh", 8), 0);
	assert_int_equal(fr_auxfile_bytes(a), 16);
	assert_null(fr_auxfile_close(a));
	assert_int_equal(fstatat(f->dirfd, FR_AUXFILE_NAME, &st, 0), 0);
	assert_int_equal(st.st_size, 16);
	assert_int_equal(st.st_mode & 07777, 0640);
}

/* A disk that is full for a while: whole records up to there, and a scan when it can be written again. */
static void test_disk_full(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	struct rlimit old, tight;
	struct fr_tracker_stats s;

	signal(SIGXFSZ, SIG_IGN);
	keeping_start(f);
	fr_tracker_stats(f->tracker, &s);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	tight = (struct rlimit){s.file_bytes + 4, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	ev_comm(&b, 1, 5000001, 5000001, "x", 0);
	assert_int_equal(fr_tracker_fresh(f->tracker, b.data, b.len), 0);
	assert_true(wait_until(f, file_broken));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(wait_until(f, second_scan));
	fr_tracker_stop(f->tracker);
	fr_tracker_stats(f->tracker, &s);
	assert_int_equal(s.last_errno, EFBIG);
	b.len = 0;
	assert_int_equal(fr_read_file(f->dirfd, FR_AUXFILE_NAME, 64 << 20, &b), 0);
	assert_int_equal(b.len, s.file_bytes);
	for (size_t at = 16; at < b.len;) { /* behind the pipe header */
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
		(void)fr_tracker_fresh(l->tracker, l->records->data, l->records->len);
		fr_tracker_round(l->tracker, fr_monotonic_ns());
		(void)evict(l->tracker, l->records, 12);
		usleep(50);
	}
	return NULL;
}

static void test_threads_together(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	struct load l = {.records = &b};
	pthread_t t;

	for (int i = 1; i < 50; i++) {
		ev_fork(&b, 10, 5000000 + i, 5000000 + i, 1, 1);
		ev_mmap(&b, 11, 5000000 + i, 0x1000, 0x1000, 0, "/opt/x");
	}
	f->config.queue_bytes = 128 << 10; /* they compress to nothing: 1,000 records a KiB */
	keeping_start(f);
	l.tracker = f->tracker;
	assert_int_equal(pthread_create(&t, NULL, recorder, &l), 0);
	for (int i = 0; i < 100; i++) {
		_cleanup_buf_ struct fr_buf m = {0}, since = {0};
		struct fr_tracker_stats s;

		assert_int_equal(
			fr_tracker_model(f->tracker, 12, 1, EVENT_ID, keeping_limit_ns(f), &m, &since), 0);
		fr_tracker_stats(f->tracker, &s);
		assert_true(s.processes > 0);
		if (i % 20 == 0)
			fr_tracker_request_scan(f->tracker);
	}
	atomic_store(&l.stop, true);
	pthread_join(t, NULL);
}

/* The records of an event that was opened for the Nth time, as the kernel makes them. */
static void ev_comm_of(struct fr_buf *b, uint64_t id, const char *comm)
{
	const size_t at = b->len;

	ev_comm(b, fr_monotonic_ns(), 4100000, 4100000, comm, 1);
	memcpy(b->data + b->len - sizeof(id), &id, sizeof(id)); /* IDENTIFIER is the last of a trailer */
	assert_true(b->len > at);
}

static uint64_t wanted_records;

static bool has_written(struct fixture *f, const struct fr_tracker_stats *s)
{
	return s->records >= wanted_records;
}

static void open_anew(struct fixture *f, uint64_t id, uint64_t since)
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

/* A tracker that has described 1000 events (DESCRIBED_MAX) compacts the file. This drops records that the
   test counts. */
#define ANEW 900

/* The events of the file's head left the ring long ago: it is of this recording all the same, and each record
   in it has an event. */
static void test_opened_anew(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_tracker_stats s;
	char error[256] = "";

	require_perf();
	gather(f);
	keeping_start(f);
	fr_tracker_stats(f->tracker, &s);
	for (uint64_t id = 1000; id < 1000 + ANEW; id++) {
		open_anew(f, id, id > 1400 ? id - 400 : 0);
		b.len = 0;
		ev_comm_of(&b, id, "lives-on");
		assert_int_equal(fr_tracker_fresh(f->tracker, b.data, b.len), 0);
		if (id % 200 == 0) {
			wanted_records = s.records + id - 1000 + 1;
			assert_true(wait_until(f, has_written));
		}
	}
	assert_true(f->session.n_events < 500);
	fr_tracker_stop(f->tracker);
	assert_int_equal(perf_lines(f, FR_AUXFILE_NAME, "lives-on", "COMM", error), ANEW);
	assert_string_equal(error, "");
	f->tracker = fr_tracker_free(f->tracker);
	f->config.adopt = true;
	f->config.adopt_low_watermark_ns = fr_monotonic_ns();
	f->config.sideband_id = 1000 + ANEW - 1;
	keeping_start(f);
	assert_true(model_mentions(f, fr_monotonic_ns(), "lives-on") > 0);
	assert_int_equal(count_named(f, FR_AUXFILE_NAME "."), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_perf_reads_the_file, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_truncated_anywhere, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(
			test_evicted_moves_the_model, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(
			test_since_the_low_watermark, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_section, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_scan_after_loss, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(
			test_overflow_is_counted_and_scanned, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(
			test_second_tracker_is_refused, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_stop_after_a_scan, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_owner_is_named, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_older_file, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_disk_full, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_threads_together, keeping_setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_opened_anew, keeping_setup, keeping_teardown),
	};

	return cmocka_run_group_tests_name("sideband-tracker", tests, NULL, NULL);
}
