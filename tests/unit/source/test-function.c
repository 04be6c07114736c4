// SPDX-License-Identifier: GPL-2.0-or-later

/* Function= and USDT= on the real kernel: frtest-function does what it is told, and exactly that is heard of.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heard.h"

#include "source/source.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MS 1000000ULL
#define CAUSES 16

static char program[PATH_MAX];

/* What was heard. */
struct scene {
	struct fr_source_env env;
	struct fr_trigger_config config;
	char subject[PATH_MAX + 256];
	struct fr_source *source;
	struct fr_cause causes[CAUSES];
	size_t n;
};

static void hear(void *ctx, void *trigger, const struct fr_cause *cause)
{
	struct scene *s = ctx;

	assert_ptr_equal(trigger, s);
	if (s->n < CAUSES)
		s->causes[s->n] = *cause;
	s->n++;
}

/* PLACE of frtest-function, of any process. Skips where this kernel, or our rights, do not let it. */
static void arm(struct scene *s, enum fr_trigger_kind kind, const char *place, const char *threshold)
{
	struct fr_diag d = {0};
	int r;

	assert_int_equal(sd_event_new(&s->env.event), 0);
	s->env.fire = hear;
	s->env.ctx = s;
	snprintf(s->subject, sizeof(s->subject), "%s:%s", program, place);
	s->config.name = (char *)"test";
	s->config.kind = kind;
	s->config.subject = s->subject;
	s->config.threshold = (char *)threshold;
	s->config.interval_ns = FR_TRIGGER_UNSET;
	r = heard_open(&fr_source_function, &s->env, &s->config, s, &s->source, &d);
	if (r == -EPERM || r == -EACCES || r == -EOPNOTSUPP) {
		print_message("not here: %s (%s)\n", d.what, d.hint);
		sd_event_unref(s->env.event);
		skip();
	}
	if (r < 0)
		print_message("%s\n%s\n", d.what, d.hint);
	assert_int_equal(r, 0);
}

static void disarm(struct scene *s)
{
	fr_source_close(s->source);
	s->source = NULL;
	sd_event_unref(s->env.event);
}

/* Skip before there is anything to be cleaned up. */
static void need_probes(void)
{
	struct scene s = {0};

	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_slow", "1min");
	disarm(&s);
}

struct child {
	pid_t pid, tid;
	int semaphore;
	double ns;
	int in, out;
};

static void start(struct child *c, const char *arguments)
{
	char command[PATH_MAX + 256];
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	snprintf(command, sizeof(command), "exec %s %s", program, arguments);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0) {
		/* Where it may: what sleeps for 1 ms is not to become slow by the machine's other work. */
		(void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = out[0];
}

static double number_of(const char *line, const char *name)
{
	const char *at = strstr(line, name);

	return at ? strtod(at + strlen(name), NULL) : -1;
}

/* Let it go, and wait for its end. */
static void finish(struct child *c)
{
	char line[512] = "";
	ssize_t n, len = 0;
	int status;

	assert_int_equal(write(c->in, "\n", 1), 1);
	while ((n = read(c->out, line + len, sizeof(line) - 1 - (size_t)len)) > 0)
		len += n;
	close(c->in);
	close(c->out);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_int_equal(status, 0);
	assert_int_equal((pid_t)number_of(line, "\"pid\": "), c->pid);
	c->tid = (pid_t)number_of(line, "\"tid\": ");
	c->semaphore = (int)number_of(line, "\"semaphore\": ");
	c->ns = number_of(line, "\"ns\": ");
}

/* All that has come; the events are in the ring before the program goes on. */
static void gather(struct scene *s)
{
	int r;

	while ((r = sd_event_run(s->env.event, 0)) > 0)
		;
	assert_int_equal(r, 0);
}

static void run(struct scene *s, struct child *c, const char *arguments)
{
	start(c, arguments);
	finish(c);
	gather(s);
}

static void assert_cause(const struct scene *s, size_t i, const struct child *c, uint64_t at_least_ns,
	const char *reason, const char *detail)
{
	const struct fr_cause *cause = &s->causes[i];

	assert_true(i < s->n);
	assert_int_equal(cause->pid, c->pid);
	assert_string_equal(cause->comm, "frtest-function");
	assert_string_equal(cause->reason, reason);
	assert_string_equal(cause->detail, detail);
	assert_in_range(cause->value, at_least_ns, at_least_ns + 5000 * MS);
	assert_true(cause->value >= cause->threshold);
	assert_in_range(cause->time_ns, fr_monotonic_ns() - 60000 * MS, fr_monotonic_ns());
	assert_true(cause->cpu >= 0);
}

#define SLOW "frtest-function:fr_function_slow"

static void only_the_slow_call_fires(void **state)
{
	struct scene s = {0};
	struct fr_source_stats stats = {0};
	struct child c = {0};

	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms");
	run(&s, &c, "call 1 call 0 call 250 call 2");
	assert_int_equal(s.n, 1);
	assert_cause(&s, 0, &c, 250 * MS, "function latency", SLOW);
	assert_int_equal(s.causes[0].tid, c.pid);
	assert_int_equal(s.causes[0].threshold, 200 * MS);
	assert_int_equal(s.causes[0].unit, FR_CAUSE_NS);
	fr_source_get_stats(s.source, &stats);
	assert_int_equal(stats.fired, 1);
	assert_int_equal(stats.threshold, 200 * MS);
	assert_in_range(stats.last, 2 * MS, 3000 * MS);
	disarm(&s);
}

static void names_the_thread(void **state)
{
	struct scene s = {0};
	struct child c = {0};

	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms");
	run(&s, &c, "call 1 thread 250");
	assert_int_equal(s.n, 1);
	assert_cause(&s, 0, &c, 250 * MS, "function latency", SLOW);
	assert_int_equal(s.causes[0].tid, c.tid);
	assert_int_not_equal(c.tid, c.pid);
	disarm(&s);
}

/* Each call of a recursion ends after the innermost's sleep: 16 of them are measured, the outermost ones. */
static void recursion_is_bounded(void **state)
{
	struct scene s = {0};
	struct child c = {0};

	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_recursive", "200ms");
	run(&s, &c, "recurse 3 250");
	assert_int_equal(s.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_cause(
			&s, i, &c, 250 * MS, "function latency", "frtest-function:fr_function_recursive");
	assert_true(s.causes[0].value <= s.causes[2].value);
	s.n = 0;
	run(&s, &c, "recurse 40 250");
	assert_int_equal(s.n, 16);
	disarm(&s);
}

static void a_thread_may_end_inside(void **state)
{
	struct scene s = {0};
	struct child c = {0};

	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms");
	run(&s, &c, "leave 250 leave 250 call 0 thread 0");
	assert_int_equal(s.n, 0);
	run(&s, &c, "leave 1 thread 250");
	assert_int_equal(s.n, 1);
	assert_int_equal(s.causes[0].tid, c.tid);
	disarm(&s);
}

/* Calls that were left without a return stand for no other: neither for the one around them, nor in the way.
 */
static void a_jump_leaves_nothing_behind(void **state)
{
	struct scene s = {0};
	struct child c = {0};

	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms");
	run(&s, &c, "jump 250");
	assert_int_equal(s.n, 0);
	run(&s, &c, "catch 250");
	assert_int_equal(s.n, 1);
	assert_cause(&s, 0, &c, 250 * MS, "function latency", SLOW);
	disarm(&s);
}

static void static_functions_are_told_apart(void **state)
{
	struct scene s = {0};
	struct child c = {0};

	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_static@function_other.c", "200ms");
	run(&s, &c, "static 250 other 251");
	assert_int_equal(s.n, 1);
	assert_cause(&s, 0, &c, 251 * MS, "function latency",
		"frtest-function:fr_function_static@function_other.c");
	disarm(&s);
}

/* Without a threshold each call; with an offset each passing. */
static void each_call_can_be_an_anomaly(void **state)
{
	struct scene s = {0};
	struct child c = {0};

	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_slow", NULL);
	run(&s, &c, "call 0 thread 0");
	assert_int_equal(s.n, 2);
	assert_cause(&s, 0, &c, 1, "function called", SLOW);
	assert_int_equal(s.causes[0].unit, FR_CAUSE_NONE);
	disarm(&s);
}

static void the_cool_down_holds_back(void **state)
{
	struct scene s = {0};
	struct fr_source_stats stats = {0};
	struct child c = {0};

	s.config.cooldown_ns = 1000 * MS;
	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_quick", NULL);
	run(&s, &c, "bench 1000");
	fr_source_get_stats(s.source, &stats);
	assert_int_equal(stats.fired, 1000);
	assert_int_equal(stats.lost, 0);
	assert_int_equal(stats.cooled + s.n, 1000);
	assert_in_range(s.n, 1, 3);
	disarm(&s);
}

/* PID has become PATH, and is no more the shell that was to start it. */
static void await_program(pid_t pid, const char *path)
{
	char link[64], now[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	for (int ms = 0;; ms++) {
		n = readlink(link, now, sizeof(now) - 1);
		now[n > 0 ? n : 0] = '\0';
		if (!strcmp(now, path))
			return;
		if (ms >= 60000)
			fail_msg("process %d is %s, not %s", (int)pid, now, path);
		usleep(1000);
	}
}

static void only_the_chosen_process(void **state)
{
	struct scene s = {0};
	struct child wanted = {0}, other = {0};

	need_probes();
	start(&wanted, "call 250");
	await_program(wanted.pid, program);
	s.config.pid = wanted.pid;
	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms");
	run(&s, &other, "call 250");
	assert_int_equal(s.n, 0);
	finish(&wanted);
	gather(&s);
	assert_int_equal(s.n, 1);
	assert_cause(&s, 0, &wanted, 250 * MS, "function latency", SLOW);
	disarm(&s);
}

/* A path that only the root of that process has, as a container's, named by its Pid= and by its CGroup=. */
static void look_into_its_root(bool by_cgroup)
{
	char cgroup[64], path[PATH_MAX], command[3 * PATH_MAX], was[PATH_MAX];
	struct child wanted = {0}, other = {0};
	struct scene s = {0};
	FILE *f;

	need_probes();
	snprintf(cgroup, sizeof(cgroup), "/flightrec-test-%d", (int)getpid());
	snprintf(path, sizeof(path), "/sys/fs/cgroup/unified%s", cgroup);
	if (access("/sys/fs/cgroup/unified", F_OK) < 0)
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s", cgroup);
	if (geteuid() != 0 || (by_cgroup && mkdir(path, 0755) < 0)) {
		print_message("another root%s takes root\n", by_cgroup ? " in a cgroup" : "");
		skip();
	}
	snprintf(command, sizeof(command),
		"-c 'mount -t tmpfs none /mnt && cp %s /mnt/inner && exec /mnt/inner call 250'", program);
	strcpy(was, program);
	strcpy(program, "unshare --mount --propagation private sh");
	start(&wanted, command);
	strcpy(program, was);
	await_program(wanted.pid, "/mnt/inner");
	if (by_cgroup) {
		snprintf(command, sizeof(command), "%s/cgroup.procs", path);
		f = fopen(command, "we");
		fprintf(f, "%d\n", (int)wanted.pid);
		assert_int_equal(fclose(f), 0);
		s.config.cgroup = cgroup;
	} else {
		s.config.pid = wanted.pid;
	}
	strcpy(program, "/mnt/inner");
	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms");
	strcpy(program, was);
	run(&s, &other, "call 250");
	assert_int_equal(s.n, 0);
	finish(&wanted);
	gather(&s);
	disarm(&s);
	if (by_cgroup)
		assert_int_equal(rmdir(path), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.causes[0].pid, wanted.pid);
	assert_string_equal(s.causes[0].comm, "inner");
	assert_string_equal(s.causes[0].detail, "inner:fr_function_slow");
	if (by_cgroup)
		assert_string_equal(s.causes[0].cgroup, cgroup);
}

static void a_path_in_the_root_of_a_process(void **state)
{
	look_into_its_root(false);
}

static void a_path_in_the_root_of_a_cgroup(void **state)
{
	look_into_its_root(true);
}

static void only_the_chosen_name(void **state)
{
	struct scene s = {0};
	struct child c = {0};

	s.config.comm = (char *)"somebody-else";
	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms");
	run(&s, &c, "call 250");
	assert_int_equal(s.n, 0);
	disarm(&s);
}

static void markers_are_timed_and_switched_on(void **state)
{
	struct scene s = {0};
	struct child c = {0};

	arm(&s, FR_TRIGGER_USDT, "frtest:begin,frtest:end", "200ms");
	run(&s, &c, "markers 1 markers 250");
	assert_int_equal(s.n, 1);
	assert_cause(&s, 0, &c, 250 * MS, "time between markers", "frtest-function:frtest:begin,end");
	assert_int_equal(c.semaphore, 2);
	/* A begin without an end is mended by the next. */
	run(&s, &c, "lost 250");
	assert_int_equal(s.n, 1);
	disarm(&s);
	start(&c, "markers 0");
	finish(&c);
	assert_int_equal(c.semaphore, 0);
}

static void one_marker_is_an_anomaly(void **state)
{
	struct scene s = {0};
	struct child c = {0};

	arm(&s, FR_TRIGGER_USDT, "frtest:end", NULL);
	run(&s, &c, "markers 0 markers 0");
	assert_int_equal(s.n, 2);
	assert_cause(&s, 0, &c, 1, "marker passed", "frtest-function:frtest:end");
	disarm(&s);
}

/* With Pid= a call of somebody else does not even trap. */
static void others_do_not_pay(void **state)
{
	struct child wanted = {0}, other = {0};
	struct fr_source_stats stats = {0};
	struct scene s = {0};

	need_probes();
	start(&wanted, "bench 1000");
	await_program(wanted.pid, program);
	s.config.pid = wanted.pid;
	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_quick", "1min");
	run(&s, &other, "bench 10000000");
	fr_source_get_stats(s.source, &stats);
	assert_int_equal(stats.last_ns, 0);
	finish(&wanted);
	fr_source_get_stats(s.source, &stats);
	assert_int_not_equal(stats.last_ns, 0);
	assert_true(4 * other.ns < wanted.ns);
	disarm(&s);
}

/* What a probed call costs, and that of a function nobody calls: nothing but noise. */
static void the_price_of_a_call(void **state)
{
	struct child c = {0}, idle = {0}, probed = {0};
	struct scene unused = {0}, used = {0};

	start(&c, "bench 10000000");
	finish(&c);
	arm(&unused, FR_TRIGGER_FUNCTION, "fr_function_slow", "200ms");
	run(&unused, &idle, "bench 10000000");
	disarm(&unused);
	arm(&used, FR_TRIGGER_FUNCTION, "fr_function_quick", "1min");
	run(&used, &probed, "bench 50000");
	disarm(&used);
	print_message("a call takes %.1f ns; %.1f ns while another function has a probe; %.0f ns with one\n",
		c.ns, idle.ns, probed.ns);
	assert_int_equal(used.n, 0);
	/* The machine's own noise is far from a trap. */
	assert_true(4 * (idle.ns - c.ns) < probed.ns - c.ns);
}

static void assert_refused(
	enum fr_trigger_kind kind, const char *subject, const char *threshold, int code, const char *what)
{
	struct fr_source_env env = {0};
	struct fr_trigger_config config = {.name = (char *)"test",
		.kind = kind,
		.subject = (char *)subject,
		.threshold = (char *)threshold,
		.interval_ns = FR_TRIGGER_UNSET};
	struct fr_source *source = NULL;
	struct fr_diag d = {0};
	int r;

	assert_int_equal(sd_event_new(&env.event), 0);
	r = heard_open(&fr_source_function, &env, &config, NULL, &source, &d);
	sd_event_unref(env.event);
	print_message("  %s\n    %s\n", d.what, d.hint);
	assert_int_equal(r, code);
	assert_non_null(strstr(d.what, what));
	assert_null(source);
}

static void refuses_in_words(void **state)
{
	char here[PATH_MAX + 64];

	assert_refused(FR_TRIGGER_FUNCTION, "/bin/sh", "5ms", -EINVAL, "does not say what to probe");
	assert_refused(FR_TRIGGER_FUNCTION, "bin/sh:main", "5ms", -EINVAL, "not an absolute path");
	assert_refused(FR_TRIGGER_FUNCTION, "/bin/sh:main", "5 apples", -EINVAL, "not a threshold");
	assert_refused(FR_TRIGGER_USDT, "/bin/sh:begin", NULL, -EINVAL, "does not say what to probe");
	assert_refused(FR_TRIGGER_USDT, "/bin/sh:a:b", "5ms", -EINVAL, "no time to measure");
	assert_refused(FR_TRIGGER_USDT, "/bin/sh:a:b,c:d", NULL, -EINVAL, "needs a Threshold=");
	assert_refused(FR_TRIGGER_USDT, "/bin/sh:a:b,d", "5ms", -EINVAL, "does not say what to probe");
	assert_refused(FR_TRIGGER_FUNCTION, "/nonexistent:main", "5ms", -ENOENT, "no such file");
	snprintf(here, sizeof(here), "%s:fr_function_slow+0x4", program);
	assert_refused(FR_TRIGGER_FUNCTION, here, "5ms", -EINVAL, "measured from its entry");
}

static int set_up(void **state)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 32);

	if (n < 0)
		return -1;
	program[n] = '\0';
	snprintf(strrchr(program, '/'), 32, "/frtest-function");
	return 0;
}

static void copy_program(const char *to)
{
	char tmp[64];
	int in = open(program, O_RDONLY | O_CLOEXEC), out;
	struct stat st;

	snprintf(tmp, sizeof(tmp), "%s.new", to);
	out = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	assert_true(in >= 0 && out >= 0 && fstat(in, &st) == 0);
	assert_int_equal(sendfile(out, in, NULL, (size_t)st.st_size), st.st_size);
	close(in);
	close(out);
	assert_int_equal(rename(tmp, to), 0);
}

/* It is another file, in which nobody has the probe. */
static void an_upgraded_program_is_told(void **state)
{
	char dir[] = "/tmp/flightrec-test.XXXXXX", path[48], subject[96];
	bool same, upgraded, missing;
	struct scene s = {0};

	need_probes();
	arm(&s, FR_TRIGGER_FUNCTION, "fr_function_slow", "1min"); /* for its configuration */
	disarm(&s);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/program", dir);
	snprintf(subject, sizeof(subject), "%s:fr_function_slow", path);
	copy_program(path);
	assert_int_equal(sd_event_new(&s.env.event), 0);
	s.config.subject = subject;
	assert_int_equal(heard_open(&fr_source_function, &s.env, &s.config, &s, &s.source, NULL), 0);
	same = fr_source_function.is_stale(s.source);
	copy_program(path);
	upgraded = fr_source_function.is_stale(s.source);
	unlink(path);
	missing = fr_source_function.is_stale(s.source);
	disarm(&s);
	rmdir(dir);
	assert_false(same);
	assert_true(upgraded);
	assert_false(missing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_slow_call_fires),
		cmocka_unit_test(names_the_thread),
		cmocka_unit_test(recursion_is_bounded),
		cmocka_unit_test(a_thread_may_end_inside),
		cmocka_unit_test(a_jump_leaves_nothing_behind),
		cmocka_unit_test(static_functions_are_told_apart),
		cmocka_unit_test(each_call_can_be_an_anomaly),
		cmocka_unit_test(the_cool_down_holds_back),
		cmocka_unit_test(only_the_chosen_process),
		cmocka_unit_test(a_path_in_the_root_of_a_process),
		cmocka_unit_test(a_path_in_the_root_of_a_cgroup),
		cmocka_unit_test(only_the_chosen_name),
		cmocka_unit_test(markers_are_timed_and_switched_on),
		cmocka_unit_test(one_marker_is_an_anomaly),
		cmocka_unit_test(others_do_not_pay),
		cmocka_unit_test(the_price_of_a_call),
		cmocka_unit_test(an_upgraded_program_is_told),
		cmocka_unit_test(refuses_in_words),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
