/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside dump/: the BPF programs that live as the dump is made. */

#include "perfdata/session.h"

/* Set S's BPF_PROG_INFO and BPF_BTF. Where the kernel does not let us look, or nothing is loaded, S stays
   without them. 0 or -ENOMEM. */
int fr_dump_add_bpf(struct fr_session *s);
