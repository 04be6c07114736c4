// SPDX-License-Identifier: GPL-2.0-or-later
#include "memory.h"
#include "../unit.h"

#include <stdio.h>
#include <unistd.h>

struct fr_crashmem *memory_new(uint64_t bytes)
{
	static unsigned n;
	struct fr_crashmem *m;
	struct fr_diag d = {0};
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm/flightrec-memory.%d.%u", getpid(), n++);
	unlink(path);
	if (fr_crashmem_open(path, bytes, &m, &d) < 0)
		fail_msg("%s", d.what);
	unlink(path);
	fr_crashmem_format(m, MEMORY_BOOT);
	return m;
}
