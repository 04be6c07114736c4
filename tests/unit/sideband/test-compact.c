// SPDX-License-Identifier: GPL-2.0-or-later
/* Compaction of perf.data.auxiliary: what stays, what goes, and a kill at any moment. Modules that come late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tracker_fixture.h"
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
/* Where the machine is slow, as many as this time allows, and no less than that. */
#define KILLS_NS (120 * SECOND)
#define KILLS_MIN 10
#define LIVING 200

static uint64_t processes; /* that came and went */
static uint64_t handed;	   /* bytes that the file has, or will have when the queue is empty */

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

static void start(struct fixture *f)
{
	struct fr_tracker_stats s;

	keeping_start(f);
	fr_tracker_stats(f->tracker, &s);
	handed = s.bytes;
}

static void hand_over(struct fixture *f, const struct fr_buf *b, uint64_t since_ns)
{
	while (fr_tracker_push_fresh(f->tracker, b->data, b->len) != 0)
		usleep(100);
	fr_tracker_end_round(f->tracker, since_ns);
	handed += b->len;
}

/* However slow thread and disk are: the queue does not run over, and a file that is to be compacted does not
   grow by much until it is. */
static bool has_room(struct fixture *f)
{
	struct fr_tracker_stats s;

	fr_tracker_stats(f->tracker, &s);
	return handed < s.bytes + (128 << 10) &&
	       s.file_bytes < FR_MAX(f->config.file_max_bytes, 2 * s.checkpoint_bytes) + (128 << 10);
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
	int n = 20;

	if (!has_room(f)) {
		usleep(20000);
		n = 1; /* a tracker that nothing comes to sleeps */
	}
	for (int i = 0; i < n; i++) {
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
	struct fr_tracker_stats s;

	fr_tracker_stats(f->tracker, &s);
	assert_int_equal(s.write_errors, 0);
	return s.compactions;
}

static void storm_until(struct fixture *f, uint64_t n)
{
	uint64_t until = fr_monotonic_ns() + n * keeping_limit_ns(f);

	while (compactions(f) < n) {
		storm(f);
		usleep(200);
		assert_true(fr_monotonic_ns() < until);
	}
}

static void test_by_size(void **state)
{
	struct fixture *f = *state;
	struct fr_tracker *second;
	struct fr_tracker_stats s;
	struct content c;

	require_perf();
	f->config.file_max_bytes = 256 << 10;
	start(f);
	some_start(f);
	storm_until(f, 4);
	assert_int_equal(fr_tracker_new(&f->config, &second, NULL), -EBUSY); /* the new file is locked, too */
	fr_tracker_stop(f->tracker);
	fr_tracker_stats(f->tracker, &s);
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
	start(f);
	storm_until(f, 2);
	done = compactions(f);
	/* What does not grow is left alone. But one compaction may be under way, and one is for what came
	   meanwhile, whenever the disk has done with them. */
	usleep(3000000);
	assert_in_range(compactions(f), done, done + 2);
}

/* As a daemon does, until it is killed. A byte to STARTED: what others left is gone. */
static void record(struct fixture *f, int started)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	start(f);
	(void)!write(started, "", 1);
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

/* PID stands still, at a random moment of a compaction. */
static bool stop_in_compaction(struct fixture *f, pid_t pid)
{
	int status;

	if (!has_temporary(f))
		return false;
	for (uint64_t spin = fr_monotonic_ns() + (unsigned)rand() % 2000000; fr_monotonic_ns() < spin;)
		;
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	/* It may have been faster than we are. */
	if (has_temporary(f))
		return true;
	assert_int_equal(kill(pid, SIGCONT), 0);
	return false;
}

static ino_t inode(struct fixture *f)
{
	struct stat st;

	return fstatat(f->dirfd, FR_AUXFILE_NAME, &st, 0) < 0 ? 0 : st.st_ino;
}

/* Half of the time at a random moment, else in a compaction: its temporary file is there. And half of those
   not in the first one. */
static void kill_somewhere(struct fixture *f, pid_t pid, int started, unsigned i)
{
	uint64_t until = fr_monotonic_ns() + 240 * SECOND;
	ino_t first;
	int status;
	char byte;

	/* From then on there is a file at every moment. */
	while (!inode(f) && fr_monotonic_ns() < until)
		usleep(100);
	if (i % 2)
		assert_int_equal(read(started, &byte, 1), 1);
	first = inode(f);
	while (i % 4 == 3 && inode(f) == first && fr_monotonic_ns() < until)
		usleep(100);
	usleep((unsigned)rand() % 200000);
	while (i % 2 && !stop_in_compaction(f, pid))
		assert_true(fr_monotonic_ns() < until);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static void test_killed_anywhere(void **state)
{
	const uint64_t until = fr_monotonic_ns() + KILLS_NS;
	struct fixture *f = *state;
	unsigned in_compaction = 0, compacted = 0, i;

	require_perf();
	f->config.file_max_bytes = 128 << 10;
	srand(1);
	for (i = 0; i < KILLS && (i < KILLS_MIN || fr_monotonic_ns() < until); i++) {
		struct content c;
		int started[2];
		pid_t pid;

		assert_int_equal(pipe2(started, O_CLOEXEC), 0);
		pid = fork();
		if (pid == 0)
			record(f, started[1]);
		close(started[1]);
		kill_somewhere(f, pid, started[0], i);
		close(started[0]);
		in_compaction += has_temporary(f);
		c = read_file(f);
		assert_false(c.late);
		/* The start's, or the checkpoint's; a kill before the start was over leaves the file before,
		 * or none. */
		assert_true(c.living == LIVING || (c.living < LIVING && c.rounds == 0));
		compacted += c.rounds > 0;
		assert_true(perf_lines(f, c.damaged) >= (int)c.living);
	}
	print_message("%u of %u kills in a compaction, %u after one\n", in_compaction, i, compacted);
	assert_true(in_compaction >= i / 2 && compacted >= i / 4);
	/* What they left is gone with the next start. */
	keeping_start(f);
	assert_false(has_temporary(f));
}

static const char one[] = "one 16384 0 - Live 0xffffffffc0100000\n";
static const char two[] =
	"one 16384 3 two, Live 0xffffffffc0100000\ntwo 8192 1 - Live 0xffffffffc0200000 (OE)\n";

static bool state_has(struct fixture *f, uint64_t low_watermark_ns, const char *name)
{
	_cleanup_buf_ struct fr_buf b = {0}, since = {0};

	assert_int_equal(fr_tracker_write_model(
				 f->tracker, low_watermark_ns, 1, EVENT_ID, keeping_limit_ns(f), &b, &since),
		0);
	return memmem(b.data, b.len, name, strlen(name));
}

/* A module that is loaded while we record stands in the next dump, from its begin on. */
static void test_module_comes(void **state)
{
	struct fixture *f = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/modules", f->path);
	f->config.modules_path = path;
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, (gid_t)-1, one, sizeof(one) - 1), 0);
	keeping_start(f);
	assert_false(state_has(f, 1, "[two]"));
	assert_int_equal(f->injected.len, 0);
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, (gid_t)-1, two, sizeof(two) - 1), 0);
	assert_true(state_has(f, 1, "[two]"));
	assert_non_null(memmem(f->injected.data, f->injected.len, "[two]", 5));
	f->injected.len = 0;
	assert_true(state_has(f, 2, "[two]"));
	assert_int_equal(f->injected.len, 0); /* no change, no record */
	fr_tracker_stop(f->tracker);
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
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, (gid_t)-1, "", 0), 0);
	keeping_start(f);
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, (gid_t)-1, one, sizeof(one) - 1), 0);
	assert_true(state_has(f, 1, "[one]"));
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, (gid_t)-1, other, sizeof(other) - 1), 0);
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
