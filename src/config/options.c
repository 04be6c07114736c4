// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/config_private.h"
#include "base/cleanup.h"
#include "base/lock.h"
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h> /* optarg, optind */
#include <limits.h>
#include <string.h>
#include <syslog.h>

/* Options without a short form. */
enum {
	OPT_FILTER = 256,
	OPT_TRIGGER,
	OPT_RING,
	OPT_AUX_BUFFER,
	OPT_CALL_GRAPH,
	OPT_OFF_CPU,
	OPT_CONFIG,
	OPT_RING_MEMORY,
	OPT_WINDOW,
	OPT_POST_TRIGGER,
	OPT_BLOCK_SIZE,
	OPT_QUEUE_DEPTH,
	OPT_NO_COMPRESSION,
	OPT_SOCKET,
	OPT_GROUP,
	OPT_HELP_CONFIG,
	OPT_VERSION,
};

static const struct fr_option options[] = {
	{"event", 'e', "EVENT", "events to sample, as perf takes them; several add up. x.bpf.o: a trigger",
		NULL},
	{"filter", OPT_FILTER, "FILTER", "tracepoint filter for the previous -e", NULL},
	{"ring", OPT_RING, "NAME[:SIZE]",
		"a ring of its own for the -e that follow (16M); default: the first ring", NULL},
	{"trigger", OPT_TRIGGER, "NAME[:K=V]", "arm this trigger, with a key of its section; several add up",
		NULL},
	{"freq", 'F', "HZ", "samples a second on each CPU (99)", NULL},
	{"count", 'c', "PERIOD", "one sample each time this number of events has occurred", NULL},
	{"", 'g', NULL, "record stacks: --call-graph unwind", NULL},
	{"call-graph", OPT_CALL_GRAPH, "HOW",
		"how stacks are recorded: unwind, fp, dwarf, dwarf,SIZE, lbr or no", NULL},
	{"off-cpu", OPT_OFF_CPU, "[THRESHOLD]",
		"also record which tasks wait, and who wakes them, if it takes this long (1ms)", NULL},
	{"all-cpus", 'a', NULL, "the whole machine (the default without COMMAND and -p)", NULL},
	{"cpu", 'C', "LIST", "only these CPUs: 0-3,8", NULL},
	{"pid", 'p', "PIDS", "only these processes, with their threads and children", NULL},
	{"cgroup", 'G', "CGROUP", "only tasks in this cgroup", NULL},
	{"ring-size", 'M', "SIZE", "memory of the ring, 1M to 16G (64M)", NULL},
	{"ring-memory", OPT_RING_MEMORY, "PATH",
		"a memory that survives a crash of the machine, such as /dev/flightrec_mem", NULL},
	{"mmap-pages", 'm', "PAGES", "kernel ring of each CPU, in pages or with a suffix, as in 2M (auto)",
		NULL},
	{"aux-buffer", OPT_AUX_BUFFER, "SIZE",
		"memory for hardware traces of each CPU, in pages or with a suffix (4M)", NULL},
	{"output", 'o', "DIR", "directory of the files (/var/lib/flightrec, with COMMAND: .)", NULL},
	{"window", OPT_WINDOW, "SPAN", "how far back a dump goes: 30s, or all of the ring (all)", NULL},
	{"post-trigger", OPT_POST_TRIGGER, "SPAN",
		"how long to record after a trigger before the dump is written (0)", NULL},
	{"block-size", OPT_BLOCK_SIZE, "SIZE", "bytes of one write, 64K to 16M (1M)", NULL},
	{"queue-depth", OPT_QUEUE_DEPTH, "N", "writes in flight, 1 to 64 (8)", NULL},
	{"no-compression", OPT_NO_COMPRESSION, NULL, "write dumps that programs without zstd can read", NULL},
	{"socket", OPT_SOCKET, "PATH", "the control socket (/run/flightrec/control, with COMMAND: none)",
		NULL},
	{"group", OPT_GROUP, "NAME", "members of this group may read dumps and use the socket (flightrec)",
		NULL},
	{"config", OPT_CONFIG, "FILE", "read this file instead of /etc/flightrec/flightrecd.conf", NULL},
	{"verbose", 'v', NULL, "log more", NULL},
	{"quiet", 'q', NULL, "log warnings and errors only", NULL},
	{"help-config", OPT_HELP_CONFIG, NULL, "print the configuration file with all defaults, and exit",
		NULL},
	{"help", 'h', NULL, "print this help, and exit", NULL},
	{"version", OPT_VERSION, NULL, "print the version, and exit", NULL},
};

static const struct fr_option_group groups[] = {
	{'e', "Events:"},
	{'a', "Tasks and CPUs:"},
	{'M', "Memory and files:"},
	{OPT_WINDOW, "Dumps:"},
	{OPT_SOCKET, "The program:"},
};

const struct fr_command_line fr_flightrecd_command_line = {
	.program = "flightrecd",
	.options = options,
	.n = FR_ARRAY_SIZE(options),
	.groups = groups,
	.n_groups = FR_ARRAY_SIZE(groups),
	.is_command = true,
};

static void print_help(void)
{
	printf("flightrecd [OPTIONS]              record this machine until it is stopped\n"
	       "flightrecd [OPTIONS] -- COMMAND   record COMMAND, then merge to one perf.data\n");
	fr_command_line_print(&fr_flightrecd_command_line);
	printf("\nExamples:\n"
	       "  flightrecd -F 999 -g -M 256M -o /var/tmp/rec --socket /run/rec    the machine, with "
	       "stacks\n"
	       "  flightrecd -e sched:sched_switch -p 1234 -o . --socket ./control  switches of one process\n"
	       "  flightrecd -g -- make -j8                                         a command\n");
	printf("\nSignals: USR1 dumps, USR2 stops and merges, HUP reloads, TERM stops. See flightrecd(8).\n");
}

struct given_option {
	int option;
	const char *value; /* "": the option has no value */
};

struct arguments {
	struct given_option *options;
	size_t n;
	char **command; /* NULL: there is no command */
	const char *config;
	bool differs_from_file; /* an option sets the events, the directory or the socket */
};

static int append_option(struct arguments *args, int option, const char *value)
{
	struct given_option *all = reallocarray(args->options, args->n + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	args->options = all;
	all[args->n++] = (struct given_option){option, value ? value : ""};
	if (option == OPT_CONFIG)
		args->config = value;
	args->differs_from_file |= option == 'e' || option == 'o' || option == OPT_SOCKET;
	return 0;
}

/* Prints the text that OPTION asks for, and returns 1. If OPTION asks for no text, returns 0. */
static int print_text(int option)
{
	if (option == 'h')
		print_help();
	else if (option == OPT_HELP_CONFIG)
		fr_config_print_default(stdout);
	else if (option == OPT_VERSION)
		printf("flightrecd %s\n", FR_VERSION);
	else
		return 0;
	return 1;
}

/* getopt() has one state for all threads, and two threads can parse options at the same time: a thread that
   reads the configuration from a file system that hangs, and a thread that restores a saved configuration. No
   thread reads a file while it holds getopt_lock, so no thread waits long for this lock. */
static struct fr_lock getopt_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int scan_arguments(struct arguments *ret, int argc, char *argv[], struct fr_diag *d)
	FR_REQUIRES(getopt_lock)
{
	int option, r = 0;

	fr_command_line_begin();
	while (r == 0 && (option = fr_command_line_next(&fr_flightrecd_command_line, argc, argv, d)) != 0) {
		r = option < 0 ? option : print_text(option);
		if (r == 0)
			r = append_option(ret, option, optarg);
	}
	if (r != 0 || optind >= argc)
		return r;
	if (optind < 2 || strcmp(argv[optind - 1], "--") != 0)
		return fr_fail(d, -EINVAL,
			!strcmp(argv[optind - 1], "--off-cpu") ? "write --off-cpu=THRESHOLD"
							       : "write the command to record after --",
			"unexpected argument '%s'", argv[optind]);
	ret->command = argv + optind;
	return 0;
}

static int fail_empty(const char *option, struct fr_diag *d)
{
	return fr_fail(d, -EINVAL, "give a value, or leave the option out", "%s has an empty value", option);
}

static int parse_pids(struct fr_config *c, const char *list, struct fr_diag *d)
{
	_cleanup_free_ char *copy = strdup(list);
	char *rest = copy, *word;

	if (!copy)
		return -ENOMEM;
	while ((word = strsep(&rest, ","))) {
		uint64_t pid;
		pid_t *pids;

		if (fr_u64_parse(word, &pid) < 0 || pid < 1 || pid > INT32_MAX)
			return fr_fail(
				d, -EINVAL, "write it as -p 1234,5678", "-p: '%s' is not a process id", word);
		pids = reallocarray(c->pids, c->n_pids + 1, sizeof(*pids));
		if (!pids)
			return -ENOMEM;
		c->pids = pids;
		c->pids[c->n_pids++] = (pid_t)pid;
	}
	return 0;
}

/* Sets the buffer KEY. A number without a suffix is a number of pages, as with -m of perf. */
static int set_pages(
	struct fr_config *c, const char *key, const char *value, const char *option, struct fr_diag *d)
{
	char bytes[32];
	uint64_t pages;

	if (fr_u64_parse(value, &pages) == 0 && pages <= UINT32_MAX) {
		snprintf(bytes, sizeof(bytes), "%llu",
			(unsigned long long)(pages * (uint64_t)sysconf(_SC_PAGESIZE)));
		value = bytes;
	}
	return fr_config_set(c, "Recorder", key, value, option, d);
}

/* Options that do the same as a key of the file. */
static const struct key_option {
	int option;
	const char *shown, *section, *key;
	const char *value; /* the value of the key; NULL: the value of the option */
} key_options[] = {
	{'F', "-F", "Recorder", "Frequency", NULL},
	{'c', "-c", "Recorder", "Period", NULL},
	{'g', "-g", "Recorder", "CallGraph", "unwind"},
	{OPT_CALL_GRAPH, "--call-graph", "Recorder", "CallGraph", NULL},
	{'C', "-C", "Recorder", "CPUs", NULL},
	{'G', "--cgroup", "Recorder", "CGroup", NULL},
	{'M', "-M", "Recorder", "RingSize", NULL},
	{OPT_RING_MEMORY, "--ring-memory", "Recorder", "RingMemory", NULL},
	{OPT_GROUP, "--group", "Recorder", "Group", NULL},
	{'q', "-q", "Recorder", "LogLevel", "warning"},
	{OPT_WINDOW, "--window", "Dump", "Window", NULL},
	{OPT_POST_TRIGGER, "--post-trigger", "Dump", "PostTrigger", NULL},
	{OPT_BLOCK_SIZE, "--block-size", "Dump", "BlockSize", NULL},
	{OPT_QUEUE_DEPTH, "--queue-depth", "Dump", "QueueDepth", NULL},
	{OPT_NO_COMPRESSION, "--no-compression", "Dump", "Compression", "no"},
};

static int set_key(struct fr_config *c, const struct given_option *given, struct fr_diag *d)
{
	const struct key_option *o = key_options;
	const char *value;

	while (o->option != given->option)
		if (++o == key_options + FR_ARRAY_SIZE(key_options))
			return -ENOSYS;
	value = o->value ? o->value : given->value;
	return *value ? fr_config_set(c, o->section, o->key, value, o->shown, d) : fail_empty(o->shown, d);
}

/* Returns whether SPEC is the path of a BPF object: whether SPEC ends with ".o". perf does the same. */
static bool is_object(const char *spec)
{
	const size_t len = strlen(spec);

	return len > 2 && !strcmp(spec + len - 2, ".o");
}

/* Returns a name for the trigger of a BPF object: the file name without ".bpf.o" or ".o", and with '_' for
   each character that a name cannot have. The caller frees it. */
static char *make_object_name(const char *path)
{
	char *name = strdup(basename(path)), *end;

	if (!name)
		return NULL;
	end = name + strlen(name) - strlen(".o");
	if (end - name > 4 && !strncmp(end - 4, ".bpf", 4))
		end -= 4;
	*end = '\0';
	for (char *s = name; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("-_.", *s))
			*s = '_';
	return name;
}

/* Sets *MEMBER to PATH as an absolute path, because clients of the recorder get this path, and they have
   other working directories. */
static int set_absolute_path(char **member, const char *path, const char *option, struct fr_diag *d)
{
	_cleanup_free_ char *cwd = NULL, *absolute = NULL;

	if (!*path)
		return fail_empty(option, d);
	if (*path == '/')
		return fr_string_replace(member, path);
	cwd = getcwd(NULL, 0);
	if (!cwd)
		return fr_fail_errno(d, -errno, "give a path that begins with /",
			"%s %s: the working directory is unknown", option, path);
	if (!strcmp(path, "."))
		return fr_string_replace(member, cwd);
	if (asprintf(&absolute, "%s/%s", cwd, path) < 0) {
		absolute = NULL;
		return -ENOMEM;
	}
	return fr_string_replace(member, absolute);
}

/* Adds a trigger for a BPF object that -e names. */
static int add_object(struct fr_config *c, const char *path, struct fr_diag *d)
{
	_cleanup_free_ char *name = make_object_name(path), *absolute = NULL;
	char section[NAME_MAX + sizeof("Trigger ")];
	int r;

	if (!name)
		return -ENOMEM;
	snprintf(section, sizeof(section), "Trigger %s", name);
	r = set_absolute_path(&absolute, path, "-e", d);
	return r < 0 ? r : fr_config_set(c, section, "Program", absolute, "-e", d);
}

/* Adds a trigger, or sets a key of a trigger. The parameter `value` is "NAME" or "NAME:KEY=VALUE". */
static int set_trigger(struct fr_config *c, const char *value, struct fr_diag *d)
{
	_cleanup_free_ char *section = NULL;
	char *key, *equals;

	if (asprintf(&section, "Trigger %s", value) < 0) {
		section = NULL;
		return -ENOMEM;
	}
	key = strchr(section, ':');
	if (!key)
		return fr_config_begin_section(c, section, "--trigger", d);
	*key++ = '\0';
	equals = strchr(key, '=');
	if (!equals)
		return fr_fail(d, -EINVAL,
			"write NAME:KEY=VALUE, for example --trigger=run-queue-latency:Threshold=50ms",
			"--trigger: '%s' is not an assignment", key);
	*equals = '\0';
	return fr_config_set(c, section, key, equals + 1, "--trigger", d);
}

/* State of the previous options that the next options need. */
struct progress {
	bool has_events[FR_RINGS_NAMED_MAX + 1]; /* of each ring: an -e has replaced the events of the file,
						    so the next -e adds an event */
	unsigned ring;				 /* the ring of the next -e */
	bool takes_filter;			 /* the last -e names an event, and not a BPF object */
	int rate;				 /* 'F': -F was given; 'c': -c was given; 0: neither */
};

static int add_event(struct fr_config *c, const char *spec, struct progress *p, struct fr_diag *d)
{
	p->takes_filter = !is_object(spec);
	if (!p->takes_filter)
		return add_object(c, spec, d);
	if (!p->has_events[p->ring])
		fr_config_clear_events(c, p->ring);
	p->has_events[p->ring] = true;
	c->no_default_event |= p->ring > 0;
	return fr_config_add_event(c, p->ring, spec, "-e", d);
}

/* Handles --ring NAME:SIZE. */
static int begin_ring(struct fr_config *c, const char *value, struct progress *p, struct fr_diag *d)
{
	const size_t len = strcspn(value, ":");
	char section[64];
	struct fr_ring_config *ring;
	int r;

	p->ring = 0;
	if (!strcmp(value, FR_RING_DEFAULT))
		return 0;
	snprintf(section, sizeof(section), "Ring %.*s", (int)FR_MIN(len, sizeof(section) - 6), value);
	r = fr_config_begin_section(c, section, "--ring", d);
	if (r == 0 && value[len])
		r = fr_config_set(c, section, "Size", value + len + 1, "--ring", d);
	if (r == 0)
		r = fr_config_add_ring(c, section + strlen("Ring "), "--ring", &ring, d);
	if (r == 0)
		p->ring = fr_config_ring_number(c, ring);
	return r;
}

static int set_filter(struct fr_config *c, const char *filter, const struct progress *p, struct fr_diag *d)
{
	if (!p->takes_filter)
		return fr_fail(
			d, -EINVAL, "put it after an -e that names an event", "--filter: no -e before it");
	return fr_config_set_last_filter(c, p->ring, filter, d);
}

/* Handles -F or -c. Each of these options replaces the frequency and the period of the file. */
static int set_rate(
	struct fr_config *c, const struct given_option *given, struct progress *p, struct fr_diag *d)
{
	if (p->rate && p->rate != given->option)
		return fr_fail(d, -EINVAL, "leave out -F or -c",
			"a frequency (-F) and a period (-c) exclude each other");
	p->rate = given->option;
	c->defaults.period = 0;
	c->defaults.frequency_hz = 0;
	return set_key(c, given, d);
}

static int apply_option(
	struct fr_config *c, const struct given_option *given, struct progress *p, struct fr_diag *d)
{
	const char *value = given->value;

	switch (given->option) {
	case 'e':
		return add_event(c, value, p, d);
	case OPT_FILTER:
		return set_filter(c, value, p, d);
	case OPT_RING:
		return begin_ring(c, value, p, d);
	case OPT_TRIGGER:
		return set_trigger(c, value, d);
	case 'F':
	case 'c':
		return set_rate(c, given, p, d);
	case 'a':
		c->all_cpus = true;
		return 0;
	case 'p':
		return parse_pids(c, value, d);
	case 'm':
		return set_pages(c, "KernelBuffer", value, "-m", d);
	case OPT_AUX_BUFFER:
		return set_pages(c, "AuxBuffer", value, "--aux-buffer", d);
	case 'o':
		return set_absolute_path(&c->directory, value, "-o", d);
	case OPT_SOCKET:
		return fr_string_replace(&c->socket, value);
	case 'v':
		c->log_level = FR_MIN(c->log_level + 1, LOG_DEBUG);
		return 0;
	case OPT_OFF_CPU:
		return fr_config_set(c, "Recorder", "OffCPU", *value ? value : "1ms", "--off-cpu", d);
	case OPT_CONFIG:
		return 0;
	default:
		return set_key(c, given, d);
	}
}

static int read_saved_text(struct fr_config *c, const char *text, struct fr_diag *d)
{
	_cleanup_fclose_ FILE *f = *text ? fmemopen((char *)text, strlen(text), "r") : NULL;

	if (!*text)
		return 0;
	return f ? fr_config_read(c, f, "saved configuration", d) : -errno;
}

/* Returns whether the service manager has started this process directly, and not through a shell. */
static bool is_service(void)
{
	static const char *const names[] = {"SYSTEMD_EXEC_PID", "LISTEN_PID"};
	uint64_t pid;

	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && fr_u64_parse(value, &pid) == 0 && pid == (uint64_t)getpid())
			return true;
	}
	return false;
}

/* Enables the triggers that the command line names. A personal recorder first disables all triggers of the
   file, because the service arms these triggers. Otherwise, the service and the personal recorder would each
   make a dump for an anomaly. */
static void enable_named_triggers(struct fr_config *c, const struct arguments *args)
{
	for (size_t i = 0; i < c->n_trigger && c->is_personal; i++)
		c->trigger[i].enabled = false;
	for (size_t i = 0; i < args->n; i++) {
		const struct given_option *o = &args->options[i];
		_cleanup_free_ char *name = NULL;

		if (o->option == OPT_TRIGGER)
			name = strndup(o->value, strcspn(o->value, ":"));
		else if (o->option == 'e' && is_object(o->value))
			name = make_object_name(o->value);
		for (size_t k = 0; name && k < c->n_trigger; k++)
			if (!strcmp(c->trigger[k].name, name))
				c->trigger[k].enabled = true;
	}
}

static int read_files(struct fr_config *c, const struct arguments *args, const char *text, struct fr_diag *d)
{
	if (text)
		return read_saved_text(c, text, d);
	return args->config || !args->command ? fr_config_load(c, args->config, d) : 0;
}

/* Sets the defaults for the recording of a command: the directory and the socket differ from the directory
   and the socket of the service. Without --config, the group differs, too. */
static int set_command_defaults(struct fr_config *c, const struct arguments *args)
{
	int r = fr_string_replace(&c->directory, ".");

	if (r == 0)
		r = fr_string_replace(&c->socket, "");
	if (r == 0 && !args->config)
		r = fr_string_replace(&c->group, "");
	c->command = args->command;
	return r;
}

static int apply_arguments(
	struct fr_config *c, const struct arguments *args, const char *text, struct fr_diag *d)
{
	const bool own = !args->config && (args->command || (args->differs_from_file && !is_service()));
	struct progress progress = {0};
	int r = 0;

	/* Clear the trigger socket (Socket= of [Triggers]) before the file is read, so that a file that
	   --config names can set this key. */
	if (args->command)
		r = fr_string_replace(&c->triggers.socket, "");
	if (r == 0)
		r = read_files(c, args, text, d);
	if (r == 0 && args->command)
		r = set_command_defaults(c, args);
	if (r == 0 && own)
		r = fr_string_replace(&c->triggers.socket, "");
	c->is_personal = own;
	enable_named_triggers(c, args);
	for (size_t i = 0; r == 0 && i < args->n; i++)
		r = apply_option(c, &args->options[i], &progress, d);
	return r;
}

int fr_options_parse_text(struct fr_config *c, const char *text, int argc, char *argv[], struct fr_diag *d)
{
	struct arguments args = {0};
	int r;

	fr_lock(&getopt_lock);
	r = scan_arguments(&args, argc, argv, d);
	fr_unlock(&getopt_lock);
	if (r == 0)
		r = apply_arguments(c, &args, text, d);
	free(args.options);
	return r;
}

int fr_options_parse(struct fr_config *c, int argc, char *argv[], struct fr_diag *d)
{
	return fr_options_parse_text(c, NULL, argc, argv, d);
}
