/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One head out of many. */

#include "merge/input.h"

/* Readers of inputs whose list of events is outvoted by the others' are corrected (head_damaged). Unite
   events, ids and features of the inputs into RET (zeroed, the caller's also after failure). 0; -EINVAL with
   D where they do not go together; -ENOMEM. */
int fr_head_unite(const struct fr_merge_options *options, struct fr_inputs *in, struct fr_session *ret,
	struct fr_diag *d);
