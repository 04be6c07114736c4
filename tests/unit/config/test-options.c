// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/saved.h"
#include "base/cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <syslog.h>

#include <cmocka.h>

/* A file that is there and says nothing: the tests do not depend on the machine's. */
#define NO_FILE "--config=/dev/null"

static char *args[32];

static int parse(struct fr_config *c, const char *const *words, struct fr_diag *d)
{
	int n = 0, r;

	args[n++] = (char *)"flightrecd";
	for (; *words; words++)
		args[n++] = (char *)*words;
	args[n] = NULL;
	fr_config_init(c);
	r = fr_options_parse(c, n, args, d);
	return r == 0 ? fr_config_check(c, d) : r;
}
#define PARSE(c, d, ...) parse(c, (const char *[]){__VA_ARGS__, NULL}, d)

/* Others have another working directory. */
static void expect_here(const char *path, const char *name)
{
	char here[512];

	assert_non_null(getcwd(here, sizeof(here) - 16));
	strcat(here, "/");
	strcat(here, name);
	assert_string_equal(path, here);
}

static void test_daemon(void **state)
{
	struct fr_config c;
	struct fr_diag d = {0};

	assert_int_equal(PARSE(&c, &d, NO_FILE, "-e", "cycles", "--event=sched:*", "--filter", "prev_pid!=0",
				 "-F", "49", "-g", "-C", "0-1", "-M", "2G", "-m", "100", "-o", "out",
				 "--no-compression", "--socket", "s", "--group=adm", "-v"),
		0);
	assert_int_equal(c.n_events, 2);
	assert_null(c.events[0].filter);
	assert_string_equal(c.events[1].filter, "prev_pid!=0");
	assert_int_equal(c.defaults.frequency_hz, 49);
	assert_int_equal(c.defaults.call_graph, FR_CALL_GRAPH_FP);
	assert_int_equal(c.ring_bytes, 2ULL << 30);
	assert_int_equal(c.kernel_buffer_bytes, 128 * (uint64_t)sysconf(_SC_PAGESIZE));
	expect_here(c.directory, "out");
	assert_true(c.directory_given);
	assert_string_equal(c.socket, "s");
	assert_string_equal(c.group, "adm");
	assert_false(c.dump_compress);
	assert_int_equal(c.log_level, LOG_DEBUG);
	assert_null(c.command);
	fr_config_deinit(&c);
}

static void test_command(void **state)
{
	struct fr_config c;
	struct fr_diag d = {0};

	/* Its options stay its own, and a second parse of the same argv (a reload) says the same. */
	assert_int_equal(PARSE(&c, &d, "-a", "--", "ls", "-l", "--help", "-e", "x"), 0);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(c.command[0], "ls");
		assert_string_equal(c.command[1], "-l");
		assert_string_equal(c.command[4], "x");
		assert_null(c.command[5]);
		assert_int_equal(c.n_events, 0);
		assert_true(c.all_cpus);
		assert_string_equal(c.directory, ".");
		assert_string_equal(c.socket, "");
		fr_config_deinit(&c);
		fr_config_init(&c);
		assert_int_equal(fr_options_parse(&c, 8, args, &d), 0);
	}
	fr_config_deinit(&c);
	assert_int_equal(PARSE(&c, &d, "-o", "d", "--socket=s", "--", "ls"), 0);
	expect_here(c.directory, "d");
	assert_string_equal(c.socket, "s");
	fr_config_deinit(&c);
}

static void test_over_the_file(void **state)
{
	char path[] = "/tmp/flightrec-options-XXXXXX", option[64];
	struct fr_config c;
	struct fr_diag d = {0};
	int fd = mkstemp(path);

	dprintf(fd, "[Recorder]\nEvents=a\nEvents=b\nPeriod=7\nRingSize=2M\nDirectory=/d\n");
	close(fd);
	snprintf(option, sizeof(option), "--config=%s", path);
	assert_int_equal(PARSE(&c, &d, option), 0);
	assert_int_equal(c.n_events, 2);
	assert_int_equal(c.ring_bytes, 2 << 20);
	fr_config_deinit(&c);
	assert_int_equal(PARSE(&c, &d, "-e", "x", "-M", "4M", "-F", "9", option, "-e", "y"), 0);
	assert_int_equal(c.n_events, 2); /* the first -e cleared */
	assert_string_equal(c.events[0].spec, "x");
	assert_int_equal(c.ring_bytes, 4 << 20);
	assert_int_equal(c.defaults.period, 0);
	assert_int_equal(c.defaults.frequency_hz, 9);
	assert_string_equal(c.directory, "/d");
	fr_config_deinit(&c);
	assert_int_equal(PARSE(&c, &d, option, "-F", "9", "-c", "1000"), -EINVAL);
	assert_non_null(strstr(d.what, "-F"));
	fr_config_deinit(&c);
	assert_int_equal(PARSE(&c, NULL, option, "-c", "1000", "-F", "9"), -EINVAL);
	fr_config_deinit(&c);
	unlink(path);
}

/* What one instance keeps, the next one reads back; and of bytes that may be anything nothing worse comes
   than a refusal. */
static void test_kept(void **state)
{
	char path[] = "/tmp/flightrec-options-XXXXXX", option[64];
	_cleanup_buf_ struct fr_buf kept = {0};
	struct fr_config c, again;
	struct fr_diag d = {0};
	int fd = mkstemp(path);

	dprintf(fd, "# x\n[Recorder]\nEvents=a ; b\nFilter=id == 8\n\n[Trigger "
		    "t]\nEvery=1h\n[Dump]\nWindow=7s\n");
	close(fd);
	snprintf(option, sizeof(option), "--config=%s", path);
	assert_int_equal(PARSE(&c, &d, option, "-M", "4M", "--socket", ""), 0);
	assert_int_equal(fr_config_save(&c, 5 + 1, args, &kept), 0);
	fr_config_deinit(&c);
	unlink(path);

	fr_config_init(&again);
	assert_int_equal(fr_config_restore(&again, &kept, &d), 0);
	assert_int_equal(again.n_events, 1);
	assert_string_equal(again.events[0].spec, "a");
	assert_string_equal(again.events[0].filter, "id == 8");
	assert_non_null(fr_config_find_trigger(&again, "t"));
	assert_int_equal(again.window_ns, 7000000000);
	assert_int_equal(again.ring_bytes, 4 << 20);
	fr_config_deinit(&again);
	while (kept.len-- > 0) {
		fr_config_init(&again);
		(void)fr_config_restore(&again, &kept, NULL);
		fr_config_deinit(&again);
	}
	kept.len = 0;
}

/* The thread that reads a file may come back while what is kept is gone on with. SIZE: of the ring, in MiB.
 */
static void *restore_often(void *size)
{
	char number[8];
	const char *const argv[] = {"flightrecd", "-e", "cpu-clock", "-M", number, "-F", "99"};
	_cleanup_buf_ struct fr_buf kept = {0};
	const struct fr_config none = {0};
	uintptr_t wrong = 0;

	snprintf(number, sizeof(number), "%uM", (unsigned)(uintptr_t)size);
	wrong += fr_config_save(&none, FR_ARRAY_SIZE(argv), (char *const *)argv, &kept) != 0;
	for (int i = 0; i < 2000; i++) {
		struct fr_config c;

		fr_config_init(&c);
		wrong += fr_config_restore(&c, &kept, NULL) != 0 || c.n_events != 1 ||
			 c.ring_bytes != (uint64_t)(uintptr_t)size << 20 || c.defaults.frequency_hz != 99;
		fr_config_deinit(&c);
	}
	return (void *)wrong;
}

static void test_two_threads(void **state)
{
	pthread_t other;
	void *wrong;

	assert_int_equal(pthread_create(&other, NULL, restore_often, (void *)4), 0);
	assert_null(restore_often((void *)8));
	assert_int_equal(pthread_join(other, &wrong), 0);
	assert_null(wrong);
}

static void test_objects(void **state)
{
	const struct fr_trigger_config *t;
	char want[4200], cwd[4096];
	struct fr_config c;
	struct fr_diag d = {0};

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(PARSE(&c, &d, NO_FILE, "-e", "probe.bpf.o", "-e", "a", "-e", "/x/my probe#1.o", "-e",
				 "./y/z.o", "-e", "b", "--filter", "f"),
		0);
	assert_int_equal(c.n_events, 2);
	assert_null(c.events[0].filter);
	assert_string_equal(c.events[1].filter, "f");
	assert_int_equal(c.n_trigger, 3);
	t = fr_config_find_trigger(&c, "probe");
	assert_non_null(t);
	assert_int_equal(t->kind, FR_TRIGGER_PROGRAM);
	snprintf(want, sizeof(want), "%s/probe.bpf.o", cwd);
	assert_string_equal(t->subject, want);
	t = fr_config_find_trigger(&c, "my_probe_1");
	assert_non_null(t);
	assert_string_equal(t->subject, "/x/my probe#1.o");
	assert_non_null(fr_config_find_trigger(&c, "z"));
	fr_config_deinit(&c);
}

/* An object alone is no event: the file's stay. */
static void test_object_beside_the_file(void **state)
{
	char path[] = "/tmp/flightrec-options-XXXXXX", option[64];
	const struct fr_trigger_config *t;
	struct fr_config c;
	struct fr_diag d = {0};
	int fd = mkstemp(path);

	dprintf(fd, "[Recorder]\nEvents=a\n[Trigger x]\nThreshold=5ms\n[Trigger y]\nEvery=1h\n");
	close(fd);
	snprintf(option, sizeof(option), "--config=%s", path);
	assert_int_equal(PARSE(&c, &d, option, "-e", "/o/x.bpf.o", "--trigger", "y:Enabled=no",
				 "--trigger=y:Every=2h", "--trigger", "run-queue-latency"),
		0);
	assert_int_equal(c.n_events, 1);
	assert_string_equal(c.events[0].spec, "a");
	t = fr_config_find_trigger(&c, "x");
	assert_string_equal(t->subject, "/o/x.bpf.o");
	assert_string_equal(t->threshold, "5ms");
	t = fr_config_find_trigger(&c, "y");
	assert_int_equal(t->every_ns, 7200000000000);
	assert_false(t->enabled);
	assert_int_equal(fr_config_find_trigger(&c, "run-queue-latency")->kind, FR_TRIGGER_PROBE);
	assert_string_equal(c.triggers.socket, "/run/flightrec/trigger");
	fr_config_deinit(&c);
	/* with a command there is no socket for applications, unless the file that is named has one */
	assert_int_equal(PARSE(&c, &d, "--", "ls"), 0);
	assert_string_equal(c.triggers.socket, "");
	fr_config_deinit(&c);
	assert_int_equal(PARSE(&c, &d, option, "-e", "/o/x.o", "--", "ls"), 0);
	assert_string_equal(c.triggers.socket, "");
	fr_config_deinit(&c);
	unlink(path);
}

/* Triggers of the machine's own file are the service's. */
static void test_whose_triggers(void **state)
{
	char pid[16], other[16];
	struct fr_config c;
	struct fr_diag d = {0};

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	snprintf(other, sizeof(other), "%d", (int)getppid());
	static const struct {
		const char *words[4];
		bool own;
	} cases[] = {
		{{"-o", "/tmp/x"}, true},
		{{"-e", "cycles"}, true},
		{{"--socket", "/tmp/x"}, true},
		{{"-F", "999"}, false},
		{{NULL}, false},
		{{NO_FILE, "-o", "/tmp/x"}, false},
		{{"--", "ls"}, true},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		setenv("SYSTEMD_EXEC_PID", other, 1); /* of a shell's parent */
		assert_int_equal(parse(&c, cases[i].words, &d), 0);
		assert_int_equal(c.own, cases[i].own);
		assert_string_equal(c.triggers.socket, cases[i].own ? "" : "/run/flightrec/trigger");
		fr_config_deinit(&c);
		setenv("SYSTEMD_EXEC_PID", pid, 1);
		assert_int_equal(parse(&c, cases[i].words, &d), 0);
		assert_int_equal(c.own, c.command != NULL);
		fr_config_deinit(&c);
	}
	unsetenv("SYSTEMD_EXEC_PID");
}

static void test_pids(void **state)
{
	struct fr_config c;
	struct fr_diag d = {0};

	assert_int_equal(PARSE(&c, &d, NO_FILE, "-p", "1,22", "--pid=333", "-C", "0"), 0);
	assert_int_equal(c.n_pids, 3);
	assert_int_equal(c.pids[2], 333);
	fr_config_deinit(&c);
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *words[6];
		const char *what;
	} cases[] = {
		{{NO_FILE, "-M", "512K"}, "the ring of 512K is too small: the minimum is 1M"},
		{{NO_FILE, "-M", "x"}, "-M: RingSize= is not a size: 'x'"},
		{{NO_FILE, "-M", ""}, "-M: an empty value"},
		{{NO_FILE, "-o", ""}, "-o: an empty value"},
		{{NO_FILE, "-m", "0"}, "-m: KernelBuffer= is not a size from one page to 1G: '0'"},
		{{NO_FILE, "-p", "1,x"}, "-p: no process id: 'x'"},
		{{NO_FILE, "-p", "1,"}, "-p: no process id: ''"},
		{{NO_FILE, "-a", "-p", "1"}, "all CPUs (-a) and processes to record (-p) exclude each other"},
		{{"-p", "1", "--", "ls"}, "a command and processes to record (-p) exclude each other"},
		{{NO_FILE, "--filter", "x"}, "--filter: no -e before it"},
		{{NO_FILE, "-e", "a.o", "--filter", "x"}, "--filter: no -e before it"},
		{{NO_FILE, "-e", "oom-kill.bpf.o"},
			"-e: [Trigger oom-kill] is a built-in trigger: Program= cannot be its source"},
		{{NO_FILE, "-e", "x.o", "--trigger=x:Every=1h"},
			"--trigger: Program= and Every= are in one section, but a trigger has one source"},
		{{NO_FILE, "--trigger=x:Every"}, "--trigger: no assignment: 'Every'"},
		{{NO_FILE, "--trigger=:Every=1h"}, "--trigger: the section [Trigger] has no name"},
		{{NO_FILE, "--trigger=oom-kil"}, "--trigger: [Trigger oom-kil] has no source"},
		{{NO_FILE, "-z"}, "unknown option '-z'"},
		{{NO_FILE, "--nope"}, "unknown or ambiguous option '--nope'"},
		{{NO_FILE, "--group"}, "option '--group' needs a value"},
		{{NO_FILE, "--quiet=1"}, "option '--quiet=1' takes no value"},
		{{NO_FILE, "ls"}, "unexpected argument 'ls'"},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_config c;
		struct fr_diag d = {0};

		assert_int_equal(parse(&c, cases[i].words, &d), -EINVAL);
		assert_string_equal(d.what, cases[i].what);
		fr_config_deinit(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_daemon),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_over_the_file),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_two_threads),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_object_beside_the_file),
		cmocka_unit_test(test_whose_triggers),
		cmocka_unit_test(test_pids),
		cmocka_unit_test(test_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
