// SPDX-License-Identifier: GPL-2.0-or-later
/* Pressure on the running kernel: more spinning processes than CPUs, on the machine and in a cgroup. */
#include "heard.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SPINNERS 4

static void need_psi(void)
{
	char line[128];

	/* Without psi=1, where that is needed, the file is there and cannot be opened. */
	if (fr_read_line("/proc/pressure/cpu", line, sizeof(line)) == 0)
		return;
	print_message("skipped: this kernel has no /proc/pressure/cpu\n");
	skip();
}

/* In CGROUP (a directory; NULL: where we are), all on one CPU, so that they are in each other's way whatever
   else the machine does. */
static void spin(pid_t pids[static SPINNERS], const char *cgroup)
{
	pid_t parent = getpid();
	int where = sched_getcpu(); /* one that there is, and that we may have */

	for (int i = 0; i < SPINNERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i])
			continue;
		cpu_set_t cpu;
		char path[300];
		FILE *f;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		CPU_ZERO(&cpu);
		CPU_SET((size_t)where, &cpu);
		if (sched_setaffinity(0, sizeof(cpu), &cpu) < 0)
			_exit(1);
		if (cgroup) {
			snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
			f = fopen(path, "we");
			if (!f || fprintf(f, "0") < 0 || fclose(f) != 0)
				_exit(1);
		}
		for (;;)
			;
	}
}

static void stop(const pid_t pids[static SPINNERS])
{
	for (int i = 0; i < SPINNERS; i++) {
		kill(pids[i], SIGKILL);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	}
}

static void check_cause(const struct heard *h, const struct fr_trigger_config *config, uint64_t threshold)
{
	assert_int_equal(h->last.unit, FR_CAUSE_NS);
	assert_int_equal(h->last.threshold, threshold);
	assert_true(h->last.value >= threshold);
	/* No more than all of the time that it is measured over, and the loop may be late. */
	assert_true(h->last.value < 10 * FR_NSEC_PER_SEC);
	assert_string_equal(h->last.reason, "cpu pressure");
	assert_string_equal(h->last.detail, config->subject);
	assert_int_equal(h->last.pid, 0);
	assert_int_equal(h->last.cpu, -1);
}

static void test_machine(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_PRESSURE);
	char subject[] = "cpu some", threshold[] = "300ms";
	struct fr_source_stats stats;
	struct fr_source *s;
	struct fr_diag d = {0};
	pid_t pids[SPINNERS];
	struct heard h;
	int trigger, r;

	need_psi();
	heard_init(&h);
	config.subject = subject;
	config.threshold = threshold;
	r = fr_source_open(&fr_source_pressure, &h.env, &config, &trigger, &s, &d);
	if (r < 0)
		fail_msg("%s (%s)", d.what, d.hint);
	spin(pids, NULL);
	heard_wait(&h, 1);
	assert_int_equal(h.n, 1);
	fr_source_get_stats(s, &stats);
	stop(pids);
	assert_ptr_equal(h.trigger, &trigger);
	check_cause(&h, &config, 300 * FR_NSEC_PER_MSEC);
	assert_string_equal(h.last.cgroup, "");
	assert_int_equal(stats.fired, 1);
	assert_int_equal(stats.threshold, 300 * FR_NSEC_PER_MSEC);
	assert_true(stats.last > 0 && stats.last_ns >= h.last.time_ns);
	assert_null(stats.gone);
	print_message("a stall of %.3f s in at most 2 s\n", (double)h.last.value / 1e9);
	fr_source_close(s);
	heard_deinit(&h);
}

/* A cgroup of our own, "" where none can be made. */
static void make_cgroup(char *ret, size_t size, const char **ret_name)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;

	*ret = '\0';
	while (f && !*ret && (m = getmntent(f))) {
		if (strcmp(m->mnt_type, "cgroup2") != 0)
			continue;
		snprintf(ret, size, "%s/flightrec-test-%d", m->mnt_dir, (int)getpid());
		*ret_name = ret + strlen(m->mnt_dir) + 1;
		if (mkdir(ret, 0755) < 0)
			*ret = '\0';
	}
	if (f)
		endmntent(f);
}

static void need_cgroup(char *ret, size_t size, const char **ret_name)
{
	char file[300];

	make_cgroup(ret, size, ret_name);
	snprintf(file, sizeof(file), "%s/cpu.pressure", ret);
	if (*ret && access(file, W_OK) == 0)
		return;
	print_message("skipped: no cgroup of version 2 can be made, or it has no cpu.pressure\n");
	if (*ret)
		rmdir(ret);
	skip();
}

static void test_cgroup(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_PRESSURE);
	char subject[] = "cpu some", threshold[] = "200ms", dir[256];
	struct fr_source_stats stats;
	struct fr_source *s;
	struct fr_diag d = {0};
	pid_t pids[SPINNERS];
	const char *name = "";
	struct heard h;
	unsigned before;
	int r;

	need_psi();
	need_cgroup(dir, sizeof(dir), &name);
	heard_init(&h);
	config.subject = subject;
	config.threshold = threshold;
	config.cgroup = strdup(name);
	r = fr_source_open(&fr_source_pressure, &h.env, &config, NULL, &s, &d);
	if (r < 0) {
		rmdir(dir);
		fail_msg("%s (%s)", d.what, d.hint);
	}
	spin(pids, dir);
	heard_wait(&h, 1);
	stop(pids);
	before = h.n;
	/* The cgroup goes, and its service is started once more. */
	assert_int_equal(rmdir(dir), 0);
	heard_run(&h, 500, 0);
	fr_source_get_stats(s, &stats);
	assert_int_equal(before, 1);
	check_cause(&h, &config, 200 * FR_NSEC_PER_MSEC);
	assert_string_equal(h.last.cgroup + 1, name);
	assert_string_equal(stats.gone, "its cgroup is gone");
	assert_int_equal(mkdir(dir, 0755), 0);
	HEARD_UNTIL(&h, (fr_source_get_stats(s, &stats), !stats.gone));
	spin(pids, dir);
	heard_wait(&h, before + 1);
	stop(pids);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(h.n, before + 1);
	fr_source_close(s);
	free(config.cgroup);
	heard_deinit(&h);
}

/* Without CAP_SYS_RESOURCE, the kernel takes a stall of before for one of the first window. */
static void test_stall_before_it_is_armed(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_PRESSURE);
	char subject[] = "cpu some", threshold[] = "2s", dir[256];
	struct fr_source *s;
	pid_t pids[SPINNERS];
	const char *name = "";
	struct heard h;
	uint64_t begin, took;
	int r;

	need_psi();
	need_cgroup(dir, sizeof(dir), &name);
	heard_init(&h);
	config.subject = subject;
	config.threshold = threshold;
	config.cgroup = strdup(name);
	spin(pids, dir);
	heard_run(&h, 4000, 0);
	stop(pids);
	r = fr_source_open(&fr_source_pressure, &h.env, &config, NULL, &s, NULL);
	begin = fr_monotonic_ns();
	spin(pids, dir);
	heard_run(&h, 100, 0);
	stop(pids);
	took = fr_monotonic_ns() - begin;
	heard_run(&h, 3000, 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(r, 0);
	/* A machine that is busy enough made them stand still for so long. */
	assert_true(h.n == 0 || took >= 2 * FR_NSEC_PER_SEC);
	fr_source_close(s);
	free(config.cgroup);
	heard_deinit(&h);
}

static void test_quiet(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_PRESSURE);
	char subject[] = "memory full", threshold[] = "2s";
	struct fr_source_stats stats;
	struct fr_source *s;
	struct heard h;

	need_psi();
	heard_init(&h);
	config.subject = subject;
	config.threshold = threshold;
	assert_int_equal(fr_source_open(&fr_source_pressure, &h.env, &config, NULL, &s, NULL), 0);
	heard_run(&h, 2500, 0);
	fr_source_get_stats(s, &stats);
	assert_int_equal(h.n, 0);
	assert_int_equal(stats.fired, 0);
	assert_true(stats.last_ns != 0);
	fr_source_close(s);
	heard_deinit(&h);
}

static void test_refuses(void **state)
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
	struct heard h;

	heard_init(&h);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_trigger_config config = heard_config(FR_TRIGGER_PRESSURE);

		config.subject = strdup(cases[i].subject);
		config.threshold = cases[i].threshold ? strdup(cases[i].threshold) : NULL;
		config.interval_ns = cases[i].interval_ns;
		heard_refused(&h, &fr_source_pressure, &config, -EINVAL, cases[i].says);
		assert_int_equal(fr_source_pressure.check(&config, NULL), -EINVAL);
		free(config.subject);
		free(config.threshold);
	}
	heard_deinit(&h);
}

static void test_says_what_is_missing(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_PRESSURE);
	char subject[] = "io some", threshold[] = "100ms", cgroup[] = "no/such.slice";
	struct fr_diag d = {0};
	struct fr_source *s;
	struct heard h;
	int r;

	need_psi();
	heard_init(&h);
	config.subject = subject;
	config.threshold = threshold;
	config.cgroup = cgroup;
	heard_refused(&h, &fr_source_pressure, &config, -ENOENT, "no/such.slice");
	config.cgroup = NULL;
	config.interval_ns = 500 * FR_NSEC_PER_MSEC;
	/* It depends on CAP_SYS_RESOURCE, and both are an answer. */
	r = fr_source_open(&fr_source_pressure, &h.env, &config, NULL, &s, &d);
	if (r == 0) {
		fr_source_close(s);
	} else {
		assert_int_equal(r, -EPERM);
		assert_non_null(strstr(d.hint, "Interval=2s"));
	}
	heard_deinit(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machine),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_stall_before_it_is_armed),
		cmocka_unit_test(test_quiet),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_says_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
