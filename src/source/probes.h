/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The built-in probes. Each is a BPF object of src/bpf/, embedded by its libbpf skeleton, that uses
   include/flightrec/trigger.bpf.h in the same way as a user's object. */

#include "source/cause.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_probe {
	const char *name; /* "run-queue-latency": Probe=, and the name of its trigger */
	const void *(*object)(size_t *ret_bytes); /* its ELF file; static storage */
	enum fr_unit_of_cause unit;
	const char *threshold; /* default of Threshold=; NULL: nothing is compared */
	uint64_t interval_ns;  /* default of Interval=; 0: the probe does not count over a time */
	bool armed;	       /* armed without a section: it costs nothing measurable and causes no noise */
};
/* All probes, in the order in which they are shown. */
const struct fr_probe *fr_probes(size_t *ret_n);
const struct fr_probe *fr_probe_find(const char *name); /* NULL: there is none */
