// SPDX-License-Identifier: GPL-2.0-or-later
/* The capture on the running kernel, against loads of known behaviour. */
#include "live.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "perfdata/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* How long a load may take before it is taken for a hang. */
#define LIMIT_NS (60 * FR_NSEC_PER_SEC)

/* getppid() of the calling thread and of no other. */
static const char *own_getppid(pid_t tid)
{
	static char filter[64];

	snprintf(filter, sizeof(filter), "id == 110 && common_pid == %d", tid);
	return filter;
}

static void need_tracepoints(void)
{
#ifndef __x86_64__
	print_message("skipped: the number of getppid is known for x86-64 only\n");
	skip();
#endif
	if (!live_tracefs()) {
		print_message("skipped: no tracefs, and none can be mounted\n");
		skip();
	}
}

static void test_every_call_is_a_sample(void **state)
{
	const uint64_t calls = 12345;
	struct fr_capture_config config = {0};
	struct live_seen seen = {.tid = gettid()};
	struct fr_capture *c;

	need_tracepoints();
	live_pin();
	c = live_open("raw_syscalls:sys_enter", own_getppid(gettid()), &config);
	live_enable(c);
	live_getppid(calls);
	fr_capture_disable(c);
	live_drain(c, &seen);
	assert_int_equal(seen.samples, calls);
	assert_int_equal(seen.of_tid, calls);
	assert_int_equal(seen.backward, 0);
	assert_int_equal(live_counter(c, 0).samples, calls);
	live_drain(c, &seen);
	assert_int_equal(seen.samples, calls);
	fr_capture_free(c);
}

static void test_wraps_many_times(void **state)
{
	struct fr_capture_config config = {.ring_bytes = 64 << 10};
	struct live_seen seen = {.tid = gettid()};
	struct fr_capture *c;

	need_tracepoints();
	c = live_open("raw_syscalls:sys_enter", own_getppid(gettid()), &config);
	live_enable(c);
	for (int i = 0; i < 500; i++) {
		live_getppid(211);
		live_drain(c, &seen);
	}
	fr_capture_disable(c);
	live_drain(c, &seen);
	assert_int_equal(seen.of_tid, 500 * 211);
	assert_int_equal(live_counter(c, 0).lost[FR_LOSS_TORN], 0);
	fr_capture_free(c);
}

static void test_loss_is_counted(void **state)
{
	const uint64_t calls = 20000;
	struct fr_capture_config config = {.ring_bytes = 4096};
	struct live_seen seen = {.tid = gettid()};
	struct fr_counter n;
	struct fr_capture *c;

	need_tracepoints();
	live_pin();
	c = live_open("raw_syscalls:sys_enter", own_getppid(gettid()), &config);
	live_enable(c);
	live_getppid(calls);
	live_drain(c, &seen);
	/* The kernel tells of the loss with the next record that finds room. */
	live_getppid(1);
	fr_capture_disable(c);
	live_drain(c, &seen);
	n = live_counter(c, 0);
	assert_true(n.lost[FR_LOSS_KERNEL_RING] > 0);
	assert_int_equal(n.samples, seen.samples);
	assert_int_equal(n.samples + n.lost[FR_LOSS_KERNEL_RING], calls + 1);
	fr_capture_free(c);
}

struct caller {
	pthread_t thread;
	pid_t tid;
	pthread_barrier_t go;
};

static void *caller_run(void *ctx)
{
	struct caller *c = ctx;

	c->tid = gettid();
	pthread_barrier_wait(&c->go);
	pthread_barrier_wait(&c->go);
	live_getppid(1000);
	return NULL;
}

static void test_excluded_threads(void **state)
{
	struct fr_capture_config config = {0};
	struct caller other = {0};
	struct live_seen seen = {0};
	struct fr_capture *c;
	pid_t self = gettid();

	need_tracepoints();
	pthread_barrier_init(&other.go, NULL, 2);
	assert_int_equal(pthread_create(&other.thread, NULL, caller_run, &other), 0);
	pthread_barrier_wait(&other.go);
	c = live_open("raw_syscalls:*,cpu-clock", NULL, &config);
	assert_int_equal(fr_capture_exclude_tids(c, &self, 1, NULL), 0);
	assert_int_equal(fr_capture_exclude_tids(c, &self, 1, NULL), -EBUSY);
	fr_capture_free(c);

	c = live_open("raw_syscalls:sys_enter", "id == 110", &config);
	assert_int_equal(fr_capture_exclude_tids(c, &self, 1, NULL), 0);
	live_enable(c);
	pthread_barrier_wait(&other.go);
	live_getppid(5000);
	pthread_join(other.thread, NULL);
	fr_capture_disable(c);
	seen.tid = self;
	live_drain(c, &seen);
	assert_int_equal(seen.of_tid, 0);
	assert_true(seen.samples >= 1000);
	pthread_barrier_destroy(&other.go);
	fr_capture_free(c);
}

static void test_bad_filter(void **state)
{
	const struct fr_event_defaults defaults = {0};
	struct fr_event_list list = {0};
	struct fr_capture *c = NULL;
	struct fr_diag d = {0};

	need_tracepoints();
	assert_int_equal(fr_event_parse("raw_syscalls:sys_enter", &defaults, &list, NULL), 0);
	assert_int_equal(fr_event_set_filter(&list, "no_such_field == 1", NULL), 0);
	assert_int_equal(fr_capture_open(&(struct fr_capture_config){.events = &list}, &c, &d), -EINVAL);
	assert_null(c);
	assert_non_null(strstr(d.what, "no_such_field"));
	assert_non_null(strstr(d.what, "raw_syscalls:sys_enter"));
	assert_non_null(strstr(d.hint, "id, args"));
	fr_event_list_deinit(&list);
}

static void test_cpu_clock(void **state)
{
	char cpus[16];
	struct fr_capture_config config = {.cpus = cpus};
	struct live_seen seen = {.tid = gettid()};
	const uint64_t until = fr_monotonic_ns() + LIMIT_NS;
	const int cpu = live_pin();
	struct fr_capture *c;

	snprintf(cpus, sizeof(cpus), "%d", cpu);
	c = live_open("cpu-clock/freq=1000,call-graph=fp/,cpu-clock/period=10000000,call-graph=dwarf/", NULL,
		&config);
	assert_int_equal(fr_capture_n_sampled_cpus(c), 1);
	assert_int_equal(fr_capture_n_cpus(c), sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(fr_capture_cpu_number(c, 0), cpu);
	assert_int_equal(fr_capture_n_events(c), 3);
	live_enable(c);
	/* Others may have most of the CPU. */
	while (seen.of_tid < 50 && fr_monotonic_ns() < until) {
		live_spin_ms(10);
		live_drain(c, &seen);
	}
	fr_capture_disable(c);
	live_drain(c, &seen);
	assert_true(seen.of_tid >= 50);
	assert_true(live_counter(c, 0).samples > live_counter(c, 1).samples);
	assert_int_equal(live_counter(c, 0).samples + live_counter(c, 1).samples, seen.samples);
	fr_capture_free(c);
}

static void test_overwrite(void **state)
{
	struct fr_capture_config config = {.ring_bytes = 256 << 10};
	struct live_seen seen = {.tid = gettid()}, forward = {0};
	struct fr_capture *c;
	uint64_t before;

	need_tracepoints();
	live_pin();
	c = live_open("raw_syscalls:sys_enter/overwrite/", own_getppid(gettid()), &config);
	assert_true(fr_capture_has_overwrite(c));
	live_enable(c);
	live_getppid(100);
	live_drain_overwrite(c, &seen);
	assert_int_equal(seen.of_tid, 100);
	live_getppid(50);
	live_drain_overwrite(c, &seen);
	assert_int_equal(seen.of_tid, 150);
	/* Over and over: what is left is the newest, up to the last call. */
	before = fr_monotonic_ns();
	for (int i = 0; i < 20; i++) {
		seen.of_tid = 0;
		live_getppid(20000);
		live_drain_overwrite(c, &seen);
		assert_in_range(seen.of_tid, 1001, 19999);
		assert_int_equal(seen.backward, 0);
	}
	assert_true(seen.last_time > before);
	assert_int_equal(live_counter(c, 0).lost[FR_LOSS_TORN], 0);
	/* Nothing of it is in a forward ring. */
	live_drain(c, &forward);
	assert_int_equal(forward.samples, 0);
	fr_capture_free(c);
}

static void test_counters_continue_in_the_next_capture(void **state)
{
	struct fr_capture_config config = {.ring_bytes = 4096};
	struct live_seen seen = {.tid = gettid()};
	uint64_t lost[_FR_LOSS_MAX] = {0};
	struct fr_capture *first, *second, *other;
	struct fr_counter n;

	need_tracepoints();
	live_pin();
	first = live_open("raw_syscalls:sys_enter", own_getppid(gettid()), &config);
	live_enable(first);
	live_getppid(1000); /* more than the ring has room for */
	live_drain(first, &seen);
	live_getppid(1);
	live_drain(first, &seen);
	fr_capture_disable(first);
	second = live_open("raw_syscalls:sys_enter", own_getppid(gettid()), &config);
	live_enable(second);
	live_getppid(5);
	live_drain(second, &seen);
	assert_int_equal(live_counter(second, 0).samples, 5);
	fr_capture_inherit_counters(second, first, lost);
	fr_capture_free(first);
	n = live_counter(second, 0);
	assert_int_equal(n.samples + n.lost[FR_LOSS_KERNEL_RING], 1006);
	assert_true(n.lost[FR_LOSS_KERNEL_RING] > 0);
	assert_int_equal(lost[FR_LOSS_KERNEL_RING], 0);
	live_getppid(1);
	live_drain(second, &seen);
	assert_int_equal(live_counter(second, 0).samples, n.samples + 1);
	/* A capture that has not this event leaves its losses to the caller. */
	other = live_open("cpu-clock", NULL, &config);
	fr_capture_inherit_counters(other, second, lost);
	fr_capture_free(second);
	assert_int_equal(live_counter(other, 0).samples, 0);
	assert_int_equal(lost[FR_LOSS_KERNEL_RING], n.lost[FR_LOSS_KERNEL_RING]);
	fr_capture_free(other);
}

/* A child that waits for a byte, calls getppid() 1,000 times itself and in a child of its own, and ends. */
static pid_t start_child(int *ret_go)
{
	int go[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		pid_t grandchild;

		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		live_getppid(1000);
		grandchild = fork();
		if (grandchild == 0) {
			live_getppid(1000);
			_exit(0);
		}
		waitpid(grandchild, NULL, 0);
		_exit(0);
	}
	assert_true(pid > 0);
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

static void let_go(int fd)
{
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

static void test_task_with_children(void **state)
{
	struct live_seen seen = {0};
	struct fr_capture_config config = {.n_pids = 1};
	struct epoll_event events[16];
	struct fr_capture *c;
	uint64_t until;
	pid_t pid;
	int go;

	need_tracepoints();
	pid = start_child(&go);
	config.pids = &pid;
	c = live_open("raw_syscalls:sys_enter", "id == 110", &config);
	live_enable(c);
	live_getppid(100); /* not ours */
	assert_false(fr_capture_has_ended(c));
	let_go(go);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* Every ring hangs up, one event after the other; each CPU has its own. */
	until = fr_monotonic_ns() + LIMIT_NS;
	while (!fr_capture_has_ended(c) && fr_monotonic_ns() < until) {
		int n = epoll_wait(fr_capture_epoll_fd(c), events, FR_ARRAY_SIZE(events), 1000);

		for (int k = 0; k < n; k++)
			fr_capture_handle_epoll(c, events[k].data.ptr, events[k].events);
		live_drain(c, &seen);
	}
	assert_true(fr_capture_has_ended(c));
	assert_int_equal(epoll_wait(fr_capture_epoll_fd(c), events, FR_ARRAY_SIZE(events), 0), 0);
	seen.tid = pid;
	live_drain(c, &seen);
	assert_int_equal(seen.samples, 2000);
	fr_capture_free(c);
}

static void test_enable_on_exec(void **state)
{
	struct live_seen seen = {0};
	struct fr_capture_config config = {.n_pids = 1, .enable_on_exec = true};
	struct fr_capture *c;
	int go[2], status;
	char byte;
	pid_t pid;

	need_tracepoints();
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		live_getppid(1000); /* before exec: not recorded */
		execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
		_exit(1);
	}
	config.pids = &pid;
	c = live_open("raw_syscalls:sys_enter", NULL, &config);
	live_enable(c);
	let_go(go[1]);
	close(go[0]);
	waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 7);
	seen.tid = pid;
	live_drain(c, &seen);
	assert_true(seen.of_tid > 5 && seen.of_tid < 500);
	assert_true(seen.mmap2 > 0 && seen.comms > 0 && seen.exits > 0);
	fr_capture_free(c);
}

static void test_sideband_of_exec(void **state)
{
	/* Room for all that a busy machine does until the child has ended. */
	struct fr_capture_config config = {.sideband_ring_bytes = 2 << 20};
	struct live_seen seen = {0};
	struct fr_session s = {0};
	struct fr_capture *c = live_open("dummy", NULL, &config);
	size_t last;
	pid_t pid;

	live_enable(c);
	pid = fork();
	if (pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	fr_capture_disable(c);
	seen.tid = pid;
	live_drain(c, &seen);
	assert_true(seen.forks > 0 && seen.comms > 0 && seen.mmap2 > 1 && seen.exits > 0);

	assert_int_equal(fr_capture_describe(c, &s), 0);
	assert_int_equal(s.n_events, fr_capture_n_events(c));
	last = s.n_events - 1;
	assert_int_equal(s.events[last].n_ids, fr_capture_n_cpus(c));
	assert_true(s.events[last].attr.mmap2);
	if (s.events[last].attr.build_id)
		assert_true(seen.build_ids > 0);
	assert_int_equal(fr_capture_sideband_lost(c), 0);
	fr_session_deinit(&s);
	fr_capture_free(c);
}

static void test_sideband_loss(void **state)
{
	struct fr_capture_config config = {.sideband_ring_bytes = 4096};
	struct live_seen seen = {0};
	struct fr_capture *c = live_open("dummy", NULL, &config);

	live_pin();
	live_enable(c);
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
		if (i == 98)
			live_drain(c, &seen);
	}
	live_drain(c, &seen);
	assert_true(fr_capture_sideband_lost(c) > 0);
	assert_int_equal(live_counter(c, 1).lost[FR_LOSS_SIDEBAND], fr_capture_sideband_lost(c));
	fr_capture_free(c);
}

static void test_wakes_at_a_quarter(void **state)
{
	/* Of this thread alone, as side-band of others wakes, too. */
	struct fr_capture_config config = {.ring_bytes = 64 << 10, .pids = (pid_t[]){gettid()}, .n_pids = 1};
	struct live_seen seen = {.tid = gettid()};
	struct epoll_event e;
	struct fr_capture *c;

	need_tracepoints();
	live_pin();
	c = live_open("raw_syscalls:sys_enter", own_getppid(gettid()), &config);
	live_enable(c);
	live_getppid(20);
	assert_int_equal(epoll_wait(fr_capture_epoll_fd(c), &e, 1, 0), 0);
	live_getppid(300);
	assert_int_equal(epoll_wait(fr_capture_epoll_fd(c), &e, 1, 60000), 1);
	assert_non_null(e.data.ptr);
	fr_capture_handle_epoll(c, e.data.ptr, e.events);
	live_drain(c, &seen);
	assert_int_equal(seen.of_tid, 320);
	fr_capture_free(c);
}

static void test_cgroup(void **state)
{
	char path[PATH_MAX] = "/sys/fs/cgroup", procs[PATH_MAX + 16];
	struct fr_capture_config config = {.cgroup = path};
	struct live_seen seen = {0};
	struct fr_capture *c;
	FILE *f;
	pid_t pid;
	int go;

	need_tracepoints();
	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) < 0)
		strcpy(path, "/sys/fs/cgroup/unified");
	snprintf(path + strlen(path), 64, "/fr-test-%d", getpid());
	if (mkdir(path, 0755) < 0) {
		print_message("skipped: no cgroup2 that can be written\n");
		skip();
	}
	pid = start_child(&go);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	f = fopen(procs, "we");
	assert_non_null(f);
	assert_true(fprintf(f, "%d\n", pid) > 0);
	assert_int_equal(fclose(f), 0);
	c = live_open("raw_syscalls:sys_enter", "id == 110", &config);
	live_enable(c);
	live_getppid(100);
	let_go(go);
	waitpid(pid, NULL, 0);
	fr_capture_disable(c);
	seen.tid = pid;
	live_drain(c, &seen);
	fr_capture_free(c);
	rmdir(path);
	assert_int_equal(seen.samples, 2000);
	assert_int_equal(seen.of_tid, 1000);
	assert_true(seen.exits > 0);
}

static void expect_error(struct fr_capture_config config, const char *spec, int code, const char *what)
{
	const struct fr_event_defaults defaults = {0};
	struct fr_event_list list = {0};
	struct fr_capture *c = NULL;
	struct fr_diag d = {0};
	int r;

	assert_int_equal(fr_event_parse(spec, &defaults, &list, NULL), 0);
	config.events = &list;
	r = fr_capture_open(&config, &c, &d);
	fr_event_list_deinit(&list);
	if (r != code && (r == -EACCES || r == -EPERM)) {
		print_message("skipped: %s (%s)\n", d.what, d.hint);
		skip();
	}
	if (r != code || !strstr(d.what, what))
		fail_msg("%d, not %d: %s (%s)", r, code, d.what, d.hint);
	assert_null(c);
}

static void test_errors(void **state)
{
	const pid_t none = INT_MAX - 1;

	expect_error((struct fr_capture_config){.cpus = "4000"}, "cpu-clock", -ENODEV, "CPU 4000");
	expect_error((struct fr_capture_config){.cpus = "x"}, "cpu-clock", -EINVAL, "\"x\"");
	expect_error(
		(struct fr_capture_config){.pids = &none, .n_pids = 1}, "cpu-clock", -ESRCH, "2147483646");
	expect_error((struct fr_capture_config){.cgroup = "no/such"}, "cpu-clock", -ENOENT, "no/such");
	expect_error((struct fr_capture_config){.ring_bytes = 5000}, "cpu-clock", -EINVAL, "kernel ring");
	expect_error(
		(struct fr_capture_config){.sideband_ring_bytes = 1}, "cpu-clock", -EINVAL, "kernel ring");
	expect_error((struct fr_capture_config){.pids = &none, .n_pids = 1, .cgroup = "x"}, "cpu-clock",
		-EINVAL, "together");
}

static void test_cycles_that_are_not_there(void **state)
{
	const struct fr_event_defaults defaults = {0};
	struct fr_event_list list = {0};

	assert_int_equal(fr_event_add_default(&defaults, &list, NULL), 0);
	if (!list.notice) {
		print_message("skipped: this machine has a hardware PMU\n");
		fr_event_list_deinit(&list);
		skip();
	}
	fr_event_list_deinit(&list);
	expect_error((struct fr_capture_config){0}, "cycles", -ENOENT, "cannot count cycles");
}

/* Samples of the first event for 100 of event OTHER, in a while of spinning, with 1/DIVISOR of the frequency.
 */
static uint64_t share_at(struct fr_capture *c, unsigned divisor, size_t other)
{
	const uint64_t until = fr_monotonic_ns() + LIMIT_NS;
	const uint64_t first = live_counter(c, 0).samples, before = live_counter(c, other).samples;
	struct live_seen seen = {0};
	uint64_t n = 0;

	assert_int_equal(fr_capture_set_divisor(c, divisor, NULL), 0);
	while (n < 100 && fr_monotonic_ns() < until) {
		live_spin_ms(10);
		live_drain(c, &seen);
		n = live_counter(c, other).samples - before;
	}
	assert_true(n >= 100);
	return 100 * (live_counter(c, 0).samples - first) / n;
}

/* One event has a frequency and two have a period, which the frequency is to become. All go by the thread's
   own CPU time, so that the machine's other work does not matter; and where timers are late, equal periods
   are as late. */
static void test_frequency_steps(void **state)
{
	struct fr_capture_config config = {.pids = (pid_t[]){gettid()}, .n_pids = 1};
	struct fr_capture *c;
	uint64_t full, quarter, least, again;

	live_pin();
	c = live_open(
		"task-clock/freq=1000/,task-clock/period=1000000/,task-clock/period=4000000/", NULL, &config);
	live_enable(c);
	assert_int_equal(fr_capture_frequency(c), 1000);
	full = share_at(c, 1, 1);
	quarter = share_at(c, 4, 2);
	least = share_at(c, 100000, 1);
	again = share_at(c, 1, 1);
	fr_capture_free(c);
	assert_in_range(full, 80, 125);
	assert_in_range(quarter, 80, 125);
	assert_in_range(least, 0, 10);
	assert_in_range(again, 80, 125);
}

static void test_nothing_to_step(void **state)
{
	struct fr_capture_config config = {.pids = (pid_t[]){gettid()}, .n_pids = 1};
	struct fr_capture *c = live_open("task-clock/period=1000000/", NULL, &config);

	assert_int_equal(fr_capture_frequency(c), 0);
	assert_int_equal(fr_capture_set_divisor(c, 4, NULL), 0);
	fr_capture_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_call_is_a_sample),
		cmocka_unit_test(test_wraps_many_times),
		cmocka_unit_test(test_loss_is_counted),
		cmocka_unit_test(test_excluded_threads),
		cmocka_unit_test(test_bad_filter),
		cmocka_unit_test(test_cpu_clock),
		cmocka_unit_test(test_overwrite),
		cmocka_unit_test(test_counters_continue_in_the_next_capture),
		cmocka_unit_test(test_task_with_children),
		cmocka_unit_test(test_enable_on_exec),
		cmocka_unit_test(test_sideband_of_exec),
		cmocka_unit_test(test_sideband_loss),
		cmocka_unit_test(test_wakes_at_a_quarter),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_cycles_that_are_not_there),
		cmocka_unit_test(test_frequency_steps),
		cmocka_unit_test(test_nothing_to_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
