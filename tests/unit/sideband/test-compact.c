// SPDX-License-Identifier: GPL-2.0-or-later
/* Compaction of perf.data.auxiliary: what stays, what goes, and a kill at any moment. Modules that come late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "keeping.h"
#include "perfdata/features.h"
#include "perfdata/reader.h"
#include "sideband/auxfile.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SECOND FR_NSEC_PER_SEC
/* Sanitizers make a start ten times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KILLS 15
#else
#define KILLS 100
#endif
#define LIVING 200

static uint64_t processes; /* that came and went */

static int setup(void **state)
{
	struct fr_clock_pair pair = fr_clock_pair_now();
	char *argv[] = {(char *)"flightrecd", NULL};
	struct fixture *f;
	static pid_t self;

	if (keeping_setup(state) < 0)
		return -1;
	f = *state;
	self = getpid();
	f->config.pids = &self;
	f->config.n_pids = 1;
	return fr_features_gather(&f->session, 1, argv, &pair, NULL);
}

static void hand_over(struct fixture *f, const struct fr_buf *b, uint64_t since_ns)
{
	while (fr_keeper_fresh(f->keeper, b->data, b->len) != 0)
		usleep(100);
	fr_keeper_round(f->keeper, since_ns);
}

/* Some that live on. */
static void some_start(struct fixture *f)
{
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t since = fr_monotonic_ns();

	for (pid_t pid = 3900001; pid <= 3900000 + LIVING; pid++) {
		ev_comm(&b, fr_monotonic_ns(), pid, pid, "lives-on", 1);
		ev_mmap(&b, fr_monotonic_ns(), pid, 0x400000, 0x1000, 0, "/opt/lives-on");
	}
	hand_over(f, &b, since);
}

/* A round of processes that come and go. */
static void storm(struct fixture *f)
{
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t since = fr_monotonic_ns();

	for (int i = 0; i < 20; i++) {
		pid_t pid = 4000000 + (pid_t)(processes++ % 100000);

		ev_fork(&b, fr_monotonic_ns(), pid, pid, 3900001, 3900001);
		ev_comm(&b, fr_monotonic_ns(), pid, pid, "short-lived", 1);
		ev_mmap(&b, fr_monotonic_ns(), pid, 0x400000, 0x1000, 0, "/opt/short-lived");
		ev_exit(&b, fr_monotonic_ns(), pid, pid);
	}
	hand_over(f, &b, since);
}

struct content {
	uint64_t records, living, late, rounds;
	bool damaged;
};

/* All of the file by our reader; and whether its rounds are true. */
static struct content read_file(struct fixture *f)
{
	struct fr_reader *reader;
	const struct perf_event_header *h;
	struct content c = {0};
	uint64_t newest = 0, next_flush = 0, flushed = 0;
	struct fr_diag d = {0};
	char path[128];
	int r;

	snprintf(path, sizeof(path), "%s/" FR_AUXFILE_NAME, f->path);
	if (fr_reader_open(path, &reader, &d) < 0)
		fail_msg("%s", d.what);
	while ((r = fr_reader_next(reader, &h, NULL)) == 1) {
		uint64_t t = h->type < FR_RECORD_USER_START ? fr_record_time(h) : 0;

		c.records++;
		if (h->type == FR_RECORD_FINISHED_ROUND) {
			c.rounds++;
			flushed = next_flush;
			next_flush = newest;
		}
		c.late += t && t < flushed;
		newest = FR_MAX(newest, t);
		c.living += h->type == PERF_RECORD_COMM &&
			    !strcmp(((const struct fr_record_comm *)h)->comm, "lives-on");
	}
	assert_int_equal(r, 0);
	/* A write that a kill cut short, as any append may be. */
	c.damaged = fr_reader_damage(reader)->damaged;
	assert_true(!c.damaged || fr_reader_damage(reader)->only_tail);
	fr_reader_free(reader);
	return c;
}

static void require_perf(void)
{
	if (system("perf --version >/dev/null 2>&1") != 0) {
		print_message("skipped: perf is not installed\n");
		skip();
	}
}

/* How many lines perf script prints; it must not complain, but where the last record is CUT. */
static int perf_lines(struct fixture *f, bool cut)
{
	char command[512], error[256] = "";
	int n = 0, c;
	FILE *p;

	snprintf(command, sizeof(command),
		"perf script -i '%s/" FR_AUXFILE_NAME "' --show-task-events 2>'%s/stderr'", f->path, f->path);
	p = popen(command, "r");
	assert_non_null(p);
	while ((c = fgetc(p)) != EOF)
		n += c == '\n';
	assert_int_equal(pclose(p), 0);
	snprintf(command, sizeof(command), "%s/stderr", f->path);
	fr_read_line(command, error, sizeof(error));
	assert_string_equal(error, cut ? "unexpected end of event stream" : "");
	return n;
}

static uint64_t compactions(struct fixture *f)
{
	struct fr_keeper_stats s;

	fr_keeper_stats(f->keeper, &s);
	assert_int_equal(s.write_errors, 0);
	return s.compactions;
}

static void storm_until(struct fixture *f, uint64_t n)
{
	uint64_t until = fr_monotonic_ns() + 30 * SECOND;

	while (compactions(f) < n) {
		storm(f);
		usleep(200);
		assert_true(fr_monotonic_ns() < until);
	}
}

static void test_by_size(void **state)
{
	struct fixture *f = *state;
	struct fr_keeper *second;
	struct fr_keeper_stats s;
	struct content c;

	require_perf();
	f->config.file_max_bytes = 256 << 10;
	keeping_start(f);
	some_start(f);
	storm_until(f, 4);
	assert_int_equal(fr_keeper_new(&f->config, &second, NULL), -EBUSY); /* the new file is locked, too */
	fr_keeper_stop(f->keeper);
	fr_keeper_stats(f->keeper, &s);
	assert_int_equal(s.queue_drops, 0);
	assert_true(s.file_bytes < 2 << 20);
	assert_true(s.bytes > s.file_bytes);
	c = read_file(f);
	assert_false(c.damaged);
	assert_int_equal(c.late, 0);
	assert_true(c.rounds >= 1);
	/* Once, by the checkpoint. */
	assert_int_equal(c.living, LIVING);
	assert_true(perf_lines(f, false) > LIVING);
}

static void test_by_age(void **state)
{
	struct fixture *f = *state;
	uint64_t done;

	f->config.file_max_age_ns = SECOND / 5;
	keeping_start(f);
	storm_until(f, 2);
	done = compactions(f);
	usleep(500000); /* what does not grow is left alone; but the last storm may still be on its way */
	assert_true(compactions(f) <= done + 1);
	done = compactions(f);
	usleep(500000);
	assert_int_equal(compactions(f), done);
}

/* As a daemon does, until it is killed. */
static void record(struct fixture *f)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	keeping_start(f);
	some_start(f);
	for (;;) {
		storm(f);
		usleep(50);
	}
}

static bool has_temporary(struct fixture *f)
{
	_cleanup_closedir_ DIR *dir = opendir(f->path);
	struct dirent *e;

	while ((e = readdir(dir)))
		if (!strncmp(e->d_name, "." FR_AUXFILE_NAME, strlen("." FR_AUXFILE_NAME)))
			return true;
	return false;
}

/* Half of the time at a random moment, else in a compaction: its temporary file is there. */
static void kill_somewhere(struct fixture *f, pid_t pid, unsigned i)
{
	uint64_t until = fr_monotonic_ns() + 20 * SECOND;
	char path[128];
	int status;

	/* From then on there is one at every moment. */
	snprintf(path, sizeof(path), "%s/" FR_AUXFILE_NAME, f->path);
	while (access(path, F_OK) < 0 && fr_monotonic_ns() < until)
		;
	usleep((unsigned)rand() % 200000);
	while (i % 2 && !has_temporary(f) && fr_monotonic_ns() < until)
		;
	for (uint64_t spin = fr_monotonic_ns() + (unsigned)rand() % 2000000; fr_monotonic_ns() < spin;)
		;
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static void test_killed_anywhere(void **state)
{
	struct fixture *f = *state;
	int in_compaction = 0, compacted = 0;

	require_perf();
	f->config.file_max_bytes = 128 << 10;
	srand(1);
	for (unsigned i = 0; i < KILLS; i++) {
		struct content c;
		pid_t pid = fork();

		if (pid == 0)
			record(f);
		kill_somewhere(f, pid, i);
		in_compaction += has_temporary(f);
		c = read_file(f);
		assert_false(c.late);
		/* The start's, or the checkpoint's; a kill before the start was over leaves the file before,
		 * or none. */
		assert_true(c.living == LIVING || (c.living < LIVING && c.rounds == 0));
		compacted += c.rounds > 0;
		assert_true(perf_lines(f, c.damaged) >= (int)c.living);
	}
	print_message("%d of %d kills in a compaction, %d after one\n", in_compaction, KILLS, compacted);
	assert_true(in_compaction >= KILLS / 10);
	/* What they left is gone with the next start. */
	keeping_start(f);
	assert_false(has_temporary(f));
}

static const char one[] = "one 16384 0 - Live 0xffffffffc0100000\n";
static const char two[] =
	"one 16384 3 two, Live 0xffffffffc0100000\ntwo 8192 1 - Live 0xffffffffc0200000 (OE)\n";

static bool state_has(struct fixture *f, uint64_t horizon_ns, const char *name)
{
	_cleanup_buf_ struct fr_buf b = {0}, since = {0};

	assert_int_equal(fr_keeper_model(f->keeper, horizon_ns, 1, 5 * SECOND, &b, &since), 0);
	return memmem(b.data, b.len, name, strlen(name));
}

/* A module that is loaded while we record stands in the next dump, from its begin on. */
static void test_module_comes(void **state)
{
	struct fixture *f = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/modules", f->path);
	f->config.modules_path = path;
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, one, sizeof(one) - 1), 0);
	keeping_start(f);
	assert_false(state_has(f, 1, "[two]"));
	assert_int_equal(f->injected.len, 0);
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, two, sizeof(two) - 1), 0);
	assert_true(state_has(f, 1, "[two]"));
	assert_non_null(memmem(f->injected.data, f->injected.len, "[two]", 5));
	f->injected.len = 0;
	assert_true(state_has(f, 2, "[two]"));
	assert_int_equal(f->injected.len, 0); /* no change, no record */
	fr_keeper_stop(f->keeper);
	f->injected.len = 0;
	assert_int_equal(fr_read_file(f->dirfd, FR_AUXFILE_NAME, 64 << 20, &f->injected), 0);
	assert_non_null(memmem(f->injected.data, f->injected.len, "[two]", 5));
}

/* One in the place of another that the ring may still have samples of waits for its turn. */
static void test_module_in_anothers_place(void **state)
{
	static const char other[] = "other 8192 1 - Live 0xffffffffc0102000\n";
	struct fixture *f = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/modules", f->path);
	f->config.modules_path = path;
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, "", 0), 0);
	keeping_start(f);
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, one, sizeof(one) - 1), 0);
	assert_true(state_has(f, 1, "[one]"));
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, other, sizeof(other) - 1), 0);
	assert_false(state_has(f, 2, "[other]"));
	assert_true(state_has(f, 3, "[one]"));
	assert_non_null(memmem(f->injected.data, f->injected.len, "[other]", 7));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_by_size, setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_by_age, setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_killed_anywhere, setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_module_comes, setup, keeping_teardown),
		cmocka_unit_test_setup_teardown(test_module_in_anothers_place, setup, keeping_teardown),
	};

	return cmocka_run_group_tests_name("sideband-compact", tests, NULL, NULL);
}
