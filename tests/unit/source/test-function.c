// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests of Function= and USDT= on the running kernel. frtest-function makes the calls that its arguments
 * name. A probe sees the calls of all processes that run the same file, and other tests also run
 * frtest-function. So this test runs a copy of it.
 */
#include "heard.h"

#include <limits.h>
#include <stdlib.h>

static char directory[] = "/tmp/flightrec-function.XXXXXX";
static char program[64]; /* the copy */

static void init(struct heard *h, enum fr_trigger_kind kind, const char *path, const char *place,
	const char *threshold)
{
	static char subject[PATH_MAX + 256];

	heard_init(h, kind);
	snprintf(subject, sizeof(subject), "%s:%s", path, place);
	h->config.subject = subject;
	h->config.threshold = (char *)threshold;
	h->config.cooldown_ns = 0;
}

static void arm(struct heard *h, enum fr_trigger_kind kind, const char *place, const char *threshold)
{
	init(h, kind, program, place, threshold);
	heard_arm(h);
}

/* Skips the test if functions cannot be probed. It is called before the test starts a process. */
static void need_probes(void)
{
	_cleanup_heard_ struct heard h = {0};

	arm(&h, FR_TRIGGER_FUNCTION, "fr_function_slow", "1min");
}

/* A run of frtest-function, and what it printed at its end. */
struct run {
	pid_t pid, tid;
	int semaphore;
	double ns;
	int fd; /* is connected to the standard input and output of the process */
};

/* Starts COMMAND, which waits for a line on its standard input. */
static void start_command(struct run *c, const char *command)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0) {
		/* A high priority, if permitted, so that other work does not make a short sleep long. */
		(void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
		dup2(fds[0], 0);
		dup2(fds[0], 1);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	close(fds[0]);
	c->fd = fds[1];
}

static void start(struct run *c, const char *arguments)
{
	char command[PATH_MAX + 256];

	snprintf(command, sizeof(command), "exec %s %s", program, arguments);
	start_command(c, command);
}

static double number_after(const char *line, const char *name)
{
	const char *at = strstr(line, name);

	return at ? strtod(at + strlen(name), NULL) : -1;
}

/* Lets the process run to its end, and reads what it prints. */
static void finish(struct run *c)
{
	char line[512] = "";
	ssize_t n, len = 0;
	int status;

	assert_int_equal(write(c->fd, "\n", 1), 1);
	while ((n = read(c->fd, line + len, sizeof(line) - 1 - (size_t)len)) > 0)
		len += n;
	close(c->fd);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_int_equal(status, 0);
	assert_int_equal((pid_t)number_after(line, "\"pid\": "), c->pid);
	c->tid = (pid_t)number_after(line, "\"tid\": ");
	c->semaphore = (int)number_after(line, "\"semaphore\": ");
	c->ns = number_after(line, "\"ns\": ");
}

/* Handles all events of the loop. No event is missing, because the kernel puts them into its ring before the
   program continues. */
static void gather(struct heard *h)
{
	int r;

	while ((r = sd_event_run(h->env.event, 0)) > 0)
		;
	assert_int_equal(r, 0);
}

static void run(struct heard *h, struct run *c, const char *arguments)
{
	start(c, arguments);
	finish(c);
	gather(h);
}

static void check_cause(const struct heard *h, size_t i, const struct run *c, uint64_t min_ns,
	const char *reason, const char *detail)
{
	const struct fr_cause *cause = &h->causes[i];

	assert_int_equal(cause->pid, c->pid);
	assert_string_equal(cause->comm, "frtest-function");
	assert_string_equal(cause->reason, reason);
	assert_string_equal(cause->detail, detail);
	assert_in_range(cause->value, min_ns, min_ns + 5000 * MS);
	assert_true(cause->value >= cause->threshold);
	assert_in_range(cause->time_ns, fr_monotonic_ns() - 60000 * MS, fr_monotonic_ns());
	assert_true(cause->cpu >= 0);
}

#define SLOW "frtest-function:fr_function_slow"

/* Each case is a run of frtest-function, and the number and the content of the causes that it must have. */
TEST(calls_above_the_threshold_fire)
{
	static const struct {
		enum fr_trigger_kind kind;
		const char *place, *threshold, *arguments;
		unsigned n;
		uint64_t min_ms;
		const char *reason, *detail;
		enum { PROCESS, THREAD, ANY } by;
	} cases[] = {
#define LATENCY "function latency"
		{FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms", "call 1 call 0 call 250 call 2", 1, 250,
			LATENCY, SLOW, PROCESS},
		{FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms", "call 1 thread 250", 1, 250, LATENCY, SLOW,
			THREAD},
		/* All calls of a recursion last as long as the innermost call. Only the 16 outermost calls
		   are measured. */
		{FR_TRIGGER_FUNCTION, "fr_function_recursive", "200ms", "recurse 3 250", 3, 250, LATENCY,
			"frtest-function:fr_function_recursive", PROCESS},
		{FR_TRIGGER_FUNCTION, "fr_function_recursive", "200ms", "recurse 40 250", 16, 250, LATENCY,
			"frtest-function:fr_function_recursive", PROCESS},
		/* A thread may end within a call. */
		{FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms", "leave 250 leave 250 call 0 thread 0", 0,
			0, LATENCY, SLOW, ANY},
		{FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms", "leave 1 thread 250", 1, 250, LATENCY,
			SLOW, THREAD},
		/* A call that was left by longjmp() is not mistaken for a later call. */
		{FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms", "jump 250", 0, 0, LATENCY, SLOW, ANY},
		{FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms", "catch 250", 1, 250, LATENCY, SLOW, ANY},
		{FR_TRIGGER_FUNCTION, "fr_function_static@function_other.c", "200ms", "static 250 other 251",
			1, 251, LATENCY, "frtest-function:fr_function_static@function_other.c", PROCESS},
		/* Without a threshold each call is an anomaly. */
		{FR_TRIGGER_FUNCTION, "fr_function_slow", NULL, "call 0 thread 0", 2, 0, "function called",
			SLOW, ANY},
		{FR_TRIGGER_USDT, "frtest:begin,frtest:end", "200ms", "markers 1 markers 250", 1, 250,
			"time between markers", "frtest-function:frtest:begin,end", PROCESS},
		/* A begin marker without an end marker does not count. */
		{FR_TRIGGER_USDT, "frtest:begin,frtest:end", "200ms", "lost 250", 0, 0, "", "", ANY},
		{FR_TRIGGER_USDT, "frtest:end", NULL, "markers 0 markers 0", 2, 0, "marker passed",
			"frtest-function:frtest:end", PROCESS},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct run c = {0};
		_cleanup_heard_ struct heard h = {0};

		arm(&h, cases[i].kind, cases[i].place, cases[i].threshold);
		run(&h, &c, cases[i].arguments);
		if (h.n != cases[i].n)
			fail_msg("%s: %u causes instead of %u", cases[i].arguments, h.n, cases[i].n);
		for (unsigned k = 0; k < h.n; k++) {
			check_cause(&h, k, &c, cases[i].min_ms ? cases[i].min_ms * MS : 1, cases[i].reason,
				cases[i].detail);
			assert_int_equal(h.causes[k].threshold, cases[i].threshold ? 200 * MS : 1);
			assert_int_equal(h.causes[k].unit, cases[i].threshold ? FR_CAUSE_NS : FR_CAUSE_NONE);
			if (cases[i].by != ANY)
				assert_int_equal(h.causes[k].tid, cases[i].by == THREAD ? c.tid : c.pid);
		}
	}
}

TEST(last_value_and_counters)
{
	struct fr_source_stats stats;
	struct run c = {0};
	_cleanup_heard_ struct heard h = {0};

	arm(&h, FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms");
	run(&h, &c, "call 250 call 2");
	stats = heard_stats(&h);
	assert_int_equal(stats.fired, 1);
	assert_int_equal(stats.threshold, 200 * MS);
	assert_in_range(stats.last, 2 * MS, 3000 * MS);
	heard_deinit(&h);

	init(&h, FR_TRIGGER_FUNCTION, program, "fr_function_quick", NULL);
	h.config.cooldown_ns = 1000 * MS;
	heard_arm(&h);
	run(&h, &c, "bench 1000");
	stats = heard_stats(&h);
	assert_int_equal(stats.fired, 1000);
	assert_int_equal(stats.lost, 0);
	assert_int_equal(stats.cooled + h.n, 1000);
	assert_in_range(h.n, 1, 3);
}

TEST(markers_are_enabled_only_while_armed)
{
	struct run c = {0};
	_cleanup_heard_ struct heard h = {0};

	arm(&h, FR_TRIGGER_USDT, "frtest:begin,frtest:end", "200ms");
	run(&h, &c, "markers 1");
	assert_int_equal(c.semaphore, 2);
	heard_disarm(&h);
	run(&h, &c, "markers 0");
	assert_int_equal(c.semaphore, 0);
}

/* Waits until the process PID, which a shell starts, has executed the program PATH. */
static void await_program(pid_t pid, const char *path)
{
	char link[64], now[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	for (int ms = 0; strcmp(now, path) != 0; ms++) {
		ssize_t n = readlink(link, now, sizeof(now) - 1);

		now[n > 0 ? n : 0] = '\0';
		if (ms >= HEARD_LIMIT_MS)
			fail_msg("process %d is %s, not %s", (int)pid, now, path);
		usleep(1000);
	}
}

TEST(pid_and_comm_select_processes)
{
	struct run wanted = {0}, other = {0};
	_cleanup_heard_ struct heard h = {0};

	need_probes();
	start(&wanted, "call 250");
	await_program(wanted.pid, program);
	init(&h, FR_TRIGGER_FUNCTION, program, "fr_function_slow", "200ms");
	h.config.pid = wanted.pid;
	heard_arm(&h);
	run(&h, &other, "call 250");
	assert_int_equal(h.n, 0);
	finish(&wanted);
	gather(&h);
	assert_int_equal(h.n, 1);
	check_cause(&h, 0, &wanted, 250 * MS, "function latency", SLOW);
	heard_disarm(&h);
	h.config.pid = 0;
	h.config.comm = (char *)"somebody-else";
	heard_arm(&h);
	run(&h, &other, "call 250");
	assert_int_equal(h.n, 1);
}

/* Checks a path that exists only in the root of a process, as in a container. Pid= or CGroup= selects this
 * process. */
static void check_other_root(bool by_cgroup)
{
	char dir[64], command[3 * PATH_MAX];
	struct run wanted = {0}, other = {0};
	const char *cgroup = NULL;
	_cleanup_heard_ struct heard h = {0};

	need_probes();
	if (geteuid() != 0)
		unit_skip("a mount needs root");
	if (by_cgroup)
		cgroup = make_cgroup(dir, sizeof(dir));
	snprintf(command, sizeof(command),
		"exec unshare --mount --propagation private sh -c 'mount -t tmpfs none /mnt && cp %s "
		"/mnt/inner && "
		"exec /mnt/inner call 250'",
		program);
	start_command(&wanted, command);
	await_program(wanted.pid, "/mnt/inner");
	init(&h, FR_TRIGGER_FUNCTION, "/mnt/inner", "fr_function_slow", "200ms");
	if (by_cgroup)
		assert_true(move_to_cgroup(dir, wanted.pid));
	h.config.cgroup = (char *)cgroup;
	h.config.pid = by_cgroup ? 0 : wanted.pid;
	heard_arm(&h);
	run(&h, &other, "call 250");
	assert_int_equal(h.n, 0);
	finish(&wanted);
	gather(&h);
	heard_disarm(&h);
	if (by_cgroup)
		assert_int_equal(rmdir(dir), 0);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.last.pid, wanted.pid);
	assert_string_equal(h.last.comm, "inner");
	assert_string_equal(h.last.detail, "inner:fr_function_slow");
	if (by_cgroup)
		assert_string_equal(h.last.cgroup, cgroup);
}

TEST(path_in_the_root_of_a_process_or_cgroup)
{
	check_other_root(false);
	check_other_root(true);
}

TEST(with_pid_other_processes_do_not_pay)
{
	struct run wanted = {0}, other = {0};
	_cleanup_heard_ struct heard h = {0};

	need_probes();
	start(&wanted, "bench 1000");
	await_program(wanted.pid, program);
	init(&h, FR_TRIGGER_FUNCTION, program, "fr_function_quick", "1min");
	h.config.pid = wanted.pid;
	heard_arm(&h);
	run(&h, &other, "bench 10000000");
	assert_int_equal(heard_stats(&h).last_ns, 0);
	finish(&wanted);
	assert_int_not_equal(heard_stats(&h).last_ns, 0);
	assert_true(4 * other.ns < wanted.ns);
}

TEST(upgraded_program_is_stale_and_missing_one_is_not)
{
	_cleanup_heard_ struct heard h = {0};

	need_probes();
	init(&h, FR_TRIGGER_FUNCTION, program, "", "1min");
	heard_check_stale(&h, program, ":fr_function_slow");
}

TEST(bad_configurations_are_refused)
{
	static const struct {
		enum fr_trigger_kind kind;
		const char *path, *place, *threshold;
		int code;
		const char *words;
	} cases[] = {
		{FR_TRIGGER_FUNCTION, "/bin/sh", "", "5ms", -EINVAL, "does not say what to probe"},
		{FR_TRIGGER_FUNCTION, "bin/sh", "main", "5ms", -EINVAL, "not an absolute path"},
		{FR_TRIGGER_FUNCTION, "/bin/sh", "main", "5 apples", -EINVAL, "not a duration"},
		{FR_TRIGGER_USDT, "/bin/sh", "begin", NULL, -EINVAL, "does not say what to probe"},
		{FR_TRIGGER_USDT, "/bin/sh", "a:b", "5ms", -EINVAL, "needs two markers"},
		{FR_TRIGGER_USDT, "/bin/sh", "a:b,c:d", NULL, -EINVAL, "needs a Threshold="},
		{FR_TRIGGER_USDT, "/bin/sh", "a:b,d", "5ms", -EINVAL, "does not say what to probe"},
		{FR_TRIGGER_FUNCTION, "/nonexistent", "main", "5ms", -ENOENT, "no such file"},
		{FR_TRIGGER_FUNCTION, program, "fr_function_slow+0x4", "5ms", -EINVAL,
			"measured from the function's entry"},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		_cleanup_heard_ struct heard h = {0};

		init(&h, cases[i].kind, cases[i].path, cases[i].place, cases[i].threshold);
		heard_refused(&h, cases[i].code, cases[i].words);
	}
}

static int set_up(void **state)
{
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (n < 0 || !mkdtemp(directory))
		return -1;
	own[n] = '\0';
	*strrchr(own, '/') = '\0';
	snprintf(program, sizeof(program), "%s/frtest-function", directory);
	return unit_shell("cp %s/frtest-function %s", own, program) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	unlink(program);
	return rmdir(directory);
}

GROUP_FIXTURE(set_up, tear_down)
