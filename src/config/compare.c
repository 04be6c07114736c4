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

static bool has_same_events(const struct fr_config *a, const struct fr_config *b)
{
	if (a->n_events != b->n_events)
		return false;
	for (size_t i = 0; i < a->n_events; i++)
		if (!fr_string_is_same(a->events[i].spec, b->events[i].spec) ||
			!fr_string_is_same(a->events[i].filter, b->events[i].filter))
			return false;
	return a->defaults.dwarf_stack_bytes == b->defaults.dwarf_stack_bytes;
}

bool fr_config_has_same_recording(const struct fr_config *a, const struct fr_config *b)
{
	for (const struct fr_config_key *k = fr_config_keys; k->name; k++)
		if (k->reload == FR_RELOAD_REOPEN && !fr_config_has_same_value(k, a, b))
			return false;
	return has_same_events(a, b);
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
