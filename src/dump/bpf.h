/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Used in dump/ only: describes the BPF programs that are loaded while a dump is written. */

#include "perfdata/session.h"

/* Sets the feature sections BPF_PROG_INFO and BPF_BTF of S. If the kernel refuses to describe the programs,
   or if no program is loaded, S does not get these sections. Returns 0 or -ENOMEM. */
int fr_dump_add_bpf(struct fr_session *s);
