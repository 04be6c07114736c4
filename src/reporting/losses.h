/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Adds up the losses of the whole recorder, because each part of the recorder counts its own losses. A loss
   is data that should be in a dump and is not. Any thread may call these functions as long as the parts in
   struct fr_loss_counters exist. */

#include "base/loss.h"
#include "capture/capture.h"
#include "dumper/dumper.h"
#include "history/rings.h"
#include "sideband/tracker.h"

#include <cjson/cJSON.h>

struct fr_loss_counters {
	const struct fr_capture *capture; /* all pointers are borrowed */
	const struct fr_rings *rings;
	struct fr_tracker *tracker;
	struct fr_dumper *dumper;    /* NULL: not started yet */
	const uint64_t *lost_before; /* _FR_LOSS_MAX losses of earlier instances and captures */
};

/* Adds the losses of the event E on all CPUs to SUM. */
void fr_losses_add_event(const struct fr_capture *c, size_t e, uint64_t sum[static _FR_LOSS_MAX]);
/* For each cause, sets RET to the number of losses of all events on all CPUs and of all other parts. */
void fr_losses_sum(const struct fr_loss_counters *c, uint64_t ret[static _FR_LOSS_MAX]);
/* Returns the sum of the losses of all causes. */
uint64_t fr_losses_total(const struct fr_loss_counters *c);
/* Adds "losses" to META: an array of {cause, event, cpu, count}. A loss that belongs to no event has no
   "event" and no "cpu". GAPS_NS is the time that was not recorded because of restarts. The loss with the
   cause "restart" has this time as "seconds". */
void fr_losses_add_json(const struct fr_loss_counters *c, uint64_t gaps_ns, cJSON *meta);
/* The same for sums (see fr_losses_sum()), of which no event and no CPU is known. */
void fr_losses_add_sums_json(const uint64_t lost[static _FR_LOSS_MAX], uint64_t gaps_ns, cJSON *meta);
