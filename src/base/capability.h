/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

/* Returns whether CAPABILITY (linux/capability.h) is effective in the calling thread. */
bool fr_has_capability(unsigned capability);
