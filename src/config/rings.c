// SPDX-License-Identifier: GPL-2.0-or-later
/* Creates and checks the sections [Ring NAME]. If several files have a section of the same name, all its
   lines together are one section. */
#include "config/config_private.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

const char *fr_config_ring_name(const char *section)
{
	return fr_config_name_in_section(section, "Ring");
}

static int check_name(const char *name, struct fr_diag *d)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";

	if (!*name)
		return fr_fail(d, -EINVAL, "write [Ring NAME], or --ring NAME:SIZE", "the ring has no name");
	if (!strcmp(name, FR_RING_DEFAULT))
		return fr_fail(d, -EINVAL, "use the keys of [Recorder]; its size is RingSize=",
			"the ring %s is that of [Recorder]", name);
	if (strlen(name) >= FR_RING_NAME_SIZE || name[strspn(name, allowed)])
		return fr_fail(d, -EINVAL, "give up to 15 letters a-z, digits, '-' and '_'",
			"'%s' cannot be the name of a ring", name);
	return 0;
}

static struct fr_ring_config *find(const struct fr_config *c, const char *name)
{
	for (size_t i = 0; i < c->n_ring; i++)
		if (!strcmp(c->ring[i].name, name))
			return &c->ring[i];
	return NULL;
}

static int append(struct fr_config *c, const char *name, const char *origin)
{
	struct fr_ring_config *all = reallocarray(c->ring, c->n_ring + 1, sizeof(*all)), *ring;

	if (!all)
		return -ENOMEM;
	c->ring = all;
	ring = &all[c->n_ring];
	*ring = (struct fr_ring_config){.size_bytes = FR_RING_BYTES};
	snprintf(ring->name, sizeof(ring->name), "%s", name);
	ring->origin = strdup(origin);
	if (!ring->origin)
		return -ENOMEM;
	c->n_ring++;
	return 0;
}

int fr_config_add_ring(struct fr_config *c, const char *name, const char *origin, struct fr_ring_config **ret,
	struct fr_diag *d)
{
	struct fr_ring_config *ring = find(c, name);
	int r = 0;

	if (!ring && c->n_ring == FR_RINGS_NAMED_MAX)
		return fr_fail(d, -EINVAL, "remove some sections [Ring NAME]",
			"there are more than %u rings beside " FR_RING_DEFAULT, FR_RINGS_NAMED_MAX);
	if (!ring)
		r = check_name(name, d);
	if (!ring && r == 0)
		r = append(c, name, origin);
	if (r == 0)
		*ret = ring ? ring : &c->ring[c->n_ring - 1];
	return r;
}

void fr_config_clear_rings(struct fr_config *c)
{
	for (size_t i = 0; i < c->n_ring; i++)
		free(c->ring[i].origin);
	free(c->ring);
	c->ring = NULL;
	c->n_ring = 0;
}

unsigned fr_config_ring_number(const struct fr_config *c, const struct fr_ring_config *ring)
{
	return (unsigned)(ring - c->ring) + 1;
}

int fr_config_ring_level(const struct fr_config *c, const struct fr_ring_config *ring)
{
	return ring->compression_level ? (int)ring->compression_level : c->compression_level;
}

static bool has_events(const struct fr_config *c, unsigned number)
{
	for (size_t i = 0; i < c->n_events; i++)
		if (c->events[i].ring == number)
			return true;
	return false;
}

static bool is_same_event(const struct fr_config_event *a, const struct fr_config_event *b)
{
	return fr_string_is_same(a->spec, b->spec) && fr_string_is_same(a->filter, b->filter);
}

/* A dump does not say from which ring a sample is. So each incident would be twice in it. */
static int check_each_event_has_one_ring(const struct fr_config *c, struct fr_diag *d)
{
	for (size_t i = 0; i < c->n_events; i++)
		for (size_t k = 0; k < i; k++)
			if (c->events[i].ring != c->events[k].ring &&
				is_same_event(&c->events[i], &c->events[k]))
				return fr_fail(d, -EINVAL,
					"name it for one ring, or give it different filters",
					"%s: the event %s is in two rings", c->events[i].origin,
					c->events[i].spec);
	return 0;
}

int fr_config_check_rings(const struct fr_config *c, struct fr_diag *d)
{
	for (size_t i = 0; i < c->n_ring; i++)
		if (!has_events(c, (unsigned)i + 1)) {
			(void)fr_fail(d, -EINVAL, "name them with Events=, or with -e after --ring",
				"the ring %s has no events", c->ring[i].name);
			fr_diag_prefix(d, "%s", c->ring[i].origin);
			return -EINVAL;
		}
	return check_each_event_has_one_ring(c, d);
}
