// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of Event= on the running kernel. The events occur in a worker process, which obeys orders of the
   test. */
#include "heard.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define XSTR(x) #x
#define STR(x) XSTR(x)
/* A system call that other processes make rarely. */
#define RARE_CALL "raw_syscalls:sys_enter"
#define RARE_FILTER "id == " STR(SYS_getppid)

/* The name of the worker. No other process has it: some tests watch all processes of the machine. */
static char worker_name[16];

static bool has_tracefs;

static int set_up(void **state)
{
	snprintf(worker_name, sizeof(worker_name), "fr-%d", (int)getpid());
	has_tracefs = mount_tracefs();
	return 0;
}

GROUP_FIXTURE(set_up, NULL)

/* An order to the worker: an action, and the number of times. */
struct order {
	enum { FAULT, CALL, LEAVE } what;
	unsigned times;
};

struct worker {
	pid_t pid;
	int fd; /* the worker reads orders from it, and writes a byte when an order is done */
};

static void touch_pages(unsigned n)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *p = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	madvise((void *)p, n * page, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < n; i++)
		p[i * page] = 1;
	munmap((void *)p, n * page);
}

static void work(int fd)
{
	struct order o;

	while (write(fd, "", 1) == 1 && read(fd, &o, sizeof(o)) == sizeof(o) && o.what != LEAVE)
		if (o.what == FAULT)
			touch_pages(o.times);
		else
			for (unsigned i = 0; i < o.times; i++)
				syscall(SYS_getppid);
	_exit(0);
}

static void worker_wait(struct worker *w)
{
	char done;

	assert_int_equal(read(w->fd, &done, 1), 1);
}

static void worker_order(struct worker *w, int what, unsigned times)
{
	struct order o = {what, times};

	assert_int_equal(write(w->fd, &o, sizeof(o)), sizeof(o));
}

static void worker_do(struct worker *w, int what, unsigned times)
{
	worker_order(w, what, times);
	worker_wait(w);
}

static void worker_start(struct worker *w)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	w->pid = fork();
	assert_true(w->pid >= 0);
	if (w->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, worker_name);
		work(fds[0]);
	}
	close(fds[0]);
	w->fd = fds[1];
	worker_wait(w);
}

static void worker_stop(struct worker *w)
{
	worker_order(w, LEAVE, 0);
	assert_int_equal(waitpid(w->pid, NULL, 0), w->pid);
	close(w->fd);
}

/* Prepares a trigger on the event SUBJECT. If THRESHOLD is NULL, it fires at each occurrence. Otherwise it
   fires when the event occurs THRESHOLD times in INTERVAL_MS. */
static void init(struct heard *h, const char *subject, const char *threshold, unsigned interval_ms)
{
	heard_init(h, FR_TRIGGER_EVENT);
	h->config.subject = (char *)subject;
	h->config.threshold = (char *)threshold;
	if (threshold)
		h->config.interval_ns = interval_ms * MS;
}

static void init_rare_call(struct heard *h)
{
	if (!has_tracefs)
		unit_skip("there is no tracefs");
	init(h, RARE_CALL, NULL, 0);
	h->config.filter = (char *)RARE_FILTER;
}

/* Starts the worker W and arms H. If PID is true, the trigger is only for the worker. */
static void start(struct heard *h, struct worker *w, bool pid)
{
	worker_start(w);
	h->config.pid = pid ? w->pid : 0;
	if (heard_try_arm(h))
		return;
	worker_stop(w);
	heard_deinit(h);
	skip();
}

/* Runs the event loop until the source has counted nearly nothing. (Its value is the sum of two slices of the
   interval.) */
static void until_quiet(struct heard *h)
{
	const uint64_t now = fr_monotonic_ns();

	HEARD_UNTIL(h, heard_stats(h).last_ns > now && heard_stats(h).last < 500);
}

TEST(fires_once_when_the_threshold_is_reached)
{
	struct fr_source_stats stats;
	struct worker w;
	_cleanup_heard_ struct heard h = {0};

	init(&h, "page-faults", "3000", 500);
	start(&h, &w, true);
	/* Stays below the threshold two times, with more than an interval between them. */
	for (int i = 0; i < 2; i++) {
		worker_do(&w, FAULT, 2000);
		until_quiet(&h);
	}
	assert_int_equal(h.n, 0);
	worker_do(&w, FAULT, 4000);
	heard_wait(&h, 1);
	stats = heard_stats(&h);
	heard_run(&h, 800, 0);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.last.unit, FR_CAUSE_COUNT);
	assert_int_equal(h.last.threshold, 3000);
	assert_in_range(h.last.value, 3000, 4499);
	assert_int_equal(h.last.pid, w.pid);
	assert_string_equal(h.last.comm, worker_name);
	assert_string_equal(h.last.detail, "page-faults");
	assert_int_equal(stats.last, h.last.value);
	assert_int_equal(stats.threshold, 3000);
	assert_int_equal(stats.fired, 1);
	assert_null(stats.gone);
	worker_stop(&w);
	HEARD_UNTIL(&h, heard_stats(&h).gone);
}

TEST(burst_across_two_slices_counts)
{
	struct worker w;
	_cleanup_heard_ struct heard h = {0};

	init(&h, "page-faults", "3000", 2000);
	start(&h, &w, true);
	worker_do(&w, FAULT, 2000);
	/* The slice with these faults has ended. The next faults are in the next slice. */
	HEARD_UNTIL(&h, heard_stats(&h).last >= 2000);
	assert_int_equal(h.n, 0);
	worker_do(&w, FAULT, 2000);
	heard_wait(&h, 1);
	assert_int_equal(h.n, 1);
	assert_true(h.last.value >= 4000);
	worker_stop(&w);
}

TEST(comm_selects_and_own_process_is_excluded)
{
	_cleanup_heard_ struct heard each = {0}, counted = {0};
	char other[16], own[16];
	struct worker w;

	init_rare_call(&each);
	init_rare_call(&counted);
	each.config.comm = counted.config.comm = worker_name;
	counted.config.threshold = (char *)"100";
	counted.config.interval_ns = 400 * MS;
	start(&each, &w, false);
	heard_arm(&counted);
	/* Calls of this process do not count, also if it has the name of the worker. */
	prctl(PR_GET_NAME, own);
	prctl(PR_SET_NAME, worker_name);
	for (int i = 0; i < 1000; i++)
		syscall(SYS_getppid);
	heard_run(&each, 100, 0);
	heard_run(&counted, 500, 0);
	prctl(PR_SET_NAME, own);
	assert_int_equal(heard_stats(&counted).last, 0);
	assert_int_equal(heard_stats(&each).fired, 0);
	assert_int_equal(each.n + counted.n, 0);
	worker_do(&w, CALL, 200);
	heard_wait(&each, 1);
	heard_wait(&counted, 1);
	heard_run(&each, 1100, 0);
	assert_int_equal(each.n, 1);
	assert_int_equal(heard_stats(&each).fired, 200);
	assert_int_equal(heard_stats(&each).cooled, 199);
	assert_int_equal(heard_stats(&counted).fired, 1);
	heard_disarm(&each);
	snprintf(other, sizeof(other), "X%.14s", worker_name);
	each.config.comm = other;
	heard_arm(&each);
	worker_do(&w, CALL, 10);
	heard_run(&each, 200, 0);
	assert_int_equal(heard_stats(&each).fired, 0);
	worker_stop(&w);
}

/* The source wakes the recorder at most once a second, and counts each occurrence. */
TEST(storm_costs_little_and_is_counted)
{
	const unsigned times = 1000000;
	uint64_t begin, cpu, took;
	struct fr_source_stats stats;
	_cleanup_heard_ struct heard h = {0};
	struct worker w;
	cpu_set_t set;

	init_rare_call(&h);
	start(&h, &w, true);
	/* The worker stays on one CPU: before Linux 6.0, the kernel reports lost records only before the next
	   record of the same CPU. */
	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	assert_int_equal(sched_setaffinity(w.pid, sizeof(set), &set), 0);
	begin = fr_monotonic_ns();
	cpu = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	worker_order(&w, CALL, times);
	heard_run(&h, 3000, 0);
	worker_wait(&w);
	heard_run(&h, 1200, 0);
	worker_do(&w, CALL, 1);
	heard_run(&h, 1200, 0);
	took = fr_monotonic_ns() - begin;
	cpu = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	stats = heard_stats(&h);
	print_message("%u in %.1f s: %u causes, %u cooled, %u lost, %.2f %% of a CPU\n", times,
		(double)took / 1e9, h.n, (unsigned)stats.cooled, (unsigned)stats.lost,
		100.0 * (double)cpu / (double)took);
	assert_int_equal(stats.fired, times + 1);
	assert_int_equal(stats.cooled + stats.lost + h.n, stats.fired);
	assert_in_range(h.n, 2, took / FR_NSEC_PER_SEC + 1);
	assert_true(cpu < took / 10);
	assert_int_equal(h.last.pid, w.pid);
	worker_stop(&w);
}

TEST(without_cooldown_each_occurrence_is_reported)
{
	struct worker w;
	_cleanup_heard_ struct heard h = {0};

	init_rare_call(&h);
	h.config.cooldown_ns = 0;
	start(&h, &w, true);
	worker_do(&w, CALL, 100);
	heard_wait(&h, 100);
	assert_int_equal(h.n, 100);
	assert_int_equal(heard_stats(&h).cooled, 0);
	worker_stop(&w);
	heard_run(&h, 100, 0);
	assert_string_equal(heard_stats(&h).gone, "its process has ended");
}

TEST(cgroup_selects_processes)
{
	struct worker in, out;
	unsigned before = 0;
	struct heard h;
	bool armed;
	char dir[256];

	make_cgroup(dir, sizeof(dir));
	init(&h, "page-faults", "3000", 400);
	h.config.cgroup = dir;
	worker_start(&in);
	worker_start(&out);
	assert_true(move_to_cgroup(dir, in.pid));
	armed = heard_try_arm(&h);
	if (armed) {
		worker_do(&out, FAULT, 10000);
		heard_run(&h, 600, 0);
		before = h.n;
		worker_do(&in, FAULT, 4000);
		heard_run(&h, HEARD_LIMIT_MS, 1);
		heard_disarm(&h);
	}
	worker_stop(&in);
	worker_stop(&out);
	rmdir(dir);
	if (armed) {
		assert_int_equal(before, 0);
		assert_int_equal(h.n, 1);
		/* With sanitizers, there are more page faults. */
		assert_in_range(h.last.value, 4000, 8999);
	}
	heard_deinit(&h);
	if (!armed)
		skip();
}

TEST(bad_configurations_are_refused)
{
	static const struct {
		const char *subject, *threshold, *filter, *comm, *says;
		int code;
		uint64_t interval_ns;
	} cases[] = {
		{"cpu-clock", NULL, NULL, NULL, "all the time", -EINVAL, FR_TRIGGER_UNSET},
		{"cpu-clock/period=1000/", NULL, NULL, NULL, "too short", -EINVAL, FR_TRIGGER_UNSET},
		{"page-faults,cs", NULL, NULL, NULL, "2 events", -EINVAL, FR_TRIGGER_UNSET},
		{"page-fautls", NULL, NULL, NULL, "page-faults", -ENOENT, FR_TRIGGER_UNSET},
		{"page-faults", "0", NULL, NULL, "not a threshold", -EINVAL, FR_TRIGGER_UNSET},
		{"page-faults", "20ms", NULL, NULL, "not a threshold", -EINVAL, FR_TRIGGER_UNSET},
		{"page-faults", "5", NULL, NULL, "10ms to 1h", -EINVAL, 1},
		{"page-faults", NULL, NULL, NULL, "Threshold=", -EINVAL, FR_NSEC_PER_SEC},
		{"page-faults", NULL, "a == 1", NULL, "tracepoint", -EINVAL, FR_TRIGGER_UNSET},
		{"page-faults", "5", NULL, "bash", "Comm=", -EINVAL, FR_TRIGGER_UNSET},
		{"page-faults", NULL, NULL, "a\"b", "a\"b", -EINVAL, FR_TRIGGER_UNSET},
	};
	_cleanup_heard_ struct heard h = {0};

	init(&h, "", NULL, 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		h.config.subject = (char *)cases[i].subject;
		h.config.threshold = (char *)cases[i].threshold;
		h.config.filter = (char *)cases[i].filter;
		h.config.comm = (char *)cases[i].comm;
		h.config.interval_ns = cases[i].interval_ns;
		heard_refused(&h, cases[i].code, cases[i].says);
		assert_int_equal(fr_source_event.check(&h.config, NULL), -EINVAL);
	}
}

TEST(bad_filter_lists_the_fields)
{
	_cleanup_heard_ struct heard h = {0};

	init_rare_call(&h);
	h.config.subject = (char *)"sched:sched_process_exec";
	h.config.filter = (char *)"no_such_field == 1";
	heard_refused(&h, -EINVAL, "filename, pid");
}
