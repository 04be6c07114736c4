// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of captures on the running kernel, with loads of known behaviour. */
#include "live.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "capture/aux.h"
#include "capture/perf_open.h"
#include "perfdata/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first ring has room for all calls. The second ring wraps around many times. */
TEST(every_call_is_a_sample)
{
	static const struct {
		size_t ring_bytes;
		unsigned drains, calls;
	} cases[] = {{0, 1, 12345}, {64 << 10, 500, 211}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		const uint64_t all = (uint64_t)cases[i].drains * cases[i].calls;
		struct fr_capture_config config = {.ring_bytes = cases[i].ring_bytes};
		struct live_seen seen = {.tid = gettid()};
		struct fr_capture *c = live_open_getppid("", &config);

		for (unsigned k = 0; k < cases[i].drains; k++) {
			live_getppid(cases[i].calls);
			live_drain(c, &seen);
		}
		fr_capture_disable(c);
		live_drain(c, &seen);
		assert_int_equal(seen.samples, all);
		assert_int_equal(seen.of_tid, all);
		assert_int_equal(seen.backward, 0);
		assert_int_equal(live_counter(c, 0).samples, all);
		assert_int_equal(live_counter(c, 0).lost[FR_LOSS_TORN], 0);
		fr_capture_free(c);
	}
}

/* Make CALLS + 1 calls, so that the kernel loses samples. Returns the counters. */
static struct fr_counter lose_samples(struct fr_capture *c, uint64_t calls, struct live_seen *seen)
{
	struct fr_counter n;

	live_getppid(calls);
	live_drain(c, seen);
	/* The kernel reports the loss before the next record for which there is room. */
	live_getppid(1);
	live_drain(c, seen);
	n = live_counter(c, 0);
	assert_true(n.lost[FR_LOSS_KERNEL_RING] > 0);
	assert_int_equal(n.samples, seen->samples);
	assert_int_equal(n.samples + n.lost[FR_LOSS_KERNEL_RING], calls + 1);
	return n;
}

TEST(counters_and_losses_continue_in_the_next_capture)
{
	struct fr_capture_config config = {.ring_bytes = 4096};
	struct live_seen seen = {0}, more = {0};
	uint64_t lost[_FR_LOSS_MAX] = {0};
	struct fr_capture *first = live_open_getppid("", &config), *second, *other;
	struct fr_counter n = lose_samples(first, 20000, &seen);

	fr_capture_disable(first);
	second = live_open_getppid("", &config);
	live_getppid(5);
	live_drain(second, &more);
	assert_int_equal(live_counter(second, 0).samples, 5);
	fr_capture_inherit_counters(second, first, lost);
	fr_capture_free(first);
	assert_int_equal(live_counter(second, 0).samples, n.samples + 5);
	assert_int_equal(live_counter(second, 0).lost[FR_LOSS_KERNEL_RING], n.lost[FR_LOSS_KERNEL_RING]);
	assert_int_equal(lost[FR_LOSS_KERNEL_RING], 0);
	live_getppid(1);
	live_drain(second, &more);
	assert_int_equal(live_counter(second, 0).samples, n.samples + 6);
	/* If the new capture does not have an event of the old one, the caller gets the losses of this
	   event. */
	other = live_open("cpu-clock", NULL, &config);
	fr_capture_inherit_counters(other, second, lost);
	fr_capture_free(second);
	assert_int_equal(live_counter(other, 0).samples, 0);
	assert_int_equal(lost[FR_LOSS_KERNEL_RING], n.lost[FR_LOSS_KERNEL_RING]);
	fr_capture_free(other);
}

/* The kernel says which PMUs have AUX areas. The software PMU has none. */
TEST(an_event_of_a_pmu_without_aux_data_makes_samples)
{
	struct fr_capture_config config = {0};
	struct live_seen seen = {0};
	struct fr_capture *c = live_open("software/config=0,period=1000000/", NULL, &config);
	struct fr_aux_areas areas;
	struct fr_aux_stats stats;

	assert_false(fr_capture_has_aux(c));
	assert_int_equal(fr_capture_ref_aux(c, &areas), 0);
	assert_int_equal(areas.n, 0);
	fr_capture_aux_stats(c, &stats);
	assert_int_equal(stats.areas, 0);
	live_enable(c);
	live_spin_ms(50);
	live_drain(c, &seen);
	assert_true(seen.samples > 10);
	fr_capture_free(c);
}

TEST(an_aux_area_that_cannot_be_had_is_explained)
{
	static const struct {
		int code;
		const char *what, *hint;
	} cases[] = {
		{-EPERM, "not permitted to lock the memory of an AUX area of 4.0M", "RLIMIT_MEMLOCK"},
		{-EPERM, "not permitted", "a smaller AuxBuffer="},
		{-ENOMEM, "cannot map an AUX area of 4.0M for intel_pt//", "a smaller AuxBuffer="},
		{-EINVAL, "cannot map an AUX area of 4.0M for intel_pt//", "another AuxBuffer="},
	};
	const struct fr_event e = {.name = (char *)"intel_pt//", .aux = true};
	struct fr_diag d = {0};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		d = (struct fr_diag){0};
		assert_int_equal(fr_explain_aux_map(&d, cases[i].code, &e, 4 << 20, 2), cases[i].code);
		assert_non_null(strstr(d.what, cases[i].what));
		assert_non_null(strstr(d.hint, cases[i].hint));
	}
	d = (struct fr_diag){0};
	assert_int_equal(fr_explain_open(&d, -EBUSY, &e, 0, -1), -EBUSY);
	assert_non_null(strstr(d.hint, "serves one user at a time"));
}

struct caller {
	pthread_t thread;
	pthread_barrier_t go;
};

static void *caller_main(void *ctx)
{
	struct caller *c = ctx;

	pthread_barrier_wait(&c->go);
	live_getppid(1000);
	return NULL;
}

TEST(excluded_threads_make_no_samples)
{
	struct fr_capture_config config = {0};
	struct caller other = {0};
	const pid_t self = gettid();
	struct live_seen seen = {.tid = self};
	struct fr_capture *c;

	live_need_tracepoints();
	pthread_barrier_init(&other.go, NULL, 2);
	assert_int_equal(pthread_create(&other.thread, NULL, caller_main, &other), 0);
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
	live_drain(c, &seen);
	assert_int_equal(seen.of_tid, 0);
	assert_true(seen.samples >= 1000);
	pthread_barrier_destroy(&other.go);
	fr_capture_free(c);
}

TEST(clocks_sample_by_frequency_and_by_period)
{
	char cpus[16];
	struct fr_capture_config config = {.cpus = cpus};
	struct live_seen seen = {.tid = gettid()};
	const uint64_t until = fr_monotonic_ns() + LIVE_LIMIT_NS;
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
	/* Loops, because other programs may use most of the CPU. */
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

TEST(an_overwritable_ring_has_the_newest_samples)
{
	struct fr_capture_config config = {.ring_bytes = 256 << 10};
	struct live_seen seen = {.tid = gettid()}, forward = {0};
	struct fr_capture *c = live_open_getppid("/overwrite/", &config);
	uint64_t before;

	assert_true(fr_capture_has_overwrite(c));
	live_getppid(100);
	live_drain_overwrite(c, &seen);
	assert_int_equal(seen.of_tid, 100);
	live_getppid(50);
	live_drain_overwrite(c, &seen);
	assert_int_equal(seen.of_tid, 150);
	/* The kernel overwrites the ring many times. */
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
	live_drain(c, &forward);
	assert_int_equal(forward.samples, 0);
	fr_capture_free(c);
}

/* Makes 1,000 calls in this process, and 1,000 in a child. */
static void call_with_child(void)
{
	pid_t child;

	live_getppid(1000);
	child = fork();
	if (child == 0) {
		live_getppid(1000);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

TEST(a_task_is_recorded_with_its_children_to_its_end)
{
	struct live_seen seen = {0};
	struct fr_capture_config config = {.n_pids = 1};
	struct epoll_event events[16];
	struct fr_capture *c;
	uint64_t until;
	pid_t pid;
	int go;

	live_need_tracepoints();
	pid = live_fork(call_with_child, &go);
	config.pids = &pid;
	c = live_open("raw_syscalls:sys_enter", "id == 110", &config);
	live_enable(c);
	live_getppid(100); /* this process is not recorded */
	assert_false(fr_capture_has_ended(c));
	live_let_go(go);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* The kernel reports the end (EPOLLHUP) of the ring of each CPU, one after the other. */
	until = fr_monotonic_ns() + LIVE_LIMIT_NS;
	while (!fr_capture_has_ended(c) && fr_monotonic_ns() < until) {
		int n = epoll_wait(fr_capture_epoll_fd(c), events, FR_ARRAY_SIZE(events), 1000);

		for (int k = 0; k < n; k++)
			fr_capture_handle_epoll(c, events[k].data.ptr, events[k].events);
		live_drain(c, &seen);
	}
	assert_true(fr_capture_has_ended(c));
	assert_int_equal(epoll_wait(fr_capture_epoll_fd(c), events, FR_ARRAY_SIZE(events), 0), 0);
	live_drain(c, &seen);
	assert_int_equal(seen.samples, 2000);
	fr_capture_free(c);
}

static void call_and_exec(void)
{
	live_getppid(1000); /* these calls are before the exec, so they are not recorded */
	execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
	_exit(1);
}

TEST(exec_enables_the_samples)
{
	struct fr_capture_config config = {.n_pids = 1, .enable_on_exec = true};
	struct live_seen seen = {0};
	struct fr_capture *c;
	int go, status;
	pid_t pid;

	live_need_tracepoints();
	pid = live_fork(call_and_exec, &go);
	config.pids = &pid;
	c = live_open("raw_syscalls:sys_enter", NULL, &config);
	live_enable(c);
	live_let_go(go);
	waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 7);
	seen.tid = pid;
	live_drain(c, &seen);
	assert_true(seen.of_tid > 5 && seen.of_tid < 500);
	assert_true(seen.mmap2 > 0 && seen.comms > 0 && seen.exits > 0);
	fr_capture_free(c);
}

static void exec_true(void)
{
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

TEST(sideband_has_records_of_fork_exec_and_exit)
{
	struct fr_capture_config config = {.sideband_ring_bytes = 2 << 20};
	struct live_seen seen = {0};
	struct fr_session s = {0};
	struct fr_capture *c = live_open("dummy", NULL, &config);
	size_t last;
	int go;

	live_enable(c);
	seen.tid = live_fork(exec_true, &go);
	live_let_go(go);
	/* Drain while the child runs, because a busy machine can delay the child until its own side-band
	 * fills the ring. */
	while (waitpid(seen.tid, NULL, WNOHANG) == 0) {
		live_drain(c, &seen);
		usleep(1000);
	}
	fr_capture_disable(c);
	live_drain(c, &seen);
	assert_true(seen.forks > 0 && seen.comms > 0 && seen.mmap2 > 1 && seen.exits > 0);

	assert_int_equal(fr_capture_describe(c, &s), 0);
	assert_int_equal(s.n_events, fr_capture_n_events(c));
	last = s.n_events - 1;
	assert_int_equal(s.events[last].n_ids, fr_capture_n_cpus(c));
	assert_true(s.events[last].attr.mmap2);
	assert_int_equal(seen.build_ids, 0); /* not asked for */
	assert_int_equal(fr_capture_sideband_lost(c), 0);
	fr_session_deinit(&s);
	fr_capture_free(c);
}

/* Follows one process, so that other recorders of the machine are not disturbed (docs/design/10). */
TEST(the_kernel_gives_build_ids_if_the_capture_asks)
{
	struct fr_capture_config config = {.n_pids = 1, .build_ids = true};
	struct live_seen seen = {0};
	struct fr_session s = {0};
	struct fr_capture *c;
	int go;
	const pid_t pid = live_fork(exec_true, &go);
	bool asked;

	seen.tid = pid;
	config.pids = &pid;
	c = live_open("dummy", NULL, &config);
	live_enable(c);
	live_let_go(go);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	fr_capture_disable(c);
	live_drain(c, &seen);
	assert_int_equal(fr_capture_describe(c, &s), 0);
	asked = s.events[s.n_events - 1].attr.build_id;
	fr_session_deinit(&s);
	fr_capture_free(c);
	if (!asked)
		unit_skip("this kernel does not know attr.build_id (Linux 5.12)");
	assert_true(seen.build_ids > 0);
}

TEST(lost_sideband_is_counted)
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

TEST(a_ring_wakes_at_a_quarter)
{
	/* Record only this thread, because side-band of other processes also wakes the test. */
	struct fr_capture_config config = {.ring_bytes = 64 << 10, .pids = (pid_t[]){gettid()}, .n_pids = 1};
	struct live_seen seen = {.tid = gettid()};
	struct fr_capture *c = live_open_getppid("", &config);
	struct epoll_event e;

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

TEST(a_cgroup_is_recorded)
{
	char path[PATH_MAX] = "/sys/fs/cgroup", procs[PATH_MAX + 16];
	struct fr_capture_config config = {.cgroup = path};
	struct live_seen seen = {0};
	struct fr_capture *c;
	FILE *f;
	int go;

	live_need_tracepoints();
	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) < 0)
		strcpy(path, "/sys/fs/cgroup/unified");
	snprintf(path + strlen(path), 64, "/fr-test-%d", getpid());
	if (mkdir(path, 0755) < 0)
		unit_skip("no cgroup2 can be written");
	seen.tid = live_fork(call_with_child, &go);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	f = fopen(procs, "we");
	assert_non_null(f);
	assert_true(fprintf(f, "%u\n", seen.tid) > 0);
	assert_int_equal(fclose(f), 0);
	c = live_open("raw_syscalls:sys_enter", "id == 110", &config);
	live_enable(c);
	live_getppid(100);
	live_let_go(go);
	waitpid(seen.tid, NULL, 0);
	fr_capture_disable(c);
	live_drain(c, &seen);
	fr_capture_free(c);
	rmdir(path);
	assert_int_equal(seen.samples, 2000);
	assert_int_equal(seen.of_tid, 1000);
	assert_true(seen.exits > 0);
}

static void expect_error(struct fr_capture_config config, const char *spec, const char *filter, int code,
	const char *in_what, const char *in_hint)
{
	struct fr_capture *c = NULL;
	struct fr_diag d = {0};
	int r = live_try_open(spec, filter, &config, &c, &d);

	if (r != code && (r == -EACCES || r == -EPERM))
		unit_skip("%s (%s)", d.what, d.hint);
	if (r != code || !strstr(d.what, in_what) || !strstr(d.hint, in_hint))
		fail_msg("%d, not %d: %s (%s)", r, code, d.what, d.hint);
	assert_null(c);
}

TEST(errors_are_explained)
{
	const pid_t none = INT_MAX - 1;
	const struct {
		struct fr_capture_config config;
		int code;
		const char *in_what;
	} cases[] = {
		{{.cpus = "4000"}, -ENODEV, "CPU 4000"},
		{{.cpus = "x"}, -EINVAL, "\"x\""},
		{{.pids = &none, .n_pids = 1}, -ESRCH, "2147483646"},
		{{.cgroup = "no/such"}, -ENOENT, "no/such"},
		{{.ring_bytes = 5000}, -EINVAL, "kernel ring"},
		{{.sideband_ring_bytes = 1}, -EINVAL, "kernel ring"},
		{{.pids = &none, .n_pids = 1, .cgroup = "x"}, -EINVAL, "together"},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++)
		expect_error(cases[i].config, "cpu-clock", NULL, cases[i].code, cases[i].in_what, "");
}

TEST(a_bad_filter_is_explained)
{
	live_need_tracepoints();
	expect_error((struct fr_capture_config){0}, "raw_syscalls:sys_enter", "no_such_field == 1", -EINVAL,
		"no_such_field == 1\" of the event raw_syscalls:sys_enter", "id, args");
}

TEST(a_missing_hardware_pmu_is_explained)
{
	const struct fr_event_defaults defaults = {0};
	struct fr_event_list list = {0};
	bool has_pmu;

	assert_int_equal(fr_event_add_default(&defaults, &list, NULL), 0);
	has_pmu = !list.notice;
	fr_event_list_deinit(&list);
	if (has_pmu)
		unit_skip("this machine has a hardware PMU");
	expect_error(
		(struct fr_capture_config){0}, "cycles", NULL, -ENOENT, "cannot count cycles", "cpu-clock");
}

/* Set DIVISOR, which divides the frequency of the first event. Spin until the event with the index OTHER has
   100 more samples. Returns how many samples the first event made for each 100 samples of OTHER. */
static uint64_t share_at(struct fr_capture *c, unsigned divisor, size_t other)
{
	const uint64_t until = fr_monotonic_ns() + LIVE_LIMIT_NS;
	const uint64_t first = live_counter(c, 0).samples, before = live_counter(c, other).samples;
	struct live_seen seen = {0};
	uint64_t n = 0;

	assert_int_equal(fr_capture_set_divisor(c, divisor, NULL), 0);
	while (n < 100 && fr_monotonic_ns() < until) {
		live_spin_ms(10);
		live_drain(c, &seen);
		n = live_counter(c, other).samples - before;
	}
	if (n < 100)
		fail_msg("event %zu made only %lu samples", other, n);
	return 100 * (live_counter(c, 0).samples - first) / FR_MAX(n, 1ul);
}

/* With the divisors 1 and 4, the first event has the same period as the second or the third event. All events
   sample by the CPU time of this thread, so other work of the machine does not matter. The kernel's timers
   may be late, but they are equally late for equal periods. */
TEST(a_divisor_lowers_frequencies)
{
	struct fr_capture_config config = {.pids = (pid_t[]){gettid()}, .n_pids = 1};
	struct fr_capture *c;

	live_pin();
	c = live_open(
		"task-clock/freq=1000/,task-clock/period=1000000/,task-clock/period=4000000/", NULL, &config);
	live_enable(c);
	assert_int_equal(fr_capture_frequency(c), 1000);
	assert_in_range(share_at(c, 1, 1), 80, 125);
	assert_in_range(share_at(c, 4, 2), 80, 125);
	assert_in_range(share_at(c, 100000, 1), 0, 10);
	assert_in_range(share_at(c, 1, 1), 80, 125);
	fr_capture_free(c);

	/* A divisor does not change the period of an event that has no frequency. */
	c = live_open("task-clock/period=1000000/", NULL, &config);
	assert_int_equal(fr_capture_frequency(c), 0);
	assert_int_equal(fr_capture_set_divisor(c, 4, NULL), 0);
	fr_capture_free(c);
}

static size_t open_descriptors(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* The test does not check the result of the trial, because the result depends on the kernel. */
TEST(the_trial_of_build_ids_is_repeatable_and_closes_its_files)
{
	const size_t before = open_descriptors();
	const int leaks = fr_capture_build_ids_leak();

	if (leaks < 0)
		unit_skip("the trial is not possible here: %s", strerror(-leaks));
	assert_in_range(leaks, 0, 1);
	assert_int_equal(fr_capture_build_ids_leak(), leaks);
	assert_int_equal(open_descriptors(), before);
}
