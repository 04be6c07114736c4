// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/values.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/address.h"
#include "config/memory.h"
#include "source/probes.h"

#include <argz.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <syslog.h>

#define BUFFER_MAX (1ULL << 30)
#define CACHE_DEFAULT (1ULL << 30)
#define COMM_MAX 15 /* TASK_COMM_LEN of the kernel, without the NUL */
#define CPUS_MAX 8192
#define GLOBALS_MAX 256
#define ACTIONS_MAX 16
#define PPM_PER_PERCENT 10000
#define CPU_PART_MIN_PPM 100
#define CPU_PART_MAX_PPM (10000 * PPM_PER_PERCENT)
#define RATE_BURST_MAX 1000000

static void *member_of(const struct fr_assignment *a)
{
	return (char *)a->object + a->key->offset;
}

int fr_string_replace(char **member, const char *value)
{
	char *copy = value ? strdup(value) : NULL;

	if (value && !copy)
		return -ENOMEM;
	free(*member);
	*member = copy;
	return 0;
}

bool fr_string_is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

int fr_value_refuse(const struct fr_assignment *a)
{
	return fr_fail(a->d, -EINVAL, a->key->type->hint, "%s= is not %s: '%s'", a->key->name,
		a->key->type->noun, a->value);
}

static void store_number(const struct fr_assignment *a, uint64_t number)
{
	void *member = member_of(a);

	if (a->key->size == sizeof(bool))
		*(bool *)member = number;
	else if (a->key->size == sizeof(int))
		*(int *)member = (int)number;
	else
		*(uint64_t *)member = number;
}

static int parse_number(const struct fr_value_type *type, const char *text, uint64_t *ret)
{
	if (type->word && !strcmp(text, type->word)) {
		*ret = type->word_value;
		return 0;
	}
	if (type->parse(text, ret) < 0)
		return -EINVAL;
	return type->most && (*ret < type->least || *ret > type->most) ? -ERANGE : 0;
}

/* Stores the value of a key that has one member. */
static int store(const struct fr_assignment *a)
{
	const struct fr_config_key *key = a->key;
	const struct fr_value_type *type = key->type;
	uint64_t number = key->unset;
	int r = 0;

	if (!a->value && key->source)
		return fr_config_release_source(a->object, key);
	if (a->value && type->parse && parse_number(type, a->value, &number) < 0)
		return fr_value_refuse(a);
	if (type->is_string && a->value && type->word && !strcmp(a->value, type->word))
		return fr_string_replace(member_of(a), "");
	if (a->value && type->is_valid && !type->is_valid(a->value))
		return fr_value_refuse(a);
	if (key->source)
		r = fr_config_claim_source(a->object, key, a->value, a->d);
	if (r < 0)
		return r;
	if (type->is_string)
		return fr_string_replace(member_of(a), a->value);
	store_number(a, number);
	return 0;
}

int fr_value_assign(const struct fr_assignment *a)
{
	return a->key->type->set ? a->key->type->set(a) : store(a);
}

/* Numbers. */

#define WHOLE_NUMBER(from, to)                                                                               \
	{                                                                                                    \
		"a whole number from " #from " to " #to, "give a number in this range",                      \
			.parse = fr_u64_parse, .least = (from), .most = (to)                                 \
	}
const struct fr_value_type fr_type_frequency = WHOLE_NUMBER(1, 1000000);
const struct fr_value_type fr_type_period = WHOLE_NUMBER(1, 9223372036854775807);
const struct fr_value_type fr_type_compression_level = WHOLE_NUMBER(1, 19);
const struct fr_value_type fr_type_max_files = WHOLE_NUMBER(0, 1000000);
const struct fr_value_type fr_type_queue_depth = WHOLE_NUMBER(1, 64);
const struct fr_value_type fr_type_pid = {"a process id", "give the number that ps shows",
	.parse = fr_u64_parse, .least = 1, .most = INT32_MAX};

static int parse_boolean(const char *text, uint64_t *ret)
{
	const int r = fr_boolean_parse(text);

	*ret = r > 0;
	return r;
}
const struct fr_value_type fr_type_boolean = {"yes or no", "write yes or no", .parse = parse_boolean};

const struct fr_value_type fr_type_build_ids = {"yes, no or auto", "write yes, no or auto",
	.parse = parse_boolean, .word = "auto", .word_value = FR_BUILD_IDS_AUTO};

static int parse_log_level(const char *text, uint64_t *ret)
{
	static const char *const names[] = {[LOG_ERR] = "err",
		[LOG_WARNING] = "warning",
		[LOG_NOTICE] = "notice",
		[LOG_INFO] = "info",
		[LOG_DEBUG] = "debug"};

	if (!strcasecmp(text, "error"))
		text = names[LOG_ERR];
	for (unsigned level = LOG_ERR; level <= LOG_DEBUG; level++)
		if (!strcasecmp(text, names[level])) {
			*ret = level;
			return 0;
		}
	return -EINVAL;
}
const struct fr_value_type fr_type_log_level = {
	"a log level", "write err, warning, notice, info or debug", .parse = parse_log_level};

/* Parses "1%" or "0.5%" of one CPU. *RET is in parts per million; "no" gives 0. */
static int parse_cpu_part(const char *text, uint64_t *ret)
{
	static const char digits[] = "0123456789";
	const size_t whole = strspn(text, digits), point = text[whole] == '.';
	const size_t fraction = point ? strspn(text + whole + 1, digits) : 0;

	*ret = 0;
	if (fr_boolean_parse(text) == 0)
		return 0;
	if (whole < 1 || whole > 5 || fraction > 4 || strcmp(text + whole + point + fraction, "%") != 0)
		return -EINVAL;
	*ret = (uint64_t)(strtod(text, NULL) * PPM_PER_PERCENT + 0.5);
	return *ret < CPU_PART_MIN_PPM || *ret > CPU_PART_MAX_PPM ? -ERANGE : 0;
}
const struct fr_value_type fr_type_cpu_part = {"a part of a CPU",
	"write it as 1% or 0.5% of one CPU, from 0.01% to 10000%; or write no for no limit",
	.parse = parse_cpu_part};

/* Sizes. */

const struct fr_value_type fr_type_size = {"a size", "write it as 512K, 64M or 2G", .parse = fr_size_parse};

/* Stores the size, and also its origin: if the ring does not fit, the message of fr_memory_check_ring() names
   this origin. */
static int set_ring_size(const struct fr_assignment *a)
{
	struct fr_config *c = a->object;
	int r = store(a);

	return r < 0 ? r : fr_string_replace(&c->ring_origin, a->origin);
}
const struct fr_value_type fr_type_ring_size = {
	"a size", "write it as 512K, 64M or 2G", .parse = fr_size_parse, .set = set_ring_size};

const struct fr_value_type fr_type_sideband_ring = {"a size", "write it as 4M or 64M, or write auto",
	.parse = fr_size_parse, .word = "auto", .word_value = 0};

const struct fr_value_type fr_type_disk_limit = {"a size", "write it as 512K, 64M or 2G",
	.parse = fr_size_parse, .word = "", .word_value = FR_RETENTION_DEFAULT};

static int parse_cache(const char *text, uint64_t *ret)
{
	if (parse_boolean(text, ret) < 0)
		return fr_size_parse(text, ret);
	*ret *= CACHE_DEFAULT;
	return 0;
}
const struct fr_value_type fr_type_cache = {
	"a size, yes or no", "write it as yes, no or 2G", .parse = parse_cache};

static int parse_unwind_memory(const char *text, uint64_t *ret)
{
	int r = fr_size_parse(text, ret);

	return r < 0 ? r : *ret < FR_UNWIND_MEMORY_MIN || *ret > FR_UNWIND_MEMORY_MAX ? -ERANGE : 0;
}
const struct fr_value_type fr_type_unwind_memory = {
	"a size from 1M to 1G", "write it as 64M", .parse = parse_unwind_memory};

/* Parses a size, and rounds it up until the number of pages is a power of two, because the kernel requires
   this for a kernel ring. */
static int parse_buffer(const char *text, uint64_t *ret)
{
	uint64_t size;

	if (fr_size_parse(text, &size) < 0 || size < 1 || size > BUFFER_MAX)
		return -EINVAL;
	for (*ret = (uint64_t)sysconf(_SC_PAGESIZE); *ret < size;)
		*ret *= 2;
	return 0;
}
const struct fr_value_type fr_type_buffer = {"a size from one page to 1G",
	"write it as 512K or 2M: from one page to 1G for each CPU", .parse = parse_buffer};

static int parse_kernel_buffer(const char *text, uint64_t *ret)
{
	if (strcmp(text, "auto") != 0)
		return parse_buffer(text, ret);
	*ret = fr_memory_kernel_buffer_here();
	return 0;
}
const struct fr_value_type fr_type_kernel_buffer = {"a size from one page to 1G",
	"write it as auto, 512K or 2M: from one page to 1G for each CPU", .parse = parse_kernel_buffer};

/* Durations. */

const struct fr_value_type fr_type_duration = {
	"a duration", "write it as 200ms, 30s, 5min or 1h30m", .parse = fr_duration_parse};
const struct fr_value_type fr_type_interval = {"a duration longer than 0", "write it as 200ms, 30s or 5min",
	.parse = fr_duration_parse, .least = 1, .most = UINT64_MAX};
const struct fr_value_type fr_type_post_trigger = {"a duration of at most 1h",
	"write it as 200ms, 30s or 5min: at most 1h", .parse = fr_duration_parse,
	.most = 3600 * FR_NSEC_PER_SEC};

static int parse_off_cpu(const char *text, uint64_t *ret)
{
	if (!strcmp(text, "no") || !strcmp(text, "auto")) {
		*ret = *text == 'n' ? 0 : FR_OFF_CPU_AUTO;
		return 0;
	}
	return fr_off_cpu_threshold_parse(text, ret);
}
const struct fr_value_type fr_type_off_cpu = {"a duration from 1us to 1h, no or auto",
	"write it with its unit, as 1ms or 500us, or no", .parse = parse_off_cpu};

const struct fr_value_type fr_type_window = {"a duration or all",
	"write it as 30s, 5min or 1h30m, or all for the whole ring", .parse = fr_duration_parse,
	.word = "all", .word_value = 0};

const struct fr_value_type fr_type_aux_window = {"a duration or all",
	"write it as 10s or 1min, or all for all that the AUX areas have", .parse = fr_duration_parse,
	.least = 1, .most = UINT64_MAX, .word = "all", .word_value = 0};

/* Strings. */

const struct fr_value_type fr_type_string = {.is_string = true};

static bool is_absolute(const char *text)
{
	return *text == '/';
}
#define ABSOLUTE_PATH "an absolute path", "give a path that begins with /"
const struct fr_value_type fr_type_path = {ABSOLUTE_PATH, .is_valid = is_absolute, .is_string = true};

const struct fr_value_type fr_type_path_or_no = {
	ABSOLUTE_PATH, .is_valid = is_absolute, .word = "no", .is_string = true};

static bool is_path_and_name(const char *text)
{
	return *text == '/' && strchr(text, ':');
}
const struct fr_value_type fr_type_function = {"an absolute path with a symbol",
	"write it as /path/to/binary:symbol", .is_valid = is_path_and_name, .is_string = true};
const struct fr_value_type fr_type_usdt = {"an absolute path with two probes",
	"write it as /path/to/binary:provider:begin,provider:end", .is_valid = is_path_and_name,
	.is_string = true};

static bool is_cpu_list(const char *text)
{
	uint8_t bits[CPUS_MAX / 8];

	return fr_cpulist_parse(text, bits, CPUS_MAX) >= 0;
}
const struct fr_value_type fr_type_cpus = {
	"a list of CPUs", "write it as 0-3,8", .is_valid = is_cpu_list, .is_string = true};

static bool is_address(const char *text)
{
	union fr_address a;

	return !*text || fr_address_parse(text, &a) == 0;
}
const struct fr_value_type fr_type_address = {"an address with a port",
	"write it as 127.0.0.1:9752 or [::1]:9752", .is_valid = is_address, .is_string = true};

static bool is_comm(const char *text)
{
	return strlen(text) <= COMM_MAX;
}
const struct fr_value_type fr_type_comm = {"a name of at most 15 characters",
	"give the first 15 characters: the kernel keeps no more of a name", .is_valid = is_comm,
	.is_string = true};

static const char *probe_name(const void *ctx, size_t i)
{
	size_t n;

	return fr_probes(&n)[i].name;
}

const char *fr_config_nearest_probe(const char *name)
{
	size_t n;

	(void)fr_probes(&n);
	return fr_nearest_name(name, probe_name, NULL, n);
}

static int set_probe(const struct fr_assignment *a)
{
	char hint[128] = "see flightrecd.conf(5) for the probes";
	const char *near;

	if (!a->value || fr_probe_find(a->value))
		return store(a);
	near = fr_config_nearest_probe(a->value);
	if (near)
		snprintf(hint, sizeof(hint), "did you mean %s?", near);
	return fr_fail(a->d, -EINVAL, hint, "%s= is not a built-in probe: '%s'", a->key->name, a->value);
}
const struct fr_value_type fr_type_probe = {.set = set_probe, .is_string = true};

/* Values that are not stored in one member. */

static int set_events(const struct fr_assignment *a)
{
	if (a->value)
		return fr_config_add_event(a->config, 0, a->value, a->origin, a->d);
	fr_config_clear_events(a->config, 0);
	return 0;
}
const struct fr_value_type fr_type_events = {.set = set_events};

static int set_ring_events(const struct fr_assignment *a)
{
	const unsigned ring = fr_config_ring_number(a->config, a->object);

	if (a->value)
		return fr_config_add_event(a->config, ring, a->value, a->origin, a->d);
	fr_config_clear_events(a->config, ring);
	return 0;
}
const struct fr_value_type fr_type_ring_events = {.set = set_ring_events};

static int set_filter(const struct fr_assignment *a)
{
	return a->value ? fr_config_set_last_filter(a->config, 0, a->value, a->d) : 0;
}
const struct fr_value_type fr_type_filter = {.set = set_filter};

static int set_ring_filter(const struct fr_assignment *a)
{
	const unsigned ring = fr_config_ring_number(a->config, a->object);

	return a->value ? fr_config_set_last_filter(a->config, ring, a->value, a->d) : 0;
}
const struct fr_value_type fr_type_ring_filter = {.set = set_ring_filter};

static int parse_call_graph(const struct fr_assignment *a, struct fr_event_defaults *defaults)
{
	if (a->value)
		return fr_call_graph_parse(a->value, defaults, a->d);
	defaults->call_graph = FR_CALL_GRAPH_UNSET;
	defaults->dwarf_stack_bytes = 0;
	return 0;
}

static int set_call_graph(const struct fr_assignment *a)
{
	return parse_call_graph(a, &((struct fr_config *)a->object)->defaults);
}
const struct fr_value_type fr_type_call_graph = {.set = set_call_graph};

static int set_ring_call_graph(const struct fr_assignment *a)
{
	return parse_call_graph(a, &((struct fr_ring_config *)a->object)->defaults);
}
const struct fr_value_type fr_type_ring_call_graph = {.set = set_ring_call_graph};

/* Parses "20/1h", or "no" for no limit. */
static int set_rate(const struct fr_assignment *a)
{
	struct fr_triggers_config *triggers = &((struct fr_config *)a->object)->triggers;
	const char *slash = strchr(a->value, '/');
	uint64_t burst = 0, interval_ns = 0;
	char number[24];

	snprintf(number, sizeof(number), "%.*s", slash ? (int)(slash - a->value) : 0, a->value);
	if (fr_boolean_parse(a->value) != 0 &&
		(!slash || fr_u64_parse(number, &burst) < 0 || burst < 1 || burst > RATE_BURST_MAX ||
			fr_duration_parse(slash + 1, &interval_ns) < 0 || interval_ns == 0))
		return fr_value_refuse(a);
	triggers->rate_burst = (unsigned)burst;
	triggers->rate_interval_ns = interval_ns;
	return 0;
}
const struct fr_value_type fr_type_rate = {
	"a number of dumps in a time", "write it as 20/1h, or no for no limit", .set = set_rate};

static int set_application(const struct fr_assignment *a)
{
	uint64_t yes = 0;

	if (a->value && parse_boolean(a->value, &yes) < 0)
		return fr_value_refuse(a);
	return yes ? fr_config_claim_source(a->object, a->key, NULL, a->d)
		   : fr_config_release_source(a->object, a->key);
}
const struct fr_value_type fr_type_application = {"yes or no", "write yes or no", .set = set_application};

/* Appends the value to the list of the key. An empty value clears the list. */
static int add_global(const struct fr_assignment *a)
{
	struct fr_trigger_config *t = a->object;

	if (!a->value) {
		free(t->set);
		t->set = NULL;
		t->set_len = 0;
		return 0;
	}
	if (*a->value == '=' || !strchr(a->value, '='))
		return fr_value_refuse(a);
	if (argz_count(t->set, t->set_len) == GLOBALS_MAX)
		return fr_fail(a->d, -EINVAL, "remove some of the lines",
			"there are more than %d lines of %s=", GLOBALS_MAX, a->key->name);
	return -argz_add(&t->set, &t->set_len, a->value);
}
const struct fr_value_type fr_type_globals = {
	"an assignment", "write it as Set=limit=5, for a global of the program", .set = add_global};

static size_t fleet_bytes(const struct fr_trigger_config *t)
{
	char text[FR_TRIGGER_FLEET_SIZE];

	return fr_trigger_config_fleet(t, text);
}

static int add_action(const struct fr_assignment *a)
{
	struct fr_trigger_config *t = a->object;
	struct fr_trigger_action action;

	if (!a->value) {
		free(t->actions);
		t->actions = NULL;
		t->actions_len = 0;
		return 0;
	}
	if (fr_trigger_action_parse(a->value, &action) < 0)
		return fr_value_refuse(a);
	if (argz_count(t->actions, t->actions_len) == ACTIONS_MAX)
		return fr_fail(a->d, -EINVAL, "remove some of the lines",
			"there are more than %d lines of %s=", ACTIONS_MAX, a->key->name);
	if (action.fleet && fleet_bytes(t) + strlen(action.fleet) + 1 > FR_TRIGGER_FLEET_SIZE)
		return fr_fail(a->d, -EINVAL, "give shorter selectors",
			"the selectors of %s=fleet have more than %d bytes", a->key->name,
			FR_TRIGGER_FLEET_SIZE - 1);
	return -argz_add(&t->actions, &t->actions_len, a->value);
}
const struct fr_value_type fr_type_actions = {"an action",
	"write dump, \"enable NAME\", \"disable NAME\", \"raise NAME to 999 for 30s\" or \"fleet role=db\"",
	.set = add_action};
