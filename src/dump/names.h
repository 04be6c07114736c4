/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a name in the recorder's directory tells of its file. */

#include <stdint.h>

#define FR_DUMP_PREFIX "perf.data.sample."
#define FR_MERGED_NAME "perf.data"

enum fr_name {
	FR_NAME_OTHER,
	FR_NAME_DUMP,	   /* perf.data.sample.TIME */
	FR_NAME_AUXILIARY, /* perf.data.auxiliary.TIME, of a run before; not the one that is being written */
	FR_NAME_MERGED,	   /* perf.data */
	FR_NAME_MERGED_OLDER, /* perf.data.TIME, moved aside for a newer one */
};

/* RET_NS (may be NULL): the wall time in the name; 0 where it has none. */
enum fr_name fr_name_kind(const char *name, uint64_t *ret_ns);
