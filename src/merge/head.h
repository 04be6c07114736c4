/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Makes one head of the heads of all inputs. */

#include "merge/input.h"

/* Unites events, ids and features of the inputs into RET, which is empty; the caller frees it, also after
   failure. If most inputs contradict the events of one, that one is head_damaged, and its reader uses the
   events of the others. 0; -EINVAL with D (the events cannot be in one file); -ENOMEM. */
int fr_head_unite(const struct fr_merge_options *options, struct fr_inputs *in, struct fr_session *ret,
	struct fr_diag *d);
