// SPDX-License-Identifier: GPL-2.0-or-later
/* What a broker writes, in its one right form and in others. */
#include "../unit.h"

#include "bus/bus_private.h"

#include <errno.h>

TEST(times_are_read_to_the_nanosecond)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"1970-01-01T00:00:00.000000001Z", 1},
		{"1970-01-01T00:00:01.5Z", 1500000000},
		{"2026-11-28T20:00:00.123456789Z", 1795896000123456789},
		{"2024-02-29T23:59:59.999999999Z", 1709251199999999999},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(good); i++) {
		uint64_t ns = 7;

		assert_int_equal(bus_parse_time(good[i].text, &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
}

TEST(times_of_another_form_are_refused)
{
	static const char *const bad[] = {"", "x", "2026", "2026-11-28", "2026-11-28T20:00:00",
		"2026-11-28T20:00:00z", "2026-11-28 20:00:00Z", "2026-11-28T20:00:00.Z",
		"2026-11-28T20:00:00.1234567890Z", "2026-11-28T20:00:00+00:00", "2026-11-28T20:00:00Z ",
		" 2026-11-28T20:00:00Z", "2025-02-29T00:00:00Z", "2026-00-10T00:00:00Z",
		"2026-13-10T00:00:00Z", "2026-11-31T00:00:00Z", "2026-11-28T24:00:00Z",
		"2026-11-28T20:60:00Z", "2026-11-28T20:00:60Z", "1969-12-31T23:59:59Z",
		"9999-01-01T00:00:00Z", "-026-11-28T20:00:00Z", "2026-11-28T20:00:0-1Z",
		"2026-11-28T20:00:00.1Z2"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		uint64_t ns = 7;

		if (bus_parse_time(bad[i], &ns) != -EBADMSG)
			fail_msg("%s is accepted", bad[i]);
		assert_int_equal(ns, 7);
	}
}

TEST(numbers)
{
	static const char *const bad[] = {"", "-1", "+1", "01", "1 ", " 1", "0x1", "1.0",
		"18446744073709551616", "99999999999999999999999"};
	uint64_t n;

	assert_int_equal(bus_parse_number("0", &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(bus_parse_number("18446744073709551615", &n), 0);
	assert_true(n == UINT64_MAX);
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		assert_int_equal(bus_parse_number(bad[i], &n), -EBADMSG);
	assert_int_equal(bus_parse_number(NULL, &n), -EBADMSG);
}

TEST(subjects)
{
	static const char *const good[] = {"a", "a.b", "flightrec.answer.20261128T205726Z-1f3a5c7e.db=2E1"};
	static const char *const wild[] = {"*", ">", "a.*", "a.*.c", "a.>", "*.>"};
	static const char *const bad[] = {
		"", ".", "a.", ".a", "a..b", "a b", "a\nb", "a.\x7f", "a*", "*a", "a.>.b", ">a", "\xc3\xa4"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(good); i++)
		assert_true(bus_subject_is_valid(good[i], false) && bus_subject_is_valid(good[i], true));
	for (size_t i = 0; i < FR_ARRAY_SIZE(wild); i++)
		assert_true(!bus_subject_is_valid(wild[i], false) && bus_subject_is_valid(wild[i], true));
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		assert_false(bus_subject_is_valid(bad[i], true));
}

TEST(wildcards_match_tokens)
{
	assert_true(bus_subject_matches("a.b", "a.b"));
	assert_true(bus_subject_matches("a.*", "a.b"));
	assert_true(bus_subject_matches("a.*.c", "a.b.c"));
	assert_true(bus_subject_matches("a.>", "a.b.c"));
	assert_false(bus_subject_matches("a.>", "a"));
	assert_false(bus_subject_matches("a.b", "a.bc"));
	assert_false(bus_subject_matches("a.b", "a.b.c"));
	assert_false(bus_subject_matches("a.b.c", "a.b"));
	assert_false(bus_subject_matches("a.*", "a.b.c"));
	assert_false(bus_subject_matches("a.*", "b.b"));
}

TEST(addresses_of_servers)
{
	char host[64];

	assert_int_equal(bus_server_address("nats://a:1", host, sizeof(host)), 1);
	assert_string_equal(host, "a");
	assert_int_equal(bus_server_address("tls://user:p@ss@b.example", host, sizeof(host)), 4222);
	assert_string_equal(host, "b.example");
	assert_int_equal(bus_server_address("tls://[::1]:5/", host, sizeof(host)), 5);
	assert_string_equal(host, "::1");
}

TEST(untrusted_text_is_printable)
{
	char text[8];

	bus_text(text, sizeof(text), "a\033[31m\xff rest", 12);
	assert_string_equal(text, "a?[31m?");
}

/* The messages of a consumer come in order, and from this consumer. */
TEST(messages_of_a_consumer)
{
	struct bus_consumer c = {.stream = "S", .name = "c"};
	uint64_t sequence, ns;

	assert_int_equal(bus_consumer_accept(&c, "$JS.ACK.S.c.1.7.1.99.2", &sequence, &ns), 0);
	assert_true(sequence == 7 && ns == 99 && c.pending == 2);
	static const char *const bad[] = {"$JS.ACK.S.c.1.7.2.99.1", "$JS.ACK.S.c.1.8.3.99.1",
		"$JS.ACK.S.c.1.8.1.99.1", "$JS.ACK.T.c.1.8.2.99.1", "$JS.ACK.S.d.1.8.2.99.1",
		"$JS.ACK.S.c.1.8.2.99", "$JS.ACK.S.c.1.8.2.99.1.1", "$JS.ACK.S.c.1.8.2..1",
		"$JS.ACK.S.c.1.8.2.99.", "", "x", "$JS.ACK.S.c.1.8.2.99.-1"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		assert_int_equal(bus_consumer_accept(&c, bad[i], &sequence, &ns), -EBADMSG);
	assert_int_equal(bus_consumer_accept(&c, NULL, &sequence, &ns), -EBADMSG);
	assert_int_equal(bus_consumer_accept(&c, "$JS.ACK.S.c.1.9.2.100.0", &sequence, &ns), 0);
	assert_true(sequence == 9 && c.pending == 0);
}
