// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/timestamp.h"

#include <errno.h>
#include <time.h>

#define NOW_S 1795216297LL /* 2026-11-20 23:11:37 UTC; in the tests it is a quarter of a second later */
#define NOW_NS (NOW_S * FR_NSEC_PER_SEC + 250 * FR_NSEC_PER_MSEC)
#define TODAY (1795132800LL - NOW_S)
#define DAY 86400LL

struct time_case {
	const char *text;
	int64_t seconds, ns; /* after NOW_S */
};

static void check_times(const char *zone, const struct time_case *cases, size_t n)
{
	setenv("TZ", zone, 1);
	tzset();
	for (size_t i = 0; i < n; i++) {
		const int64_t ns = (NOW_S + cases[i].seconds) * (int64_t)FR_NSEC_PER_SEC + cases[i].ns;
		uint64_t got = 1;
		int r = fr_timestamp_parse(cases[i].text, NOW_NS, &got);

		if (r != 0 || got != (uint64_t)ns)
			fail_msg("'%s': %d, %llu, not %lld", cases[i].text, r, (unsigned long long)got,
				(long long)ns);
	}
}

TEST(time_is_read_in_utc)
{
	static const struct time_case cases[] = {{"now", 0, 250000000}, {"-5min", -300, 250000000},
		{"-1h 30s", -3630, 250000000}, {"-250ms", 0, 0}, {"+10", 10, 250000000},
		{"5min ago", -300, 250000000}, {"30s left", 30, 250000000}, {"2026-11-20 23:11:37", 0, 0},
		{"2026-11-20T23:11:37Z", 0, 0}, {"2026-11-20 23:11:37.123456789", 0, 123456789},
		{"2026-11-20 23:11", -37, 0}, {"2026-11-20T23:11", -37, 0}, {"2026-11-20", TODAY, 0},
		{"today", TODAY, 0}, {"yesterday", TODAY - DAY, 0}, {"@1795216297", 0, 0},
		{"@1795216297.5", 0, 500000000}, {"@0", -NOW_S, 0}, {"23:11", -37, 0},
		{"23:11:37.25", 0, 250000000}, {"23:12", 23 - DAY, 0}, {"00:00", TODAY, 0}};

	check_times("UTC", cases, FR_ARRAY_SIZE(cases));
}

/* The local zone is that of Berlin, where it is already the 21st. TZ describes its rules, because a machine
   may have no database of zones. */
TEST(time_is_read_in_the_local_zone)
{
	static const struct time_case cases[] = {{"2026-11-21 00:11:37", 0, 0},
		{"2026-11-20 23:11:37 UTC", 0, 0}, {"00:11:37", 0, 0}, {"23:11:37Z", 0, 0},
		{"today", TODAY + DAY - 3600, 0}};

	check_times("CET-1CEST,M3.5.0,M10.5.0/3", cases, FR_ARRAY_SIZE(cases));
}

TEST(other_text_is_refused)
{
	static const char *const bad[] = {"", " ", "soon", "-", "+", "@", "@-1", "@1.", "@1.0000000001",
		"-5parsecs", "23", "23:1", "24:00", "23:60", "23:11:60", "23:11:37.", "23:11:37x", "23:11.5",
		"2026-11-20x", "2026-11-20.5", "2026-13-01", "2026-02-30", "2026-11-2  23:11",
		"2026-11-20  23:11", "2026-11-20 ", "Z", " UTC", "0x10:00", "now ago", " 1:00", "+1:00",
		"2026-11-20 23:11:37.1234567890123456789012345678901234567890123456789"};
	static const char *const out_of_range[] = {"-100000d", "@9223372036854775807",
		"@18446744073709551615", "@99999999999999999999", "1969-12-30 00:00"};
	uint64_t ns = 4711;

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		if (fr_timestamp_parse(bad[i], NOW_NS, &ns) != -EINVAL)
			fail_msg("'%s'", bad[i]);
	for (size_t i = 0; i < FR_ARRAY_SIZE(out_of_range); i++)
		if (fr_timestamp_parse(out_of_range[i], NOW_NS, &ns) != -ERANGE)
			fail_msg("'%s'", out_of_range[i]);
	assert_int_equal(ns, 4711);
}
