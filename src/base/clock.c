// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <systemd/sd-id128.h>

uint64_t fr_now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * FR_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

struct fr_clock_pair fr_clock_pair_now(void)
{
	struct fr_clock_pair best = {0};
	uint64_t best_gap = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		uint64_t before = fr_now_ns(CLOCK_MONOTONIC);
		uint64_t wall = fr_now_ns(CLOCK_REALTIME);
		uint64_t after = fr_now_ns(CLOCK_MONOTONIC);

		if (after - before < best_gap) {
			best_gap = after - before;
			best = (struct fr_clock_pair){before + best_gap / 2, wall};
		}
	}
	return best;
}

uint64_t fr_clock_to_realtime(const struct fr_clock_pair *pair, uint64_t monotonic_ns)
{
	/* The result is also right for a time before PAIR, because unsigned numbers wrap around. */
	return pair->realtime_ns + (monotonic_ns - pair->monotonic_ns);
}

static void format_utc(uint64_t realtime_ns, bool punctuated, char *ret)
{
	time_t s = (time_t)(realtime_ns / FR_NSEC_PER_SEC);
	struct tm tm;
	size_t n;

	gmtime_r(&s, &tm);
	n = punctuated ? strftime(ret, FR_STAMP_SIZE, "%Y-%m-%dT%H:%M:%S", &tm)
		       : strftime(ret, FR_STAMP_SIZE, "%Y%m%dT%H%M%S", &tm);
	snprintf(ret + n, FR_STAMP_SIZE - n, ".%06uZ",
		(unsigned)(realtime_ns % FR_NSEC_PER_SEC / FR_NSEC_PER_USEC) % 1000000u);
}

void fr_stamp_format(uint64_t realtime_ns, char ret[static FR_STAMP_SIZE])
{
	format_utc(realtime_ns, false, ret);
}

void fr_rfc3339_format(uint64_t realtime_ns, char ret[static FR_STAMP_SIZE])
{
	format_utc(realtime_ns, true, ret);
}

int fr_stamp_parse(const char *s, uint64_t *ret_realtime_ns)
{
	struct tm tm = {0};
	unsigned usec;
	int used = 0;

	if (sscanf(s, "%4d%2d%2dT%2d%2d%2d.%6uZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
		    &tm.tm_min, &tm.tm_sec, &usec, &used) != 7 ||
		used != 23 || s[used] != '\0')
		return -EINVAL;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	*ret_realtime_ns = (uint64_t)timegm(&tm) * FR_NSEC_PER_SEC + usec * FR_NSEC_PER_USEC;
	return 0;
}

int fr_boot_id_read(char ret[static FR_BOOT_ID_SIZE])
{
	sd_id128_t id;
	int r = sd_id128_get_boot(&id);

	if (r < 0)
		return r;
	sd_id128_to_string(id, ret);
	return 0;
}
