// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/config_private.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "base/address.h"

#include <errno.h>
#include <string.h>

/* Returns whether KEY is of a section that can be there many times. */
static bool has_name(const struct fr_config_key *key)
{
	return !strcmp(key->section, FR_TRIGGER_SECTION) || !strcmp(key->section, FR_RING_SECTION);
}

void fr_config_init(struct fr_config *c)
{
	*c = (struct fr_config){0};
	for (const struct fr_config_key *k = fr_config_keys; k->name; k++)
		if (k->default_value && !has_name(k))
			(void)fr_config_set(c, k->section, k->name, k->default_value, "default", NULL);
}

static void free_event(struct fr_config_event *e)
{
	free(e->spec);
	free(e->filter);
	free(e->origin);
}

void fr_config_clear_events(struct fr_config *c, unsigned ring)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_events; i++)
		if (c->events[i].ring == ring)
			free_event(&c->events[i]);
		else
			c->events[n++] = c->events[i];
	c->n_events = n;
}

void fr_config_deinit(struct fr_config *c)
{
	for (const struct fr_config_key *k = fr_config_keys; k->name; k++)
		if (k->type->is_string && !has_name(k))
			free(*(char **)((char *)c + k->offset));
	for (size_t i = 0; i < c->n_events; i++)
		free_event(&c->events[i]);
	free(c->events);
	fr_config_clear_rings(c);
	fr_config_clear_triggers(c);
	free(c->ring_origin);
	free(c->pids);
	fr_buf_deinit(&c->text);
	*c = (struct fr_config){0};
}

int fr_config_add_event(
	struct fr_config *c, unsigned ring, const char *spec, const char *origin, struct fr_diag *d)
{
	_cleanup_free_ char *s = strdup(spec), *o = strdup(origin);
	struct fr_config_event *events = NULL;

	if (c->n_events == FR_EVENTS_MAX)
		return fr_fail(d, -EINVAL, "name fewer events, or use patterns",
			"there are more than %u events", FR_EVENTS_MAX);
	events = reallocarray(c->events, c->n_events + 1, sizeof(*events));
	if (events)
		c->events = events;
	if (!s || !o || !events)
		return -ENOMEM;
	events[c->n_events++] =
		(struct fr_config_event){.spec = TAKE_PTR(s), .origin = TAKE_PTR(o), .ring = ring};
	return 0;
}

int fr_config_set_last_filter(struct fr_config *c, unsigned ring, const char *filter, struct fr_diag *d)
{
	struct fr_config_event *last = NULL;

	for (size_t i = 0; i < c->n_events; i++)
		if (c->events[i].ring == ring)
			last = &c->events[i];
	if (!last)
		return fr_fail(
			d, -EINVAL, "put the filter after its event", "there is no event before the filter");
	if (last->filter)
		return fr_fail(d, -EINVAL, "join the two filters with &&",
			"there is a second filter for '%s'", last->spec);
	last->filter = strdup(filter);
	return last->filter ? 0 : -ENOMEM;
}

/* The keys that a section [Ring NAME] does not set are those of [Recorder]. */
static struct fr_event_defaults defaults_of(const struct fr_config *c, unsigned ring)
{
	struct fr_event_defaults ret = c->defaults;
	const struct fr_event_defaults *own = ring ? &c->ring[ring - 1].defaults : &ret;

	if (own->frequency_hz || own->period) {
		ret.frequency_hz = own->frequency_hz;
		ret.period = own->period;
	}
	if (own->call_graph) {
		ret.call_graph = own->call_graph;
		ret.dwarf_stack_bytes = own->dwarf_stack_bytes;
	}
	return ret;
}

bool fr_config_has_default_event(const struct fr_config *c)
{
	for (size_t i = 0; i < c->n_events; i++)
		if (c->events[i].ring == 0)
			return false;
	return !c->no_default_event;
}

int fr_config_parse_event(const struct fr_config *c, size_t i, struct fr_event_list *ret, struct fr_diag *d)
{
	const struct fr_config_event *e = &c->events[i];
	const struct fr_event_defaults defaults = defaults_of(c, e->ring);
	const size_t first = ret->n;
	int r = fr_event_parse(e->spec, &defaults, ret, d);

	for (size_t k = first; k < ret->n; k++)
		ret->items[k].ring = e->ring;

	if (r == 0 && e->filter)
		r = fr_event_set_filter(ret, e->filter, d);
	if (r == 0)
		r = fr_event_set_origin(ret, e->origin);
	if (r < 0)
		fr_diag_prefix(d, "%s", e->origin);
	return r;
}

/* Formats a size as a person writes it: "1M", not "1.0M". */
static const char *format_size(uint64_t bytes, char ret[static FR_UNIT_SIZE])
{
	char *point = strstr(fr_size_format(bytes, ret), ".0");

	if (point)
		memmove(point, point + 2, strlen(point + 2) + 1);
	return ret;
}

static int check_size(
	const char *noun, const char *key, uint64_t value, uint64_t least, uint64_t most, struct fr_diag *d)
{
	const bool is_small = value < least;
	char v[FR_UNIT_SIZE], limit[FR_UNIT_SIZE], hint[128];

	if (value >= least && value <= most)
		return 0;
	format_size(is_small ? least : most, limit);
	snprintf(hint, sizeof(hint), "give at %s %s with %s", is_small ? "least" : "most", limit, key);
	return fr_fail(d, -EINVAL, hint, "the %s of %s is too %s: the %s is %s", noun, format_size(value, v),
		is_small ? "small" : "large", is_small ? "minimum" : "maximum", limit);
}

static int check_sizes(const struct fr_config *c, struct fr_diag *d)
{
	int r = check_size("ring", "RingSize= or -M", c->ring_bytes, 1ULL << 20, 16ULL << 30, d);

	for (size_t i = 0; r == 0 && i < c->n_ring; i++)
		r = check_size("ring", "Size= or --ring", c->ring[i].size_bytes, 1ULL << 20, 16ULL << 30, d);
	if (r == 0 && c->sideband_ring_bytes)
		r = check_size("ring of the side-band", "SidebandRing=", c->sideband_ring_bytes, 1ULL << 20,
			16ULL << 30, d);
	if (r == 0)
		r = check_size("block", "BlockSize=", c->block_bytes, 64ULL << 10, 16ULL << 20, d);
	if (r == 0 && (c->block_bytes & (c->block_bytes - 1)))
		r = fr_fail(d, -EINVAL,
			"give 64K, 128K … 16M with BlockSize=", "the block size %llu is not a power of two",
			(unsigned long long)c->block_bytes);
	return r;
}

static int check_metrics(const struct fr_config *c, const char *listen, struct fr_diag *d)
{
	union fr_address a;

	if (!listen || c->metrics_public || fr_address_parse(listen, &a) < 0 || fr_address_is_loopback(&a))
		return 0;
	return fr_fail(d, -EINVAL,
		"listen on 127.0.0.1 or [::1], or write MetricsPublic=yes to allow other machines; there is "
		"no "
		"password",
		"MetricsListen=%s can be reached from other machines", listen);
}

static int check_combinations(const struct fr_config *c, struct fr_diag *d)
{
	if (c->n_ring && c->ring_memory && *c->ring_memory)
		return fr_fail(d, -EINVAL, "leave out RingMemory= or the sections [Ring NAME]",
			"RingMemory= and [Ring %s] exclude each other", c->ring[0].name);
	for (size_t i = 0; i < c->n_ring; i++)
		if (c->ring[i].defaults.frequency_hz && c->ring[i].defaults.period)
			return fr_fail(d, -EINVAL, "set only one of Frequency= and Period=",
				"a frequency and a period exclude each other in [Ring %s]", c->ring[i].name);
	if (c->defaults.frequency_hz && c->defaults.period)
		return fr_fail(d, -EINVAL, "set only one of Frequency= and Period=",
			"a frequency and a period exclude each other");
	if (c->command && c->n_pids)
		return fr_fail(d, -EINVAL, "leave out -p or the command",
			"a command and processes to record (-p) exclude each other");
	if (c->all_cpus && c->n_pids)
		return fr_fail(d, -EINVAL, "leave out -a or -p",
			"all CPUs (-a) and processes to record (-p) exclude each other");
	if (c->cgroup && fr_config_follows_tasks(c))
		return fr_fail(d, -EINVAL, "leave the cgroup out, or record the whole machine with -a",
			"a cgroup is recorded on whole CPUs, so it excludes %s",
			c->n_pids ? "processes (-p)" : "a command");
	if (c->ring_memory && strlen(c->ring_memory) >= FR_RING_MEMORY_SIZE)
		return fr_fail(d, -EINVAL, "give a shorter path with RingMemory=",
			"the path of the ring's memory is longer than %d bytes", FR_RING_MEMORY_SIZE - 1);
	if (!c->directory || !*c->directory)
		return fr_fail(
			d, -EINVAL, "name one with Directory= or -o", "there is no directory for the files");
	return 0;
}

int fr_config_check(const struct fr_config *c, struct fr_diag *d)
{
	int r = check_sizes(c, d);

	if (r == 0)
		r = check_metrics(c, c->metrics_listen, d);
	if (r == 0)
		r = check_metrics(c, c->fleet.metrics_listen, d);
	if (r == 0)
		r = check_combinations(c, d);
	if (r == 0)
		r = fr_config_check_rings(c, d);
	if (r == 0)
		r = fr_config_check_fleet(c, d);
	return r < 0 ? r : fr_config_check_triggers(c, d);
}
