// SPDX-License-Identifier: GPL-2.0-or-later
/* The event offcpu on the running kernel: samples of a child that sleeps. (This process records, so its own
   sleeps are left out.) tests/integration/test_offcpu.py compares stacks and wakers. */
#include "live.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "bpf/sleep.h"
#include "capture/ops.h"
#include "capture/switches.h"
#include "perfdata/record.h"
#include "unwind/unwinder.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES 30
#define SLEEP_MS 60
/* A sandbox can hide the ends of some sleeps, and a busy machine can preempt the child for long. */
#define NEAR 3

struct seen {
	pid_t pid;
	uint64_t sleeps, wakings, others;
	uint64_t shortest_ns, own;
	uint64_t on_ns, spans; /* when the event was switched on, and how many sleeps began before that */
};

static void sleep_often(void)
{
	for (int i = 0; i < TIMES; i++)
		usleep(SLEEP_MS * 1000);
}

/* The raw data are at the end of a sample. */
static void look_at(struct seen *seen, const struct perf_event_header *h)
{
	const struct fr_sample *s = (const void *)h;
	const uint8_t *end = (const uint8_t *)h + h->size;
	const struct fr_sleep_raw *sleep = (const void *)(end - sizeof(*sleep));
	const struct fr_waker_raw *waker = (const void *)(end - sizeof(*waker));

	seen->own += s->pid == (uint32_t)getpid();
	if (sleep->size + sizeof(uint32_t) == sizeof(*sleep) && sleep->common_type == FR_SLEEP_TRACEPOINT &&
		s->pid == (uint32_t)seen->pid &&
		s->tid == s->pid) { /* thread sanitizer has a thread of its own */
		assert_int_equal(sleep->blocked + sleep->runqueue, sleep->duration);
		assert_int_equal(sleep->common_pid, seen->pid);
		seen->sleeps++;
		seen->shortest_ns = FR_MIN(seen->shortest_ns, sleep->duration);
		seen->spans += s->time - sleep->duration < seen->on_ns;
	} else if (waker->size + sizeof(uint32_t) == sizeof(*waker) &&
		   waker->common_type == FR_WAKER_TRACEPOINT && waker->woken_pid == seen->pid) {
		seen->wakings++;
	} else {
		seen->others++;
	}
}

static void take_run(void *ctx, const struct fr_run *run)
{
	const uint8_t *p = run->data;

	for (size_t at = 0; at < run->len; at += ((const struct perf_event_header *)(p + at))->size)
		look_at(ctx, (const void *)(p + at));
}

static void ignore_run(void *ctx, const struct fr_run *run)
{
}

static void drain(struct fr_capture *c, struct seen *seen)
{
	const struct fr_capture_ops ops = {.sideband = ignore_run, .samples = take_run, .ctx = seen};

	fr_capture_drain(c, &ops);
}

/* Lets a child sleep, and drains the rings now and then if OFTEN is true. */
static void record(struct fr_capture_config *config, const char *spec, bool often, struct seen *ret,
	struct fr_counter *ret_counter)
{
	struct fr_capture *c;
	int go;

	*ret = (struct seen){.pid = live_fork(sleep_often, &go), .shortest_ns = UINT64_MAX};
	if (config->n_pids)
		config->pids = &ret->pid;
	c = live_open(spec, NULL, config);
	live_enable(c);
	live_let_go(go);
	while (waitpid(ret->pid, NULL, often ? WNOHANG : 0) == 0) {
		drain(c, ret);
		usleep(10000);
	}
	fr_capture_disable(c);
	drain(c, ret);
	*ret_counter = live_counter(c, 0);
	fr_capture_free(c);
}

TEST(each_long_sleep_is_a_sample)
{
	struct fr_capture_config config = {0};
	struct fr_counter n;
	struct seen seen;

	record(&config, "offcpu/threshold=50ms/", true, &seen, &n);
	assert_in_range(seen.sleeps, TIMES - NEAR, TIMES + NEAR);
	assert_in_range(seen.wakings, TIMES - NEAR, TIMES + NEAR);
	assert_true(seen.shortest_ns >= 50 * FR_NSEC_PER_MSEC);
	assert_int_equal(seen.own, 0);
	assert_int_equal(n.lost[FR_LOSS_KERNEL_RING], 0);
	assert_int_equal(n.lost[FR_LOSS_SLEEP_TABLE], 0);
}

/* Ends the program of TRACEPOINT, of which this process has the only descriptor. */
static void end_program(const char *tracepoint)
{
	unsigned ended = 0;

	for (int fd = 0; fd < 1024; fd++) {
		char path[64], text[512] = "", name[64];
		_cleanup_fclose_ FILE *f = NULL;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		snprintf(name, sizeof(name), "tp_name:\t%s\n", tracepoint);
		f = fopen(path, "re");
		if (!f || !fread(text, 1, sizeof(text) - 1, f) || !strstr(text, name))
			continue;
		/* libbpf closes the number later. */
		assert_int_equal(dup3(STDERR_FILENO, fd, O_CLOEXEC), fd);
		ended++;
	}
	assert_int_equal(ended, 1);
}

TEST(a_user_stack_that_cannot_be_walked_any_more_is_counted)
{
	struct fr_unwinder_config unwinder = {.memory_bytes = 4u << 20};
	struct fr_capture_config config = {0};
	struct seen seen = {.shortest_ns = UINT64_MAX};
	struct fr_unwinder_stats stats;
	struct fr_unwinder *u;
	struct fr_capture *c;
	int go;

	if (fr_unwinder_start(&unwinder, &u, NULL) < 0)
		unit_skip("the unwinder needs BPF programs");
	config.unwinder = u;
	c = live_open("offcpu/threshold=50ms/", NULL, &config);
	end_program("irq_work_entry");
	seen.pid = live_fork(sleep_often, &go);
	live_enable(c);
	live_let_go(go);
	waitpid(seen.pid, NULL, 0);
	fr_capture_disable(c);
	drain(c, &seen);
	fr_unwinder_stats(u, &stats);
	fr_capture_free(c);
	fr_unwinder_stop(u);
	/* On each CPU, one sample still waits for the next one. */
	assert_in_range(seen.sleeps, TIMES - NEAR - sysconf(_SC_NPROCESSORS_CONF), TIMES + NEAR);
	assert_true(stats.walks[FR_UNWIND_TOO_LATE] >= seen.sleeps);
}

TEST(nothing_is_recorded_below_the_threshold)
{
	struct fr_capture_config config = {.n_pids = 1};
	struct fr_counter n;
	struct seen seen;

	record(&config, "offcpu/threshold=10s/", true, &seen, &n);
	assert_int_equal(seen.sleeps + seen.wakings + seen.others + n.samples, 0);
}

TEST(only_the_given_process_is_recorded)
{
	struct fr_capture_config config = {.n_pids = 1};
	struct fr_counter n;
	struct seen seen;

	record(&config, "offcpu/threshold=50ms/", true, &seen, &n);
	assert_in_range(seen.sleeps, TIMES - NEAR, TIMES + NEAR);
	assert_int_equal(seen.others, 0);
	assert_int_equal(n.samples, seen.sleeps);
}

TEST(what_a_full_ring_loses_is_counted)
{
	struct fr_capture_config config = {.n_pids = 1, .ring_bytes = 4096};
	struct fr_counter n;
	struct seen seen;

	record(&config, "offcpu/threshold=50ms/", false, &seen, &n);
	assert_true(n.lost[FR_LOSS_KERNEL_RING] > 0);
	assert_in_range(n.samples + n.lost[FR_LOSS_KERNEL_RING], TIMES - NEAR, TIMES + NEAR);
	assert_int_equal(n.samples, seen.sleeps);
}

/* Two children sleep, and one of them is in the recorded cgroup. */
TEST(only_the_given_cgroup_is_recorded)
{
	char path[PATH_MAX] = "/sys/fs/cgroup", procs[PATH_MAX + 16];
	struct fr_capture_config config = {.cgroup = path};
	struct seen seen = {.shortest_ns = UINT64_MAX};
	struct fr_capture *c;
	int go, go_outside;
	pid_t outside;
	FILE *f;

	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) < 0)
		strcpy(path, "/sys/fs/cgroup/unified");
	snprintf(path + strlen(path), 64, "/fr-test-%d", getpid());
	if (mkdir(path, 0755) < 0)
		unit_skip("no cgroup2 can be written");
	seen.pid = live_fork(sleep_often, &go);
	outside = live_fork(sleep_often, &go_outside);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	f = fopen(procs, "we");
	assert_non_null(f);
	assert_true(fprintf(f, "%d\n", seen.pid) > 0);
	assert_int_equal(fclose(f), 0);
	c = live_open("offcpu/threshold=50ms/", NULL, &config);
	live_enable(c);
	live_let_go(go);
	live_let_go(go_outside);
	waitpid(seen.pid, NULL, 0);
	waitpid(outside, NULL, 0);
	fr_capture_disable(c);
	drain(c, &seen);
	fr_capture_free(c);
	rmdir(path);
	assert_in_range(seen.sleeps, TIMES - NEAR, TIMES + NEAR);
	assert_int_equal(seen.others, 0);
}

TEST(the_divisor_raises_the_threshold)
{
	struct fr_capture_config config = {0};
	struct fr_capture *c = live_open("offcpu/threshold=50ms/", NULL, &config);
	struct seen seen = {.shortest_ns = UINT64_MAX};
	int go;

	assert_int_equal(fr_capture_off_cpu_threshold(c), 50 * FR_NSEC_PER_MSEC);
	assert_int_equal(fr_capture_set_divisor(c, 2, NULL), 0);
	seen.pid = live_fork(sleep_often, &go);
	live_enable(c);
	live_let_go(go);
	waitpid(seen.pid, NULL, 0);
	fr_capture_disable(c);
	drain(c, &seen);
	assert_true(seen.sleeps <= NEAR && (!seen.sleeps || seen.shortest_ns >= 100 * FR_NSEC_PER_MSEC));
	assert_int_equal(fr_capture_off_cpu_threshold(c), 50 * FR_NSEC_PER_MSEC); /* as configured */
	fr_capture_free(c);
}

TEST(a_session_has_the_formats)
{
	struct fr_capture_config config = {0};
	struct fr_capture *c = live_open("offcpu", NULL, &config);
	struct fr_session s = {0};
	const struct fr_buf *section = &s.features[FR_FEATURE_TRACING_DATA];

	assert_int_equal(fr_capture_describe(c, &s), 0);
	assert_int_equal(s.n_events, 3);
	assert_int_equal(fr_capture_add_formats(c, &s), 0);
	for (size_t i = 0; i < 2; i++) {
		const char *name = i ? "name: waker\n" : "name: offcpu\n";

		assert_int_equal(s.events[i].n_ids, fr_capture_n_cpus(c));
		assert_non_null(memmem(section->data, section->len, name, strlen(name)));
	}
	fr_session_deinit(&s);
	fr_capture_free(c);
}

/* While the event is off, the programs do not follow the sleeps. So no sample has a sleep that began before
   the event was switched on again. */
TEST(no_sleep_spans_a_switch)
{
	struct fr_capture_config config = {0};
	struct seen seen = {.shortest_ns = UINT64_MAX};
	struct fr_capture *c;
	uint32_t slot;
	int go;

	assert_int_equal(fr_switches_new(&config.switches), 0);
	seen.pid = live_fork(sleep_often, &go);
	c = live_open("offcpu/threshold=50ms/", NULL, &config);
	slot = fr_capture_slot(c, 0);
	live_enable(c);
	live_let_go(go);
	for (int i = 0; waitpid(seen.pid, NULL, WNOHANG) == 0; i++) {
		/* The switches are at any time of a sleep, because this loop and the child have different
		   periods. */
		const bool is_off = i % 35 >= 15;
		uint64_t now_ns;

		drain(c, &seen);
		now_ns = fr_monotonic_ns();
		/* The event is on at first, and then this call is no switch. */
		if (fr_switches_set(config.switches, slot, is_off) && !is_off)
			seen.on_ns = now_ns;
		usleep(10000);
	}
	fr_capture_disable(c);
	drain(c, &seen);
	assert_in_range(seen.sleeps, 3, 2 * TIMES / 3);
	assert_int_equal(seen.spans, 0);
	fr_capture_free(c);
	fr_switches_free(config.switches);
}
