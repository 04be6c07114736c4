// SPDX-License-Identifier: GPL-2.0-or-later
/* The sections [Trigger NAME]: any number, each with one source. Files that come later add to a section of
 * the same name. */
#include "config/config_private.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/clock.h"
#include "base/units.h"
#include "trigger/probes.h"

#include <errno.h>
#include <string.h>

#define TRIGGERS_MAX 256
#define POST_TRIGGER_MAX_NS (3600 * FR_NSEC_PER_SEC)
#define SET_MAX 256

#define MEMBER(type) ((type *)((char *)t + key->offset))
#define SETTER(name)                                                                                         \
	static int name(struct fr_trigger_config *t, const struct fr_trigger_key *key, const char *value,    \
		struct fr_diag *d)

/* A name says the source where it is that of one. FR_TRIGGER_KINDS: it does not. */
static enum fr_trigger_kind kind_of_name(const char *name)
{
	if (!strcmp(name, "signal"))
		return FR_TRIGGER_SIGNAL;
	if (!strcmp(name, "control"))
		return FR_TRIGGER_CONTROL;
	if (!strcmp(name, "application"))
		return FR_TRIGGER_APPLICATION;
	return fr_probe_find(name) ? FR_TRIGGER_PROBE : FR_TRIGGER_KINDS;
}

SETTER(set_string)
{
	char *s = value ? strdup(value) : NULL;

	if (value && !s)
		return -ENOMEM;
	free(*MEMBER(char *));
	*MEMBER(char *) = s;
	return 0;
}

static const struct fr_trigger_key *key_of_kind(enum fr_trigger_kind kind);

/* Before a key that names a source takes effect: the section has no other one. */
static int claim(struct fr_trigger_config *t, const struct fr_trigger_key *key, struct fr_diag *d)
{
	const struct fr_trigger_key *other = t->kind == FR_TRIGGER_KINDS ? NULL : key_of_kind(t->kind);

	if (kind_of_name(t->name) != FR_TRIGGER_KINDS && t->kind != key->kind)
		return fr_fail(d, -EINVAL, "give the section another name",
			"%s= in a section whose name is that of a built-in trigger: '%s'", key->name,
			t->name);
	if (other && other != key)
		return fr_fail(d, -EINVAL, "make two sections, or clear the other one first",
			"%s= and %s= in one section: a trigger has one source", other->name, key->name);
	t->kind = key->kind;
	return 0;
}

/* An empty assignment: the section has no source but the one that its name says. */
static int unclaim(struct fr_trigger_config *t, const struct fr_trigger_key *key)
{
	if (t->kind != key->kind || kind_of_name(t->name) != FR_TRIGGER_KINDS)
		return 0;
	free(t->subject);
	t->subject = NULL;
	t->every_ns = 0;
	t->kind = FR_TRIGGER_KINDS;
	return 0;
}

SETTER(set_source)
{
	int r;

	if (!value)
		return unclaim(t, key);
	r = claim(t, key, d);
	return r < 0 ? r : set_string(t, key, value, d);
}

static const char *probe_name(const void *ctx, size_t i)
{
	size_t n;

	return fr_probes(&n)[i].name;
}

SETTER(set_probe)
{
	char hint[128] = "flightrecd.conf(5) lists them";
	const char *near;
	size_t n;

	if (!value || (fr_probe_find(value) && kind_of_name(t->name) == FR_TRIGGER_KINDS))
		return set_source(t, key, value, d);
	if (fr_probe_find(value))
		return strcmp(value, t->name)
			       ? fr_fail(d, -EINVAL, "give the section another name",
					 "%s=%s in a section whose name is that of a built-in trigger: '%s'",
					 key->name, value, t->name)
			       : 0;
	(void)fr_probes(&n);
	near = fr_nearest_name(value, probe_name, NULL, n);
	if (near)
		snprintf(hint, sizeof(hint), "did you mean %s?", near);
	return fr_fail(d, -EINVAL, hint, "%s= is no built-in probe: '%s'", key->name, value);
}

SETTER(set_path)
{
	if (value && *value != '/')
		return fr_fail(d, -EINVAL, "give a path that begins with /",
			"%s= does not begin with an absolute path: '%s'", key->name, value);
	return set_source(t, key, value, d);
}

/* "/path/to/binary:symbol" */
SETTER(set_function)
{
	if (value && !strchr(value, ':'))
		return fr_fail(d, -EINVAL,
			key->kind == FR_TRIGGER_USDT ? "write it as /path/to/binary:provider:probe"
						     : "write it as /path/to/binary:symbol",
			"%s= names nothing in the file: '%s'", key->name, value);
	return set_path(t, key, value, d);
}

static int parse_duration(
	const struct fr_trigger_key *key, const char *value, bool zero, uint64_t *ret, struct fr_diag *d)
{
	uint64_t v;

	if (fr_duration_parse(value, &v) < 0 || v == FR_TRIGGER_UNSET)
		return fr_fail(d, -EINVAL, "write it as 200ms, 30s or 5min", "%s= is no duration: '%s'",
			key->name, value);
	if (v == 0 && !zero)
		return fr_fail(d, -EINVAL, "write it as 200ms, 30s or 5min", "%s= has to be longer than 0",
			key->name);
	*ret = v;
	return 0;
}

SETTER(set_every)
{
	uint64_t v = 0;
	int r;

	if (!value)
		return unclaim(t, key);
	r = parse_duration(key, value, false, &v, d);
	if (r == 0)
		r = claim(t, key, d);
	if (r == 0)
		t->every_ns = v;
	return r;
}

SETTER(set_application)
{
	int r = value ? fr_boolean_parse(value) : 0;

	if (r < 0)
		return fr_fail(
			d, -EINVAL, "write yes or no", "%s= is neither yes nor no: '%s'", key->name, value);
	return r ? claim(t, key, d) : unclaim(t, key);
}

SETTER(set_window)
{
	return fr_config_parse_window(key->name, value, MEMBER(uint64_t), d);
}

SETTER(set_duration)
{
	if (!value) {
		*MEMBER(uint64_t) = FR_TRIGGER_UNSET;
		return 0;
	}
	return parse_duration(key, value, true, MEMBER(uint64_t), d);
}

SETTER(set_interval)
{
	return value ? parse_duration(key, value, false, MEMBER(uint64_t), d)
		     : set_duration(t, key, value, d);
}

SETTER(set_post)
{
	uint64_t v = FR_TRIGGER_UNSET;
	int r = value ? parse_duration(key, value, true, &v, d) : 0;

	if (r == 0 && value && v > POST_TRIGGER_MAX_NS)
		return fr_fail(d, -EINVAL, "give at most 1h", "%s= is too long: '%s'", key->name, value);
	if (r == 0)
		*MEMBER(uint64_t) = v;
	return r;
}

SETTER(set_enabled)
{
	int r = value ? fr_boolean_parse(value) : true;

	if (r < 0)
		return fr_fail(
			d, -EINVAL, "write yes or no", "%s= is neither yes nor no: '%s'", key->name, value);
	t->enabled = r;
	return 0;
}

SETTER(set_comm)
{
	if (value && strlen(value) > 15)
		return fr_fail(d, -EINVAL, "the kernel keeps the first 15 characters of a name: give those",
			"%s= is longer than 15 characters: '%s'", key->name, value);
	return set_string(t, key, value, d);
}

SETTER(set_pid)
{
	uint64_t v = 0;

	if (value && (fr_u64_parse(value, &v) < 0 || v < 1 || v > INT32_MAX))
		return fr_fail(d, -EINVAL, "give the number that ps shows", "%s= is no process id: '%s'",
			key->name, value);
	t->pid = (pid_t)v;
	return 0;
}

static void clear_set(struct fr_trigger_config *t)
{
	for (char **s = t->set; s && *s; s++)
		free(*s);
	free(t->set);
	t->set = NULL;
}

/* A list: lines add up. */
SETTER(set_set)
{
	const char *equals = value ? strchr(value, '=') : NULL;
	size_t n = 0;
	char **set;

	if (!value) {
		clear_set(t);
		return 0;
	}
	if (!equals || equals == value)
		return fr_fail(d, -EINVAL, "write it as Set=limit=5, for a global of the program",
			"%s= assigns nothing: '%s'", key->name, value);
	while (t->set && t->set[n])
		n++;
	if (n == SET_MAX)
		return fr_fail(d, -EINVAL, NULL, "more than %d %s= in one section", SET_MAX, key->name);
	set = reallocarray(t->set, n + 2, sizeof(*set));
	if (!set)
		return -ENOMEM;
	t->set = set;
	set[n] = strdup(value);
	set[n + 1] = NULL;
	return set[n] ? 0 : -ENOMEM;
}

#define BIT(kind) (1u << FR_TRIGGER_##kind)
#define ALL (BIT(KINDS) - 1)
#define BPF (BIT(PROBE) | BIT(PROGRAM))
#define CODE (BIT(FUNCTION) | BIT(USDT))
#define AT(member) .offset = offsetof(struct fr_trigger_config, member)
#define SOURCE(k) AT(subject), BIT(k), FR_TRIGGER_##k
#define FOR(bits) (bits), FR_TRIGGER_KINDS

static const struct fr_trigger_key keys[] = {
	{"Probe", "run-queue-latency",
		"A section has one source: one of these eight keys. Probe= is a built-in probe, and not\n"
		"needed in a section with the name of a probe. flightrecd.conf(5) lists the probes.",
		set_probe, SOURCE(PROBE)},
	{"Program", "/etc/flightrec/slow-disk.bpf.o",
		"A BPF object that was made with include/flightrec/trigger.bpf.h.", set_path,
		SOURCE(PROGRAM)},
	{"Function", "/usr/sbin/mysqld:dispatch_command",
		"Fire for calls of this function that take Threshold= or longer.", set_function,
		SOURCE(FUNCTION)},
	{"USDT", "/usr/sbin/mysqld:mysql:query__start,mysql:query__done",
		"Fire if a thread takes Threshold= or longer from one static probe of a program to the\n"
		"other.",
		set_function, SOURCE(USDT)},
	{"Pressure", "memory some",
		"Fire if tasks were stalled for Threshold= within Interval=: cpu, memory or io, and some\n"
		"or full. With CGroup=, only tasks of that cgroup count.",
		set_source, SOURCE(PRESSURE)},
	{"Event", "sched:sched_process_exec",
		"Fire at each occurrence of an event as `perf record -e` takes it, or at Threshold= of\n"
		"them within Interval=.",
		set_source, SOURCE(EVENT)},
	{"Every", "1h", "A timer: fire each time this time has passed.", set_every, SOURCE(TIMER)},
	{"Application", "yes",
		"Fire when an application names this trigger in a datagram, see\n"
		"include/flightrec/trigger.h.",
		set_application, SOURCE(APPLICATION)},
	{"Threshold", "20ms",
		"The lowest value that fires: a time, a number or a size, as the source measures.",
		set_string, AT(threshold), FOR(BPF | CODE | BIT(PRESSURE) | BIT(EVENT))},
	{"Interval", "1s", "The time over which a source counts.", set_interval, AT(interval_ns),
		FOR(BPF | BIT(PRESSURE) | BIT(EVENT))},
	{"Filter", "filename ~ \"*/sshd\"", "A tracepoint filter for Event=.", set_string, AT(filter),
		FOR(BIT(EVENT))},
	{"Syscall", "fsync fdatasync", "The probe syscall-latency looks only at these system calls.",
		set_string, AT(syscalls), FOR(BIT(PROBE))},
	{"Comm", "mysqld", "Only tasks with this name count.", set_comm, AT(comm),
		FOR(BPF | CODE | BIT(EVENT))},
	{"CGroup", "/system.slice/mysql.service", "Only tasks in this cgroup count.", set_string, AT(cgroup),
		FOR(BPF | CODE | BIT(EVENT) | BIT(PRESSURE))},
	{"Pid", "1234", "Only tasks of this process count.", set_pid, AT(pid), FOR(BPF | CODE | BIT(EVENT))},
	{"Set", "limit=5",
		"A global variable of Program=. Several lines add up; an empty one clears the list.", set_set,
		AT(set), FOR(BPF)},
	{"Enabled", "yes", "With no, the trigger is not armed until flightrecctl enable arms it.",
		set_enabled, AT(enabled), FOR(ALL)},
	{"Cooldown", "1min", "As in [Triggers], for this trigger.", set_duration, AT(cooldown_ns), FOR(ALL)},
	{"MinFill", "30s", "As in [Triggers], for this trigger.", set_duration, AT(min_fill_ns), FOR(ALL)},
	{"Window", "2min", "As in [Triggers], for the dumps of this trigger.", set_window, AT(window_ns),
		FOR(ALL)},
	{"PostTrigger", "5s",
		"As in [Dump], for the dumps of this trigger. Triggers that fire until then share the\n"
		"file.",
		set_post, AT(post_ns), FOR(ALL)},
};

const struct fr_trigger_key *fr_trigger_keys(size_t *ret_n)
{
	*ret_n = FR_ARRAY_SIZE(keys);
	return keys;
}

/* The key that names a source of KIND; NULL: it has none. */
static const struct fr_trigger_key *key_of_kind(enum fr_trigger_kind kind)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++)
		if (keys[i].kind == kind)
			return &keys[i];
	return NULL;
}

const char *fr_config_trigger_name(const char *section)
{
	static const char word[] = "Trigger";
	const size_t len = strlen(word);

	if (strncmp(section, word, len) || (section[len] != ' ' && section[len] != '\t' && section[len]))
		return NULL;
	return section + len + strspn(section + len, " \t");
}

static int check_name(const char *name, struct fr_diag *d)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	if (!*name)
		return fr_fail(d, -EINVAL, "write [Trigger NAME], or [Triggers] for what concerns all",
			"a trigger without a name");
	if (strlen(name) >= FR_TRIGGER_NAME_SIZE || name[strspn(name, allowed)])
		return fr_fail(d, -EINVAL, "give up to 63 letters, digits, '-', '_' and '.'",
			"no name for a trigger: '%s'", name);
	return 0;
}

const struct fr_trigger_config *fr_config_find_trigger(const struct fr_config *c, const char *name)
{
	for (size_t i = 0; i < c->n_trigger; i++)
		if (!strcmp(c->trigger[i].name, name))
			return &c->trigger[i];
	return NULL;
}

static int append(struct fr_config *c, const char *name, const char *origin)
{
	const enum fr_trigger_kind kind = kind_of_name(name);
	struct fr_trigger_config *all = reallocarray(c->trigger, c->n_trigger + 1, sizeof(*all));
	struct fr_trigger_config *t;

	if (!all)
		return -ENOMEM;
	c->trigger = all;
	t = &all[c->n_trigger++];
	*t = (struct fr_trigger_config){
		.name = strdup(name),
		.origin = strdup(origin),
		.kind = kind,
		.subject = kind == FR_TRIGGER_PROBE ? strdup(name) : NULL,
		.interval_ns = FR_TRIGGER_UNSET,
		.enabled = true,
		.cooldown_ns = FR_TRIGGER_UNSET,
		.min_fill_ns = FR_TRIGGER_UNSET,
		.window_ns = FR_TRIGGER_UNSET,
		.post_ns = FR_TRIGGER_UNSET,
	};
	if (t->name && t->origin && (t->subject || kind != FR_TRIGGER_PROBE))
		return 0;
	fr_trigger_config_deinit(t);
	c->n_trigger--;
	return -ENOMEM;
}

int fr_config_add_trigger(struct fr_config *c, const char *name, const char *origin, struct fr_diag *d)
{
	int r;

	if (fr_config_find_trigger(c, name))
		return 0;
	if (c->n_trigger == TRIGGERS_MAX)
		return fr_fail(d, -EINVAL, "leave some out, or let one probe stand for several",
			"more than %d triggers", TRIGGERS_MAX);
	r = check_name(name, d);
	return r < 0 ? r : append(c, name, origin);
}

static const char *key_name(const void *ctx, size_t i)
{
	return keys[i].name;
}

static int unknown_key(const char *name, const char *key, struct fr_diag *d)
{
	const char *near = fr_nearest_name(key, key_name, NULL, FR_ARRAY_SIZE(keys));
	char hint[128] = "flightrecd --help-config lists all";

	if (near)
		snprintf(hint, sizeof(hint), "did you mean %s=?", near);
	return fr_fail(d, -EINVAL, hint, "unknown key '%s' in [Trigger %s]", key, name);
}

int fr_config_set_trigger(struct fr_config *c, const char *name, const char *key, const char *value,
	const char *origin, struct fr_diag *d)
{
	struct fr_trigger_config *t;
	int r = fr_config_add_trigger(c, name, origin, d);

	if (r < 0)
		return r;
	t = (struct fr_trigger_config *)fr_config_find_trigger(c, name);
	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].name, key))
			return keys[i].set(t, &keys[i], *value ? value : NULL, d);
	return unknown_key(name, key, d);
}

void fr_config_clear_triggers(struct fr_config *c)
{
	for (size_t i = 0; i < c->n_trigger; i++)
		fr_trigger_config_deinit(&c->trigger[i]);
	free(c->trigger);
	c->trigger = NULL;
	c->n_trigger = 0;
}

/* Whether T says something of KEY. */
static bool is_set(const struct fr_trigger_config *t, const struct fr_trigger_key *key)
{
	const void *member = (const char *)t + key->offset;

	if (key->set == set_interval)
		return *(const uint64_t *)member != FR_TRIGGER_UNSET;
	if (key->set == set_pid)
		return *(const pid_t *)member != 0;
	return *(void *const *)member != NULL;
}

/* A key that would do nothing is a mistake worth a word. */
static int check_keys(const struct fr_trigger_config *t, struct fr_diag *d)
{
	const struct fr_trigger_key *source = key_of_kind(t->kind);

	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++)
		if (keys[i].kind == FR_TRIGGER_KINDS && keys[i].kinds != ALL &&
			!(keys[i].kinds & 1u << t->kind) && is_set(t, &keys[i]))
			return fr_fail(d, -EINVAL, "leave it out", "%s= means nothing %s%s%s", keys[i].name,
				source ? "beside " : "to ", source ? source->name : t->name,
				source ? "=" : "");
	if (t->kind == FR_TRIGGER_PROBE && t->syscalls && strcmp(t->subject, "syscall-latency"))
		return fr_fail(
			d, -EINVAL, "leave it out", "Syscall= means nothing to the probe %s", t->subject);
	return 0;
}

static int no_source(const struct fr_trigger_config *t, struct fr_diag *d)
{
	char hint[256] = "give one of Probe=, Program=, Function=, USDT=, Pressure=, Event=, Every= and "
			 "Application=yes, or the name of a built-in probe";
	const char *near;
	size_t n;

	(void)fr_probes(&n);
	near = fr_nearest_name(t->name, probe_name, NULL, n);
	if (near)
		snprintf(hint, sizeof(hint), "did you mean [Trigger %s]?", near);
	return fr_fail(d, -EINVAL, hint, "[Trigger %s] has no source", t->name);
}

int fr_config_check_triggers(const struct fr_config *c, struct fr_diag *d)
{
	for (size_t i = 0; i < c->n_trigger; i++) {
		const struct fr_trigger_config *t = &c->trigger[i];
		int r = t->kind == FR_TRIGGER_KINDS ? no_source(t, d) : check_keys(t, d);

		if (r < 0) {
			fr_diag_prefix(d, "%s", t->origin);
			return r;
		}
	}
	return 0;
}

void fr_config_print_trigger_keys(FILE *f)
{
	fprintf(f,
		"\n# A trigger with this name. There can be any number of such sections.\n#[Trigger NAME]\n");
	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++) {
		fr_config_print_help(f, keys[i].help);
		fprintf(f, "#%s=%s\n", keys[i].name, keys[i].value);
	}
}
