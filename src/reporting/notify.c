// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/units.h"
#include "reporting/view.h"

#include <stdio.h>

#include <systemd/sd-daemon.h>

void fr_notify_status(const struct fr_view *v)
{
	const size_t n = v->triggers ? fr_triggers_count_arming(v->triggers) : 0;
	uint64_t lost = 0;
	char used[FR_UNIT_SIZE], span[FR_UNIT_SIZE], adopted[80] = "", arming[80] = "",
						     refused[sizeof(v->refused->what) + 80] = "";

	for (int i = 0; i < _FR_LOSS_MAX; i++)
		lost += v->lost[i];
	if (v->handover->adopted)
		snprintf(adopted, sizeof(adopted),
			"; continued the history of a previous instance %llu times",
			(unsigned long long)v->handover->state.restarts);
	if (v->refused->code)
		snprintf(refused, sizeof(refused),
			" with the previous configuration, because the new one is refused (%s)",
			v->refused->what);
	if (n)
		snprintf(arming, sizeof(arming), "; %zu trigger%s still being armed", n, n > 1 ? "s" : "");
	sd_notifyf(0, "STATUS=recording%s; %s of history in %s; %llu dumps, %llu lost%s%s", refused,
		fr_duration_format(v->ring.last_ns - v->ring.first_ns, span),
		fr_size_format(v->ring.used_bytes, used), (unsigned long long)v->counters->dumps_done,
		(unsigned long long)lost, arming, adopted);
}
