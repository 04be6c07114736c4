// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of Pressure= on the running kernel, for the machine and for a cgroup. Several processes are busy on
   one CPU. */
#include "heard.h"
#include "base/file.h"

#include <stdlib.h>

#define SPINNERS 4

static void need_psi(void)
{
	char line[128];

	/* On some kernels, the file exists but cannot be opened unless the kernel was booted with psi=1. */
	if (fr_read_line("/proc/pressure/cpu", line, sizeof(line)) != 0)
		unit_skip("this kernel has no /proc/pressure/cpu");
}

static void init(struct heard *h, const char *subject, const char *threshold)
{
	heard_init(h, FR_TRIGGER_PRESSURE);
	h->config.subject = (char *)subject;
	h->config.threshold = (char *)threshold;
}

static void spin(void *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t) * (int *)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		_exit(1);
	for (;;)
		;
}

/* Starts processes that are busy, all on the same CPU, so that they stall. They are in CGROUP, unless it is
 * NULL. */
static void start_spinning(struct child c[static SPINNERS], const char *cgroup)
{
	int cpu = sched_getcpu();

	for (int i = 0; i < SPINNERS; i++) {
		c[i] = child_new(NULL, spin, &cpu);
		if (cgroup)
			assert_true(move_to_cgroup(cgroup, c[i].pid));
		assert_int_equal(write(c[i].go, "", 1), 1);
	}
}

static void stop_spinning(struct child c[static SPINNERS])
{
	for (int i = 0; i < SPINNERS; i++) {
		kill(c[i].pid, SIGKILL);
		child_end(&c[i], false);
	}
}

static void check_cause(const struct heard *h, uint64_t threshold)
{
	assert_int_equal(h->last.unit, FR_CAUSE_NS);
	assert_int_equal(h->last.threshold, threshold);
	/* The upper limit is high, because the event loop may be late. */
	assert_in_range(h->last.value, threshold, 10 * FR_NSEC_PER_SEC);
	assert_string_equal(h->last.reason, "cpu pressure");
	assert_string_equal(h->last.detail, h->config.subject);
	assert_int_equal(h->last.pid, 0);
	assert_int_equal(h->last.cpu, -1);
}

/* Makes a cgroup with a pressure file, and writes its path into DIR. Returns its name, which points into DIR.
   Skips the test if that is not possible. */
static const char *need_cgroup(char *dir, size_t size)
{
	const char *name = make_cgroup(dir, size);
	char file[300];

	snprintf(file, sizeof(file), "%s/cpu.pressure", dir);
	if (access(file, W_OK) == 0)
		return name;
	rmdir(dir);
	unit_skip("the cgroup has no cpu.pressure");
}

TEST(cgroup_is_followed_when_it_is_made_again)
{
	struct child c[SPINNERS];
	struct fr_source_stats stats;
	_cleanup_heard_ struct heard h = {0};
	const char *gone;
	unsigned before;
	char dir[256];

	need_psi();
	init(&h, "cpu some", "200ms");
	h.config.cgroup = (char *)need_cgroup(dir, sizeof(dir));
	heard_arm(&h);
	start_spinning(c, dir);
	heard_run(&h, HEARD_LIMIT_MS, 1);
	stop_spinning(c);
	before = h.n;
	stats = heard_stats(&h);
	assert_int_equal(rmdir(dir), 0);
	heard_run(&h, 500, 0);
	gone = heard_stats(&h).gone;
	assert_int_equal(before, 1);
	assert_int_equal(stats.fired, 1);
	assert_int_equal(stats.threshold, 200 * MS);
	assert_true(stats.last > 0 && stats.last_ns >= h.last.time_ns);
	check_cause(&h, 200 * MS);
	assert_string_equal(h.last.cgroup, h.config.cgroup);
	assert_string_equal(gone, "its cgroup is gone");
	assert_int_equal(mkdir(dir, 0755), 0);
	HEARD_UNTIL(&h, !heard_stats(&h).gone);
	start_spinning(c, dir);
	heard_run(&h, HEARD_LIMIT_MS, before + 1);
	stop_spinning(c);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(h.n, before + 1);
}

/* Without CAP_SYS_RESOURCE, the kernel adds an earlier stall to the first window of a new trigger
   (docs/design/71). The source must not fire because of this stall. */
TEST(stall_before_arming_does_not_fire)
{
	struct child c[SPINNERS];
	uint64_t begin, took;
	_cleanup_heard_ struct heard h = {0};
	char dir[256];
	bool armed;

	need_psi();
	init(&h, "cpu some", "2s");
	h.config.cgroup = (char *)need_cgroup(dir, sizeof(dir));
	start_spinning(c, dir);
	heard_run(&h, 4000, 0);
	stop_spinning(c);
	armed = heard_try_arm(&h);
	begin = fr_monotonic_ns();
	start_spinning(c, dir);
	heard_run(&h, 100, 0);
	stop_spinning(c);
	took = fr_monotonic_ns() - begin;
	heard_run(&h, 3000, 0);
	assert_int_equal(rmdir(dir), 0);
	assert_true(armed);
	/* On a very busy machine, the processes may really have stalled for that long. */
	assert_true(h.n == 0 || took >= 2 * FR_NSEC_PER_SEC);
}

/* Returns for how long all processes of the machine have waited for memory since the boot. */
static uint64_t memory_full_ns(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/pressure/memory", "re");
	unsigned long long us;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*[^\n] full %*s %*s %*s total=%llu", &us), 1);
	return us * FR_NSEC_PER_USEC;
}

TEST(quiet_machine_does_not_fire)
{
	_cleanup_heard_ struct heard h = {0};
	uint64_t before;

	need_psi();
	init(&h, "memory full", "2s");
	before = memory_full_ns();
	heard_arm(&h);
	heard_run(&h, 2500, 0);
	/* Other processes may have made this machine stall. */
	assert_true(h.n == 0 || memory_full_ns() - before >= 2 * FR_NSEC_PER_SEC);
	assert_int_equal(heard_stats(&h).fired, h.n);
	assert_true(heard_stats(&h).last_ns != 0);
}

TEST(bad_configurations_are_refused)
{
	static const struct {
		const char *subject, *threshold, *says;
		uint64_t interval_ns;
	} cases[] = {
		{"", NULL, "memory or io", FR_TRIGGER_UNSET},
		{"cpu", NULL, "some or full", FR_TRIGGER_UNSET},
		{"disk some", NULL, "memory or io", FR_TRIGGER_UNSET},
		{"cpu some more", NULL, "some or full", FR_TRIGGER_UNSET},
		{"memory sometimes", NULL, "some or full", FR_TRIGGER_UNSET},
		{"cpu some", "many", "Threshold=", FR_TRIGGER_UNSET},
		{"cpu some", "0", "Threshold=", FR_TRIGGER_UNSET},
		{"cpu some", "3s", "Interval=", FR_TRIGGER_UNSET},
		{"cpu some", "100ms", "500ms to 10s", 499 * FR_NSEC_PER_MSEC},
		{"cpu some", "100ms", "500ms to 10s", 11 * FR_NSEC_PER_SEC},
	};
	_cleanup_heard_ struct heard h = {0};

	heard_init(&h, FR_TRIGGER_PRESSURE);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		h.config.subject = (char *)cases[i].subject;
		h.config.threshold = (char *)cases[i].threshold;
		h.config.interval_ns = cases[i].interval_ns;
		heard_refused(&h, -EINVAL, cases[i].says);
		assert_int_equal(fr_source_pressure.check(&h.config, NULL), -EINVAL);
	}
}

TEST(missing_cgroup_and_capability_are_named)
{
	struct fr_diag d = {0};
	_cleanup_heard_ struct heard h = {0};

	need_psi();
	init(&h, "io some", "100ms");
	h.config.cgroup = (char *)"no/such.slice";
	heard_refused(&h, -ENOENT, "no/such.slice");
	h.config.cgroup = NULL;
	h.config.interval_ns = 500 * MS;
	/* This needs CAP_SYS_RESOURCE, which the test may have. */
	if (heard_open(&h, &h.config, NULL, &h.source, &d) < 0) {
		assert_int_equal(d.code, -EPERM);
		assert_non_null(strstr(d.hint, "Interval=2s"));
	}
}
