// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/compare.h"
#include "base/cleanup.h"

#include <string.h>

#define SWAP(a, b)                                                                                           \
	do {                                                                                                 \
		__typeof__(a) before_ = (a);                                                                 \
		(a) = (b);                                                                                   \
		(b) = before_;                                                                               \
	} while (0)

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_events(const struct fr_config *a, const struct fr_config *b)
{
	if (a->n_events != b->n_events)
		return false;
	for (size_t i = 0; i < a->n_events; i++)
		if (!same_text(a->events[i].spec, b->events[i].spec) ||
			!same_text(a->events[i].filter, b->events[i].filter))
			return false;
	return a->defaults.frequency_hz == b->defaults.frequency_hz &&
	       a->defaults.period == b->defaults.period && a->defaults.call_graph == b->defaults.call_graph &&
	       a->defaults.dwarf_stack_bytes == b->defaults.dwarf_stack_bytes;
}

bool fr_config_same_recording(const struct fr_config *a, const struct fr_config *b)
{
	return same_events(a, b) && same_text(a->cpus, b->cpus) && same_text(a->cgroup, b->cgroup) &&
	       a->kernel_buffer_bytes == b->kernel_buffer_bytes &&
	       a->sideband_buffer_bytes == b->sideband_buffer_bytes &&
	       a->kernel_build_ids == b->kernel_build_ids;
}

size_t fr_config_restart_keys(const struct fr_config *now, const struct fr_config *fresh,
	const char *ret[static FR_CONFIG_RESTART_KEYS])
{
	const struct {
		const char *key;
		bool same;
	} keys[FR_CONFIG_RESTART_KEYS] = {
		{"Directory=", same_text(now->directory, fresh->directory)},
		{"ControlSocket=", same_text(now->socket, fresh->socket)},
		{"Group=", same_text(now->group, fresh->group)},
		{"CompressionLevel=", now->compression_level == fresh->compression_level},
		{"AuxiliaryMax=", now->auxiliary_max_bytes == fresh->auxiliary_max_bytes},
		{"AuxiliaryMaxAge=", now->auxiliary_max_age_ns == fresh->auxiliary_max_age_ns},
		{"CacheObjects=", now->cache_bytes == fresh->cache_bytes},
		{"CacheObjectMax=", now->cache_object_bytes == fresh->cache_object_bytes},
		{"MetricsListen=", same_text(now->metrics_listen, fresh->metrics_listen)},
	};
	size_t n = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++)
		if (!keys[i].same)
			ret[n++] = keys[i].key;
	return n;
}

void fr_config_swap_recording(struct fr_config *a, struct fr_config *b)
{
	SWAP(a->events, b->events);
	SWAP(a->n_events, b->n_events);
	SWAP(a->defaults, b->defaults);
	SWAP(a->cpus, b->cpus);
	SWAP(a->cgroup, b->cgroup);
	SWAP(a->kernel_buffer_bytes, b->kernel_buffer_bytes);
	SWAP(a->sideband_buffer_bytes, b->sideband_buffer_bytes);
	SWAP(a->kernel_build_ids, b->kernel_build_ids);
}

void fr_config_swap_triggers(struct fr_config *a, struct fr_config *b)
{
	SWAP(a->triggers, b->triggers);
	SWAP(a->trigger, b->trigger);
	SWAP(a->n_trigger, b->n_trigger);
}

void fr_config_copy_simple(struct fr_config *now, const struct fr_config *fresh)
{
	now->dump_compress = fresh->dump_compress;
	now->window_ns = fresh->window_ns;
	now->post_trigger_ns = fresh->post_trigger_ns;
	now->retention = fresh->retention;
	now->keep_failed = fresh->keep_failed;
	now->block_bytes = fresh->block_bytes;
	now->queue_depth = fresh->queue_depth;
	now->log_level = fresh->log_level;
	now->cpu_budget_ppm = fresh->cpu_budget_ppm;
}
