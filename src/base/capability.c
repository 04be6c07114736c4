// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/capability.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

bool fr_has_capability(unsigned capability)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &head, caps) == 0 &&
	       caps[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}
