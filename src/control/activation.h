/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the service manager has opened for us: sd_listen_fds_with_names(3). */

#include "base/diag.h"

/* The descriptor of the control socket, "control" by FileDescriptorName= of flightrecd.socket, which the
   caller owns from then on; to be asked for once. 0: there is none. -EINVAL with D: there is one of that name
   that is no listening socket of ours. Main thread. */
int fr_activated_control(struct fr_diag *d);
