// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/names.h"
#include "base/clock.h"

#include <string.h>

enum fr_name fr_name_kind(const char *name, uint64_t *ret_ns)
{
	/* The shortest, which begins all of them, last. */
	static const struct {
		const char *prefix;
		enum fr_name kind;
	} stamped[] = {
		{FR_DUMP_PREFIX, FR_NAME_DUMP},
		{"perf.data.auxiliary.", FR_NAME_AUXILIARY},
		{FR_MERGED_NAME ".", FR_NAME_MERGED_OLDER},
	};
	uint64_t ns;

	if (!ret_ns)
		ret_ns = &ns;
	*ret_ns = 0;
	if (!strcmp(name, FR_MERGED_NAME))
		return FR_NAME_MERGED;
	for (unsigned i = 0; i < sizeof(stamped) / sizeof(*stamped); i++) {
		const char *prefix = stamped[i].prefix;

		if (!strncmp(name, prefix, strlen(prefix)) &&
			fr_stamp_parse(name + strlen(prefix), ret_ns) == 0)
			return stamped[i].kind;
	}
	return FR_NAME_OTHER;
}
