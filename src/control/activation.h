/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Takes the control socket that the service manager has opened: sd_listen_fds_with_names(3). */

#include "base/diag.h"

/* Returns the descriptor with FileDescriptorName=control, and the caller owns the descriptor; 0 if there is
   none; or -EINVAL with D if it is not a listening socket. Call it once. Main thread. */
int fr_activated_control(struct fr_diag *d);
