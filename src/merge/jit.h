/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The objects of code that processes made, NAME.jit/ beside a dump: into the output's own directory. */

#include "base/buf.h"
#include "merge/input.h"

bool fr_input_has_jit(const struct fr_input *in);

/* RECORD as the output is to have it: itself, or, where it names an object of IN, a copy in TO (valid until
   the next call) that names the one in DIRECTORY, the absolute path of the output's. Our layout only. 0 or
   -ENOMEM. */
int fr_jit_rename(const struct fr_input *in, const char *directory, const struct perf_event_header *record,
	struct fr_buf *to, const struct perf_event_header **ret);

/* Link (or copy) the objects of all inputs into DIRFD/NAME.jit, synced. 0 or a negative errno. */
int fr_jit_take(const struct fr_inputs *inputs, int dirfd, const char *name);

/* The input goes: its objects, too. */
void fr_jit_remove(const struct fr_input *in);
