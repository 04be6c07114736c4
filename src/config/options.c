// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/config_private.h"
#include "base/cleanup.h"
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h> /* optarg, optind */
#include <pthread.h>
#include <string.h>
#include <syslog.h>

/* Options without a short form. */
enum {
	OPT_FILTER = 256,
	OPT_TRIGGER,
	OPT_CALL_GRAPH,
	OPT_CONFIG,
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
	{"filter", OPT_FILTER, "FILTER", "tracepoint filter for the -e before it", NULL},
	{"trigger", OPT_TRIGGER, "NAME[:K=V]", "arm this trigger, with a key of its section; several add up",
		NULL},
	{"freq", 'F', "HZ", "samples a second on each CPU (99)", NULL},
	{"count", 'c', "PERIOD", "one sample each time this number of events has occurred", NULL},
	{"", 'g', NULL, "stacks by frame pointers: --call-graph fp", NULL},
	{"call-graph", OPT_CALL_GRAPH, "HOW", "how stacks are recorded: fp, dwarf, dwarf,SIZE, lbr or no",
		NULL},
	{"all-cpus", 'a', NULL, "the whole machine (the default without COMMAND and -p)", NULL},
	{"cpu", 'C', "LIST", "only these CPUs: 0-3,8", NULL},
	{"pid", 'p', "PIDS", "only these processes, with their threads and children", NULL},
	{"cgroup", 'G', "CGROUP", "only tasks in this cgroup", NULL},
	{"ring-size", 'M', "SIZE", "memory of the ring, 1M to 16G (64M)", NULL},
	{"mmap-pages", 'm', "PAGES", "kernel ring of each CPU, in pages or with a suffix, as in 2M (auto)",
		NULL},
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

/* What has to be known before the file is read. */
struct first {
	const char *config; /* --config, or NULL */
	bool command;
	bool other; /* events, a directory or a socket that are not those of the file */
};

/* 1: something was printed, and that was all. */
static int first_pass(int argc, char *argv[], struct first *ret, struct fr_diag *d)
{
	int option;

	fr_command_line_begin();
	while ((option = fr_command_line_next(&fr_flightrecd_command_line, argc, argv, d)) != 0) {
		if (option < 0)
			return option;
		switch (option) {
		case OPT_CONFIG:
			ret->config = optarg;
			break;
		case 'e':
		case 'o':
		case OPT_SOCKET:
			ret->other = true;
			break;
		case 'h':
			print_help();
			return 1;
		case OPT_HELP_CONFIG:
			fr_config_print_default(stdout);
			return 1;
		case OPT_VERSION:
			printf("flightrecd %s\n", FR_VERSION);
			return 1;
		}
	}
	if (optind < argc && (optind < 2 || strcmp(argv[optind - 1], "--")))
		return fr_fail(d, -EINVAL, "a command to record comes after --", "unexpected argument '%s'",
			argv[optind]);
	ret->command = optind < argc;
	return 0;
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
				d, -EINVAL, "write it as -p 1234,5678", "-p: no process id: '%s'", word);
		pids = reallocarray(c->pids, c->n_pids + 1, sizeof(*pids));
		if (!pids)
			return -ENOMEM;
		c->pids = pids;
		c->pids[c->n_pids++] = (pid_t)pid;
	}
	return 0;
}

/* perf's -m: pages, or a size with a suffix. */
static int parse_mmap_pages(struct fr_config *c, const char *value, struct fr_diag *d)
{
	char bytes[32];
	uint64_t pages;

	if (fr_u64_parse(value, &pages) < 0)
		return fr_config_set(c, "Recorder", "KernelBuffer", value, "-m", d);
	if (pages > (1ULL << 30))
		return fr_fail(d, -EINVAL, "give at most 1G for each CPU", "-m: too many pages: %s", value);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)(pages * (uint64_t)sysconf(_SC_PAGESIZE)));
	return fr_config_set(c, "Recorder", "KernelBuffer", bytes, "-m", d);
}

/* Options that are keys of the file by another name. */
static const struct {
	int option;
	const char *section, *key, *shown;
} by_key[] = {
	{'F', "Recorder", "Frequency", "-F"},
	{'c', "Recorder", "Period", "-c"},
	{OPT_CALL_GRAPH, "Recorder", "CallGraph", "--call-graph"},
	{'C', "Recorder", "CPUs", "-C"},
	{'G', "Recorder", "CGroup", "--cgroup"},
	{'M', "Recorder", "RingSize", "-M"},
	{OPT_GROUP, "Recorder", "Group", "--group"},
	{OPT_WINDOW, "Dump", "Window", "--window"},
	{OPT_POST_TRIGGER, "Dump", "PostTrigger", "--post-trigger"},
	{OPT_BLOCK_SIZE, "Dump", "BlockSize", "--block-size"},
	{OPT_QUEUE_DEPTH, "Dump", "QueueDepth", "--queue-depth"},
};

static int set_by_key(struct fr_config *c, int option, const char *value, struct fr_diag *d)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(by_key); i++)
		if (by_key[i].option == option && !*value)
			return fr_fail(d, -EINVAL, "give a value, or leave the option out",
				"%s: an empty value", by_key[i].shown);
		else if (by_key[i].option == option)
			return fr_config_set(c, by_key[i].section, by_key[i].key, value, by_key[i].shown, d);
	return -ENOSYS;
}

/* Unlike in a file, relative paths make sense here. */
static int set_path(char **member, const char *value)
{
	char *s = strdup(value);

	if (!s)
		return -ENOMEM;
	free(*member);
	*member = s;
	return 0;
}

/* What the options so far have done to the lists that a file fills, too. */
struct applied {
	bool replaced; /* an -e: the file's events are gone */
	bool filters;  /* the last -e is one that takes a --filter */
	int rate;      /* 'F' or 'c': which of them there was; 0: neither */
};

/* perf, too, takes a path that ends in .o for a BPF object. */
static bool is_object(const char *spec)
{
	const size_t len = strlen(spec);

	return len > 2 && !strcmp(spec + len - 2, ".o");
}

/* The file's name without .bpf.o, in the characters of a trigger's name; to be freed. */
static char *name_of_object(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *name = strdup(slash ? slash + 1 : path), *end;

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

/* As in a file: others have another working directory. To be freed. */
static int make_absolute(const char *path, const char *option, char **ret, struct fr_diag *d)
{
	_cleanup_free_ char *cwd = *path == '/' ? NULL : getcwd(NULL, 0);
	int n;

	if (!*path)
		return fr_fail(
			d, -EINVAL, "give a value, or leave the option out", "%s: an empty value", option);
	if (*path != '/' && !cwd)
		return fr_fail_errno(d, -errno, "give a path that begins with /",
			"%s %s: there is no working directory", option, path);
	if (cwd && strcmp(path, ".") != 0)
		n = asprintf(ret, "%s/%s", cwd, path);
	else
		n = asprintf(ret, "%s", cwd ? cwd : path);
	if (n < 0)
		*ret = NULL;
	return *ret ? 0 : -ENOMEM;
}

/* -e probe.bpf.o: a trigger of that program. */
static int add_object(struct fr_config *c, const char *path, struct fr_diag *d)
{
	_cleanup_free_ char *name = name_of_object(path), *section = NULL, *absolute = NULL;
	int r;

	if (!name || asprintf(&section, "Trigger %s", name) < 0) {
		section = NULL;
		return -ENOMEM;
	}
	r = make_absolute(path, "-e", &absolute, d);
	return r < 0 ? r : fr_config_set(c, section, "Program", absolute, "-e", d);
}

static int add_event(struct fr_config *c, const char *spec, struct applied *done, struct fr_diag *d)
{
	done->filters = !is_object(spec);
	if (is_object(spec))
		return add_object(c, spec, d);
	if (!done->replaced)
		fr_config_clear_events(c);
	done->replaced = true;
	return fr_config_add_event(c, spec, "-e", d);
}

static int set_filter(struct fr_config *c, const char *filter, const struct applied *done, struct fr_diag *d)
{
	if (!done->filters)
		return fr_fail(
			d, -EINVAL, "put it after an -e that names an event", "--filter: no -e before it");
	return fr_config_set_last_filter(c, filter, d);
}

/* "NAME" or "NAME:KEY=VALUE" */
static int set_trigger(struct fr_config *c, const char *value, struct fr_diag *d)
{
	const char *colon = strchr(value, ':'), *equals = colon ? strchr(colon, '=') : NULL;
	_cleanup_free_ char *section = NULL, *key = NULL;

	if (colon && !equals)
		return fr_fail(d, -EINVAL, "write it as --trigger=run-queue-latency:Threshold=50ms",
			"--trigger: no assignment: '%s'", colon + 1);
	if (asprintf(&section, "Trigger %.*s", colon ? (int)(colon - value) : -1, value) < 0) {
		section = NULL;
		return -ENOMEM;
	}
	if (!colon)
		return fr_config_begin_section(c, section, "--trigger", d);
	key = strndup(colon + 1, (size_t)(equals - colon) - 1);
	return key ? fr_config_set(c, section, key, equals + 1, "--trigger", d) : -ENOMEM;
}

/* Each takes the place of what a file says. */
static int set_rate(
	struct fr_config *c, int option, const char *value, struct applied *done, struct fr_diag *d)
{
	if (done->rate && done->rate != option)
		return fr_fail(d, -EINVAL, "leave one of them out",
			"a frequency (-F) and a period (-c) exclude each other");
	done->rate = option;
	c->defaults.period = 0;
	c->defaults.frequency_hz = 0;
	return set_by_key(c, option, value, d);
}

static int set_directory(struct fr_config *c, const char *value, struct fr_diag *d)
{
	_cleanup_free_ char *absolute = NULL;
	int r = make_absolute(value, "-o", &absolute, d);

	c->directory_given = true;
	if (r < 0)
		return r;
	return absolute ? set_path(&c->directory, absolute) : -ENOMEM;
}

static int apply(struct fr_config *c, int option, char *value, struct applied *done, struct fr_diag *d)
{
	switch (option) {
	case 'e':
		return add_event(c, value, done, d);
	case OPT_FILTER:
		return set_filter(c, value, done, d);
	case OPT_TRIGGER:
		return set_trigger(c, value, d);
	case 'F':
	case 'c':
		return set_rate(c, option, value, done, d);
	case 'g':
		return fr_config_set(c, "Recorder", "CallGraph", "fp", "-g", d);
	case 'a':
		c->all_cpus = true;
		return 0;
	case 'p':
		return parse_pids(c, value, d);
	case 'm':
		return parse_mmap_pages(c, value, d);
	case 'o':
		return set_directory(c, value, d);
	case OPT_SOCKET:
		return set_path(&c->socket, value);
	case OPT_NO_COMPRESSION:
		c->dump_compress = false;
		return 0;
	case 'v':
		c->log_level = FR_MIN(c->log_level + 1, LOG_DEBUG);
		return 0;
	case 'q':
		c->log_level = LOG_WARNING;
		return 0;
	case OPT_CONFIG:
		return 0;
	default:
		return set_by_key(c, option, value, d);
	}
}

/* Someone's own recording: nothing of the machine's one but what was asked for. */
static int command_defaults(struct fr_config *c, bool file)
{
	int r = set_path(&c->directory, ".");

	if (r == 0)
		r = set_path(&c->socket, "");
	if (r == 0 && !file)
		r = set_path(&c->group, "");
	return r;
}

static int read_text(struct fr_config *c, const char *text, struct fr_diag *d)
{
	_cleanup_fclose_ FILE *f = *text ? fmemopen((char *)text, strlen(text), "r") : NULL;

	if (!*text)
		return 0;
	return f ? fr_config_read(c, f, "configuration of before", d) : -errno;
}

/* Whether the service manager has started this very process, and not a shell that it is of. */
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

/* The triggers of the file are the service's: beside it each of its anomalies would make two dumps. They are
   known, so that --trigger and flightrecctl enable arm them. */
static void disable_triggers(struct fr_config *c)
{
	c->own = true;
	for (size_t i = 0; i < c->n_trigger; i++)
		c->trigger[i].enabled = false;
}

static void enable_trigger(struct fr_config *c, const char *name)
{
	for (size_t i = 0; name && i < c->n_trigger; i++)
		if (!strcmp(c->trigger[i].name, name))
			c->trigger[i].enabled = true;
}

/* What the command line names is armed, whatever the file says of it; what it says itself comes later. */
static void enable_named(struct fr_config *c, int argc, char *argv[])
{
	int option;

	fr_command_line_begin();
	while ((option = fr_command_line_next(&fr_flightrecd_command_line, argc, argv, NULL)) > 0) {
		_cleanup_free_ char *name = NULL;

		if (option == OPT_TRIGGER && optarg)
			name = strndup(optarg, strcspn(optarg, ":"));
		else if (option == 'e' && optarg && is_object(optarg))
			name = name_of_object(optarg);
		enable_trigger(c, name);
	}
}

static int apply_all(struct fr_config *c, int argc, char *argv[], struct fr_diag *d)
{
	static char none[] = "";
	struct applied done = {0};
	int option, r = 0;

	enable_named(c, argc, argv);
	fr_command_line_begin();
	while (r == 0 && (option = fr_command_line_next(&fr_flightrecd_command_line, argc, argv, d)) > 0)
		r = apply(c, option, optarg ? optarg : none, &done, d);
	return r;
}

/* getopt() is one of the process; and who waits in vain for a file goes on with what is kept, while the
   thread that reads it may come back. Not held while a file is read. */
static pthread_mutex_t getopt_lock = PTHREAD_MUTEX_INITIALIZER;

static int parse(struct fr_config *c, const char *text, int argc, char *argv[], struct fr_diag *d)
{
	struct first first = {0};
	bool own;
	int r;

	pthread_mutex_lock(&getopt_lock);
	r = first_pass(argc, argv, &first, d);
	pthread_mutex_unlock(&getopt_lock);
	if (r != 0)
		return r;
	own = !first.config && (first.command || (first.other && !is_service()));
	/* A file that is named may say otherwise. */
	if (first.command)
		r = set_path(&c->triggers.socket, "");
	if (r == 0 && text)
		r = read_text(c, text, d);
	else if (r == 0 && (first.config || !first.command))
		r = fr_config_load(c, first.config, d);
	if (r == 0 && first.command)
		r = command_defaults(c, first.config != NULL);
	if (r == 0 && own)
		r = set_path(&c->triggers.socket, "");
	if (own)
		disable_triggers(c);
	pthread_mutex_lock(&getopt_lock);
	if (r == 0)
		r = apply_all(c, argc, argv, d);
	if (r == 0 && first.command)
		c->command = argv + optind;
	pthread_mutex_unlock(&getopt_lock);
	return r;
}

int fr_options_parse(struct fr_config *c, int argc, char *argv[], struct fr_diag *d)
{
	return parse(c, NULL, argc, argv, d);
}

int fr_options_parse_text(struct fr_config *c, const char *text, int argc, char *argv[], struct fr_diag *d)
{
	return parse(c, text, argc, argv, d);
}
