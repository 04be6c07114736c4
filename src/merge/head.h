/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Makes one head of the heads of all inputs. */

#include "merge/input.h"

/* Unites events, ids and features of the inputs into RET, which is empty. The caller frees RET, also after
   failure. If most inputs contradict the events of an input, that input gets head_damaged, and its reader
   uses the events of the others. Returns 0, -EINVAL with D if the events cannot be in one file, or -ENOMEM.
 */
int fr_head_unite(const struct fr_merge_options *options, struct fr_inputs *in, struct fr_session *ret,
	struct fr_diag *d);
