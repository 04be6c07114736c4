// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/compare.h"
#include "config/config_private.h"

#include <string.h>

#define SWAP(a, b)                                                                                           \
	do {                                                                                                 \
		__typeof__(a) old_a_ = (a);                                                                  \
		(a) = (b);                                                                                   \
		(b) = old_a_;                                                                                \
	} while (0)

static bool has_same_defaults(const struct fr_event_defaults *a, const struct fr_event_defaults *b)
{
	return a->frequency_hz == b->frequency_hz && a->period == b->period && a->each == b->each &&
	       a->call_graph == b->call_graph && a->dwarf_stack_bytes == b->dwarf_stack_bytes;
}

/* Returns whether the rings have the same names and defaults. */
static bool has_same_rings(const struct fr_config *a, const struct fr_config *b)
{
	if (a->n_ring != b->n_ring || a->no_default_event != b->no_default_event)
		return false;
	for (size_t i = 0; i < a->n_ring; i++)
		if (strcmp(a->ring[i].name, b->ring[i].name) != 0 ||
			!has_same_defaults(&a->ring[i].defaults, &b->ring[i].defaults))
			return false;
	return true;
}

static bool has_same_events(const struct fr_config *a, const struct fr_config *b)
{
	if (a->n_events != b->n_events)
		return false;
	for (size_t i = 0; i < a->n_events; i++)
		if (!fr_string_is_same(a->events[i].spec, b->events[i].spec) ||
			!fr_string_is_same(a->events[i].filter, b->events[i].filter) ||
			a->events[i].ring != b->events[i].ring)
			return false;
	return a->defaults.dwarf_stack_bytes == b->defaults.dwarf_stack_bytes;
}

bool fr_config_has_same_recording(const struct fr_config *a, const struct fr_config *b)
{
	for (const struct fr_config_key *k = fr_config_keys; k->name; k++)
		if (k->reload == FR_RELOAD_REOPEN && !fr_config_has_same_value(k, a, b))
			return false;
	return has_same_events(a, b) && has_same_rings(a, b);
}

size_t fr_config_restart_keys(const struct fr_config *now, const struct fr_config *next,
	const char *ret[static FR_CONFIG_RESTART_KEYS])
{
	size_t n = 0;

	for (const struct fr_config_key *k = fr_config_keys; k->name; k++)
		if (k->reload == FR_RELOAD_RESTART && !fr_config_has_same_value(k, now, next))
			ret[n++] = k->name;
	return n;
}

static void swap_member(const struct fr_config_key *key, void *a, void *b)
{
	char *x = (char *)a + key->offset, *y = (char *)b + key->offset;

	for (size_t i = 0; i < key->size; i++)
		SWAP(x[i], y[i]);
}

void fr_config_swap_recording(struct fr_config *a, struct fr_config *b)
{
	for (const struct fr_config_key *k = fr_config_keys; k->name; k++)
		if (k->reload == FR_RELOAD_REOPEN)
			swap_member(k, a, b);
	SWAP(a->events, b->events);
	SWAP(a->n_events, b->n_events);
	SWAP(a->ring, b->ring);
	SWAP(a->n_ring, b->n_ring);
	SWAP(a->no_default_event, b->no_default_event);
	SWAP(a->defaults.dwarf_stack_bytes, b->defaults.dwarf_stack_bytes);
}

void fr_config_swap_triggers(struct fr_config *a, struct fr_config *b)
{
	SWAP(a->triggers, b->triggers);
	SWAP(a->trigger, b->trigger);
	SWAP(a->n_trigger, b->n_trigger);
}

void fr_config_copy_live_keys(struct fr_config *now, const struct fr_config *next)
{
	for (const struct fr_config_key *k = fr_config_keys; k->name; k++)
		if (k->reload == FR_RELOAD_AT_ONCE)
			memcpy((char *)now + k->offset, (const char *)next + k->offset, k->size);
}
