// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the command line: the options, how they replace values of the configuration file, and how a
   configuration is saved for the next instance. */
#include "../files.h"
#include "config/saved.h"

#include <pthread.h>
#include <syslog.h>

/* An empty file, so that the tests do not depend on the configuration of the machine. */
#define NO_FILE "--config=/dev/null"

static char *args[32];
static int n_args;

static int parse(struct fr_config *c, const char *const *words, struct fr_diag *d)
{
	int r;

	n_args = 0;
	args[n_args++] = (char *)"flightrecd";
	for (; *words; words++)
		args[n_args++] = (char *)*words;
	args[n_args] = NULL;
	fr_config_deinit(c);
	fr_config_init(c);
	r = fr_options_parse(c, n_args, args, d);
	return r == 0 ? fr_config_check(c, d) : r;
}

static void parse_valid(struct fr_config *c, const char *const *words)
{
	struct fr_diag d = {0};

	if (parse(c, words, &d) != 0)
		fail_msg("%s (%s)", d.what, d.hint);
}
#define PARSE(c, ...) parse_valid(c, (const char *[]){__VA_ARGS__, NULL})

/* Writes a file with TEXT. Returns the option --config for this file. */
static const char *config_option(const char *text)
{
	static char option[300];

	snprintf(option, sizeof(option), "--config=%s", write_file("x.conf", text));
	return option;
}

static const char *in_working_directory(const char *name)
{
	static char path[4200];

	assert_non_null(getcwd(path, 4096));
	return strcat(strcat(path, "/"), name);
}

GROUP_FIXTURE(make_root, remove_root)

TEST(options_of_a_recording_of_the_machine)
{
	_cleanup_(fr_config_deinit) struct fr_config c = {0};

	PARSE(&c, NO_FILE, "-e", "cycles", "--event=sched:*", "--filter", "prev_pid!=0", "-F", "49", "-g",
		"-C", "0-1", "-M", "2G", "-m", "100", "--aux-buffer", "16", "-o", "out", "--no-compression",
		"--socket", "s", "--group=adm", "-v");
	assert_int_equal(c.n_events, 2);
	assert_null(c.events[0].filter);
	assert_string_equal(c.events[1].filter, "prev_pid!=0");
	assert_int_equal(c.defaults.frequency_hz, 49);
	assert_int_equal(c.defaults.call_graph, FR_CALL_GRAPH_UNWIND);
	assert_int_equal(c.ring_bytes, 2ULL << 30);
	assert_int_equal(c.kernel_buffer_bytes, 128 * (uint64_t)sysconf(_SC_PAGESIZE));
	assert_int_equal(c.aux_buffer_bytes, 64 << 10);
	assert_string_equal(c.directory, in_working_directory("out"));
	assert_string_equal(c.socket, "s");
	assert_string_equal(c.group, "adm");
	assert_false(c.dump_compress);
	assert_int_equal(c.log_level, LOG_DEBUG);
	assert_null(c.command);
	PARSE(&c, NO_FILE, "-q", "-p", "1,22", "--pid=333", "-C", "0", "-o", ".");
	assert_int_equal(c.log_level, LOG_WARNING);
	assert_int_equal(c.n_pids, 3);
	assert_int_equal(c.pids[2], 333);
	assert_string_equal(c.directory, getcwd((char[4096]){0}, 4096));
}

TEST(options_after_the_command_are_its_own)
{
	_cleanup_(fr_config_deinit) struct fr_config c = {0};

	PARSE(&c, "-a", "--", "ls", "-l", "--help", "-e", "x");
	for (int i = 0; i < 2; i++) { /* a reload parses the same argv again */
		assert_string_equal(c.command[0], "ls");
		assert_string_equal(c.command[4], "x");
		assert_null(c.command[5]);
		assert_int_equal(c.n_events, 0);
		assert_true(c.all_cpus);
		assert_string_equal(c.directory, ".");
		assert_string_equal(c.socket, "");
		assert_string_equal(c.triggers.socket, "");
		fr_config_deinit(&c);
		fr_config_init(&c);
		assert_int_equal(fr_options_parse(&c, n_args, args, NULL), 0);
	}
	PARSE(&c, "-o", "d", "--socket=s", "--", "ls");
	assert_string_equal(c.directory, in_working_directory("d"));
	assert_string_equal(c.socket, "s");
}

TEST(options_replace_values_of_the_file)
{
	const char *file =
		config_option("[Recorder]\nEvents=a\nEvents=b\nPeriod=7\nRingSize=2M\nDirectory=/d\n");
	_cleanup_(fr_config_deinit) struct fr_config c = {0};

	PARSE(&c, file);
	assert_int_equal(c.n_events, 2);
	assert_int_equal(c.ring_bytes, 2 << 20);
	PARSE(&c, "-e", "x", "-M", "4M", "-F", "9", file, "-e", "y");
	assert_int_equal(c.n_events, 2); /* the first -e clears the list */
	assert_string_equal(c.events[0].spec, "x");
	assert_int_equal(c.ring_bytes, 4 << 20);
	assert_int_equal(c.defaults.period, 0);
	assert_int_equal(c.defaults.frequency_hz, 9);
	assert_string_equal(c.directory, "/d");
}

TEST(a_saved_configuration_can_be_restored)
{
	const char *file = config_option("# x\n[Recorder]\nEvents=a ; b\nFilter=id == 8\n\n[Trigger "
					 "t]\nEvery=1h\n[Dump]\nWindow=7s\n");
	_cleanup_buf_ struct fr_buf saved = {0};
	_cleanup_(fr_config_deinit) struct fr_config c = {0};

	PARSE(&c, file, "-M", "4M", "--socket", "");
	assert_int_equal(fr_config_save(&c, n_args, args, &saved), 0);
	write_file("x.conf", "");
	fr_config_deinit(&c);
	fr_config_init(&c);
	assert_int_equal(fr_config_restore(&c, &saved, NULL), 0);
	assert_int_equal(c.n_events, 1);
	assert_string_equal(c.events[0].spec, "a");
	assert_string_equal(c.events[0].filter, "id == 8");
	assert_non_null(fr_config_find_trigger(&c, "t"));
	assert_int_equal(c.window_ns, 7000000000);
	assert_int_equal(c.ring_bytes, 4 << 20);
	assert_string_equal(c.socket, "");
	/* Truncated data is refused or read, without harm. */
	while (saved.len-- > 0) {
		fr_config_deinit(&c);
		fr_config_init(&c);
		(void)fr_config_restore(&c, &saved, NULL);
	}
	saved.len = 0;
}

static void *restore_often(void *ring_mib)
{
	char size[8];
	const char *const argv[] = {"flightrecd", "-e", "cpu-clock", "-M", size, "-F", "99"};
	_cleanup_buf_ struct fr_buf saved = {0};
	const struct fr_config none = {0};
	uintptr_t wrong = 0;

	snprintf(size, sizeof(size), "%uM", (unsigned)(uintptr_t)ring_mib);
	wrong += fr_config_save(&none, FR_ARRAY_SIZE(argv), (char *const *)argv, &saved) != 0;
	for (int i = 0; i < 2000; i++) {
		_cleanup_(fr_config_deinit) struct fr_config c = {0};

		fr_config_init(&c);
		wrong += fr_config_restore(&c, &saved, NULL) != 0 || c.n_events != 1 ||
			 c.ring_bytes != (uint64_t)(uintptr_t)ring_mib << 20 || c.defaults.frequency_hz != 99;
	}
	return (void *)wrong;
}

/* A thread that has waited for a configuration file can parse the options while another thread restores a
 * saved configuration. */
TEST(two_threads_can_parse_options)
{
	pthread_t other;
	void *wrong;

	assert_int_equal(pthread_create(&other, NULL, restore_often, (void *)4), 0);
	assert_null(restore_often((void *)8));
	assert_int_equal(pthread_join(other, &wrong), 0);
	assert_null(wrong);
}

TEST(an_object_file_makes_a_trigger)
{
	const char *file = config_option(
		"[Recorder]\nEvents=of-the-file\n[Trigger x]\nThreshold=5ms\n[Trigger y]\nEvery=1h\n");
	const struct fr_trigger_config *t;
	_cleanup_(fr_config_deinit) struct fr_config c = {0};

	PARSE(&c, NO_FILE, "-e", "probe.bpf.o", "-e", "a", "-e", "/x/my probe#1.o", "-e", "./y/z.o", "-e",
		"b", "--filter", "f");
	assert_int_equal(c.n_events, 2);
	assert_null(c.events[0].filter);
	assert_string_equal(c.events[1].filter, "f");
	assert_int_equal(c.n_trigger, 3);
	t = fr_config_find_trigger(&c, "probe");
	assert_int_equal(t->kind, FR_TRIGGER_PROGRAM);
	assert_string_equal(t->subject, in_working_directory("probe.bpf.o"));
	assert_string_equal(fr_config_find_trigger(&c, "my_probe_1")->subject, "/x/my probe#1.o");
	assert_non_null(fr_config_find_trigger(&c, "z"));
	/* A BPF object after -e does not replace the events of the file. --trigger= adds keys to the section
	   with this name. */
	PARSE(&c, file, "-e", "/o/x.bpf.o", "--trigger", "y:Enabled=no", "--trigger=y:Every=2h", "--trigger",
		"run-queue-latency");
	assert_int_equal(c.n_events, 1);
	assert_string_equal(c.events[0].spec, "of-the-file");
	t = fr_config_find_trigger(&c, "x");
	assert_string_equal(t->subject, "/o/x.bpf.o");
	assert_string_equal(t->threshold, "5ms");
	t = fr_config_find_trigger(&c, "y");
	assert_int_equal(t->every_ns, 7200000000000);
	assert_false(t->enabled);
	assert_int_equal(fr_config_find_trigger(&c, "run-queue-latency")->kind, FR_TRIGGER_PROBE);
	assert_string_equal(c.triggers.socket, "/run/flightrec/trigger");
	PARSE(&c, file, "-e", "/o/x.o", "--", "ls");
	assert_string_equal(c.triggers.socket, "");
}

TEST(a_recorder_beside_the_service_leaves_the_triggers_to_it)
{
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
	char own_pid[16], parent_pid[16];
	_cleanup_(fr_config_deinit) struct fr_config c = {0};

	snprintf(own_pid, sizeof(own_pid), "%d", (int)getpid());
	snprintf(parent_pid, sizeof(parent_pid), "%d", (int)getppid());
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		setenv("SYSTEMD_EXEC_PID", parent_pid, 1); /* started by a shell of a service */
		parse_valid(&c, cases[i].words);
		assert_int_equal(c.is_personal, cases[i].own);
		assert_string_equal(c.triggers.socket, cases[i].own ? "" : "/run/flightrec/trigger");
		setenv("SYSTEMD_EXEC_PID", own_pid, 1);
		parse_valid(&c, cases[i].words);
		assert_int_equal(c.is_personal, c.command != NULL);
	}
	unsetenv("SYSTEMD_EXEC_PID");
}

TEST(mistakes)
{
	static const struct {
		const char *words[6], *what;
	} cases[] = {
		{{NO_FILE, "-M", "512K"}, "the ring of 512K is too small: the minimum is 1M"},
		{{NO_FILE, "-M", "x"}, "-M: RingSize= is not a size: 'x'"},
		{{NO_FILE, "-M", ""}, "-M has an empty value"},
		{{NO_FILE, "-o", ""}, "-o has an empty value"},
		{{NO_FILE, "-m", "0"}, "-m: KernelBuffer= is not a size from one page to 1G: '0'"},
		{{NO_FILE, "--aux-buffer", "0"},
			"--aux-buffer: AuxBuffer= is not a size from one page to 1G: '0'"},
		{{NO_FILE, "-p", "1,x"}, "-p: 'x' is not a process id"},
		{{NO_FILE, "-p", "1,"}, "-p: '' is not a process id"},
		{{NO_FILE, "-F", "9", "-c", "1000"}, "a frequency (-F) and a period (-c) exclude each other"},
		{{NO_FILE, "-c", "9", "-F", "1000"}, "a frequency (-F) and a period (-c) exclude each other"},
		{{NO_FILE, "-a", "-p", "1"}, "all CPUs (-a) and processes to record (-p) exclude each other"},
		{{"-p", "1", "--", "ls"}, "a command and processes to record (-p) exclude each other"},
		{{NO_FILE, "--filter", "x"}, "--filter: no -e before it"},
		{{NO_FILE, "-e", "a.o", "--filter", "x"}, "--filter: no -e before it"},
		{{NO_FILE, "-e", "oom-kill.bpf.o"},
			"-e: [Trigger oom-kill] is a built-in trigger: Program= cannot be its source"},
		{{NO_FILE, "-e", "x.o", "--trigger=x:Every=1h"},
			"--trigger: Program= and Every= are in one section, but a trigger has one source"},
		{{NO_FILE, "--trigger=x:Every"}, "--trigger: 'Every' is not an assignment"},
		{{NO_FILE, "--trigger=:Every=1h"}, "--trigger: the section [Trigger] has no name"},
		{{NO_FILE, "--trigger=oom-kil"}, "--trigger: [Trigger oom-kil] has no source"},
		{{NO_FILE, "-z"}, "unknown option '-z'"},
		{{NO_FILE, "--nope"}, "unknown or ambiguous option '--nope'"},
		{{NO_FILE, "--group"}, "option '--group' needs a value"},
		{{NO_FILE, "--quiet=1"}, "option '--quiet=1' takes no value"},
		{{NO_FILE, "ls"}, "unexpected argument 'ls'"},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		_cleanup_(fr_config_deinit) struct fr_config c = {0};
		struct fr_diag d = {0};

		assert_int_equal(parse(&c, cases[i].words, &d), -EINVAL);
		assert_string_equal(d.what, cases[i].what);
		assert_string_not_equal(d.hint, "");
	}
}
