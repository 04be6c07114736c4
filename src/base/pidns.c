// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/pidns.h"

#include <sys/stat.h>

/* The inode of the initial pid namespace (PROC_PID_INIT_INO in the kernel). */
#define FIRST_PIDNS 0xeffffffcu

uint32_t fr_own_pidns(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == FIRST_PIDNS)
		return 0;
	return (uint32_t)st.st_ino;
}
