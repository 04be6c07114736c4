// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of keys: what each takes, what it is by default, and how it is explained. */
#include "config/config_private.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/clock.h"
#include "base/units.h"
#include "config/address.h"
#include "config/memory.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <syslog.h>

#define POST_TRIGGER_MAX_NS (3600 * FR_NSEC_PER_SEC)

#define CACHE_DEFAULT (1ULL << 30)
#define MEMBER(type) ((type *)((char *)c + key->offset))
#define SETTER(name)                                                                                         \
	static int name(struct fr_config *c, const struct fr_config_key *key, const char *value,             \
		const char *origin, struct fr_diag *d)

SETTER(set_string)
{
	char *s = value ? strdup(value) : NULL;

	if (value && !s)
		return -ENOMEM;
	free(*MEMBER(char *));
	*MEMBER(char *) = s;
	return 0;
}

SETTER(set_absolute_path)
{
	/* An empty one is "none". */
	if (value && *value && *value != '/')
		return fr_fail(d, -EINVAL, "give a path that begins with /",
			"%s= is not an absolute path: '%s'", key->name, value);
	return set_string(c, key, value, origin, d);
}

SETTER(set_socket)
{
	return set_absolute_path(c, key, strcmp(value, "no") ? value : "", origin, d);
}

SETTER(set_size)
{
	uint64_t v;

	if (fr_size_parse(value, &v) < 0)
		return fr_fail(
			d, -EINVAL, "write it as 512K, 64M or 2G", "%s= is no size: '%s'", key->name, value);
	*MEMBER(uint64_t) = v;
	return 0;
}

/* Of the disk: empty is "a part of the file system". */
SETTER(set_limit)
{
	if (*value)
		return set_size(c, key, value, origin, d);
	*MEMBER(uint64_t) = FR_RETENTION_DEFAULT;
	return 0;
}

/* What does not fit is found out late: it is to be told where it was asked for. */
SETTER(set_ring_size)
{
	int r = set_size(c, key, value, origin, d);
	char *copy = r < 0 ? NULL : strdup(origin);

	if (r < 0 || !copy)
		return r < 0 ? r : -ENOMEM;
	free(c->ring_origin);
	c->ring_origin = copy;
	return 0;
}

/* A switch, or how much. */
SETTER(set_cache)
{
	int r = fr_boolean_parse(value);

	if (r < 0)
		return set_size(c, key, value, origin, d);
	*MEMBER(uint64_t) = r ? CACHE_DEFAULT : 0;
	return 0;
}

/* perf's rings are a power of two of pages. */
SETTER(set_buffer)
{
	uint64_t v, rounded = (uint64_t)sysconf(_SC_PAGESIZE);

	if (fr_size_parse(value, &v) < 0)
		return fr_fail(
			d, -EINVAL, "write it as 512K or 2M", "%s= is no size: '%s'", key->name, value);
	if (v < 1 || v > key->most)
		return fr_fail(d, -EINVAL, "give from one page to 1G for each CPU",
			"%s= is out of range: '%s'", key->name, value);
	while (rounded < v)
		rounded *= 2;
	*MEMBER(uint64_t) = rounded;
	return 0;
}

SETTER(set_kernel_buffer)
{
	if (strcmp(value, "auto"))
		return set_buffer(c, key, value, origin, d);
	*MEMBER(uint64_t) = fr_memory_kernel_buffer_here();
	return 0;
}

SETTER(set_duration)
{
	uint64_t v;

	if (fr_duration_parse(value, &v) < 0)
		return fr_fail(d, -EINVAL, "write it as 30s, 5min or 1h30m; 0 is no limit",
			"%s= is no duration: '%s'", key->name, value);
	*MEMBER(uint64_t) = v;
	return 0;
}

int fr_config_parse_window(const char *key, const char *value, uint64_t *ret, struct fr_diag *d)
{
	uint64_t v = 0;

	if (strcmp(value, "all") != 0 && fr_duration_parse(value, &v) < 0)
		return fr_fail(d, -EINVAL, "write it as 30s, 5min or 1h30m, or all: what the ring holds",
			"%s= is no duration: '%s'", key, value);
	*ret = v;
	return 0;
}

SETTER(set_window)
{
	return fr_config_parse_window(key->name, value, MEMBER(uint64_t), d);
}

SETTER(set_post)
{
	int r = set_duration(c, key, value, origin, d);

	if (r == 0 && *MEMBER(uint64_t) > POST_TRIGGER_MAX_NS)
		return fr_fail(d, -EINVAL, "give at most 1h", "%s= is too long: '%s'", key->name, value);
	return r;
}

SETTER(set_boolean)
{
	int r = fr_boolean_parse(value);

	if (r < 0)
		return fr_fail(
			d, -EINVAL, "write yes or no", "%s= is neither yes nor no: '%s'", key->name, value);
	*MEMBER(bool) = r;
	return 0;
}

SETTER(set_kernel_build_ids)
{
	int r = strcmp(value, "auto") ? fr_boolean_parse(value) : FR_BUILD_IDS_AUTO;

	if (r < 0)
		return fr_fail(d, -EINVAL, "write yes, no or auto", "%s= is none of yes, no and auto: '%s'",
			key->name, value);
	c->kernel_build_ids = (enum fr_build_ids)r;
	return 0;
}

static int parse_range(const struct fr_config_key *key, const char *value, uint64_t *ret, struct fr_diag *d)
{
	char hint[128];
	uint64_t v;

	if (fr_u64_parse(value, &v) == 0 && v >= key->least && v <= key->most) {
		*ret = v;
		return 0;
	}
	snprintf(hint, sizeof(hint), "write it as %s=%s", key->name, key->value);
	return fr_fail(d, -EINVAL, hint, "%s= is no whole number from %llu to %llu: '%s'", key->name,
		(unsigned long long)key->least, (unsigned long long)key->most, value);
}

SETTER(set_u64)
{
	return value ? parse_range(key, value, MEMBER(uint64_t), d) : (*MEMBER(uint64_t) = 0, 0);
}

SETTER(set_int)
{
	uint64_t v = 0;
	int r = parse_range(key, value, &v, d);

	if (r == 0)
		*MEMBER(int) = (int)v;
	return r;
}

SETTER(set_events)
{
	if (!value) {
		fr_config_clear_events(c);
		return 0;
	}
	return fr_config_add_event(c, value, origin, d);
}

SETTER(set_filter)
{
	return value ? fr_config_set_last_filter(c, value, d) : 0;
}

SETTER(set_call_graph)
{
	if (value)
		return fr_call_graph_parse(value, &c->defaults, d);
	c->defaults.call_graph = FR_CALL_GRAPH_UNSET;
	c->defaults.dwarf_stack_bytes = 0;
	return 0;
}

SETTER(set_cpus)
{
	uint8_t bits[8192 / 8];

	if (value && fr_cpulist_parse(value, bits, 8192) < 0)
		return fr_fail(
			d, -EINVAL, "write it as 0-3,8", "%s= is no list of CPUs: '%s'", key->name, value);
	return set_string(c, key, value, origin, d);
}

SETTER(set_log_level)
{
	static const struct {
		const char *name;
		int level;
	} levels[] = {
		{"err", LOG_ERR},
		{"error", LOG_ERR},
		{"warning", LOG_WARNING},
		{"notice", LOG_NOTICE},
		{"info", LOG_INFO},
		{"debug", LOG_DEBUG},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(levels); i++)
		if (!strcasecmp(value, levels[i].name)) {
			c->log_level = levels[i].level;
			return 0;
		}
	return fr_fail(d, -EINVAL, "give err, warning, notice, info or debug", "%s= is no log level: '%s'",
		key->name, value);
}

/* "20/1h"; no: no limit. */
SETTER(set_rate)
{
	const char *slash = strchr(value, '/');
	_cleanup_free_ char *burst = slash ? strndup(value, (size_t)(slash - value)) : NULL;
	uint64_t n, ns;

	if (slash && !burst)
		return -ENOMEM;
	if (fr_boolean_parse(value) == 0) {
		c->triggers.rate_burst = 0;
		c->triggers.rate_interval_ns = 0;
		return 0;
	}
	if (!slash || fr_u64_parse(burst, &n) < 0 || n < 1 || n > key->most ||
		fr_duration_parse(slash + 1, &ns) < 0 || ns == 0)
		return fr_fail(d, -EINVAL, "write it as 20/1h, or no for no limit",
			"%s= is no number of dumps in a time: '%s'", key->name, value);
	c->triggers.rate_burst = (unsigned)n;
	c->triggers.rate_interval_ns = ns;
	return 0;
}

/* "1%" or "0.5%" of one CPU, in millionths of it. */
static int parse_percent(const char *value, uint64_t *ret)
{
	const size_t whole = strspn(value, "0123456789");
	uint64_t v = 0, unit = 10000; /* ppm */
	const char *p = value;

	if (whole < 1 || whole > 5)
		return -EINVAL;
	for (; p < value + whole; p++)
		v = v * 10 + (uint64_t)(*p - '0') * unit;
	if (*p == '.')
		for (p++; *p >= '0' && *p <= '9' && unit > 1; p++) {
			unit /= 10;
			v += (uint64_t)(*p - '0') * unit;
		}
	if (strcmp(p, "%") != 0)
		return -EINVAL;
	*ret = v;
	return 0;
}

SETTER(set_budget)
{
	uint64_t v = 0;

	if (fr_boolean_parse(value) != 0 && (parse_percent(value, &v) < 0 || v < key->least || v > key->most))
		return fr_fail(d, -EINVAL,
			"write it as 1% or 0.5%, of one CPU: 0.01% to 10000%; or no for no limit",
			"%s= is no part of a CPU: '%s'", key->name, value);
	*MEMBER(uint64_t) = v;
	return 0;
}

SETTER(set_address)
{
	union fr_address a;

	if (value && *value && fr_address_parse(value, &a) < 0)
		return fr_fail(d, -EINVAL, "write it as 127.0.0.1:9752 or [::1]:9752",
			"%s= is no address with a port: '%s'", key->name, value);
	return set_string(c, key, value, origin, d);
}

#define AT(member) .offset = offsetof(struct fr_config, member)

static const struct fr_config_key keys[] = {
	{"Recorder", "Events", "cycles", NULL,
		"The events to sample, as `perf record -e` takes them, separated by commas. Several lines\n"
		"add up; an empty one clears the list. By default: cycles with frame-pointer stacks, or\n"
		"cpu-clock if there is no hardware counter.",
		.set = set_events},
	{"Recorder", "Filter", "prev_pid != 0", NULL, "A tracepoint filter for the Events= line before it.",
		.set = set_filter},
	{"Recorder", "Frequency", "99", NULL,
		"The number of samples a second on each CPU. Not together with Period=.", set_u64,
		AT(defaults.frequency_hz), 1, 1000000},
	{"Recorder", "Period", "1000000", NULL,
		"One sample each time this number of events has occurred. Not together with Frequency=.",
		set_u64, AT(defaults.period), 1, INT64_MAX},
	{"Recorder", "CallGraph", "fp", NULL, "How stacks are recorded: fp, dwarf, dwarf,SIZE, lbr or no.",
		.set = set_call_graph},
	{"Recorder", "CPUs", "0-3", NULL, "Record only these CPUs. Empty: all CPUs that are online.",
		set_cpus, AT(cpus)},
	{"Recorder", "CGroup", "system.slice", NULL, "Record only tasks in this cgroup.", set_string,
		AT(cgroup)},
	{"Recorder", "RingSize", "64M", "64M",
		"The memory of the ring of compressed samples: 1M to 16G. New samples replace the oldest.",
		set_ring_size, AT(ring_bytes)},
	{"Recorder", "KernelBuffer", "auto", "auto",
		"The kernel's ring of samples for each CPU, rounded up to a power of two of pages.\n"
		"auto: 16M, or less if all CPUs together would take more than 64M, if the machine has\n"
		"little memory, or if that much may not be locked.",
		set_kernel_buffer, AT(kernel_buffer_bytes), 1, 1ULL << 30},
	{"Recorder", "SidebandBuffer", "512K", "512K",
		"The kernel's ring of maps, names, forks and exits for each CPU, rounded up in the same\n"
		"way.",
		set_buffer, AT(sideband_buffer_bytes), 1, 1ULL << 30},
	{"Recorder", "KernelBuildIDs", "auto", "auto",
		"Whether the kernel puts build-ids into its records of maps: yes or no. With no, the\n"
		"recorder reads them from the files. auto: yes, unless another recorder runs that a fault\n"
		"of kernels up to 6.18 would disturb.",
		.set = set_kernel_build_ids},
	{"Recorder", "AuxiliaryMax", "32M", "32M",
		"perf.data.auxiliary is compacted to what still matters when it is larger than this and\n"
		"has doubled in size. 0: never because of its size.",
		set_size, AT(auxiliary_max_bytes)},
	{"Recorder", "AuxiliaryMaxAge", "1h", "1h",
		"It is also compacted when the last compaction is older than this. 0: never because of\n"
		"its age.",
		set_duration, AT(auxiliary_max_age_ns)},
	{"Recorder", "CompressionLevel", "1", "1",
		"The zstd level of the ring, 1 to 19. 1 is right for most machines.", set_int,
		AT(compression_level), 1, 19},
	{"Recorder", "Directory", "/var/lib/flightrec", "/var/lib/flightrec",
		"The directory of perf.data.auxiliary and of the dumps.", set_absolute_path, AT(directory)},
	{"Recorder", "ControlSocket", "/run/flightrec/control", "/run/flightrec/control",
		"The socket that flightrecctl connects to. no: there is none.", set_socket, AT(socket)},
	{"Recorder", "Group", "flightrec", "flightrec",
		"Besides root, members of this group may read the dumps and use the socket.", set_string,
		AT(group)},
	{"Recorder", "LogLevel", "info", "info", "err, warning, notice, info or debug.",
		.set = set_log_level},
	{"Recorder", "CPUBudget", "no", "no",
		"The part of one CPU that the recorder itself may take, as in 1%. If it takes more over\n"
		"10 s, it halves its frequencies, step by step down to 1/16, and doubles them again when\n"
		"it is quiet. no: no limit.",
		set_budget, AT(cpu_budget_ppm), 100, 100000000},
	{"Recorder", "MetricsListen", "", "",
		"Serve the metrics over HTTP at /metrics on this address, as in 127.0.0.1:9752. Empty: do\n"
		"not listen.",
		set_address, AT(metrics_listen)},
	{"Recorder", "MetricsPublic", "no", "no",
		"Allow a MetricsListen= address that other machines can reach. There is neither a\n"
		"password nor encryption.",
		set_boolean, AT(metrics_public)},
	{"Dump", "Compression", "yes", "yes",
		"Write the content of the ring as it is, compressed. With no, programs without zstd can\n"
		"read dumps too.",
		set_boolean, AT(dump_compress)},
	{"Dump", "Window", "all", "all",
		"How far back a dump goes if a person asks for one without a time. all: the whole ring.",
		set_window, AT(window_ns)},
	{"Dump", "PostTrigger", "0", "0",
		"How long the recorder records after the trigger before it writes the dump: 0 to 1h.",
		set_post, AT(post_trigger_ns)},
	{"Dump", "MaxUse", "", "",
		"How much disk space all dumps together may take; the oldest are removed. 0: no limit.\n"
		"Empty: 10 % of the file system, at most 4G.",
		set_limit, AT(retention.max_use)},
	{"Dump", "KeepFree", "", "",
		"How much of the file system stays free; the oldest dumps are removed. 0: no limit.\n"
		"Empty: 15 % of the file system, at most 4G.",
		set_limit, AT(retention.keep_free)},
	{"Dump", "MaxFiles", "0", "0", "The largest number of dumps; the oldest are removed. 0: no limit.",
		set_u64, AT(retention.max_files), 0, 1000000},
	{"Dump", "MaxAge", "0", "0", "Dumps that are older than this are removed. 0: no limit.", set_duration,
		AT(retention.max_age_ns)},
	{"Dump", "KeepFailed", "yes", "yes",
		"If a dump cannot be written, keep the newest such dump in memory, in at most half of\n"
		"the ring, and write it when there is space.",
		set_boolean, AT(keep_failed)},
	{"Dump", "BlockSize", "1M", "1M", "The number of bytes of one write: a power of two from 64K to 16M.",
		set_size, AT(block_bytes)},
	{"Dump", "QueueDepth", "8", "8", "The number of writes in flight, 1 to 64.", set_int, AT(queue_depth),
		1, 64},
	{"Dump", "CacheObjects", "no", "no",
		"Keep copies of the object files that the samples of dumps refer to, in debug/ beside the\n"
		"dumps, for perf --buildid-dir: no, yes (1G of them) or a size. The least recently used\n"
		"are removed first.",
		set_cache, AT(cache_bytes)},
	{"Dump", "CacheObjectMax", "256M", "256M", "A larger object file is not copied.", set_size,
		AT(cache_object_bytes)},
	{"Triggers", "Cooldown", "1min", "1min",
		"After a trigger has made a dump, it stays quiet for this time. 0: no pause.", set_duration,
		AT(triggers.cooldown_ns)},
	{"Triggers", "MinFill", "0", "0", "Triggers make no dump until the ring holds this much time.",
		set_duration, AT(triggers.min_fill_ns)},
	{"Triggers", "Window", "30s", "30s",
		"How far back from its anomaly the dump of a trigger goes, if its section has no Window=.\n"
		"all: the whole ring.",
		set_window, AT(triggers.window_ns)},
	{"Triggers", "RateLimit", "20/1h", "20/1h",
		"All triggers together make at most this many dumps in this time. Dumps that a person\n"
		"asks for do not count. no: no limit.",
		set_rate, .most = 1000000},
	{"Triggers", "Socket", "/run/flightrec/trigger", "/run/flightrec/trigger",
		"The socket that applications send their triggers to. no: there is none.", set_socket,
		AT(triggers.socket)},
};
_Static_assert(sizeof(int) == sizeof(unsigned), "set_int() serves both");

const struct fr_config_key *fr_config_keys(size_t *ret_n)
{
	*ret_n = FR_ARRAY_SIZE(keys);
	return keys;
}

static const char *key_name(const void *ctx, size_t i)
{
	return keys[i].name;
}

static const char *section_name(const void *ctx, size_t i)
{
	static const char *const names[] = {"Recorder", "Dump", "Triggers", "Trigger NAME"};

	return names[i];
}

static int unknown_section(const char *section, const char *name, struct fr_diag *d)
{
	_cleanup_free_ char *word = strndup(section, strcspn(section, " "));
	const char *near = word ? fr_nearest_name(section, section_name, NULL, 3) : NULL;
	char hint[128] = "the sections are [Recorder], [Dump], [Triggers] and [Trigger NAME]";

	if (!*section)
		return fr_fail(
			d, -EINVAL, "begin with [Recorder] or [Dump]", "%s= stands before any section", name);
	if (word && strlen(word) < strlen(section) &&
		fr_nearest_name(word, section_name, NULL, 3) == section_name(NULL, 2))
		snprintf(hint, sizeof(hint), "did you mean [Trigger%s]?", section + strlen(word));
	else if (near)
		snprintf(hint, sizeof(hint), "did you mean [%s]?", near);
	return fr_fail(d, -EINVAL, hint, "unknown section [%s]", section);
}

static int unknown_key(const char *section, const char *name, struct fr_diag *d)
{
	const char *near = fr_nearest_name(name, key_name, NULL, FR_ARRAY_SIZE(keys));
	char hint[128] = "flightrecd --help-config lists all";
	const char *where = NULL; /* some keys have one in two sections */

	for (const struct fr_config_key *k = keys + FR_ARRAY_SIZE(keys); near && k-- > keys;)
		if (!strcmp(near, k->name) && (!where || strcmp(where, section)))
			where = k->section;
	if (near && !strcmp(where, section))
		snprintf(hint, sizeof(hint), "did you mean %s=?", near);
	else if (near)
		snprintf(hint, sizeof(hint), "did you mean %s= of [%s]?", near, where);
	return fr_fail(d, -EINVAL, hint, "unknown key '%s' in [%s]", name, section);
}

static bool is_section(const char *section)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].section, section))
			return true;
	return false;
}

int fr_config_section(struct fr_config *c, const char *section, const char *origin, struct fr_diag *d)
{
	const char *trigger = fr_config_trigger_name(section);
	int r;

	if (!trigger && is_section(section))
		return 0;
	r = trigger ? fr_config_add_trigger(c, trigger, origin, d) : unknown_section(section, "", d);
	if (r < 0 && r != -ENOMEM)
		fr_diag_prefix(d, "%s", origin);
	return r;
}

static int set(struct fr_config *c, const char *section, const char *name, const char *value,
	const char *origin, struct fr_diag *d)
{
	const char *trigger = fr_config_trigger_name(section);

	if (trigger)
		return fr_config_set_trigger(c, trigger, name, value, origin, d);
	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].section, section) && !strcmp(keys[i].name, name))
			return keys[i].set(c, &keys[i], *value ? value : keys[i].default_value, origin, d);
	return is_section(section) ? unknown_key(section, name, d) : unknown_section(section, name, d);
}

int fr_config_set(struct fr_config *c, const char *section, const char *name, const char *value,
	const char *origin, struct fr_diag *d)
{
	int r = set(c, section, name, value, origin, d);

	if (r < 0 && r != -ENOMEM)
		fr_diag_prefix(d, "%s", origin);
	return r;
}

void fr_config_print_help(FILE *f, const char *lines)
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
		if (strcmp(section, keys[i].section))
			fprintf(f, "\n[%s]\n", keys[i].section);
		section = keys[i].section;
		fr_config_print_help(f, keys[i].help);
		fprintf(f, "#%s=%s\n", keys[i].name, keys[i].value);
	}
	fr_config_print_trigger_keys(f);
}
