/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The built-in probes. Each probe is a BPF object of src/bpf/. A header that is made from the object (its
   libbpf skeleton) contains the bytes of the object. Probes use include/flightrec/trigger.bpf.h in the same
   way as a user's object. */

#include "source/cause.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_probe {
	const char *name; /* value of Probe=, and name of the trigger: "run-queue-latency" */
	const void *(*object)(size_t *ret_bytes); /* returns the ELF file; static storage */
	enum fr_unit_of_cause unit;
	const char *threshold; /* default of Threshold=; NULL: the probe has no threshold */
	uint64_t interval_ns;  /* default of Interval=; 0: the probe does not count over a time */
	bool armed;	       /* the probe is armed even if no section names it, because its cost is too
				  small to measure */
};
/* Returns all probes, in the order in which they are shown. */
const struct fr_probe *fr_probes(size_t *ret_n);
const struct fr_probe *fr_probe_find(const char *name); /* NULL: there is no such probe */
