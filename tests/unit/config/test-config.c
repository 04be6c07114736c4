// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of configuration files: the value of each key, how several files are combined, and the message for
   each mistake. */
#include "../unit.h"
#include "config/compare.h"
#include "config/config_private.h"
#include "base/cleanup.h"
#include "source/cause.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>

#define MIB (1ULL << 20)
#define SECOND 1000000000ULL
#define HOUR (3600 * SECOND)

static int read_bytes(struct fr_config *c, const char *name, const char *text, size_t len, struct fr_diag *d)
{
	FILE *f = fmemopen((void *)text, len, "r");
	int r;

	assert_non_null(f);
	r = fr_config_read(c, f, name, d);
	fclose(f);
	return r;
}

/* Read the valid configuration TEXT into C. Before the call, C is zero or has an earlier configuration. */
static void read_valid(struct fr_config *c, const char *text)
{
	struct fr_diag d = {0};

	fr_config_deinit(c);
	fr_config_init(c);
	if (read_bytes(c, "x.conf", text, strlen(text), &d) < 0 || fr_config_check(c, &d) < 0)
		fail_msg("%s (%s)", d.what, d.hint);
}

/* Checks that TEXT is refused, with a message that begins with WHAT and a hint that contains HINT. */
static void expect_refusal(const char *text, size_t len, const char *what, const char *hint)
{
	_cleanup_(fr_config_deinit) struct fr_config c = {0};
	struct fr_diag d = {0};
	int r;

	fr_config_init(&c);
	r = read_bytes(&c, "x.conf", text, len, &d);
	if (r == 0)
		r = fr_config_check(&c, &d);
	if (r != -EINVAL || strncmp(d.what, what, strlen(what)) != 0 || !d.hint[0] || !strstr(d.hint, hint))
		fail_msg("%d: %s\n  %s\nand not: %s\n  %s", r, d.what, d.hint, what, hint);
}

static const struct fr_trigger_config *find_trigger(const struct fr_config *c, const char *name)
{
	const struct fr_trigger_config *t = fr_config_find_trigger(c, name);

	assert_non_null(t);
	return t;
}

struct value {
	const char *section, *key, *value;
	size_t offset, size;
	uint64_t number;
	const char *string; /* NULL if the value is a number */
};
#define RECORDER(m) offsetof(struct fr_config, m), sizeof(((struct fr_config *)0)->m)
#define TRIGGER(m) offsetof(struct fr_trigger_config, m), sizeof(((struct fr_trigger_config *)0)->m)

static const struct value values[] = {
	{"Recorder", "Frequency", "199", RECORDER(defaults.frequency_hz), 199, NULL},
	{"Recorder", "Period", "5", RECORDER(defaults.period), 5, NULL},
	{"Recorder", "CallGraph", "dwarf,16384", RECORDER(defaults.call_graph), FR_CALL_GRAPH_DWARF, NULL},
	{"Recorder", "CallGraph", "dwarf,16384", RECORDER(defaults.dwarf_stack_bytes), 16384, NULL},
	{"Recorder", "OffCPU", "250us", RECORDER(off_cpu_ns), 250000, NULL},
	{"Recorder", "OffCPU", "no", RECORDER(off_cpu_ns), 0, NULL},
	{"Recorder", "OffCPU", "auto", RECORDER(off_cpu_ns), FR_OFF_CPU_AUTO, NULL},
	{"Recorder", "CPUs", "0-3,8", RECORDER(cpus), 0, "0-3,8"},
	{"Recorder", "CGroup", "system.slice", RECORDER(cgroup), 0, "system.slice"},
	{"Recorder", "RingSize", "128M", RECORDER(ring_bytes), 128 * MIB, NULL},
	{"Recorder", "RingMemory", "/dev/x", RECORDER(ring_memory), 0, "/dev/x"},
	{"Recorder", "RingMemory", "no", RECORDER(ring_memory), 0, ""},
	{"Recorder", "KernelBuffer", "3M", RECORDER(kernel_buffer_bytes), 4 * MIB, NULL},
	{"Recorder", "KernelBuildIDs", "no", RECORDER(kernel_build_ids), FR_BUILD_IDS_NO, NULL},
	{"Recorder", "KernelBuildIDs", "yes", RECORDER(kernel_build_ids), FR_BUILD_IDS_YES, NULL},
	{"Recorder", "SidebandBuffer", "100K", RECORDER(sideband_buffer_bytes), 128 << 10, NULL},
	{"Recorder", "AuxBuffer", "3M", RECORDER(aux_buffer_bytes), 4 * MIB, NULL},
	{"Recorder", "AuxiliaryMax", "1G", RECORDER(auxiliary_max_bytes), 1024 * MIB, NULL},
	{"Recorder", "AuxiliaryMaxAge", "0", RECORDER(auxiliary_max_age_ns), 0, NULL},
	{"Recorder", "CompressionLevel", "3", RECORDER(compression_level), 3, NULL},
	{"Recorder", "Directory", "/tmp/x", RECORDER(directory), 0, "/tmp/x"},
	{"Recorder", "ControlSocket", "/tmp/y", RECORDER(socket), 0, "/tmp/y"},
	{"Recorder", "ControlSocket", "no", RECORDER(socket), 0, ""},
	{"Recorder", "Group", "adm", RECORDER(group), 0, "adm"},
	{"Recorder", "LogLevel", "Debug", RECORDER(log_level), LOG_DEBUG, NULL},
	{"Recorder", "LogLevel", "error", RECORDER(log_level), LOG_ERR, NULL},
	{"Recorder", "CPUBudget", "1%", RECORDER(cpu_budget_ppm), 10000, NULL},
	{"Recorder", "CPUBudget", "0.01%", RECORDER(cpu_budget_ppm), 100, NULL},
	{"Recorder", "CPUBudget", "12.3456%", RECORDER(cpu_budget_ppm), 123456, NULL},
	{"Recorder", "CPUBudget", "10000%", RECORDER(cpu_budget_ppm), 100000000, NULL},
	{"Recorder", "MetricsListen", "127.1.2.3:1", RECORDER(metrics_listen), 0, "127.1.2.3:1"},
	{"Recorder", "MetricsPublic", "yes", RECORDER(metrics_public), true, NULL},
	{"Dump", "Compression", "no", RECORDER(dump_compress), false, NULL},
	{"Dump", "Window", "5min 20s", RECORDER(window_ns), 320 * SECOND, NULL},
	{"Dump", "PostTrigger", "1h", RECORDER(post_trigger_ns), HOUR, NULL},
	{"Dump", "AuxWindow", "3s", RECORDER(aux_window_ns), 3 * SECOND, NULL},
	{"Dump", "AuxWindow", "all", RECORDER(aux_window_ns), 0, NULL},
	{"Dump", "MaxUse", "0", RECORDER(retention.max_use), 0, NULL},
	{"Dump", "KeepFree", "1M", RECORDER(retention.keep_free), MIB, NULL},
	{"Dump", "MaxFiles", "7", RECORDER(retention.max_files), 7, NULL},
	{"Dump", "MaxAge", "2h", RECORDER(retention.max_age_ns), 2 * HOUR, NULL},
	{"Dump", "KeepFailed", "no", RECORDER(keep_failed), false, NULL},
	{"Dump", "BlockSize", "2M", RECORDER(block_bytes), 2 * MIB, NULL},
	{"Dump", "QueueDepth", "16", RECORDER(queue_depth), 16, NULL},
	{"Dump", "CacheObjects", "yes", RECORDER(cache_bytes), 1024 * MIB, NULL},
	{"Dump", "CacheObjects", "2M", RECORDER(cache_bytes), 2 * MIB, NULL},
	{"Dump", "CacheObjectMax", "1M", RECORDER(cache_object_bytes), MIB, NULL},
	{"Triggers", "Cooldown", "5s", RECORDER(triggers.cooldown_ns), 5 * SECOND, NULL},
	{"Triggers", "MinFill", "30s", RECORDER(triggers.min_fill_ns), 30 * SECOND, NULL},
	{"Triggers", "Window", "all", RECORDER(triggers.window_ns), 0, NULL},
	{"Triggers", "RateLimit", "3/10min", RECORDER(triggers.rate_burst), 3, NULL},
	{"Triggers", "RateLimit", "3/10min", RECORDER(triggers.rate_interval_ns), 600 * SECOND, NULL},
	{"Triggers", "RateLimit", "no", RECORDER(triggers.rate_interval_ns), 0, NULL},
	{"Triggers", "SwitchLimit", "20s", RECORDER(switch_limit_ns), 20 * SECOND, NULL},
	{"Triggers", "Socket", "/tmp/t", RECORDER(triggers.socket), 0, "/tmp/t"},
	{"Fleet", "Enabled", "yes", RECORDER(fleet.enabled), true, NULL},
	{"Fleet", "Servers", "nats://a:4222, tls://[::1]:1", RECORDER(fleet.servers), 0,
		"nats://a:4222,tls://[::1]:1"},
	{"Fleet", "Credentials", "/c", RECORDER(fleet.credentials), 0, "/c"},
	{"Fleet", "CACertificate", "/ca", RECORDER(fleet.ca), 0, "/ca"},
	{"Fleet", "Certificate", "/x.pem", RECORDER(fleet.certificate), 0, "/x.pem"},
	{"Fleet", "Key", "/x.key", RECORDER(fleet.key), 0, "/x.key"},
	{"Fleet", "Name", "web-1.example", RECORDER(fleet.name), 0, "web-1.example"},
	{"Fleet", "Labels", " role=db , zone=a", RECORDER(fleet.labels), 0, "role=db,zone=a"},
	{"Fleet", "Upload", "s3://bucket/a/b", RECORDER(fleet.upload), 0, "s3://bucket/a/b"},
	{"Fleet", "UploadEndpoint", "https://s:9000", RECORDER(fleet.upload_endpoint), 0, "https://s:9000"},
	{"Fleet", "UploadRegion", "eu-1", RECORDER(fleet.upload_region), 0, "eu-1"},
	{"Fleet", "UploadCredentials", "/u", RECORDER(fleet.upload_credentials), 0, "/u"},
	{"Fleet", "UploadLimit", "1M", RECORDER(fleet.upload_limit), MIB, NULL},
	{"Fleet", "UploadQueue", "0", RECORDER(fleet.hold_max), 0, NULL},
	{"Fleet", "Incident", "20s", RECORDER(fleet.incident_ns), 20 * SECOND, NULL},
	{"Fleet", "MetricsListen", "127.0.0.1:9753", RECORDER(fleet.metrics_listen), 0, "127.0.0.1:9753"},
	{"Trigger t", "Threshold", "20ms", TRIGGER(threshold), 0, "20ms"},
	{"Trigger t", "Interval", "2s", TRIGGER(interval_ns), 2 * SECOND, NULL},
	{"Trigger t", "Filter", "prev_pid != 0", TRIGGER(filter), 0, "prev_pid != 0"},
	{"Trigger t", "Syscall", "fsync write", TRIGGER(syscalls), 0, "fsync write"},
	{"Trigger t", "Comm", "123456789012345", TRIGGER(comm), 0, "123456789012345"},
	{"Trigger t", "CGroup", "/system.slice/x", TRIGGER(cgroup), 0, "/system.slice/x"},
	{"Trigger t", "Pid", "17", TRIGGER(pid), 17, NULL},
	{"Trigger t", "Enabled", "no", TRIGGER(enabled), false, NULL},
	{"Trigger t", "Cooldown", "3s", TRIGGER(cooldown_ns), 3 * SECOND, NULL},
	{"Trigger t", "MinFill", "4s", TRIGGER(min_fill_ns), 4 * SECOND, NULL},
	{"Trigger t", "Window", "5s", TRIGGER(window_ns), 5 * SECOND, NULL},
	{"Trigger t", "PostTrigger", "6s", TRIGGER(post_ns), 6 * SECOND, NULL},
};

static const void *find_member(const struct fr_config *c, const struct value *v)
{
	const void *object = strcmp(v->section, "Trigger t") ? (const void *)c : find_trigger(c, "t");

	return (const char *)object + v->offset;
}

static uint64_t load_number(const void *member, size_t size)
{
	if (size == sizeof(bool))
		return *(const bool *)member;
	return size == sizeof(unsigned) ? *(const unsigned *)member : *(const uint64_t *)member;
}

TEST(each_key_sets_its_member_and_an_empty_value_resets_it)
{
	_cleanup_(fr_config_deinit) struct fr_config fresh = {0};

	read_valid(&fresh, "[Trigger t]\nEvery=1h\n");
	for (size_t i = 0; i < FR_ARRAY_SIZE(values); i++) {
		_cleanup_(fr_config_deinit) struct fr_config c = {0};
		const struct value *v = &values[i];
		const void *member, *initial = find_member(&fresh, v);

		fr_config_init(&c);
		assert_int_equal(fr_config_set(&c, v->section, v->key, v->value, "y:1", NULL), 0);
		member = find_member(&c, v);
		if (v->string)
			assert_string_equal(*(char *const *)member, v->string);
		else if (load_number(member, v->size) != v->number)
			fail_msg("%s=%s is %llu", v->key, v->value,
				(unsigned long long)load_number(member, v->size));
		assert_int_equal(fr_config_set(&c, v->section, v->key, "", "y:1", NULL), 0);
		if (v->string)
			assert_true(fr_string_is_same(*(char *const *)member, *(char *const *)initial));
		else
			assert_int_equal(load_number(member, v->size), load_number(initial, v->size));
	}
}

TEST(a_reload_reopens_the_events_for_these_keys)
{
	static const char *const keys[] = {"Events=b", "Filter=f", "Frequency=9", "Period=9", "CallGraph=fp",
		"CallGraph=dwarf,16384", "OffCPU=1s", "CPUs=0", "CGroup=x", "KernelBuffer=4K",
		"SidebandBuffer=4K", "KernelBuildIDs=no"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++) {
		_cleanup_(fr_config_deinit) struct fr_config now = {0}, fresh = {0}, wanted = {0};
		char text[128];

		snprintf(text, sizeof(text), "[Recorder]\nCallGraph=dwarf\nEvents=a\n%s\nRingSize=1M\n",
			keys[i]);
		read_valid(&now, "[Recorder]\nCallGraph=dwarf\nEvents=a\n");
		read_valid(&fresh, text);
		read_valid(&wanted, text);
		assert_false(fr_config_has_same_recording(&now, &fresh));
		fr_config_swap_recording(&now, &fresh);
		assert_true(fr_config_has_same_recording(&now, &wanted));
		assert_int_equal(now.ring_bytes, 64 * MIB);
	}
}

TEST(a_reload_copies_live_keys_and_names_keys_that_wait)
{
	const char *names[FR_CONFIG_RESTART_KEYS];
	_cleanup_(fr_config_deinit) struct fr_config now = {0}, fresh = {0};

	read_valid(&now, "[Recorder]\n");
	read_valid(&fresh,
		"[Recorder]\nDirectory=/x\nControlSocket=no\nGroup=g\nCompressionLevel=2\nAuxiliaryMax=1\n"
		"AuxBuffer=8K\nRingMemory=/m\n"
		"AuxiliaryMaxAge=1\nMetricsListen=[::1]:1\nLogLevel=err\nRingSize=1M\n[Trigger t]\nEvery=1h\n"
		"[Dump]\nCacheObjects=yes\nCacheObjectMax=1\nWindow=5s\nAuxWindow=1s\n");
	assert_true(fr_config_has_same_recording(&now, &fresh));
	assert_int_equal(fr_config_restart_keys(&now, &fresh, names), FR_CONFIG_RESTART_KEYS);
	assert_string_equal(names[0], "RingMemory");
	fr_config_copy_live_keys(&now, &fresh);
	assert_int_equal(now.log_level, LOG_ERR);
	assert_int_equal(now.window_ns, 5 * SECOND);
	assert_int_equal(now.aux_window_ns, SECOND);
	assert_int_equal(now.cache_bytes, 0);
	fr_config_swap_triggers(&now, &fresh);
	assert_int_equal(now.n_trigger, 1);
}

TEST(events_add_up_and_have_filters)
{
	_cleanup_(fr_config_deinit) struct fr_config c = {0};

	read_valid(&c, "# a comment\n; another\n\n[Recorder]\nEvents=x\nEvents=\n"
		       "Events=sched:sched_switch, cycles:k\n  Filter = prev_pid != 0\n"
		       "Events=cpu/event=0x3c,umask=1/\n");
	assert_int_equal(c.n_events, 2);
	assert_string_equal(c.events[0].spec, "sched:sched_switch, cycles:k");
	assert_string_equal(c.events[0].filter, "prev_pid != 0");
	assert_string_equal(c.events[0].origin, "x.conf:7");
	assert_string_equal(c.events[1].spec, "cpu/event=0x3c,umask=1/");
	assert_null(c.events[1].filter);
}

TEST(each_kind_of_source)
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
		{"[Trigger fleet]\nCooldown=10s\n", FR_TRIGGER_FLEET, NULL},
		/* The source of a trigger can be removed or replaced. */
		{"[Trigger x]\nEvery=1h\nEvery=\nApplication=yes\n", FR_TRIGGER_APPLICATION, NULL},
		{"[Trigger x]\nProgram=/a.o\nProgram=/b.o\n", FR_TRIGGER_PROGRAM, "/b.o"},
		{"[Trigger x]\nApplication=yes\nApplication=no\nProgram=/b.o\n", FR_TRIGGER_PROGRAM, "/b.o"},
		/* The source of a trigger with a built-in name cannot be removed. */
		{"[Trigger oom-kill]\nProbe=\n", FR_TRIGGER_PROBE, "oom-kill"},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		_cleanup_(fr_config_deinit) struct fr_config c = {0};

		read_valid(&c, cases[i].text);
		assert_int_equal(c.n_trigger, 1);
		assert_int_equal(c.trigger[0].kind, cases[i].kind);
		assert_string_equal(c.trigger[0].origin, "x.conf:1");
		assert_true(fr_string_is_same(c.trigger[0].subject, cases[i].subject));
	}
}

TEST(actions_are_parsed)
{
	static const struct {
		const char *text;
		struct fr_trigger_action action;
	} valid[] = {
		{"dump", {.is_dump = true}},
		{"enable sched:sched_switch", {.action = FR_SWITCH_ON, .event = "sched:sched_switch"}},
		{"disable a for 5s", {.action = FR_SWITCH_OFF, .event = "a", .for_ns = 5 * SECOND}},
		{"raise a", {.action = FR_SWITCH_RAISE, .event = "a"}},
		{"raise a for 30s", {.action = FR_SWITCH_RAISE, .event = "a", .for_ns = 30 * SECOND}},
		{"raise  a to 999 for 30s",
			{.action = FR_SWITCH_RAISE, .event = "a", .rate = 999, .for_ns = 30 * SECOND}},
		{"raise a for 1min to 9",
			{.action = FR_SWITCH_RAISE, .event = "a", .rate = 9, .for_ns = 60 * SECOND}},
	};
	static const char *const invalid[] = {"", "dumps", "dump a", "enable", "raise", "switch a",
		"raise a for", "raise a for 0", "raise a to 0", "raise a to x", "enable a to 9",
		"raise a to 9 to 9", "raise a for 1s for 1s", "raise a until 9",
		"enable 1234567890123456789012345678901234567890123456789012345678901234"};
	struct fr_trigger_action a;

	for (size_t i = 0; i < FR_ARRAY_SIZE(valid); i++) {
		assert_int_equal(fr_trigger_action_parse(valid[i].text, &a), 0);
		assert_int_equal(a.is_dump, valid[i].action.is_dump);
		assert_int_equal(a.action, valid[i].action.action);
		assert_string_equal(a.event, valid[i].action.event);
		assert_int_equal(a.rate, valid[i].action.rate);
		assert_int_equal(a.for_ns, valid[i].action.for_ns);
	}
	for (size_t i = 0; i < FR_ARRAY_SIZE(invalid); i++)
		assert_int_equal(fr_trigger_action_parse(invalid[i], &a), -EINVAL);
}

TEST(selectors_of_the_fleet_are_checked)
{
	static const char *const valid[][2] = {{"fleet *", "*"}, {"fleet role=db", "role=db"},
		{"fleet  name=web-?,zone!=b*", "name=web-?,zone!=b*"}, {"fleet a/b=1, c = d", "a/b=1, c = d"},
		{"fleet a/b=1, c.d=e_f", "a/b=1, c.d=e_f"}};
	static const char *const invalid[] = {"fleet", "fleet ", "fleet role", "fleet =db",
		"fleet role=", "fleet role!db", "fleet role=db,", "fleet ,", "fleet *,a=b", "fleet a=b;c",
		"fleet a*=b", "fleet a=\xc3\xa4", "fleets a=b"};
	struct fr_trigger_action a;

	for (size_t i = 0; i < FR_ARRAY_SIZE(valid); i++) {
		assert_int_equal(fr_trigger_action_parse(valid[i][0], &a), 0);
		assert_string_equal(a.fleet, valid[i][1]);
		assert_false(a.is_dump);
	}
	for (size_t i = 0; i < FR_ARRAY_SIZE(invalid); i++)
		assert_int_equal(fr_trigger_action_parse(invalid[i], &a), -EINVAL);
}

TEST(the_selectors_of_a_trigger_are_bounded)
{
	_cleanup_(fr_config_deinit) struct fr_config c = {0};
	char text[160] = "fleet a=", selectors[FR_TRIGGER_FLEET_SIZE];
	struct fr_diag d = {0};

	memset(text + strlen(text), 'x', 50);
	strcat(text, ",b!=");
	memset(text + strlen(text), 'y', 46);
	fr_config_init(&c);
	for (int i = 0; i < 4; i++)
		assert_int_equal(fr_config_set(&c, "Trigger a", "Action", text, "x", NULL), 0);
	assert_int_equal(fr_trigger_config_fleet(&c.trigger[0], selectors), 4 * 103);
	assert_false(fr_trigger_config_dumps(&c.trigger[0]));
	assert_false(fr_trigger_config_switches(&c.trigger[0]));
	assert_int_equal(fr_config_set(&c, "Trigger a", "Action", text, "x", &d), -EINVAL);
	assert_string_equal(d.what, "x: the selectors of Action=fleet have more than 511 bytes");
	assert_int_equal(fr_config_set(&c, "Trigger a", "Action", "dump", "x", NULL), 0);
	assert_true(fr_trigger_config_dumps(&c.trigger[0]));
}

TEST(actions_add_up)
{
	_cleanup_(fr_config_deinit) struct fr_config c = {0};
	_cleanup_(fr_trigger_config_deinit) struct fr_trigger_config copy = {0};

	read_valid(&c, "[Trigger a]\nEvery=1h\nAction=enable x\nAction=\nAction=disable y\nAction=dump\n"
		       "[Trigger b]\nEvery=1h\nAction=enable x\n[Trigger c]\nEvery=1h\n");
	assert_int_equal(c.trigger[0].actions_len, sizeof("disable y\0dump"));
	assert_memory_equal(c.trigger[0].actions, "disable y\0dump", c.trigger[0].actions_len);
	assert_true(fr_trigger_config_dumps(&c.trigger[0]));
	assert_false(fr_trigger_config_dumps(&c.trigger[1]));
	assert_true(fr_trigger_config_dumps(&c.trigger[2]));
	assert_true(fr_trigger_config_switches(&c.trigger[0]));
	assert_true(fr_trigger_config_switches(&c.trigger[1]));
	assert_false(fr_trigger_config_switches(&c.trigger[2]));
	assert_int_equal(fr_trigger_config_copy(&copy, &c.trigger[0]), 0);
	assert_memory_equal(copy.actions, c.trigger[0].actions, copy.actions_len);
	/* Other actions do not need another source. */
	assert_int_equal(fr_string_replace(&copy.name, "b"), 0);
	assert_true(fr_trigger_config_same_source(&copy, &c.trigger[1]));
}

TEST(a_later_file_adds_to_a_section)
{
	static const char later[] =
		"[Trigger b]\nEvery=1h\n[Trigger a]\nThreshold=7ms\nSet=\nSet=y=2\nSet=z=a=b\n"
		"[Recorder]\nRingSize=1M\n";
	const struct fr_trigger_config *t;
	_cleanup_(fr_config_deinit) struct fr_config c = {0};

	read_valid(&c, "[Trigger a]\nProgram=/a.o\nThreshold=5ms\nSet=x=1\nComm=a\n");
	assert_string_equal(c.ring_origin, "default");
	assert_int_equal(read_bytes(&c, "y.conf", later, strlen(later), NULL), 0);
	assert_string_equal(c.ring_origin, "y.conf:9");
	assert_int_equal(fr_config_check(&c, NULL), 0);
	assert_int_equal(c.n_trigger, 2);
	t = find_trigger(&c, "a");
	assert_string_equal(t->origin, "x.conf:1");
	assert_string_equal(t->subject, "/a.o");
	assert_string_equal(t->threshold, "7ms");
	assert_string_equal(t->comm, "a");
	assert_int_equal(t->set_len, sizeof("y=2\0z=a=b"));
	assert_memory_equal(t->set, "y=2\0z=a=b", t->set_len);
}

/* The name is longer than what the parser inih keeps of the name of a section. */
TEST(long_trigger_names_differ_in_the_last_character)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456.9";
	_cleanup_(fr_config_deinit) struct fr_config c = {0};
	char text[256];

	assert_int_equal(strlen(name), FR_TRIGGER_NAME_SIZE - 1);
	snprintf(text, sizeof(text), "[Trigger %s]\nEvery=1h\n[Trigger %.62s]\nEvery=2h\n", name, name);
	read_valid(&c, text);
	assert_int_equal(c.n_trigger, 2);
	assert_int_equal(find_trigger(&c, name)->every_ns, HOUR);
	snprintf(text, sizeof(text), "[Trigger %sx]\nEvery=1h\n", name);
	expect_refusal(text, strlen(text), "x.conf:1: 'abc", "63");
}

static const struct {
	const char *section, *key, *noun, *hint;
	const char *values[15];
} bad_values[] = {
	{"Recorder", "Frequency", "a whole number from 1 to 1000000", "range",
		{"0", "1000001", "-1", "1.5", "x"}},
	{"Recorder", "OffCPU", "a duration from 1us to 1h, no or auto", "500us",
		{"0", "5", "500ns", "2h", "yes"}},
	{"Recorder", "CPUs", "a list of CPUs", "0-3,8", {"a", "3-1", "1,", "8192"}},
	{"Recorder", "RingSize", "a size", "64M", {"lots", "-1", "1Q", "auto"}},
	{"Recorder", "RingMemory", "an absolute path", "begins with /", {"mem", "yes"}},
	{"Recorder", "KernelBuffer", "a size from one page to 1G", "auto", {"0", "2T", "x"}},
	{"Recorder", "AuxBuffer", "a size from one page to 1G", "2M", {"0", "2T", "all"}},
	{"Dump", "AuxWindow", "a duration or all", "all", {"0", "-1s", "none"}},
	{"Recorder", "SidebandBuffer", "a size from one page to 1G", "512K", {"0", "2T", "auto"}},
	{"Recorder", "KernelBuildIDs", "yes, no or auto", "auto", {"maybe"}},
	{"Recorder", "Directory", "an absolute path", "begins with /", {"var", "no", "./x"}},
	{"Recorder", "ControlSocket", "an absolute path", "begins with /", {"x", "yes"}},
	{"Recorder", "LogLevel", "a log level", "notice", {"loud", "3"}},
	{"Recorder", "CPUBudget", "a part of a CPU", "0.5%",
		{"0%", "0.001%", "1", "%", ".5%", "1.23456%", "1e2%", "-1%", "10001%", "999999%", "yes",
			"1%%", "1 %"}},
	{"Recorder", "MetricsListen", "an address with a port", "[::1]:9752",
		{"9752", ":9752", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "localhost:9752", "::1:9752",
			"[::1:9752", "[]:1", "[:1", "127.0.0.1:", "127.0.0.1:+1"}},
	{"Dump", "Compression", "yes or no", "yes or no", {"maybe", "auto"}},
	{"Dump", "Window", "a duration or all", "all", {"soon", "-1"}},
	{"Dump", "PostTrigger", "a duration of at most 1h", "at most 1h", {"2h", "soon"}},
	{"Dump", "MaxUse", "a size", "64M", {"lots"}},
	{"Dump", "MaxAge", "a duration", "30s", {"old"}},
	{"Dump", "QueueDepth", "a whole number from 1 to 64", "range", {"0", "65"}},
	{"Dump", "CacheObjects", "a size, yes or no", "2G", {"auto"}},
	{"Triggers", "RateLimit", "a number of dumps in a time", "20/1h",
		{"20", "0/1h", "1/0", "/1h", "1000001/1h"}},
	{"Trigger a", "Probe", "a built-in probe", "flightrecd.conf(5)", {"zzzzzzzzzzzz"}},
	{"Trigger a", "Probe", "a built-in probe", "did you mean oom-kill?", {"oom-kil"}},
	{"Trigger a", "Program", "an absolute path", "begins with /", {"a.o"}},
	{"Trigger a", "Function", "an absolute path with a symbol", "symbol", {"/a", "a:b"}},
	{"Trigger a", "USDT", "an absolute path with two probes", "provider", {"/a", "a:b"}},
	{"Trigger a", "Every", "a duration longer than 0", "30s", {"0", "soon"}},
	{"Trigger a", "Application", "yes or no", "yes or no", {"perhaps"}},
	{"Trigger a", "Comm", "a name of at most 15 characters", "15", {"0123456789abcdef"}},
	{"Trigger a", "Pid", "a process id", "ps", {"0", "-1", "2147483648"}},
	{"Trigger a", "Set", "an assignment", "limit=5", {"x", "=1"}},
	{"Triggers", "SwitchLimit", "a duration", "30s", {"soon", "-1"}},
	{"Fleet", "Enabled", "yes or no", "yes or no", {"maybe"}},
	{"Fleet", "Servers", "a list of servers", "nats://",
		{"a", "http://a", "nats://", "nats://:1", "nats://a:0", "nats://a:65536", "nats://a:x",
			"nats://u:p@a:1", "nats://a:1/x", "tls://[::1", "tls://[]:1", "nats://a,b", ","}},
	{"Fleet", "Credentials", "an absolute path", "begins with /", {"c", "no"}},
	{"Fleet", "Name", "the name of a machine", "64", {"a b", "a/b", "\xc3\xa4"}},
	{"Fleet", "Labels", "a list of labels", "role=db",
		{"a", "a=", "=b", "a=b=c", "a=b c", "a=b,,c", "a=*", "name=x", ","}},
	{"Fleet", "Upload", "a place in an object store", "s3://BUCKET",
		{"b", "s3://", "s3://ab/x", "s3://Bucket/x", "s3://bucket/x//y", "s3://bucket/../x",
			"s3://bucket/x y", "http://bucket/x"}},
	{"Fleet", "UploadEndpoint", "the address of an object store", "https://",
		{"a:9000", "ftp://a", "https://", "https://a/b", "https://a:b"}},
	{"Fleet", "UploadRegion", "a region of an object store", "us-east-1", {"a b", "a/b"}},
	{"Fleet", "UploadLimit", "a size", "64M", {"fast"}},
	{"Fleet", "Incident", "a duration longer than 0", "30s", {"0"}},
	{"Fleet", "MetricsListen", "an address with a port", "[::1]:9752", {"9753"}},
	{"Trigger a", "Action", "an action", "raise NAME",
		{"x", "raise", "enable a for", "disable a to 9", "fleet a"}},
};

TEST(a_bad_value_is_refused)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad_values); i++)
		for (const char *const *v = bad_values[i].values; *v; v++) {
			char text[128], what[128];

			snprintf(text, sizeof(text), "[%s]\n%s=%s\n", bad_values[i].section,
				bad_values[i].key, *v);
			snprintf(what, sizeof(what), "x.conf:2: %s= is not %s: '%s'", bad_values[i].key,
				bad_values[i].noun, *v);
			expect_refusal(text, strlen(text), what, bad_values[i].hint);
		}
}

TEST(a_mistake_is_reported_with_its_line_and_a_hint)
{
	static const struct {
		const char *text, *what, *hint;
	} cases[] = {
		{"RingSize=1M\n", "x.conf:1: RingSize= is before the first section", "[Recorder]"},
		{"[Recoder]\nRingSize=1M\n", "x.conf:1: unknown section [Recoder]", "[Recorder]"},
		{"[Triger a]\nEvery=1h\n", "x.conf:1: unknown section [Triger a]", "[Trigger a]"},
		{"[Trigers]\n", "x.conf:1: unknown section [Trigers]", "[Triggers]"},
		{"[Zzz]\n", "x.conf:1: unknown section [Zzz]", "[Trigger NAME]"},
		{"[Recorder\n", "x.conf:1: the section has no ]", "[Recorder]"},
		{"[Recorder]\n# ok\nRingSize\n", "x.conf:3: the line has no =", "NAME=VALUE"},
		{"[Recorder]\n\nRingSzie=1M\n", "x.conf:3: unknown key 'RingSzie' in [Recorder]",
			"RingSize=?"},
		{"[Recorder]\nWindow=3s\n", "x.conf:2: unknown key 'Window'", "Window= of [Dump]"},
		{"[Dump]\n\n\nWindow=soon\nNonsense=1\n", "x.conf:4: Window=", ""},
		{"[Triggers]\nCooldwn=1s\n", "x.conf:2: unknown key 'Cooldwn'", "Cooldown=?"},
		{"[Trigger a]\nThresold=3\n", "x.conf:2: unknown key 'Thresold' in [Trigger a]",
			"Threshold=?"},
		{"[Recorder]\nFilter=x\n", "x.conf:2: there is no event before the filter", ""},
		{"[Recorder]\nEvents=a\nFilter=x\nFilter=y\n", "x.conf:4: there is a second filter", "&&"},
		{"[Recorder]\nRingSize=512K\n", "the ring of 512K is too small: the minimum is 1M", "1M"},
		{"[Recorder]\nRingSize=17G\n", "the ring of 17G is too large: the maximum is 16G", "-M"},
		{"[Dump]\nBlockSize=3M\n", "the block size 3145728 is not a power of two", "128K"},
		{"[Dump]\nBlockSize=4K\n", "the block of 4K is too small: the minimum is 64K", "64K"},
		{"[Trigger]\nEvery=1h\n", "x.conf:1: the section [Trigger] has no name", "[Triggers]"},
		{"[Trigger ]\n", "x.conf:1: the section [Trigger] has no name", "[Triggers]"},
		{"[Trigger a b]\n", "x.conf:1: 'a b' cannot be the name of a trigger", "63"},
		{"[Trigger a]\nProgram=/a\nEvery=1h\n", "x.conf:3: Program= and Every= are in one section",
			"two"},
		{"[Trigger oom-kill]\nEvery=1h\n", "x.conf:2: [Trigger oom-kill] is a built-in",
			"another name"},
		{"[Trigger oom-kill]\nProbe=exec\n", "x.conf:2: [Trigger oom-kill] is a built-in", "name"},
		{"[Trigger signal]\nProbe=exec\n", "x.conf:2: [Trigger signal] is a built-in", "name"},
		{"\n[Trigger oom-kil]\nWindow=1s\n", "x.conf:2: [Trigger oom-kil] has no source",
			"[Trigger oom-kill]"},
		{"[Trigger abcdefghijkl]\n", "x.conf:1: [Trigger abcdefghijkl] has no source", "Probe="},
		{"[Trigger a]\nEvery=1h\nThreshold=5\n",
			"x.conf:1: Threshold= has no effect beside Every=", ""},
		{"[Trigger a]\nProgram=/a\nFilter=x\n",
			"x.conf:1: Filter= has no effect beside Program=", ""},
		{"[Trigger signal]\nThreshold=5\n", "x.conf:1: Threshold= has no effect in [Trigger signal]",
			""},
		{"[Trigger fleet]\nAction=dump\n", "x.conf:1: Action= has no effect in [Trigger fleet]", ""},
		{"[Trigger oom-kill]\nSyscall=read\n",
			"x.conf:1: Syscall= has no effect on the probe oom-kill", ""},
		{"[Fleet]\nEnabled=yes\n", "Enabled=yes of [Fleet] needs Servers=", "Enabled=no"},
		{"[Fleet]\nKey=/k\n", "Key= of [Fleet] needs Certificate=", "both"},
		{"[Fleet]\nCertificate=/k\n", "Certificate= of [Fleet] needs Key=", "both"},
		{"[Fleet]\nUpload=s3://abc\n", "Upload= of [Fleet] needs UploadEndpoint=", "https://"},
		{"[Fleet]\nLabels=a=b\nLabels=c=d,a=e\n", "x.conf:3: Labels=: the label 'a' is there twice",
			"remove"},
		{"[Fleet]\nMetricsListen=192.0.2.1:80\n", "MetricsListen=192.0.2.1:80 can be reached",
			"MetricsPublic=yes"},
		{"[Flet]\n", "x.conf:1: unknown section [Flet]", "[Fleet]"},
		{"[Trigger a]\nEvery=1h\nPid=5\n", "x.conf:1: Pid= has no effect", ""},
		{"[Trigger a]\nFunction=/a:b\nInterval=5s\n", "x.conf:1: Interval= has no effect", ""},
	};
	char wide[600] = "[Recorder]\n\nEvents=";

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++)
		expect_refusal(cases[i].text, strlen(cases[i].text), cases[i].what, cases[i].hint);
	memset(wide + strlen(wide), 'x', 500);
	expect_refusal(wide, strlen(wide), "x.conf:3: the line is too long", "several Events=");
}

TEST(a_nul_byte_is_refused)
{
	static const struct {
		const char text[32], *what;
	} cases[] = {{"\0\0", "x.conf:1"}, {"[Recorder]\nRingSize=8M\0lots", "x.conf:2"},
		{"\n\0[Dump]\n", "x.conf:2"}, {"[Recorder]\nEvents=a\0b\n[Dump]\n", "x.conf:2"}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++)
		expect_refusal(cases[i].text, sizeof(cases[i].text), cases[i].what, "remove NUL bytes");
}

TEST(only_loopback_addresses_are_valid_without_metrics_public)
{
	static const struct {
		const char *address;
		bool is_loopback;
	} cases[] = {{"", true}, {"127.0.0.1:9752", true}, {"127.1.2.3:1", true}, {"[::1]:65535", true},
		{"0.0.0.0:9752", false}, {"[::]:9752", false}, {"192.0.2.1:80", false},
		{"[::ffff:127.0.0.1]:80", false}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		_cleanup_(fr_config_deinit) struct fr_config c = {0};

		fr_config_init(&c);
		assert_int_equal(
			fr_config_set(&c, "Recorder", "MetricsListen", cases[i].address, "x", NULL), 0);
		assert_int_equal(fr_config_check(&c, NULL), cases[i].is_loopback ? 0 : -EINVAL);
		assert_int_equal(fr_config_set(&c, "Recorder", "MetricsPublic", "yes", "x", NULL), 0);
		assert_int_equal(fr_config_check(&c, NULL), 0);
	}
}

TEST(lists_of_the_fleet_add_up_to_some_kilobytes)
{
	_cleanup_(fr_config_deinit) struct fr_config c = {0};
	struct fr_diag d = {0};
	char text[180] = "nats://", line[16];
	int r = 0;

	memset(text + strlen(text), 'h', 150);
	fr_config_init(&c);
	for (int i = 0; i < 50; i++)
		assert_int_equal(fr_config_set(&c, "Fleet", "Servers", text, "x", NULL), 0);
	assert_int_equal(strlen(c.fleet.servers), 50 * strlen(text) + 49);
	for (int i = 0; i < 10 && r == 0; i++)
		r = fr_config_set(&c, "Fleet", "Servers", text, "x", &d);
	assert_int_equal(r, -EINVAL);
	assert_string_equal(d.what, "x: Servers= has more than 8192 bytes");
	d = (struct fr_diag){0};
	for (int i = 0; i < 32; i++) {
		snprintf(line, sizeof(line), "l%d=v", i);
		assert_int_equal(fr_config_set(&c, "Fleet", "Labels", line, "x", NULL), 0);
	}
	assert_int_equal(fr_config_set(&c, "Fleet", "Labels", "one=more", "x", &d), -EINVAL);
	assert_string_equal(d.what, "x: Labels=: there are more than 32 labels");
	assert_int_equal(fr_config_set(&c, "Fleet", "Labels", "", "x", NULL), 0);
	assert_string_equal(c.fleet.labels, "");
}

TEST(limits_are_inclusive)
{
	static const char *const texts[] = {"[Recorder]\nRingSize=1M\n[Dump]\nBlockSize=64K\nQueueDepth=1\n",
		"[Recorder]\nRingSize=16G\n[Dump]\nBlockSize=16M\nQueueDepth=64\n"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(texts); i++) {
		_cleanup_(fr_config_deinit) struct fr_config c = {0};

		read_valid(&c, texts[i]);
	}
}
