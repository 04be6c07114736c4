// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each measurement says that the offset (fleet time minus monotonic time) was in an interval. The interval of
 * an old measurement is wider, because the rates of the clocks differ. The offset is in all intervals, so it
 * is in their intersection, and its middle is the estimate.
 */
#include "fleet/clock.h"

#include <string.h>

typedef __int128 wide; /* holds every sum and difference of 64-bit numbers */

static int64_t clamp_i64(wide v)
{
	return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

static uint64_t clamp_u64(wide v)
{
	return v > UINT64_MAX ? UINT64_MAX : v < 0 ? 0 : (uint64_t)v;
}

void fr_fleet_clock_reset(struct fr_fleet_clock_estimator *e)
{
	memset(e, 0, sizeof(*e));
}

void fr_fleet_clock_add(
	struct fr_fleet_clock_estimator *e, uint64_t before_ns, uint64_t after_ns, uint64_t stored_ns)
{
	if (before_ns > after_ns)
		return;
	e->v[e->next].before_ns = before_ns;
	e->v[e->next].after_ns = after_ns;
	e->v[e->next].stored_ns = stored_ns;
	e->next = (e->next + 1) % FR_FLEET_CLOCK_KEEP;
	if (e->n < FR_FLEET_CLOCK_KEEP)
		e->n++;
}

/* Returns by how much the offset can have changed in the time between AT_NS and NOW_NS. */
static wide drift(uint64_t at_ns, uint64_t now_ns)
{
	const uint64_t age_ns = now_ns > at_ns ? now_ns - at_ns : at_ns - now_ns;

	return (wide)age_ns * FR_FLEET_CLOCK_DRIFT_PPM / 1000000 + 1;
}

void fr_fleet_clock_get(const struct fr_fleet_clock_estimator *e, uint64_t now_ns, uint64_t wall_ns,
	struct fr_fleet_clock *ret)
{
	wide low = 0, high = 0, middle;

	*ret = (struct fr_fleet_clock){.error_ns = UINT64_MAX};
	if (e->n == 0)
		return;
	for (size_t i = 0; i < e->n; i++) {
		const size_t at = (e->next + FR_FLEET_CLOCK_KEEP - 1 - i) % FR_FLEET_CLOCK_KEEP;
		const wide stored = e->v[at].stored_ns, more = drift(e->v[at].before_ns, now_ns);
		const wide from = stored - e->v[at].after_ns - more, to = stored - e->v[at].before_ns + more;

		if (i > 0 && (from > high || to < low))
			break;
		low = i == 0 || from > low ? from : low;
		high = i == 0 || to < high ? to : high;
		if (i == 0)
			ret->measured_ns = e->v[at].after_ns;
	}
	middle = low + (high - low) / 2;
	ret->offset_ns = clamp_i64(middle);
	ret->error_ns = clamp_u64(high - middle);
	/* UINT64_MAX would mean that there is no measurement. */
	if (ret->error_ns == UINT64_MAX)
		ret->error_ns--;
	ret->wall_offset_ns = clamp_i64((wide)now_ns + ret->offset_ns - wall_ns);
}

uint64_t fr_fleet_clock_to_monotonic(const struct fr_fleet_clock *c, uint64_t fleet_ns)
{
	return clamp_u64((wide)fleet_ns - c->offset_ns);
}

uint64_t fr_fleet_clock_to_fleet(const struct fr_fleet_clock *c, uint64_t monotonic_ns)
{
	return clamp_u64((wide)monotonic_ns + c->offset_ns);
}
