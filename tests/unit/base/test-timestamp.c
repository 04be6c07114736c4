// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/clock.h"
#include "base/timestamp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

/* 2026-11-20 23:11:37.25 UTC */
#define NOW (1795216297ULL * FR_NSEC_PER_SEC + 250 * FR_NSEC_PER_MSEC)
#define AT(seconds) ((seconds)*FR_NSEC_PER_SEC)
#define MIDNIGHT AT(1795132800ULL)
#define DAY AT(86400ULL)

static void zone(const char *name)
{
	setenv("TZ", name, 1);
	tzset();
}

static void expect(const char *s, uint64_t ns)
{
	uint64_t got = 1;
	int r = fr_timestamp_parse(s, NOW, &got);

	if (r != 0 || got != ns)
		fail_msg("'%s': %d, %llu instead of %llu", s, r, (unsigned long long)got,
			(unsigned long long)ns);
}

static void refuse(const char *s, int code)
{
	uint64_t got = 4711;
	int r = fr_timestamp_parse(s, NOW, &got);

	if (r != code || got != 4711)
		fail_msg("'%s': %d instead of %d, %llu", s, r, code, (unsigned long long)got);
}

static void test_relative(void **state)
{
	expect("now", NOW);
	expect("-5min", NOW - AT(300));
	expect("-1h 30s", NOW - AT(3630));
	expect("-250ms", NOW - 250 * FR_NSEC_PER_MSEC);
	expect("+10", NOW + AT(10));
	expect("5min ago", NOW - AT(300));
	expect("30s left", NOW + AT(30));
}

static void test_calendar(void **state)
{
	const uint64_t t = AT(1795216297ULL);

	zone("UTC");
	expect("2026-11-20 23:11:37", t);
	expect("2026-11-20T23:11:37Z", t);
	expect("2026-11-20 23:11:37.123456789", t + 123456789);
	expect("2026-11-20 23:11", t - AT(37));
	expect("2026-11-20", MIDNIGHT);
	expect("today", MIDNIGHT);
	expect("yesterday", MIDNIGHT - DAY);
	expect("@1795216297", t);
	expect("@1795216297.5", t + AT(1) / 2);
	expect("@0", 0);
}

/* The last 23:12 was yesterday's. */
static void test_time_of_day(void **state)
{
	zone("UTC");
	expect("23:11", AT(1795216297ULL) - AT(37));
	expect("23:11:37.25", NOW);
	expect("23:12", AT(1795216297ULL) + AT(23) - DAY);
	expect("00:00", MIDNIGHT);
}

static void test_zones(void **state)
{
	/* Berlin's, for machines without a database of them; +1 h in November: the 21st already */
	zone("CET-1CEST,M3.5.0,M10.5.0/3");
	expect("2026-11-21 00:11:37", AT(1795216297ULL));
	expect("2026-11-20 23:11:37 UTC", AT(1795216297ULL));
	expect("00:11:37", AT(1795216297ULL));
	expect("23:11:37Z", AT(1795216297ULL));
	expect("today", MIDNIGHT + AT(82800));
	zone("UTC");
}

static void test_refused(void **state)
{
	static const char *const bad[] = {"", " ", "soon", "-", "+", "@", "@-1", "@1.", "@1.0000000001",
		"-5parsecs", "23", "23:1", "24:00", "23:60", "23:11:60", "23:11:37.", "23:11:37x",
		"2026-11-20x", "2026-13-01", "2026-02-30", "2026-11-20  23:11", "2026-11-20 ", "Z", " UTC",
		"0x10:00", "now ago",
		"2026-11-20 23:11:37.1234567890123456789012345678901234567890123456789"};

	zone("UTC");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuse(bad[i], -EINVAL);
	refuse("-100000d", -ERANGE);
	refuse("@9223372036854775807", -ERANGE);
	refuse("1969-12-30 00:00", -ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_calendar),
		cmocka_unit_test(test_time_of_day),
		cmocka_unit_test(test_zones),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
