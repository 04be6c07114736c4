// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of keys: what each takes, what it is by default, and how it is explained. */
#include "config/values.h"
#include "base/cleanup.h"
#include "base/nearest.h"

#include <errno.h>
#include <string.h>

#define MEMBER(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define OTHER(member) MEMBER(struct fr_config, member)
#define REOPEN(member) MEMBER(struct fr_config, member), FR_RELOAD_REOPEN
#define AT_ONCE(member) MEMBER(struct fr_config, member), FR_RELOAD_AT_ONCE
#define RESTART(member) MEMBER(struct fr_config, member), FR_RELOAD_RESTART

#define TRIGGER FR_TRIGGER_SECTION
#define OF_TRIGGER(member) MEMBER(struct fr_trigger_config, member)
#define BIT(kind) (1u << FR_TRIGGER_##kind)
#define BPF (BIT(PROBE) | BIT(PROGRAM))
#define CODE (BIT(FUNCTION) | BIT(USDT))

_Static_assert(FR_TRIGGER_SIGNAL == 0, "a source of 0 means none: no key names SIGUSR1");

static const struct fr_config_key keys[] = {
	{"Recorder", "Events", "cycles", NULL,
		"The events to sample, as `perf record -e` takes them, separated by commas. Several lines\n"
		"add up; an empty one clears the list. By default: cycles with frame-pointer stacks, or\n"
		"cpu-clock if there is no hardware counter.",
		.type = &fr_type_events},
	{"Recorder", "Filter", "prev_pid != 0", NULL, "A tracepoint filter for the Events= line before it.",
		.type = &fr_type_filter},
	{"Recorder", "Frequency", "99", NULL,
		"The number of samples a second on each CPU. Not together with Period=.", &fr_type_whole,
		REOPEN(defaults.frequency_hz), .least = 1, .most = 1000000},
	{"Recorder", "Period", "1000000", NULL,
		"One sample each time this number of events has occurred. Not together with Frequency=.",
		&fr_type_whole, REOPEN(defaults.period), .least = 1, .most = INT64_MAX},
	{"Recorder", "CallGraph", "fp", NULL, "How stacks are recorded: fp, dwarf, dwarf,SIZE, lbr or no.",
		&fr_type_call_graph, REOPEN(defaults.call_graph)},
	{"Recorder", "CPUs", "0-3", NULL, "Record only these CPUs. Empty: all CPUs that are online.",
		&fr_type_cpus, REOPEN(cpus)},
	{"Recorder", "CGroup", "system.slice", NULL, "Record only tasks in this cgroup.", &fr_type_string,
		REOPEN(cgroup)},
	{"Recorder", "RingSize", "64M", "64M",
		"The memory of the ring of compressed samples: 1M to 16G. New samples replace the oldest.",
		&fr_type_ring_size, OTHER(ring_bytes)},
	{"Recorder", "KernelBuffer", "auto", "auto",
		"The kernel's ring of samples for each CPU, rounded up to a power of two of pages.\n"
		"auto: 16M, or less if all CPUs together would take more than 64M, if the machine has\n"
		"little memory, or if that much may not be locked.",
		&fr_type_kernel_buffer, REOPEN(kernel_buffer_bytes)},
	{"Recorder", "SidebandBuffer", "512K", "512K",
		"The kernel's ring of maps, names, forks and exits for each CPU, rounded up in the same\n"
		"way.",
		&fr_type_buffer, REOPEN(sideband_buffer_bytes)},
	{"Recorder", "KernelBuildIDs", "auto", "auto",
		"Whether the kernel puts build-ids into its records of maps: yes or no. With no, the\n"
		"recorder reads them from the files. auto: yes, unless another recorder runs that a fault\n"
		"of kernels up to 6.18 would disturb.",
		&fr_type_build_ids, REOPEN(kernel_build_ids)},
	{"Recorder", "AuxiliaryMax", "32M", "32M",
		"perf.data.auxiliary is compacted to what still matters when it is larger than this and\n"
		"has doubled in size. 0: never because of its size.",
		&fr_type_size, RESTART(auxiliary_max_bytes)},
	{"Recorder", "AuxiliaryMaxAge", "1h", "1h",
		"It is also compacted when the last compaction is older than this. 0: never because of\n"
		"its age.",
		&fr_type_duration, RESTART(auxiliary_max_age_ns)},
	{"Recorder", "CompressionLevel", "1", "1",
		"The zstd level of the ring, 1 to 19. 1 is right for most machines.", &fr_type_whole,
		RESTART(compression_level), .least = 1, .most = 19},
	{"Recorder", "Directory", "/var/lib/flightrec", "/var/lib/flightrec",
		"The directory of perf.data.auxiliary and of the dumps.", &fr_type_path, RESTART(directory)},
	{"Recorder", "ControlSocket", "/run/flightrec/control", "/run/flightrec/control",
		"The socket that flightrecctl connects to. no: there is none.", &fr_type_socket,
		RESTART(socket)},
	{"Recorder", "Group", "flightrec", "flightrec",
		"Besides root, members of this group may read the dumps and use the socket.", &fr_type_string,
		RESTART(group)},
	{"Recorder", "LogLevel", "info", "info", "err, warning, notice, info or debug.", &fr_type_log_level,
		AT_ONCE(log_level)},
	{"Recorder", "CPUBudget", "no", "no",
		"The part of one CPU that the recorder itself may take, as in 1%. If it takes more over\n"
		"10 s, it halves its frequencies, step by step down to 1/16, and doubles them again when\n"
		"it is quiet. no: no limit.",
		&fr_type_cpu_part, AT_ONCE(cpu_budget_ppm)},
	{"Recorder", "MetricsListen", "", "",
		"Serve the metrics over HTTP at /metrics on this address, as in 127.0.0.1:9752. Empty: do\n"
		"not listen.",
		&fr_type_address, RESTART(metrics_listen)},
	{"Recorder", "MetricsPublic", "no", "no",
		"Allow a MetricsListen= address that other machines can reach. There is neither a\n"
		"password nor encryption.",
		&fr_type_boolean, OTHER(metrics_public)},
	{"Dump", "Compression", "yes", "yes",
		"Write the content of the ring as it is, compressed. With no, programs without zstd can\n"
		"read dumps too.",
		&fr_type_boolean, AT_ONCE(dump_compress)},
	{"Dump", "Window", "all", "all",
		"How far back a dump goes if a person asks for one without a time. all: the whole ring.",
		&fr_type_window, AT_ONCE(window_ns)},
	{"Dump", "PostTrigger", "0", "0",
		"How long the recorder records after the trigger before it writes the dump: 0 to 1h.",
		&fr_type_post_trigger, AT_ONCE(post_trigger_ns)},
	{"Dump", "MaxUse", "", "",
		"How much disk space all dumps together may take; the oldest are removed. 0: no limit.\n"
		"Empty: 10 % of the file system, at most 4G.",
		&fr_type_disk_limit, AT_ONCE(retention.max_use)},
	{"Dump", "KeepFree", "", "",
		"How much of the file system stays free; the oldest dumps are removed. 0: no limit.\n"
		"Empty: 15 % of the file system, at most 4G.",
		&fr_type_disk_limit, AT_ONCE(retention.keep_free)},
	{"Dump", "MaxFiles", "0", "0", "The largest number of dumps; the oldest are removed. 0: no limit.",
		&fr_type_whole, AT_ONCE(retention.max_files), .least = 0, .most = 1000000},
	{"Dump", "MaxAge", "0", "0", "Dumps that are older than this are removed. 0: no limit.",
		&fr_type_duration, AT_ONCE(retention.max_age_ns)},
	{"Dump", "KeepFailed", "yes", "yes",
		"If a dump cannot be written, keep the newest such dump in memory, in at most half of\n"
		"the ring, and write it when there is space.",
		&fr_type_boolean, AT_ONCE(keep_failed)},
	{"Dump", "BlockSize", "1M", "1M", "The number of bytes of one write: a power of two from 64K to 16M.",
		&fr_type_size, AT_ONCE(block_bytes)},
	{"Dump", "QueueDepth", "8", "8", "The number of writes in flight, 1 to 64.", &fr_type_whole,
		AT_ONCE(queue_depth), .least = 1, .most = 64},
	{"Dump", "CacheObjects", "no", "no",
		"Keep copies of the object files that the samples of dumps refer to, in debug/ beside the\n"
		"dumps, for perf --buildid-dir: no, yes (1G of them) or a size. The least recently used\n"
		"are removed first.",
		&fr_type_cache, RESTART(cache_bytes)},
	{"Dump", "CacheObjectMax", "256M", "256M", "A larger object file is not copied.", &fr_type_size,
		RESTART(cache_object_bytes)},
	{"Triggers", "Cooldown", "1min", "1min",
		"After a trigger has made a dump, it stays quiet for this time. 0: no pause.",
		&fr_type_duration, OTHER(triggers.cooldown_ns)},
	{"Triggers", "MinFill", "0", "0", "Triggers make no dump until the ring holds this much time.",
		&fr_type_duration, OTHER(triggers.min_fill_ns)},
	{"Triggers", "Window", "30s", "30s",
		"How far back from its anomaly the dump of a trigger goes, if its section has no Window=.\n"
		"all: the whole ring.",
		&fr_type_window, OTHER(triggers.window_ns)},
	{"Triggers", "RateLimit", "20/1h", "20/1h",
		"All triggers together make at most this many dumps in this time. Dumps that a person\n"
		"asks for do not count. no: no limit.",
		.type = &fr_type_rate},
	{"Triggers", "Socket", "/run/flightrec/trigger", "/run/flightrec/trigger",
		"The socket that applications send their triggers to. no: there is none.", &fr_type_socket,
		OTHER(triggers.socket)},
	{TRIGGER, "Probe", "run-queue-latency", NULL,
		"A section has one source: one of these eight keys. Probe= is a built-in probe, and not\n"
		"needed in a section with the name of a probe. flightrecd.conf(5) lists the probes.",
		&fr_type_probe, OF_TRIGGER(subject), .source = FR_TRIGGER_PROBE},
	{TRIGGER, "Program", "/etc/flightrec/slow-disk.bpf.o", NULL,
		"A BPF object that was made with include/flightrec/trigger.bpf.h.", &fr_type_path,
		OF_TRIGGER(subject), .source = FR_TRIGGER_PROGRAM},
	{TRIGGER, "Function", "/usr/sbin/mysqld:dispatch_command", NULL,
		"Fire for calls of this function that take Threshold= or longer.", &fr_type_function,
		OF_TRIGGER(subject), .source = FR_TRIGGER_FUNCTION},
	{TRIGGER, "USDT", "/usr/sbin/mysqld:mysql:query__start,mysql:query__done", NULL,
		"Fire if a thread takes Threshold= or longer from one static probe of a program to the\n"
		"other.",
		&fr_type_usdt, OF_TRIGGER(subject), .source = FR_TRIGGER_USDT},
	{TRIGGER, "Pressure", "memory some", NULL,
		"Fire if tasks were stalled for Threshold= within Interval=: cpu, memory or io, and some\n"
		"or full. With CGroup=, only tasks of that cgroup count.",
		&fr_type_string, OF_TRIGGER(subject), .source = FR_TRIGGER_PRESSURE},
	{TRIGGER, "Event", "sched:sched_process_exec", NULL,
		"Fire at each occurrence of an event as `perf record -e` takes it, or at Threshold= of\n"
		"them within Interval=.",
		&fr_type_string, OF_TRIGGER(subject), .source = FR_TRIGGER_EVENT},
	{TRIGGER, "Every", "1h", NULL, "A timer: fire each time this time has passed.", &fr_type_interval,
		OF_TRIGGER(every_ns), .source = FR_TRIGGER_TIMER},
	{TRIGGER, "Application", "yes", NULL,
		"Fire when an application names this trigger in a datagram, see\n"
		"include/flightrec/trigger.h.",
		&fr_type_application, OF_TRIGGER(subject), .source = FR_TRIGGER_APPLICATION},
	{TRIGGER, "Threshold", "20ms", NULL,
		"The lowest value that fires: a time, a number or a size, as the source measures.",
		&fr_type_string, OF_TRIGGER(threshold), .kinds = BPF | CODE | BIT(PRESSURE) | BIT(EVENT)},
	{TRIGGER, "Interval", "1s", NULL, "The time over which a source counts.", &fr_type_interval,
		OF_TRIGGER(interval_ns), .unset = FR_TRIGGER_UNSET,
		.kinds = BPF | BIT(PRESSURE) | BIT(EVENT)},
	{TRIGGER, "Filter", "filename ~ \"*/sshd\"", NULL, "A tracepoint filter for Event=.", &fr_type_string,
		OF_TRIGGER(filter), .kinds = BIT(EVENT)},
	{TRIGGER, "Syscall", "fsync fdatasync", NULL,
		"The probe syscall-latency looks only at these system calls.", &fr_type_string,
		OF_TRIGGER(syscalls), .kinds = BIT(PROBE)},
	{TRIGGER, "Comm", "mysqld", NULL, "Only tasks with this name count.", &fr_type_comm, OF_TRIGGER(comm),
		.kinds = BPF | CODE | BIT(EVENT)},
	{TRIGGER, "CGroup", "/system.slice/mysql.service", NULL, "Only tasks in this cgroup count.",
		&fr_type_string, OF_TRIGGER(cgroup), .kinds = BPF | CODE | BIT(EVENT) | BIT(PRESSURE)},
	{TRIGGER, "Pid", "1234", NULL, "Only tasks of this process count.", &fr_type_pid, OF_TRIGGER(pid),
		.kinds = BPF | CODE | BIT(EVENT)},
	{TRIGGER, "Set", "limit=5", NULL,
		"A global variable of Program=. Several lines add up; an empty one clears the list.",
		&fr_type_globals, OF_TRIGGER(set), .kinds = BPF},
	{TRIGGER, "Enabled", "yes", "yes",
		"With no, the trigger is not armed until flightrecctl enable arms it.", &fr_type_boolean,
		OF_TRIGGER(enabled)},
	{TRIGGER, "Cooldown", "1min", NULL, "As in [Triggers], for this trigger.", &fr_type_duration,
		OF_TRIGGER(cooldown_ns), .unset = FR_TRIGGER_UNSET},
	{TRIGGER, "MinFill", "30s", NULL, "As in [Triggers], for this trigger.", &fr_type_duration,
		OF_TRIGGER(min_fill_ns), .unset = FR_TRIGGER_UNSET},
	{TRIGGER, "Window", "2min", NULL, "As in [Triggers], for the dumps of this trigger.", &fr_type_window,
		OF_TRIGGER(window_ns), .unset = FR_TRIGGER_UNSET},
	{TRIGGER, "PostTrigger", "5s", NULL,
		"As in [Dump], for the dumps of this trigger. Triggers that fire until then share the\n"
		"file.",
		&fr_type_post_trigger, OF_TRIGGER(post_ns), .unset = FR_TRIGGER_UNSET},
};

const struct fr_config_key *fr_config_keys(size_t *ret_n)
{
	*ret_n = FR_ARRAY_SIZE(keys);
	return keys;
}

bool fr_config_has_same_value(const struct fr_config_key *key, const void *a, const void *b)
{
	const void *x = (const char *)a + key->offset, *y = (const char *)b + key->offset;

	return key->type->is_string ? fr_string_is_same(*(char *const *)x, *(char *const *)y)
				    : memcmp(x, y, key->size) == 0;
}

static const char *key_name(const void *ctx, size_t i)
{
	return keys[i].name;
}

static const char *section_name(const void *ctx, size_t i)
{
	static const char *const names[] = {"Recorder", "Dump", "Triggers"};

	return names[i];
}

static int fail_unknown_section(const char *section, struct fr_diag *d)
{
	const char *rest = section + strcspn(section, " "), *near;
	char word[32], hint[128] = "the sections are [Recorder], [Dump], [Triggers] and [Trigger NAME]";

	snprintf(word, sizeof(word), "%.*s", (int)(rest - section), section);
	near = fr_nearest(word, section_name, NULL, 3);
	if (near && *rest && !strcmp(near, "Triggers"))
		snprintf(hint, sizeof(hint), "did you mean [Trigger%s]?", rest);
	else if (near)
		snprintf(hint, sizeof(hint), "did you mean [%s]?", near);
	return fr_fail(d, -EINVAL, hint, "unknown section [%s]", section);
}

/* SHOWN is the section as the file has it. Several sections can have a key of one name. */
static int fail_unknown_key(const char *section, const char *shown, const char *name, struct fr_diag *d)
{
	const char *near = fr_nearest(name, key_name, NULL, FR_ARRAY_SIZE(keys)), *owner = NULL;
	char hint[128] = "flightrecd --help-config lists all keys";

	for (size_t i = 0; near && i < FR_ARRAY_SIZE(keys); i++)
		if (!strcmp(near, keys[i].name) && (!owner || !strcmp(keys[i].section, section)))
			owner = keys[i].section;
	if (near && !strcmp(owner, section))
		snprintf(hint, sizeof(hint), "did you mean %s=?", near);
	else if (near)
		snprintf(hint, sizeof(hint), "did you mean %s= of [%s]?", near, owner);
	return fr_fail(d, -EINVAL, hint, "unknown key '%s' in [%s]", name, shown);
}

static bool is_section(const char *section)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].section, section))
			return true;
	return false;
}

/* Find the section, or create the trigger. RET: the name in the table; OBJECT: what its keys set. */
static int enter_section(struct fr_config *c, const char *section, const char *origin, const char **ret,
	void **ret_object, struct fr_diag *d)
{
	const char *trigger = fr_config_trigger_name(section);
	struct fr_trigger_config *t = NULL;
	int r = 0;

	if (trigger)
		r = fr_config_add_trigger(c, trigger, origin, &t, d);
	else if (!is_section(section))
		r = fail_unknown_section(section, d);
	*ret = trigger ? FR_TRIGGER_SECTION : section;
	*ret_object = trigger ? (void *)t : c;
	return r;
}

static int assign(struct fr_config *c, const char *section, const char *name, const char *value,
	const char *origin, struct fr_diag *d)
{
	const char *canonical;
	void *object;
	int r;

	if (!*section)
		return fr_fail(d, -EINVAL, "begin with [Recorder] or [Dump]",
			"%s= stands before the first section", name);
	r = enter_section(c, section, origin, &canonical, &object, d);
	if (r < 0)
		return r;
	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].section, canonical) && !strcmp(keys[i].name, name))
			return fr_value_assign(&(struct fr_assignment){
				&keys[i], object, *value ? value : keys[i].default_value, origin, d});
	return fail_unknown_key(canonical, section, name, d);
}

static int prefix_origin(int code, const char *origin, struct fr_diag *d)
{
	if (code < 0 && code != -ENOMEM)
		fr_diag_prefix(d, "%s", origin);
	return code;
}

int fr_config_begin_section(struct fr_config *c, const char *section, const char *origin, struct fr_diag *d)
{
	const char *canonical;
	void *object;

	return prefix_origin(enter_section(c, section, origin, &canonical, &object, d), origin, d);
}

int fr_config_set(struct fr_config *c, const char *section, const char *name, const char *value,
	const char *origin, struct fr_diag *d)
{
	return prefix_origin(assign(c, section, name, value, origin, d), origin, d);
}

static void print_help(FILE *f, const char *lines)
{
	while (*lines) {
		int n = (int)strcspn(lines, "\n");

		fprintf(f, "# %.*s\n", n, lines);
		lines += n + (lines[n] == '\n');
	}
}

void fr_config_print_default(FILE *f)
{
	const char *section = "";

	fprintf(f,
		"# The configuration of flightrecd, see flightrecd.conf(5). Each commented line shows the\n"
		"# default or an example. Put your own changes into flightrecd.conf.d/NAME.conf.\n");
	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++) {
		if (strcmp(section, keys[i].section) != 0)
			fprintf(f,
				strcmp(keys[i].section, TRIGGER) ? "\n[%s]\n"
								 : "\n# A trigger with this name. There can "
								   "be any number of such sections.\n#[%s]\n",
				keys[i].section);
		section = keys[i].section;
		print_help(f, keys[i].help);
		fprintf(f, "#%s=%s\n", keys[i].name, keys[i].value);
	}
}
