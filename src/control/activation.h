/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Takes the control socket that the service manager has opened: sd_listen_fds_with_names(3). */

#include "base/diag.h"

/* Returns the descriptor with FileDescriptorName=control, which the caller then owns; 0 if there is none; or
   a negative errno with D: -EINVAL if it is not a listening unix stream socket. Call it once. Main thread. */
int fr_activated_control(struct fr_diag *d);
