/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Makes one head (events, ids and feature sections) from the heads of all inputs. */

#include "merge/input.h"

/* Unites the events, ids and feature sections of the inputs into RET, which is empty before. The caller frees
   RET, also after a failure. If an id belongs to different events in different inputs, the event that most
   inputs name is right: head_damaged is set in the other inputs, and their readers use the events of RET.
   Returns 0; -EINVAL, with a message in D, if the events cannot be in one file; or -ENOMEM. */
int fr_head_unite(const struct fr_merge_options *options, struct fr_inputs *in, struct fr_session *ret,
	struct fr_diag *d);
