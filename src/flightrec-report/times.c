// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-report/times.h"
#include "base/timestamp.h"

#include <errno.h>

/* The clock that people use, and the time that relative times are relative to. */
struct base {
	uint64_t end_ns;   /* wall time, or fleet time */
	int64_t offset_ns; /* the same minus the time of the events */
};

static int find_base(const struct fr_recording *r, struct base *ret, struct fr_diag *d)
{
	uint64_t from, to;
	const int x = fr_recording_window(r, &from, &to, d);

	if (x < 0)
		return x;
	ret->offset_ns = fr_recording_wall_offset(r);
	ret->end_ns = to + (uint64_t)ret->offset_ns;
	return 0;
}

static int parse(
	const struct base *base, const char *option, const char *text, uint64_t *ret, struct fr_diag *d)
{
	uint64_t wall;

	if (!text)
		return 0;
	if (fr_timestamp_parse(text, base->end_ns, &wall) < 0)
		return fr_fail(d, -EINVAL, "write it as -5s, 23:11:37 or \"2026-11-20 23:11:37\"",
			"%s: '%s' is not a time", option, text);
	*ret = wall - (uint64_t)base->offset_ns;
	return 0;
}

static int set(struct report_command *c, const struct base *base, struct fr_diag *d)
{
	const int r = parse(base, "--from", c->from, &c->config.filter.from_ns, d);

	return r < 0 ? r : parse(base, "--to", c->to, &c->config.filter.to_ns, d);
}

int times_set(struct report_command *c, const struct fr_profile *p, struct fr_diag *d)
{
	struct base base;
	const int r = c->from || c->to ? find_base(fr_profile_recording(p), &base, d) : 0;

	return r < 0 || !(c->from || c->to) ? r : set(c, &base, d);
}

int times_set_fleet(struct report_command *c, uint64_t end_ns, int64_t offset_ns, struct fr_diag *d)
{
	return set(c, &(struct base){end_ns, offset_ns}, d);
}
