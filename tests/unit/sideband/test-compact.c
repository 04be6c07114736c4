// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of compactions, each of which replaces perf.data.auxiliary by a shorter file that begins with the
   current process model (the checkpoint). The process can be killed at any moment. */
#include "tracker_fixture.h"
#include "perfdata/reader.h"
#include "sideband/auxfile.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SECOND FR_NSEC_PER_SEC
/* With sanitizers, the start of a process takes ten times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KILLS 15
#else
#define KILLS 100
#endif
/* The time limit of the kills. On a slow machine there are fewer kills than KILLS, but at least KILLS_MIN. */
#define KILLS_NS (120 * SECOND)
#define KILLS_MIN 10
#define LIVING 200

static uint64_t processes; /* number of short-lived processes so far */
static uint64_t handed;	   /* bytes that the tracker will have written when its queue is empty */

static int setup(void **state)
{
	static pid_t self;
	struct fixture *f;

	if (fixture_setup(state) < 0)
		return -1;
	f = *state;
	self = getpid();
	f->config.pids = &self;
	f->config.n_pids = 1;
	fixture_add_features(f);
	return 0;
}

FIXTURE(setup, fixture_teardown)

static void start(struct fixture *f)
{
	fixture_start(f);
	handed = fixture_stats(f).bytes;
}

static void hand_over(struct fixture *f, const struct fr_buf *b, uint64_t since_ns)
{
	while (fr_tracker_push_fresh(f->tracker, b->data, b->len) != 0)
		usleep(100);
	fr_tracker_end_round(f->tracker, since_ns);
	handed += b->len;
}

/* Returns whether the tracker can take more records. The test waits until it can. So also on a slow machine
   the queue does not overflow, and the file does not grow much before its compaction. */
static bool has_room(struct fixture *f)
{
	const struct fr_tracker_stats s = fixture_stats(f);

	return handed < s.bytes + (128 << 10) &&
	       s.file_bytes < FR_MAX(f->config.file_max_bytes, 2 * s.checkpoint_bytes) + (128 << 10);
}

static void add_living(struct fixture *f)
{
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t since = fr_monotonic_ns();

	for (pid_t pid = 5900001; pid <= 5900000 + LIVING; pid++) {
		ev_comm(&b, fr_monotonic_ns(), pid, pid, "lives-on", 1);
		ev_mmap(&b, fr_monotonic_ns(), pid, 0x400000, 0x1000, 0, "/opt/lives-on");
	}
	hand_over(f, &b, since);
}

/* Make a round in which short-lived processes start and end. */
static void storm(struct fixture *f)
{
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t since = fr_monotonic_ns();
	int n = 20;

	if (!has_room(f)) {
		usleep(20000);
		n = 1; /* not 0, because the tracker sleeps until it gets records */
	}
	for (int i = 0; i < n; i++) {
		pid_t pid = 6000000 + (pid_t)(processes++ % 100000);

		ev_fork(&b, fr_monotonic_ns(), pid, pid, 5900001, 5900001);
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

/* Read the whole file and count its records. `late` counts records that a reader gets too late: they are
   older than a time up to which an earlier FINISHED_ROUND made it deliver all records. */
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
	/* A kill can interrupt a write, so the end of the file can be damaged. */
	c.damaged = fr_reader_damage(reader)->damaged;
	assert_true(!c.damaged || fr_reader_damage(reader)->only_tail);
	fr_reader_free(reader);
	return c;
}

/* Returns the number of lines that perf script prints. perf must print no error. If TRUNCATED is true, perf
   is allowed to report that the file is truncated. */
static int count_tasks(struct fixture *f, bool truncated)
{
	char error[256] = "";
	int n = fixture_count_perf_lines(f, FR_AUXFILE_NAME, "", "", error);

	assert_string_equal(error, truncated ? "unexpected end of event stream" : "");
	return n;
}

static uint64_t compactions(struct fixture *f)
{
	const struct fr_tracker_stats s = fixture_stats(f);

	assert_int_equal(s.write_errors, 0);
	return s.compactions;
}

static void storm_until(struct fixture *f, uint64_t n)
{
	uint64_t until = fr_monotonic_ns() + n * fixture_limit_ns(f);

	while (compactions(f) < n) {
		storm(f);
		usleep(200);
		assert_true(fr_monotonic_ns() < until);
	}
}

TEST(file_is_compacted_by_size)
{
	struct fixture *f = *state;
	struct fr_tracker *second;
	struct fr_tracker_stats s;
	struct content c;

	require_perf();
	f->config.file_max_bytes = 256 << 10;
	start(f);
	add_living(f);
	storm_until(f, 4);
	assert_int_equal(fr_tracker_new(&f->config, &second, NULL), -EBUSY); /* the new file is locked */
	fr_tracker_stop(f->tracker);
	s = fixture_stats(f);
	assert_int_equal(s.queue_drops, 0);
	assert_true(s.file_bytes < 2 << 20);
	assert_true(s.bytes > s.file_bytes);
	c = read_file(f);
	assert_false(c.damaged);
	assert_int_equal(c.late, 0);
	assert_true(c.rounds >= 1);
	/* Only the checkpoint has these records. */
	assert_int_equal(c.living, LIVING);
	assert_true(count_tasks(f, false) > LIVING);
}

TEST(file_is_compacted_by_age_if_it_grows)
{
	struct fixture *f = *state;
	uint64_t done;

	f->config.file_max_age_ns = SECOND / 5;
	start(f);
	storm_until(f, 2);
	done = compactions(f);
	/* A file that does not grow is not compacted. But a compaction can be running at this time, and
	   records that come during this compaction can cause one more. */
	usleep(3000000);
	assert_in_range(compactions(f), done, done + 2);
}

/* Record as the daemon does, until this process is killed. Writes a byte to STARTED when the start has
   removed old files. */
static void record(struct fixture *f, int started)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	start(f);
	(void)!write(started, "", 1);
	add_living(f);
	for (;;) {
		storm(f);
		usleep(50);
	}
}

static bool has_temporary(struct fixture *f)
{
	return fixture_count_files(f, "." FR_AUXFILE_NAME) > 0;
}

/* Stop the process PID at a random moment of a compaction. Returns false if no compaction runs, or if it has
   ended before that moment. */
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

/* Kill the process PID. If I is even, kill it at a random moment, otherwise during a compaction. If I % 4 is
   3, this is not the first compaction. */
static void kill_somewhere(struct fixture *f, pid_t pid, int started, unsigned i)
{
	uint64_t until = fr_monotonic_ns() + 240 * SECOND;
	ino_t first;
	int status;
	char byte;

	/* After the file exists for the first time, there is a file with this name at each moment. */
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

TEST(kill_at_any_moment_leaves_a_whole_file)
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
		/* The file has all living processes, unless the kill came before the end of the start. */
		assert_true(c.living == LIVING || (c.living < LIVING && c.rounds == 0));
		compacted += c.rounds > 0;
		assert_true(count_tasks(f, c.damaged) >= (int)c.living);
	}
	print_message("%u of %u kills in a compaction, %u after one\n", in_compaction, i, compacted);
	assert_true(in_compaction >= i / 2 && compacted >= i / 4);
	/* The next start removes the temporary files. */
	fixture_start(f);
	assert_false(has_temporary(f));
}
