// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/config_private.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "config/address.h"

#include <errno.h>
#include <string.h>

#define PAGE ((uint64_t)sysconf(_SC_PAGESIZE))

void fr_config_init(struct fr_config *c)
{
	size_t n;
	const struct fr_config_key *keys = fr_config_keys(&n);

	*c = (struct fr_config){0};
	for (size_t i = 0; i < n; i++)
		if (keys[i].default_value)
			(void)keys[i].set(c, &keys[i], keys[i].default_value, "default", NULL);
}

void fr_config_clear_events(struct fr_config *c)
{
	for (size_t i = 0; i < c->n_events; i++) {
		free(c->events[i].spec);
		free(c->events[i].filter);
		free(c->events[i].origin);
	}
	free(c->events);
	c->events = NULL;
	c->n_events = 0;
}

void fr_config_deinit(struct fr_config *c)
{
	fr_config_clear_events(c);
	fr_config_clear_triggers(c);
	free(c->triggers.socket);
	free(c->ring_origin);
	free(c->cpus);
	free(c->cgroup);
	free(c->directory);
	free(c->socket);
	free(c->group);
	free(c->metrics_listen);
	free(c->pids);
	fr_buf_deinit(&c->text);
	*c = (struct fr_config){0};
}

int fr_config_add_event(struct fr_config *c, const char *spec, const char *origin, struct fr_diag *d)
{
	_cleanup_free_ char *s = strdup(spec), *o = strdup(origin);
	struct fr_config_event *events = NULL;

	if (c->n_events == FR_EVENTS_MAX)
		return fr_fail(d, -EINVAL, "give fewer, or patterns", "more than %u events", FR_EVENTS_MAX);
	events = reallocarray(c->events, c->n_events + 1, sizeof(*events));
	if (events)
		c->events = events;
	if (!s || !o || !events)
		return -ENOMEM;
	events[c->n_events++] = (struct fr_config_event){.spec = TAKE_PTR(s), .origin = TAKE_PTR(o)};
	return 0;
}

int fr_config_set_last_filter(struct fr_config *c, const char *filter, struct fr_diag *d)
{
	struct fr_config_event *last = c->n_events ? &c->events[c->n_events - 1] : NULL;

	if (!last)
		return fr_fail(d, -EINVAL, "put it after the event that it is for",
			"a filter without an event before it");
	if (last->filter)
		return fr_fail(d, -EINVAL, "join the two with &&", "a second filter for '%s'", last->spec);
	last->filter = strdup(filter);
	return last->filter ? 0 : -ENOMEM;
}

/* "1M" rather than "1.0M", as one would write it. */
static const char *short_size(uint64_t bytes, char ret[static FR_UNIT_SIZE])
{
	char *point = strstr(fr_size_format(bytes, ret), ".0");

	if (point)
		memmove(point, point + 2, strlen(point + 2) + 1);
	return ret;
}

static int check_range(
	const char *what, const char *key, uint64_t value, uint64_t least, uint64_t most, struct fr_diag *d)
{
	const bool small = value < least;
	char v[FR_UNIT_SIZE], limit[FR_UNIT_SIZE], hint[128];

	if (value >= least && value <= most)
		return 0;
	short_size(small ? least : most, limit);
	snprintf(hint, sizeof(hint), "give at %s %s with %s", small ? "least" : "most", limit, key);
	return fr_fail(d, -EINVAL, hint, "%s too %s: %s, the %s is %s", what, small ? "small" : "large",
		short_size(value, v), small ? "least" : "most", limit);
}

static int check_numbers(const struct fr_config *c, struct fr_diag *d)
{
	int r = check_range("ring", "RingSize= or -M", c->ring_bytes, 1ULL << 20, 16ULL << 30, d);

	if (r == 0)
		r = check_range(
			"kernel buffer", "KernelBuffer= or -m", c->kernel_buffer_bytes, PAGE, 1ULL << 30, d);
	if (r == 0)
		r = check_range(
			"side-band buffer", "SidebandBuffer=", c->sideband_buffer_bytes, PAGE, 1ULL << 30, d);
	if (r == 0)
		r = check_range("block", "BlockSize=", c->block_bytes, 64ULL << 10, 16ULL << 20, d);
	if (r == 0 && (c->block_bytes & (c->block_bytes - 1)))
		r = fr_fail(d, -EINVAL,
			"give 64K, 128K … 16M with BlockSize=", "the block size %llu is not a power of two",
			(unsigned long long)c->block_bytes);
	return r;
}

static int check_metrics(const struct fr_config *c, struct fr_diag *d)
{
	union fr_address a;

	if (!c->metrics_listen || !*c->metrics_listen || c->metrics_public ||
		fr_address_parse(c->metrics_listen, &a) < 0 || fr_address_is_loopback(&a))
		return 0;
	return fr_fail(d, -EINVAL,
		"listen on 127.0.0.1 or [::1]; or say MetricsPublic=yes, there is no password",
		"MetricsListen=%s can be reached from other machines", c->metrics_listen);
}

int fr_config_check(const struct fr_config *c, struct fr_diag *d)
{
	int r = check_numbers(c, d);

	if (r == 0)
		r = check_metrics(c, d);

	if (r < 0)
		return r;
	if (c->defaults.frequency_hz && c->defaults.period)
		return fr_fail(d, -EINVAL, "leave one of Frequency= and Period= empty",
			"a frequency and a period exclude each other");
	if (c->command && c->n_pids)
		return fr_fail(d, -EINVAL, "leave one out",
			"a command to run and processes to record (-p) exclude each other");
	if (c->all_cpus && c->n_pids)
		return fr_fail(d, -EINVAL, "leave one out",
			"all CPUs (-a) and processes to record (-p) exclude each other");
	if (c->cgroup && (c->n_pids || (c->command && !c->all_cpus)))
		return fr_fail(d, -EINVAL, "leave the cgroup out, or record the whole machine with -a",
			"a cgroup is recorded on whole CPUs: it excludes %s",
			c->n_pids ? "processes (-p)" : "a command");
	if (!c->directory || !*c->directory)
		return fr_fail(d, -EINVAL, "give Directory= or -o", "there is no directory to write to");
	return fr_config_check_triggers(c, d);
}
