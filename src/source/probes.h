/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The probes that are built in: each a BPF object of src/bpf/ that uses include/flightrec/trigger.bpf.h as a
   user's object does, embedded by its libbpf skeleton. */

#include "source/cause.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_probe {
	const char *name;	 /* "run-queue-latency": of Probe= and of the default section */
	const char *description; /* one line for the manual page and `flightrecctl triggers` */
	const void *(*object)(size_t *ret_bytes); /* ELF bytes, static storage */
	enum fr_unit_of_cause unit;
	const char *threshold; /* default, as Threshold= takes it; NULL: there is nothing to compare */
	bool counts;	       /* Interval= matters: so many in so long (global `interval_ns`) */
	uint64_t interval_ns;  /* default of it */
	bool armed;	       /* by default, with no section: costs nothing measurable and is never noise */
	const char *costs;     /* NULL, or a warning for the manual page: what it costs when it is armed */
};
/* All, in the order in which they are shown. */
const struct fr_probe *fr_probes(size_t *ret_n);
const struct fr_probe *fr_probe_find(const char *name); /* or NULL */
