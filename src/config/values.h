/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The types of the values of keys. A type checks the text of a value, and says how the value is stored in the
   configuration. */

#include "config/config_private.h"

/* An assignment KEY=VALUE, before it is stored. */
struct fr_assignment {
	const struct fr_config_key *key;
	struct fr_config *config;
	void *object;	    /* `config`; in [Trigger NAME]: struct fr_trigger_config; in [Ring NAME]: struct
			       fr_ring_config */
	const char *value;  /* the text; if it is empty: the default; NULL: the text is empty, and there is no
			       default */
	const char *origin; /* where it is set: "file:line", or an option */
	struct fr_diag *d;
};

extern const struct fr_value_type fr_type_actions, fr_type_address, fr_type_application, fr_type_aux_window,
	fr_type_boolean, fr_type_buffer, fr_type_build_ids, fr_type_cache, fr_type_call_graph, fr_type_comm,
	fr_type_compression_level, fr_type_cpu_part, fr_type_cpus, fr_type_disk_limit, fr_type_duration,
	fr_type_events, fr_type_filter, fr_type_ring_filter, fr_type_frequency, fr_type_function,
	fr_type_globals, fr_type_interval, fr_type_kernel_buffer, fr_type_log_level, fr_type_max_files,
	fr_type_off_cpu, fr_type_path, fr_type_path_or_no, fr_type_period, fr_type_pid, fr_type_post_trigger,
	fr_type_probe, fr_type_queue_depth, fr_type_rate, fr_type_ring_call_graph, fr_type_ring_events,
	fr_type_ring_size, fr_type_sideband_ring, fr_type_size, fr_type_string, fr_type_unwind_memory,
	fr_type_usdt, fr_type_window;
/* Of [Fleet]: fleet.c */
extern const struct fr_value_type fr_type_endpoint, fr_type_labels, fr_type_location, fr_type_machine_name,
	fr_type_path_or_empty, fr_type_region, fr_type_servers;

/* Checks the value and stores it. Returns 0; -ENOMEM; or -EINVAL, with a message in D. */
int fr_value_assign(const struct fr_assignment *a);
/* Returns -EINVAL, with the message "KEY= is not NOUN" in D. */
int fr_value_refuse(const struct fr_assignment *a);
