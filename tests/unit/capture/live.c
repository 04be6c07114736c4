// SPDX-License-Identifier: GPL-2.0-or-later
#include "live.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "perfdata/record.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

void live_need_tracepoints(void)
{
#ifndef __x86_64__
	unit_skip("the number of getppid is known for x86-64 only");
#endif
	if (access("/sys/kernel/tracing/events", R_OK) == 0)
		return;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("nodev", "/sys/kernel/tracing", "tracefs", 0, NULL) < 0)
		unit_skip("there is no tracefs, and none can be mounted");
}

int live_try_open(const char *spec, const char *filter, struct fr_capture_config *config,
	struct fr_capture **ret, struct fr_diag *d)
{
	const struct fr_event_defaults defaults = {0};
	struct fr_event_list list = {0};
	int r = fr_event_parse(spec, &defaults, &list, d);

	if (r == 0 && filter)
		r = fr_event_set_filter(&list, filter, d);
	if (r == 0) {
		config->events = &list;
		r = fr_capture_open(config, ret, d);
		config->events = NULL;
	}
	fr_event_list_deinit(&list);
	return r;
}

struct fr_capture *live_open(const char *spec, const char *filter, struct fr_capture_config *config)
{
	struct fr_capture *c = NULL;
	struct fr_diag d = {0};
	int r = live_try_open(spec, filter, config, &c, &d);

	if (r == -EACCES || r == -EPERM || r == -ENOSYS || r == -ENODEV)
		unit_skip("%s (%s)", d.what, d.hint);
	if (r < 0)
		fail_msg("%s: %s (%s)", spec, d.what, d.hint);
	return c;
}

void live_enable(struct fr_capture *c)
{
	assert_int_equal(fr_capture_enable(c, FR_CAPTURE_SIDEBAND, NULL), 0);
	assert_int_equal(fr_capture_enable(c, FR_CAPTURE_SAMPLES, NULL), 0);
}

struct fr_capture *live_open_getppid(const char *terms, struct fr_capture_config *config)
{
	char spec[64], filter[64];
	struct fr_capture *c;

	live_need_tracepoints();
	live_pin();
	snprintf(spec, sizeof(spec), "raw_syscalls:sys_enter%s", terms);
	snprintf(filter, sizeof(filter), "id == 110 && common_pid == %d", gettid());
	c = live_open(spec, filter, config);
	live_enable(c);
	return c;
}

static void see_sideband(struct live_seen *seen, const struct perf_event_header *h)
{
	const struct fr_record_mmap2 *m = (const void *)h;

	seen->sideband++;
	/* MMAP2, COMM, FORK and EXIT all begin with the pid. */
	if (h->type != PERF_RECORD_MMAP2 && h->type != PERF_RECORD_COMM && h->type != PERF_RECORD_FORK &&
		h->type != PERF_RECORD_EXIT)
		return;
	if (m->pid != seen->tid)
		return;
	seen->mmap2 += h->type == PERF_RECORD_MMAP2;
	seen->build_ids += h->type == PERF_RECORD_MMAP2 && h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID &&
			   m->build_id_size == 20;
	seen->comms += h->type == PERF_RECORD_COMM;
	seen->forks += h->type == PERF_RECORD_FORK;
	seen->exits += h->type == PERF_RECORD_EXIT;
}

static void see(struct live_seen *seen, const struct fr_run *run, bool sideband)
{
	const uint8_t *p = run->data, *end = p + run->len;
	uint32_t n = 0;

	for (; p < end; p += ((const struct perf_event_header *)p)->size, n++) {
		const struct fr_sample *s = (const void *)p;

		assert_true(fr_record_is_whole(p, end - p));
		if (sideband) {
			see_sideband(seen, &s->header);
			continue;
		}
		if (s->header.type != PERF_RECORD_SAMPLE)
			continue;
		assert_true(s->time >= run->first_ns && s->time <= run->last_ns);
		seen->samples++;
		if (s->tid != seen->tid)
			continue;
		seen->of_tid++;
		seen->backward += s->time < seen->last_time;
		seen->last_time = s->time;
	}
	assert_int_equal(n, run->records);
}

static void on_sideband(void *ctx, const struct fr_run *run)
{
	see(ctx, run, true);
}

static void on_samples(void *ctx, const struct fr_run *run)
{
	see(ctx, run, false);
}

void live_drain(struct fr_capture *c, struct live_seen *seen)
{
	fr_capture_drain(
		c, &(struct fr_capture_ops){.sideband = on_sideband, .samples = on_samples, .ctx = seen});
}

void live_drain_overwrite(struct fr_capture *c, struct live_seen *seen)
{
	fr_capture_drain_overwrite(
		c, &(struct fr_capture_ops){.sideband = on_sideband, .samples = on_samples, .ctx = seen});
}

struct fr_counter live_counter(const struct fr_capture *c, size_t event)
{
	struct fr_counter sum = {0}, one;

	for (size_t cpu = 0; cpu < fr_capture_n_cpus(c); cpu++) {
		fr_capture_counter(c, event, cpu, &one);
		sum.samples += one.samples;
		for (unsigned i = 0; i < _FR_LOSS_MAX; i++)
			sum.lost[i] += one.lost[i];
	}
	return sum;
}

void live_getppid(uint64_t times)
{
	while (times--)
		syscall(SYS_getppid);
}

int live_pin(void)
{
	const int cpu = sched_getcpu();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	return cpu;
}

void live_spin_ms(unsigned ms)
{
	uint64_t until = fr_monotonic_ns() + ms * FR_NSEC_PER_MSEC;

	while (fr_monotonic_ns() < until)
		;
}

pid_t live_fork(void (*fn)(void), int *ret_go)
{
	int go[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		fn();
		_exit(0);
	}
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

void live_let_go(int go)
{
	assert_int_equal(write(go, "x", 1), 1);
	close(go);
}
