// SPDX-License-Identifier: GPL-2.0-or-later
/* Event= on the running kernel: a process of the test's own does what is counted, when it is told to. */
#include "both.h"
#include "heard.h"
#include "base/cleanup.h"

#include <errno.h>
#include <mntent.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define XSTR(x) #x
#define STR(x) XSTR(x)
/* A system call that nothing else makes all day long. */
#define RARE_CALL "raw_syscalls:sys_enter"
#define RARE_FILTER "id == " STR(SYS_getppid)

/* The worker's name; of this run alone, as the whole machine is listened to. */
static char worker_name[16];

static bool have_tracefs;

static void need_tracefs(void)
{
	if (have_tracefs)
		return;
	print_message("skipped: no tracefs on /sys/kernel/tracing\n");
	skip();
}

/* What the worker does, so many times. */
struct order {
	enum { FAULT, CALL, LEAVE } what;
	unsigned times;
};

struct worker {
	pid_t pid;
	int orders, answers;
};

static void work(int orders, int answers)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct order o;

	while (read(orders, &o, sizeof(o)) == sizeof(o) && o.what != LEAVE) {
		char *p = MAP_FAILED;

		if (o.what == FAULT)
			p = mmap(NULL, o.times * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);
		if (p != MAP_FAILED)
			madvise(p, o.times * page, MADV_NOHUGEPAGE);
		for (unsigned i = 0; i < o.times; i++)
			if (o.what == CALL)
				syscall(SYS_getppid);
			else
				((volatile char *)p)[i * page] = 1;
		if (p != MAP_FAILED)
			munmap(p, o.times * page);
		if (write(answers, "", 1) != 1)
			break;
	}
	_exit(0);
}

static void worker_start(struct worker *w)
{
	int orders[2], answers[2];
	char ready;
	pid_t parent = getpid();

	assert_int_equal(pipe(orders) | pipe(answers), 0);
	w->pid = fork();
	assert_true(w->pid >= 0);
	if (w->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, worker_name);
		close(orders[1]);
		if (getppid() != parent || write(answers[1], "", 1) != 1)
			_exit(1);
		work(orders[0], answers[1]);
	}
	close(orders[0]);
	close(answers[1]);
	w->orders = orders[1];
	w->answers = answers[0];
	/* Only what it is told to do happens from now on. */
	assert_int_equal(read(w->answers, &ready, 1), 1);
}

static void worker_do(struct worker *w, int what, unsigned times)
{
	struct order o = {what, times};
	char done;

	assert_int_equal(write(w->orders, &o, sizeof(o)), sizeof(o));
	assert_int_equal(read(w->answers, &done, 1), 1);
}

static void worker_stop(struct worker *w)
{
	struct order o = {LEAVE, 0};

	assert_int_equal(write(w->orders, &o, sizeof(o)), sizeof(o));
	assert_int_equal(waitpid(w->pid, NULL, 0), w->pid);
	close(w->orders);
	close(w->answers);
}

/* Skips where the kernel forbids it; W may be NULL. */
static struct fr_source *open_source(
	struct heard *h, const struct fr_trigger_config *config, struct worker *w)
{
	struct fr_source *s = NULL;
	struct fr_diag d = {0};
	int r = fr_source_open(&fr_source_event, &h->env, config, h, &s, &d);

	if (r == 0)
		return s;
	if (w)
		worker_stop(w);
	heard_deinit(h);
	if (r == -EACCES || r == -EPERM || r == -ENOSYS) {
		print_message("skipped: %s (%s)\n", d.what, d.hint);
		skip();
	}
	fail_msg("%s (%s)", d.what, d.hint);
	return NULL;
}

static struct fr_source_stats stats_of(struct fr_source *s)
{
	struct fr_source_stats stats;

	fr_source_get_stats(s, &stats);
	return stats;
}

/* Run the loop until nothing is left of what the worker has done: two slices that saw next to nothing. */
static void until_quiet(struct heard *h, struct fr_source *s)
{
	const uint64_t now = fr_monotonic_ns();

	HEARD_UNTIL(h, stats_of(s).last_ns > now && stats_of(s).last < 500);
}

static void test_threshold(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_EVENT);
	char subject[] = "page-faults", threshold[] = "3000";
	struct fr_source_stats stats;
	struct worker w;
	struct heard h;
	struct fr_source *s;

	heard_init(&h);
	worker_start(&w);
	config.subject = subject;
	config.threshold = threshold;
	config.interval_ns = 500 * FR_NSEC_PER_MSEC;
	config.pid = w.pid;
	s = open_source(&h, &config, &w);
	/* Below it: so many, and then so many, with an interval between them. */
	worker_do(&w, FAULT, 2000);
	until_quiet(&h, s);
	worker_do(&w, FAULT, 2000);
	until_quiet(&h, s);
	assert_int_equal(h.n, 0);
	worker_do(&w, FAULT, 4000);
	heard_wait(&h, 1);
	stats = stats_of(s);
	heard_run(&h, 800, 0);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.last.unit, FR_CAUSE_COUNT);
	assert_int_equal(h.last.threshold, 3000);
	assert_true(h.last.value >= 3000 && h.last.value < 4500);
	assert_int_equal(h.last.pid, w.pid);
	assert_string_equal(h.last.comm, worker_name);
	assert_string_equal(h.last.detail, "page-faults");
	assert_int_equal(stats.last, h.last.value);
	assert_int_equal(stats.threshold, 3000);
	assert_int_equal(stats.fired, 1);
	assert_null(stats.gone);
	worker_stop(&w);
	HEARD_UNTIL(&h, stats_of(s).gone);
	fr_source_close(s);
	heard_deinit(&h);
}

/* Neither of two slices has enough, both together have. */
static void test_burst_between_two_slices(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_EVENT);
	char subject[] = "page-faults", threshold[] = "3000";
	struct worker w;
	struct heard h;
	struct fr_source *s;

	heard_init(&h);
	worker_start(&w);
	config.subject = subject;
	config.threshold = threshold;
	config.interval_ns = 2 * FR_NSEC_PER_SEC;
	config.pid = w.pid;
	s = open_source(&h, &config, &w);
	worker_do(&w, FAULT, 2000);
	/* The slice that has them has ended, and what comes now is of the next. */
	HEARD_UNTIL(&h, stats_of(s).last >= 2000);
	assert_int_equal(h.n, 0);
	worker_do(&w, FAULT, 2000);
	heard_wait(&h, 1);
	assert_int_equal(h.n, 1);
	assert_true(h.last.value >= 4000);
	fr_source_close(s);
	worker_stop(&w);
	heard_deinit(&h);
}

static void test_machine_wide_count(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_EVENT);
	char subject[] = "page-faults", threshold[] = "20000";
	struct fr_source *s;
	struct worker w;
	struct heard h;

	heard_init(&h);
	worker_start(&w);
	config.subject = subject;
	config.threshold = threshold;
	config.interval_ns = 10 * FR_NSEC_PER_SEC;
	s = open_source(&h, &config, &w);
	worker_do(&w, FAULT, 25000);
	heard_wait(&h, 1);
	assert_int_equal(h.n, 1);
	assert_true(h.last.value >= 25000);
	assert_int_equal(h.last.pid, 0);
	fr_source_close(s);
	worker_stop(&w);
	heard_deinit(&h);
}

/* DIR/fr-test-exec, which runs sleep(1). */
static pid_t run_named(const char *path)
{
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		execl(path, "sleep", "30", (char *)NULL);
	_exit(1);
}

static void test_tracepoint_with_filter(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_EVENT);
	char subject[] = "sched:sched_process_exec", filter[96];
	char dir[] = "/tmp/fr-test-event-source.XXXXXX", named[64], other[64];
	uint64_t before;
	struct heard h;
	struct fr_source *s;
	pid_t pid, not ;

	need_tracefs();
	heard_init(&h);
	assert_non_null(mkdtemp(dir));
	snprintf(filter, sizeof(filter), "filename ~ \"*%s/fr-test-exec\"", strrchr(dir, '/'));
	config.subject = subject;
	config.filter = filter;
	s = open_source(&h, &config, NULL);
	snprintf(named, sizeof(named), "%s/fr-test-exec", dir);
	snprintf(other, sizeof(other), "%s/fr-test-other", dir);
	assert_int_equal(symlink("/bin/sleep", named) | symlink("/bin/sleep", other), 0);
	not = run_named(other);
	heard_run(&h, 200, 1);
	before = fr_monotonic_ns();
	pid = run_named(named);
	heard_wait(&h, 1);
	kill(pid, SIGKILL);
	kill(not, SIGKILL);
	waitpid(pid, NULL, 0);
	waitpid(not, NULL, 0);
	unlink(named);
	unlink(other);
	rmdir(dir);
	assert_int_equal(h.n, 1);
	assert_ptr_equal(h.trigger, &h);
	assert_int_equal(h.last.pid, pid);
	assert_int_equal(h.last.tid, pid);
	assert_true(h.last.time_ns > before);
	assert_true(h.last.cpu >= 0 && h.last.cpu < 8192);
	assert_string_equal(h.last.comm, "fr-test-exec");
	assert_true(h.last.cgroup[0] == '/');
	assert_string_equal(h.last.detail, subject);
	assert_int_equal(h.last.unit, FR_CAUSE_NONE);
	fr_source_close(s);
	heard_deinit(&h);
}

static void test_not_our_own(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_EVENT);
	char subject[] = RARE_CALL, filter[] = RARE_FILTER, threshold[] = "100", comm[16], own[16];
	struct fr_source *each, *counted, *named;
	struct heard h;
	struct worker w;

	need_tracefs();
	heard_init(&h);
	worker_start(&w);
	config.subject = subject;
	config.filter = filter;
	strcpy(comm, worker_name);
	config.comm = comm;
	each = open_source(&h, &config, &w);
	config.threshold = threshold;
	config.interval_ns = 400 * FR_NSEC_PER_MSEC;
	counted = open_source(&h, &config, NULL);
	/* We have the worker's name, and yet are not heard. */
	prctl(PR_GET_NAME, own);
	prctl(PR_SET_NAME, worker_name);
	for (int i = 0; i < 1000; i++)
		syscall(SYS_getppid);
	heard_run(&h, 500, 0);
	prctl(PR_SET_NAME, own);
	assert_int_equal(stats_of(counted).last, 0);
	assert_int_equal(stats_of(each).fired, 0);
	assert_int_equal(h.n, 0);
	worker_do(&w, CALL, 200);
	heard_wait(&h, 2);
	assert_int_equal(h.n, 2);
	assert_int_equal(stats_of(each).fired, 200);
	assert_int_equal(stats_of(each).cooled, 199);
	assert_int_equal(stats_of(counted).fired, 1);
	fr_source_close(each);
	fr_source_close(counted);
	/* A name that nobody has. */
	config.threshold = NULL;
	config.interval_ns = FR_TRIGGER_UNSET;
	comm[0] = 'X';
	named = open_source(&h, &config, NULL);
	worker_do(&w, CALL, 10);
	heard_run(&h, 200, 0);
	assert_int_equal(stats_of(named).fired, 0);
	fr_source_close(named);
	worker_stop(&w);
	heard_deinit(&h);
}

/* To the CPU that we run on, which is one that there is. */
static void pin(pid_t pid)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	assert_int_equal(sched_setaffinity(pid, sizeof(set), &set), 0);
}

/* No more than one a second wakes us, and every one is accounted for. */
static void test_storm(void **state)
{
	const unsigned times = 1000000;
	struct fr_trigger_config config = heard_config(FR_TRIGGER_EVENT);
	char subject[] = RARE_CALL, filter[] = RARE_FILTER;
	uint64_t begin, cpu, took;
	struct fr_source_stats stats;
	struct order o = {CALL, times};
	struct fr_source *s;
	struct heard h;
	struct worker w;
	char done;

	need_tracefs();
	heard_init(&h);
	worker_start(&w);
	pin(w.pid);
	config.subject = subject;
	config.filter = filter;
	config.pid = w.pid;
	s = open_source(&h, &config, &w);
	begin = fr_monotonic_ns();
	cpu = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	assert_int_equal(write(w.orders, &o, sizeof(o)), sizeof(o));
	heard_run(&h, 3000, 0);
	assert_int_equal(read(w.answers, &done, 1), 1);
	/* Before Linux 6.0, the kernel says what a ring had no room for with the next one that has; it is to
	   be on the same CPU. */
	heard_run(&h, 1200, 0);
	worker_do(&w, CALL, 1);
	heard_run(&h, 1200, 0);
	took = fr_monotonic_ns() - begin;
	cpu = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	stats = stats_of(s);
	print_message("%u in %.1f s: %u causes, %u cooled, %u lost, %.2f %% of a CPU\n", times,
		(double)took / 1e9, h.n, (unsigned)stats.cooled, (unsigned)stats.lost,
		100.0 * (double)cpu / (double)took);
	assert_int_equal(stats.fired, times + 1);
	assert_int_equal(stats.cooled + stats.lost + h.n, stats.fired);
	assert_true(h.n >= 2 && h.n <= took / FR_NSEC_PER_SEC + 1);
	assert_true(cpu < took / 10);
	assert_int_equal(h.last.pid, w.pid);
	fr_source_close(s);
	worker_stop(&w);
	heard_deinit(&h);
}

static void test_without_a_cooldown(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_EVENT);
	char subject[] = RARE_CALL, filter[] = RARE_FILTER;
	struct fr_source *s;
	struct heard h;
	struct worker w;

	need_tracefs();
	heard_init(&h);
	worker_start(&w);
	config.subject = subject;
	config.filter = filter;
	config.pid = w.pid;
	config.cooldown_ns = 0;
	s = open_source(&h, &config, &w);
	worker_do(&w, CALL, 100);
	heard_wait(&h, 100);
	assert_int_equal(h.n, 100);
	assert_int_equal(stats_of(s).cooled, 0);
	worker_stop(&w);
	heard_run(&h, 100, 0);
	assert_string_equal(stats_of(s).gone, "its process has ended");
	fr_source_close(s);
	heard_deinit(&h);
}

static void test_cgroup(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_EVENT);
	char subject[] = "page-faults", threshold[] = "3000", dir[256] = "", file[300];
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct fr_source *s = NULL;
	struct fr_diag d = {0};
	struct mntent *m;
	struct worker in, out;
	struct heard h;
	unsigned before;
	int r;

	while (f && !*dir && (m = getmntent(f)))
		if (strcmp(m->mnt_type, "cgroup2") == 0)
			snprintf(dir, sizeof(dir), "%s/flightrec-test-event-%d", m->mnt_dir, (int)getpid());
	if (f)
		endmntent(f);
	if (!*dir || mkdir(dir, 0755) < 0) {
		print_message("skipped: no cgroup of version 2 can be made\n");
		skip();
	}
	heard_init(&h);
	worker_start(&in);
	worker_start(&out);
	snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
	f = fopen(file, "we");
	assert_non_null(f);
	fprintf(f, "%d", (int)in.pid);
	assert_int_equal(fclose(f), 0);
	config.subject = subject;
	config.threshold = threshold;
	config.cgroup = dir;
	config.interval_ns = 400 * FR_NSEC_PER_MSEC;
	r = fr_source_open(&fr_source_event, &h.env, &config, NULL, &s, &d);
	if (r == 0) {
		worker_do(&out, FAULT, 10000);
		heard_run(&h, 600, 0);
	}
	before = h.n;
	if (r == 0) {
		worker_do(&in, FAULT, 4000);
		heard_wait(&h, 1);
		fr_source_close(s);
	}
	worker_stop(&in);
	worker_stop(&out);
	rmdir(dir);
	heard_deinit(&h);
	if (r < 0) {
		print_message("skipped: %s (%s)\n", d.what, d.hint);
		skip();
	}
	assert_int_equal(before, 0);
	assert_int_equal(h.n, 1);
	/* Sanitizers touch memory of their own. */
	assert_true(h.last.value >= 4000 && h.last.value < 9000);
}

static void test_refuses(void **state)
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
		{"page-faults", "0", NULL, NULL, "threshold", -EINVAL, FR_TRIGGER_UNSET},
		{"page-faults", "20ms", NULL, NULL, "threshold", -EINVAL, FR_TRIGGER_UNSET},
		{"page-faults", "5", NULL, NULL, "10ms to 1h", -EINVAL, 1},
		{"page-faults", NULL, NULL, NULL, "Threshold=", -EINVAL, FR_NSEC_PER_SEC},
		{"page-faults", NULL, "a == 1", NULL, "tracepoint", -EINVAL, FR_TRIGGER_UNSET},
		{"page-faults", "5", NULL, "bash", "Comm=", -EINVAL, FR_TRIGGER_UNSET},
		{"page-faults", NULL, NULL, "a\"b", "a\"b", -EINVAL, FR_TRIGGER_UNSET},
	};
	struct heard h;

	heard_init(&h);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_trigger_config config = heard_config(FR_TRIGGER_EVENT);

		config.subject = strdup(cases[i].subject);
		config.threshold = cases[i].threshold ? strdup(cases[i].threshold) : NULL;
		config.filter = cases[i].filter ? strdup(cases[i].filter) : NULL;
		config.comm = cases[i].comm ? strdup(cases[i].comm) : NULL;
		config.interval_ns = cases[i].interval_ns;
		heard_refused(&h, &fr_source_event, &config, cases[i].code, cases[i].says);
		assert_int_equal(fr_source_event.check(&config, NULL), -EINVAL);
		free(config.subject);
		free(config.threshold);
		free(config.filter);
		free(config.comm);
	}
	heard_deinit(&h);
}

static void test_a_bad_filter(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_EVENT);
	char subject[] = "sched:sched_process_exec", filter[] = "no_such_field == 1";
	struct heard h;

	need_tracefs();
	heard_init(&h);
	config.subject = subject;
	config.filter = filter;
	heard_refused(&h, &fr_source_event, &config, -EINVAL, "filename, pid");
	heard_deinit(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_burst_between_two_slices),
		cmocka_unit_test(test_machine_wide_count),
		cmocka_unit_test(test_tracepoint_with_filter),
		cmocka_unit_test(test_not_our_own),
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_without_a_cooldown),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_a_bad_filter),
	};

	snprintf(worker_name, sizeof(worker_name), "fr-%d", (int)getpid());
	have_tracefs = own_mounts();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
