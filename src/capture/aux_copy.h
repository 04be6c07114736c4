/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "perfdata/auxtrace.h"

#include <stddef.h>
#include <stdint.h>

/* The copy of the new bytes of an AUX area. */
struct fr_aux_copy {
	struct fr_auxtrace t; /* t.data is in `memory`, a mapping of `mapped` bytes */
	void *memory;
	size_t mapped;
	const char *event; /* borrowed from the area, as long as the snapshot has a reference to it */
	uint64_t gap_ns;   /* for so long, the events were stopped */
};
