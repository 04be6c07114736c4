// SPDX-License-Identifier: GPL-2.0-or-later
#include "dumper/window.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>

/* A window may end this long after the current time, because the clocks of client and recorder are not read
   at the same time. */
#define AHEAD_MAX_NS FR_NSEC_PER_SEC

/* Converts wall time to monotonic time. Returns 0 for a time before the boot. */
static uint64_t to_monotonic(uint64_t usec)
{
	const struct fr_clock_pair now = fr_clock_pair_now();
	const int64_t ahead_ns = (int64_t)(usec * FR_NSEC_PER_USEC) - (int64_t)now.realtime_ns;

	return ahead_ns < 0 && (uint64_t)-ahead_ns >= now.monotonic_ns
		       ? 0
		       : now.monotonic_ns + (uint64_t)ahead_ns;
}

static int fail_gone(struct fr_diag *d)
{
	return fr_fail(d, -ENODATA,
		"see `flightrecctl status` for the time that the ring covers; a larger RingSize= covers more",
		"the ring no longer holds any sample of this window");
}

/* Makes a window from the options --from and --to, or --last and --to, of `flightrecctl dump`. */
static int absolute_window(const struct fr_window_bounds *c, uint64_t now_ns, uint64_t ring_first_ns,
	struct fr_dump_asked *ret, struct fr_diag *d)
{
	const uint64_t to_ns = c->has_to ? to_monotonic(c->to_usec) : now_ns;
	uint64_t from_ns = 0;

	if (c->has_from)
		from_ns = to_monotonic(c->from_usec);
	else if (c->last_ns && c->last_ns < to_ns)
		from_ns = to_ns - c->last_ns;
	if (to_ns > now_ns + AHEAD_MAX_NS)
		return fr_fail(d, -EINVAL, "use --post to record for some more time",
			"the window ends in the future");
	if (from_ns > to_ns)
		return fr_fail(
			d, -EINVAL, "give the earlier time with --from", "the window ends before it begins");
	if (to_ns == 0 || to_ns < ring_first_ns)
		return fail_gone(d);
	*ret = (struct fr_dump_asked){.from_ns = from_ns, .to_ns = c->has_to ? to_ns : 0, .exact = true};
	return 0;
}

/* Makes a window from monotonic times. It may end in the future: the dump then waits for its end. */
static int exact_window(const struct fr_window_bounds *c, uint64_t now_ns, uint64_t ring_first_ns,
	struct fr_dump_asked *ret, struct fr_diag *d)
{
	const uint64_t to_ns = c->to_ns ? c->to_ns : now_ns;

	if (to_ns > now_ns && to_ns - now_ns > FR_WINDOW_AHEAD_MAX_NS)
		return fr_fail(d, -EINVAL, "ask for a window that ends within the next hour",
			"the window ends more than an hour in the future");
	if (c->from_ns > to_ns)
		return fr_fail(
			d, -EINVAL, "give the earlier time with from_ns", "the window ends before it begins");
	if (to_ns < ring_first_ns)
		return fail_gone(d);
	*ret = (struct fr_dump_asked){.from_ns = c->from_ns, .to_ns = to_ns, .exact = true};
	return 0;
}

int fr_window_from_bounds(const struct fr_window_bounds *c, uint64_t now_ns, uint64_t ring_first_ns,
	struct fr_dump_asked *ret, struct fr_diag *d)
{
	if ((c->has_from && c->has_last) || (c->has_post && (c->has_from || c->has_to)))
		return fr_fail(d, -EINVAL, "give --last, --from and --to, or --post",
			"these options for the window exclude each other");
	if (c->has_exact && (c->has_last || c->has_post || c->has_from || c->has_to))
		return fr_fail(d, -EINVAL, "give only from_ns and to_ns",
			"an exact window excludes the other ways to give a window");
	if (c->has_exact)
		return exact_window(c, now_ns, ring_first_ns, ret, d);
	if (c->has_from || c->has_to)
		return absolute_window(c, now_ns, ring_first_ns, ret, d);
	ret->exact = c->has_last;
	if (c->has_last)
		ret->last_ns = c->last_ns;
	if (c->has_post)
		ret->post_ns = c->post_ns;
	return 0;
}

void fr_dump_job_set_window(struct fr_dump_job *job)
{
	const struct fr_dump_asked *a = &job->asked;

	if (a->from_ns || a->to_ns) {
		job->from_ns = a->from_ns;
		job->to_ns = a->to_ns ? a->to_ns : job->trigger_ns;
		job->ready_ns = job->to_ns > job->trigger_ns ? job->to_ns : 0;
		return;
	}
	job->from_ns = a->last_ns && a->last_ns < job->trigger_ns ? job->trigger_ns - a->last_ns : 0;
	job->to_ns = job->trigger_ns + a->post_ns;
	job->ready_ns = a->post_ns ? job->to_ns : 0;
	if (job->automatic && !job->final)
		job->ready_ns = FR_MAX(job->to_ns, job->trigger_ns + FR_DUMPER_TOGETHER_NS);
}
