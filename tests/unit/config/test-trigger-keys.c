// SPDX-License-Identifier: GPL-2.0-or-later
/* [Triggers] and [Trigger NAME]: what is taken, how files add up, and what is refused with which words. */
#include "base/cleanup.h"
#include "config/config_private.h"
#include "trigger/cause.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int read_text(struct fr_config *c, const char *name, const char *text, struct fr_diag *d)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	int r;

	assert_non_null(f);
	r = fr_config_read(c, f, name, d);
	fclose(f);
	return r;
}

/* Read all of TEXT, which is right, and check it. */
static void take(struct fr_config *c, const char *text)
{
	struct fr_diag d = {0};

	fr_config_init(c);
	if (read_text(c, "x.conf", text, &d) < 0 || fr_config_check(c, &d) < 0)
		fail_msg("%s (%s)", d.what, d.hint);
}

static const struct fr_trigger_config *find(const struct fr_config *c, const char *name)
{
	const struct fr_trigger_config *t = fr_config_find_trigger(c, name);

	assert_non_null(t);
	return t;
}

static void test_of_all(void **state)
{
	struct fr_config c;

	take(&c, "[Recorder]\n");
	assert_int_equal(c.triggers.cooldown_ns, 60000000000);
	assert_int_equal(c.triggers.min_fill_ns, 0);
	assert_int_equal(c.triggers.rate_burst, 20);
	assert_int_equal(c.triggers.rate_interval_ns, 3600000000000);
	assert_string_equal(c.triggers.socket, "/run/flightrec/trigger");
	assert_int_equal(c.n_trigger, 0);
	fr_config_deinit(&c);

	take(&c, "[Triggers]\nCooldown=5s\nMinFill=30s\nRateLimit=3/10min\nSocket=/tmp/t\n");
	assert_int_equal(c.triggers.cooldown_ns, 5000000000);
	assert_int_equal(c.triggers.min_fill_ns, 30000000000);
	assert_int_equal(c.triggers.rate_burst, 3);
	assert_int_equal(c.triggers.rate_interval_ns, 600000000000);
	assert_string_equal(c.triggers.socket, "/tmp/t");
	fr_config_deinit(&c);

	take(&c, "[Triggers]\nRateLimit=no\n");
	assert_int_equal(c.triggers.rate_interval_ns, 0);
	fr_config_deinit(&c);
}

static void test_each_source(void **state)
{
	static const struct {
		const char *text;
		enum fr_trigger_kind kind;
		const char *subject;
	} cases[] = {
		{"[Trigger oom-kill]\n", FR_TRIGGER_PROBE, "oom-kill"},
		{"[Trigger oom-kill]\nProbe=oom-kill\n", FR_TRIGGER_PROBE, "oom-kill"},
		{"[Trigger x]\nProbe=run-queue-latency\n", FR_TRIGGER_PROBE, "run-queue-latency"},
		{"[Trigger x]\nProgram=/a/b.bpf.o\n", FR_TRIGGER_PROGRAM, "/a/b.bpf.o"},
		{"[Trigger x]\nFunction=/bin/x:f\nThreshold=5ms\n", FR_TRIGGER_FUNCTION, "/bin/x:f"},
		{"[Trigger x]\nUSDT=/bin/x:p:a,b\n", FR_TRIGGER_USDT, "/bin/x:p:a,b"},
		{"[Trigger x]\nPressure=memory some\n", FR_TRIGGER_PRESSURE, "memory some"},
		{"[Trigger x]\nEvent=sched:sched_switch\n", FR_TRIGGER_EVENT, "sched:sched_switch"},
		{"[Trigger x]\nEvery=1h\n", FR_TRIGGER_TIMER, NULL},
		{"[Trigger x]\nApplication=yes\n", FR_TRIGGER_APPLICATION, NULL},
		{"[Trigger application]\n", FR_TRIGGER_APPLICATION, NULL},
		{"[Trigger signal]\nWindow=1min\n", FR_TRIGGER_SIGNAL, NULL},
		{"[Trigger control]\nEnabled=no\n", FR_TRIGGER_CONTROL, NULL},
		/* cleared, and another instead */
		{"[Trigger x]\nEvery=1h\nEvery=\nApplication=yes\n", FR_TRIGGER_APPLICATION, NULL},
		{"[Trigger x]\nProgram=/a.o\nProgram=/b.o\n", FR_TRIGGER_PROGRAM, "/b.o"},
		{"[Trigger x]\nApplication=yes\nApplication=no\nProgram=/b.o\n", FR_TRIGGER_PROGRAM, "/b.o"},
		/* what a name says cannot be cleared */
		{"[Trigger oom-kill]\nProbe=\n", FR_TRIGGER_PROBE, "oom-kill"},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_config c;

		take(&c, cases[i].text);
		assert_int_equal(c.n_trigger, 1);
		assert_int_equal(c.trigger[0].kind, cases[i].kind);
		assert_string_equal(c.trigger[0].origin, "x.conf:1");
		if (cases[i].subject)
			assert_string_equal(c.trigger[0].subject, cases[i].subject);
		else
			assert_null(c.trigger[0].subject);
		fr_config_deinit(&c);
	}
}

static void test_all_keys(void **state)
{
	static const char text[] = "[Trigger a]\nProbe=syscall-latency\nThreshold=20ms\nSyscall=fsync write\n"
				   "Comm=mysqld\nCGroup=/system.slice/x\nPid=17\nInterval=2s\nEnabled=no\n"
				   "Cooldown=3s\nMinFill=4s\nWindow=5s\nPostTrigger=6s\nSet=a=1\nSet=b=x=y\n"
				   "[Trigger b]\nEvent=sched:sched_switch\nFilter=prev_pid != 0\n";
	const struct fr_trigger_config *a, *b;
	struct fr_config c;

	take(&c, text);
	a = find(&c, "a");
	assert_string_equal(a->threshold, "20ms");
	assert_string_equal(a->syscalls, "fsync write");
	assert_string_equal(a->comm, "mysqld");
	assert_string_equal(a->cgroup, "/system.slice/x");
	assert_int_equal(a->pid, 17);
	assert_int_equal(a->interval_ns, 2000000000);
	assert_false(a->enabled);
	assert_int_equal(a->cooldown_ns, 3000000000);
	assert_int_equal(a->min_fill_ns, 4000000000);
	assert_int_equal(a->window_ns, 5000000000);
	assert_int_equal(a->post_ns, 6000000000);
	assert_string_equal(a->set[0], "a=1");
	assert_string_equal(a->set[1], "b=x=y");
	assert_null(a->set[2]);
	b = find(&c, "b");
	assert_string_equal(b->filter, "prev_pid != 0");
	assert_true(b->enabled);
	assert_null(b->set);
	assert_true(b->cooldown_ns == FR_TRIGGER_UNSET && b->min_fill_ns == FR_TRIGGER_UNSET &&
		    b->window_ns == FR_TRIGGER_UNSET && b->post_ns == FR_TRIGGER_UNSET &&
		    b->interval_ns == FR_TRIGGER_UNSET);
	fr_config_deinit(&c);
}

/* A later file sets keys of the same section, and clears with an empty one. */
static void test_files_add_up(void **state)
{
	const struct fr_trigger_config *t;
	struct fr_config c;

	take(&c, "[Trigger a]\nProgram=/a.o\nThreshold=5ms\nSet=x=1\nComm=a\nCooldown=5s\n");
	assert_int_equal(read_text(&c, "y.conf",
				 "[Trigger b]\nEvery=1h\n[Trigger a]\nThreshold=7ms\nComm=\n"
				 "Set=\nSet=y=2\nCooldown=\n",
				 NULL),
		0);
	assert_int_equal(fr_config_check(&c, NULL), 0);
	assert_int_equal(c.n_trigger, 2);
	t = find(&c, "a");
	assert_string_equal(t->origin, "x.conf:1");
	assert_string_equal(t->subject, "/a.o");
	assert_string_equal(t->threshold, "7ms");
	assert_null(t->comm);
	assert_string_equal(t->set[0], "y=2");
	assert_null(t->set[1]);
	assert_true(t->cooldown_ns == FR_TRIGGER_UNSET);
	fr_config_deinit(&c);
}

/* Longer than the section that the parser beneath us keeps. */
static void test_long_name(void **state)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456.9";
	struct fr_diag d = {0};
	struct fr_config c;
	char text[256];

	assert_int_equal(strlen(name), FR_TRIGGER_NAME_SIZE - 1);
	snprintf(text, sizeof(text), "[Trigger %s]\nEvery=1h\n[Trigger %.62s]\nEvery=2h\n", name, name);
	take(&c, text);
	assert_int_equal(c.n_trigger, 2);
	assert_int_equal(find(&c, name)->every_ns, 3600000000000);
	fr_config_deinit(&c);

	snprintf(text, sizeof(text), "[Trigger %sx]\nEvery=1h\n", name);
	fr_config_init(&c);
	assert_int_equal(read_text(&c, "x.conf", text, &d), -EINVAL);
	assert_non_null(strstr(d.what, "cannot be the name of a trigger"));
	fr_config_deinit(&c);
}

static void test_errors_say_where(void **state)
{
	static const struct {
		const char *text, *what, *hint;
	} cases[] = {
		{"[Trigger]\nEvery=1h\n", "x.conf:1: the section [Trigger] has no name", "[Triggers]"},
		{"[Trigger ]\n", "x.conf:1: the section [Trigger] has no name", "[Triggers]"},
		{"[Trigger a b]\n", "x.conf:1: 'a b' cannot be the name of a trigger", "63"},
		{"[Triger a]\nEvery=1h\n", "x.conf:1: unknown section [Triger a]", "[Trigger a]"},
		{"[Trigers]\n", "x.conf:1: unknown section [Trigers]", "[Triggers]"},
		{"[Triggers]\nCooldwn=1s\n", "x.conf:2: unknown key 'Cooldwn'", "Cooldown="},
		{"[Triggers]\nRateLimit=20\n", "x.conf:2: RateLimit= is not a number", "20/1h"},
		{"[Triggers]\nRateLimit=0/1h\n", "x.conf:2: RateLimit= is not a number", "20/1h"},
		{"[Triggers]\nRateLimit=1/0\n", "x.conf:2: RateLimit= is not a number", "20/1h"},
		{"[Triggers]\nSocket=x\n", "x.conf:2: Socket= is not an absolute", ""},
		{"[Trigger a]\nEvery=1h\n\nThresold=3\n", "x.conf:4: unknown key 'Thresold'", "Threshold="},
		{"[Trigger a]\nProbe=oom-kil\n", "x.conf:2: Probe= is not a built-in probe", "oom-kill?"},
		{"[Trigger a]\nProbe=zzzzzzzzzzzz\n", "x.conf:2: Probe= is not a built-in probe", "lists"},
		{"[Trigger a]\nProgram=a.o\n", "x.conf:2: Program= is not an absolute path", "/"},
		{"[Trigger a]\nFunction=/a\n", "x.conf:2: Function= is not an absolute path with", "symbol"},
		{"[Trigger a]\nUSDT=/a\n", "x.conf:2: USDT= is not an absolute path with", "provider"},
		{"[Trigger a]\nEvery=0\n", "x.conf:2: Every= is not a duration longer", ""},
		{"[Trigger a]\nEvery=soon\n", "x.conf:2: Every= is not a duration", "30s"},
		{"[Trigger a]\nApplication=perhaps\n", "x.conf:2: Application= is not yes or no", ""},
		{"[Trigger a]\nEnabled=perhaps\n", "x.conf:2: Enabled= is not yes or no", ""},
		{"[Trigger a]\nInterval=0\n", "x.conf:2: Interval= is not a duration longer", ""},
		{"[Trigger a]\nPostTrigger=2h\n", "x.conf:2: PostTrigger= is not a duration of at most",
			"1h"},
		{"[Trigger a]\nComm=0123456789abcdef\n", "x.conf:2: Comm= is not a name", "15"},
		{"[Trigger a]\nPid=0\n", "x.conf:2: Pid= is not a process", ""},
		{"[Trigger a]\nSet=x\n", "x.conf:2: Set= is not an assign", "limit=5"},
		{"[Trigger a]\nProgram=/a\nEvery=1h\n", "x.conf:3: Program= and Every= are in one", "two"},
		{"[Trigger oom-kill]\nEvery=1h\n", "x.conf:2: [Trigger oom-kill] is a built-in",
			"another name"},
		{"[Trigger oom-kill]\nProbe=exec\n", "x.conf:2: [Trigger oom-kill] is a built-in", "name"},
		{"[Trigger signal]\nProbe=exec\n", "x.conf:2: [Trigger signal] is a built-in", "name"},
		/* what only the whole tells */
		{"\n[Trigger oom-kil]\nWindow=1s\n", "x.conf:2: [Trigger oom-kil] has no source",
			"[Trigger oom-kill]"},
		{"[Trigger abcdefghijkl]\n", "x.conf:1: [Trigger abcdefghijkl] has no source", "Probe="},
		{"[Trigger a]\nEvery=1h\nThreshold=5\n",
			"x.conf:1: Threshold= has no effect beside Every=", "leave"},
		{"[Trigger a]\nProgram=/a\nFilter=x\n",
			"x.conf:1: Filter= has no effect beside Program=", "leave"},
		{"[Trigger signal]\nThreshold=5\n", "x.conf:1: Threshold= has no effect in [Trigger signal]",
			"leave"},
		{"[Trigger oom-kill]\nSyscall=read\n", "x.conf:1: Syscall= has no effect on the probe",
			"leave"},
		{"[Trigger a]\nEvery=1h\nPid=5\n", "x.conf:1: Pid= has no effect", ""},
		{"[Trigger a]\nFunction=/a:b\nInterval=5s\n", "x.conf:1: Interval= has no effect", ""},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_config c;
		struct fr_diag d = {0};
		int r;

		fr_config_init(&c);
		r = read_text(&c, "x.conf", cases[i].text, &d);
		if (r == 0)
			r = fr_config_check(&c, &d);
		assert_int_equal(r, -EINVAL);
		if (strncmp(d.what, cases[i].what, strlen(cases[i].what)) || !strstr(d.hint, cases[i].hint))
			fail_msg("%s\n  %s\nand not: %s", d.what, d.hint, cases[i].what);
		fr_config_deinit(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_all),
		cmocka_unit_test(test_each_source),
		cmocka_unit_test(test_all_keys),
		cmocka_unit_test(test_files_add_up),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_errors_say_where),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
