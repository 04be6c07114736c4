// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests of the probes of the scheduler, of system calls and of interrupts. If a probe can select a process,
 * it is armed only for the child.
 *
 * A real soft lockup stops a CPU for seconds, so only test_trigger_sources.py causes one, if that is
 * permitted. This file tests a line of the kernel log that only looks like the line about a soft lockup.
 */
#include "probe.h"
#include "base/file.h"

#include <inttypes.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>

/* The times of the anomaly that the child has measured itself. */
struct seen {
	int tid;
	uint64_t most_ns;  /* the whole time by the clock */
	uint64_t least_ns; /* the time without the parts that the scheduler accounts to other states */
};

static struct seen *seen; /* is in memory that is shared with the child */

/* Returns whether a cause has the thread and the time that the child measured. The two clocks may differ by
 * 10 ms. */
static bool is_heard(const struct heard *h)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->causes[i].tid == seen->tid && h->causes[i].value <= seen->most_ns &&
			h->causes[i].value + 10 * MS >= seen->least_ns)
			return true;
	return false;
}

/* Checks that all causes are of the child, have a value that reaches the threshold, and are not longer than
   the child ran. */
static void check_all(const struct scene *s, const char *reason)
{
	uint64_t threshold;

	assert_int_equal(fr_threshold_parse(s->h.config.threshold, FR_CAUSE_NS, &threshold), 0);
	for (size_t i = 0; i < s->h.n; i++) {
		const struct fr_cause *c = &s->h.causes[i];

		assert_string_equal(c->reason, reason);
		assert_int_equal(c->pid, s->c.pid);
		assert_int_equal(c->unit, FR_CAUSE_NS);
		assert_int_equal(c->threshold, threshold);
		assert_in_range(c->value, threshold, s->c.ran_ns);
	}
}

static void check_heard(const struct heard *h)
{
	if (is_heard(h))
		return;
	for (size_t i = 0; i < h->n; i++)
		print_error("reported: thread %d, %llu us\n", (int)h->causes[i].tid,
			h->causes[i].value / FR_NSEC_PER_USEC);
	fail_msg("not reported: thread %d, %llu to %llu us", seen->tid, seen->least_ns / FR_NSEC_PER_USEC,
		seen->most_ns / FR_NSEC_PER_USEC);
}

/*
 * The kernel does not run a program on a classic tracepoint while the same CPU runs another BPF program or a
 * system call on a BPF map (bpf_prog_active in trace_call_bpf()). So without BTF, the probe misses a few task
 * switches, and the test tries again. It also tries again if other work of the machine has prevented the
 * anomaly or changed its length.
 */
#define TRIES 8

/* Lets a child call RUN, and checks that PROBE with THRESHOLD reports it with REASON. Returns false and
   prints why if this cannot be tested. */
static bool is_reported(const char *probe, const char *threshold, char *set, void (*run)(void *ctx),
	const char *reason, bool classic)
{
	uint64_t threshold_ns;

	assert_int_equal(fr_threshold_parse(threshold, FR_CAUSE_NS, &threshold_ns), 0);
	for (int i = 1; i <= TRIES; i++) {
		_cleanup_scene_ struct scene s = {0};

		memset(seen, 0, sizeof(*seen));
		scene_init(&s, probe, threshold, run, NULL, classic);
		s.h.config.set = set;
		s.h.config.set_len = set ? strlen(set) + 1 : 0;
		if (!play(&s))
			return false;
		if (seen->least_ns < threshold_ns + 10 * MS ||
			(i < TRIES && (s.h.n > 0 ? !is_heard(&s.h) : classic)))
			continue;
		check_all(&s, reason);
		check_heard(&s.h);
		assert_string_equal(s.h.causes[0].comm, "test-source-pro");
		assert_int_equal(heard_stats(&s.h).fired, s.h.n);
		return true;
	}
	print_message("skipped: the machine prevented it %d times\n", TRIES);
	return false;
}

/* The scheduler's accounts of the calling thread. */
struct account {
	uint64_t at_ns, cpu_ns, queued_ns, runs; /* queued_ns is not known if runs is 0 */
};

static struct account account(void)
{
	struct account a = {0};
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	if (f && fscanf(f, "%*u %" SCNu64 " %" SCNu64, &a.queued_ns, &a.runs) != 2)
		a.runs = 0;
	if (f)
		fclose(f);
	a.cpu_ns = fr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	a.at_ns = fr_monotonic_ns();
	return a;
}

/* Note in `seen` that this thread was blocked since BEFORE. */
static void note_blocked(const struct account *before)
{
	const uint64_t now_ns = fr_monotonic_ns();
	const struct account a = account();
	uint64_t other_ns = a.cpu_ns - before->cpu_ns + a.queued_ns - before->queued_ns;

	seen->tid = gettid();
	seen->most_ns = now_ns - before->at_ns;
	seen->least_ns = seen->most_ns > other_ns ? seen->most_ns - other_ns : 0;
}

/* Note in `seen` that this thread waited for its CPU since DUE_NS, which is after BEFORE. If it waited
   several times, the longest wait is at least as long as the mean. */
static void note_queued(const struct account *before, uint64_t due_ns)
{
	const uint64_t now_ns = fr_monotonic_ns();
	const struct account a = account();

	seen->tid = gettid();
	seen->most_ns = now_ns - due_ns;
	if (!a.runs)
		seen->least_ns = seen->most_ns;
	else if (a.runs > before->runs)
		seen->least_ns = (a.queued_ns - before->queued_ns) / (a.runs - before->runs);
	else /* this thread came too late to sleep, so it did not wait for its CPU */
		seen->least_ns = 0;
}

#define READY_MS 200 /* after this time, all threads are ready */
#define BUSY_MS 120  /* for this time, the CPU is occupied */

static struct fr_anomaly_hog busy = {.ns = BUSY_MS * MS};
static int other_cpu = -1; /* -1 if there is no second CPU */
static bool moves;	   /* the thread of wake_late() is moved to the other CPU */

static int set_up(void **state)
{
	cpu_set_t cpus;

	(void)mount_tracefs();
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return -1;
	while (!CPU_ISSET(busy.cpu, &cpus))
		busy.cpu++;
	for (int i = busy.cpu + 1; i < CPU_SETSIZE && other_cpu < 0; i++)
		if (CPU_ISSET(i, &cpus))
			other_cpu = i;
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return seen == MAP_FAILED ? -1 : 0;
}

GROUP_FIXTURE(set_up, NULL)

/* When the thread has waited for 80 ms, moves it to the other CPU, where it runs at once. */
static void *move_away(void *arg)
{
	cpu_set_t set;

	fr_load_pin(other_cpu);
	fr_load_sleep_until(busy.from_ns + 100 * MS);
	CPU_ZERO(&set);
	CPU_SET(other_cpu, &set);
	if (sched_setaffinity(seen->tid, sizeof(set), &set) < 0)
		_exit(2);
	return NULL;
}

/* Wakes 20 ms after the CPU is occupied, and measures when it runs. */
static void wake_late(void *ctx)
{
	struct account before;
	uint64_t due_ns;
	pthread_t hog, mover = 0;

	busy.from_ns = fr_monotonic_ns() + READY_MS * MS;
	due_ns = busy.from_ns + 20 * MS;
	seen->tid = gettid();
	if (pthread_create(&hog, NULL, fr_anomaly_hog, &busy) != 0 ||
		(moves && pthread_create(&mover, NULL, move_away, NULL) != 0))
		_exit(2);
	fr_anomaly_be_realtime(busy.cpu);
	before = account();
	fr_load_sleep_until(due_ns);
	note_queued(&before, due_ns);
	pthread_join(hog, NULL);
	if (moves)
		pthread_join(mover, NULL);
}

PROBE_TEST(wait_for_a_cpu)
{
	moves = false;
	return is_reported("run-queue-latency", "50ms", NULL, wake_late, "run-queue latency", classic);
}

PROBE_TEST(wait_that_ends_on_another_cpu)
{
	moves = true;
	if (other_cpu < 0)
		print_message("skipped: there is no second CPU\n");
	return other_cpu >= 0 &&
	       is_reported("run-queue-latency", "50ms", NULL, wake_late, "run-queue latency", classic);
}

static void block_a_while(void *ctx)
{
	const struct account before = account();

	fr_anomaly_block(before.at_ns + 80 * MS);
	note_blocked(&before);
}

static void sleep_a_while(void *ctx)
{
	const struct account before = account();

	fr_load_sleep_until(before.at_ns + 80 * MS);
	note_blocked(&before);
}

/* Checks that PROBE does not report what RUN does: no cause has REASON, and DETAIL in its detail. Other work
   of the machine may delay something else of the child. */
static void check_not_reported(
	const char *probe, void (*run)(void *ctx), const char *reason, const char *detail, bool classic)
{
	_cleanup_scene_ struct scene s = {0};
	struct fr_cause cause;

	scene_init(&s, probe, "60ms", run, NULL, classic);
	assert_true(play(&s));
	assert_int_equal(heard_count(&s.h, s.c.pid, reason, detail, &cause), 0);
}

PROBE_TEST(blocked_but_not_sleeping_is_off_cpu)
{
	if (!is_reported("off-cpu", "60ms", NULL, block_a_while, "blocked off CPU", classic))
		return false;
	check_not_reported("off-cpu", sleep_a_while, "blocked off CPU", "", classic);
	return true;
}

PROBE_TEST(interruptible_includes_sleep)
{
	static char set[] = "interruptible=1";

	return is_reported("off-cpu", "60ms", set, sleep_a_while, "blocked off CPU", classic);
}

/* Checks that the system call of RUN is reported once, with its name DETAIL. Syscall= is SYSCALLS; if it is
   NULL, the probe watches all system calls that do not wait by design. Then other work of the machine may
   make another call of the child slow, which is reported, too. */
static bool is_slow_call(char *syscalls, void (*run)(void *ctx), const char *detail, bool classic)
{
	_cleanup_scene_ struct scene s = {0};
	struct fr_cause cause = {0};

	scene_init(&s, "syscall-latency", "60ms", run, NULL, classic);
	s.h.config.syscalls = syscalls;
	if (!play(&s))
		return false;
	check_all(&s, "slow system call");
	assert_int_equal(heard_count(&s.h, s.c.pid, "slow system call", detail, &cause), 1);
	assert_string_equal(cause.detail, detail);
	if (syscalls)
		assert_int_equal(s.h.n, 1);
	check_heard(&s.h);
	return true;
}

PROBE_TEST(slow_system_call)
{
	if (!is_slow_call((char *)"fsync clock_nanosleep", sleep_a_while, "clock_nanosleep", classic))
		return false;
	check_not_reported("syscall-latency", sleep_a_while, "slow system call", "clock_nanosleep", classic);
	return is_slow_call(NULL, block_a_while, "clone", classic);
}

/* Writes to the disk, which answers each write with an interrupt. */
static void write_through(void *ctx)
{
	for (int i = 0; i < 16; i++)
		fr_anomaly_write_through();
}

/* Returns whether /proc/interrupts has a line that contains NAME, or, if NAME is NULL, begins with NUMBER. */
static bool is_interrupt(const char *number, const char *name)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/interrupts", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	bool found = false;

	assert_non_null(f);
	while (!found && getline(&line, &size, f) > 0)
		found = name ? strstr(line, name) != NULL
			     : strtoul(line, NULL, 10) == strtoul(number, NULL, 10);
	return found;
}

PROBE_TEST(interrupt_handlers_are_measured)
{
	const uint64_t began_ns = fr_monotonic_ns();
	_cleanup_scene_ struct scene s = {0};
	unsigned n;

	scene_init(&s, "irq-time", "1us", write_through, NULL, classic);
	s.h.config.pid = 0; /* not only for the child: any task may be interrupted */
	if (!play(&s))
		return false;
	n = FR_MIN(s.h.n, (unsigned)HEARD_KEPT);
	if (n == 0)
		print_message("skipped: there was no interrupt\n");
	for (size_t i = 0; i < n; i++) {
		const struct fr_cause *c = &s.h.causes[i];

		assert_string_equal(c->reason, "interrupt handler");
		assert_true(c->value >= 1000 && c->value <= fr_monotonic_ns() - began_ns);
		assert_true(c->cpu >= 0 && c->cpu < sysconf(_SC_NPROCESSORS_CONF));
		if (classic)
			assert_true(strncmp(c->detail, "irq ", 4) == 0 && is_interrupt(c->detail + 4, NULL));
		else
			assert_true(c->detail[0] && is_interrupt(NULL, c->detail));
	}
	return n > 0;
}

static void send_to_itself(void *ctx)
{
	fr_anomaly_send_to_itself();
}

PROBE_TEST(softirq_handlers_are_measured)
{
	_cleanup_scene_ struct scene s = {0};
	struct fr_cause cause = {0};

	scene_init(&s, "softirq-time", "1us", send_to_itself, NULL, classic);
	if (!play(&s))
		return false;
	check_all(&s, "softirq handler");
	assert_true(heard_count(&s.h, s.c.pid, "softirq handler", "net_rx", &cause) > 0);
	return true;
}

static void exec_twice(void *ctx)
{
	execl("/bin/sh", "sh", "-c", "exec sleep 0", NULL);
}

PROBE_TEST(exec_of_a_named_program)
{
	_cleanup_scene_ struct scene s = {0};

	scene_init(&s, "exec", NULL, exec_twice, NULL, classic);
	s.h.config.comm = (char *)"sleep";
	if (!play(&s))
		return false;
	assert_int_equal(s.h.n, 1);
	assert_string_equal(s.h.last.reason, "exec");
	assert_string_equal(s.h.last.comm, "sleep");
	assert_int_equal(s.h.last.pid, s.c.pid);
	return true;
}

#define SYSCTL "/proc/sys/kernel"

static char directory[] = "/tmp/fr-test-probes.XXXXXX";

static void stat_mute(void *ctx)
{
	struct stat st;

	stat(directory, &st);
}

/* Returns the cause of the child, or NULL. Other tasks may hang, too. */
static const struct fr_cause *find_hung(const struct scene *s, bool classic)
{
	for (size_t i = 0; i < s->h.n; i++)
		if (s->h.causes[i].pid == (classic ? 0 : s->c.pid))
			return &s->h.causes[i];
	return NULL;
}

/* Sets the kernel's timeout for hung tasks to one second, without messages in its log, and waits for the
   cause. A lock ensures that only one test at a time changes these settings. */
static void hear_of_hung(struct scene *s, bool classic)
{
	_cleanup_close_ int lock = open(SYSCTL "/hung_task_timeout_secs", O_RDONLY | O_CLOEXEC);
	char timeout[32], warnings[32];

	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_true(fr_read_line(SYSCTL "/hung_task_timeout_secs", timeout, sizeof(timeout)) >= 0);
	assert_true(fr_read_line(SYSCTL "/hung_task_warnings", warnings, sizeof(warnings)) >= 0);
	fr_anomaly_put(SYSCTL, "hung_task_warnings", "0");
	fr_anomaly_put(SYSCTL, "hung_task_timeout_secs", "1");
	for (int ms = 0; ms < HEARD_LIMIT_MS && !find_hung(s, classic); ms += 100)
		heard_run(&s->h, 100, 0);
	fr_anomaly_put(SYSCTL, "hung_task_timeout_secs", timeout);
	fr_anomaly_put(SYSCTL, "hung_task_warnings", warnings);
}

/* Returns why a hung task cannot be caused on this machine, or NULL if it can. */
static const char *why_no_hung_task(void)
{
	char panic[16];

	if (access(SYSCTL "/hung_task_timeout_secs", W_OK) < 0 ||
		access(SYSCTL "/hung_task_warnings", W_OK) < 0)
		return "the kernel does not look for hung tasks, or its settings cannot be changed";
	if (fr_read_line(SYSCTL "/hung_task_panic", panic, sizeof(panic)) < 0 || strcmp(panic, "0") != 0)
		return "a hung task would make this kernel panic";
	return NULL;
}

PROBE_TEST(hung_task)
{
	const uint64_t began_ns = fr_monotonic_ns();
	const char *why = why_no_hung_task();
	_cleanup_scene_ struct scene s = {0};
	const struct fr_cause *c;
	bool hangs = false;
	int fuse;

	if (why)
		return heard_cannot(why);
	assert_non_null(mkdtemp(directory));
	/* The child is started before the mount, so that it does not inherit the fd of the file system. */
	scene_init(&s, "hung-task", NULL, stat_mute, NULL, classic);
	s.h.config.pid = 0;
	fuse = fr_anomaly_mount_mute(directory);
	if (fuse < 0)
		(void)heard_cannot("FUSE is not available");
	else if (heard_try_arm(&s.h)) {
		assert_int_equal(write(s.c.go, "", 1), 1);
		hangs = fr_anomaly_hang(fuse, s.c.pid);
		if (hangs)
			hear_of_hung(&s, classic);
	}
	if (fuse >= 0)
		close(fuse); /* this ends all requests */
	child_end(&s.c, false);
	umount2(directory, MNT_DETACH);
	rmdir(directory);
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	if (!s.h.source)
		return false;
	assert_true(hangs);
	c = find_hung(&s, classic);
	assert_non_null(c);
	assert_string_equal(c->reason, "hung task");
	if (!classic) {
		assert_int_equal(c->tid, s.c.pid);
		assert_int_equal(c->unit, FR_CAUSE_NS);
		assert_in_range(c->value, FR_NSEC_PER_SEC, fr_monotonic_ns() - began_ns);
		assert_string_equal(c->comm, "test-source-pro");
	}
	return true;
}

/* Writes a line to the kernel log that is similar to the kernel's line about a soft lockup. Its words are
   different, so that it does not alarm a reader. */
static void print_lockup(void *ctx)
{
	if (!fr_anomaly_put("/dev", "kmsg",
		    "<7>a test of flightrec: nothing is wrong: CPU#12 stuck for 23s! [test:1]"))
		fr_anomaly_skip("/dev/kmsg cannot be written");
}

/* The child did not keep its CPU for the time in the line. So the probe sees the line, but does not fire. */
PROBE_TEST(copied_soft_lockup_line_does_not_fire)
{
	static char set[] = "words=nothing is wrong: CPU#";
	_cleanup_scene_ struct scene s = {0};
	struct fr_source_stats stats;

	scene_init(&s, "soft-lockup", NULL, print_lockup, NULL, classic);
	s.h.config.set = set;
	s.h.config.set_len = sizeof(set);
	if (!play(&s))
		return false;
	/* The probe may see the line late: another process may print it to the console. */
	HEARD_UNTIL(&s.h, (stats = heard_stats(&s.h)).last_ns);
	heard_run(&s.h, 100, 0);
	assert_int_equal(s.h.n, 0);
	assert_int_equal(stats.fired, 0);
	assert_true(stats.last < 23 * FR_NSEC_PER_SEC / 2);
	return true;
}
