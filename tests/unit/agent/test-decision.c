// SPDX-License-Identifier: GPL-2.0-or-later
#include "agent/decision.h"
#include "../unit.h"

#include <errno.h>
#include <string.h>

#define S 1000000000ULL
#define ASKS "\"monotonic_ns\":5,\"to_ns\":5,\"verdict\":\"fire\","

static int read_text(const char *text, struct fr_agent_decision *ret)
{
	cJSON *json = cJSON_Parse(text);
	int r;

	assert_non_null(json);
	r = fr_decision_read(json, "boot", ret);
	cJSON_Delete(json);
	return r;
}

static const char good[] =
	"{\"id\":5,\"monotonic_ns\":1000000000000,\"trigger\":\"slow\",\"verdict\":\"fire\","
	"\"fleet\":[\"zone=a, role=db\",\"\"],\"from_ns\":998000000000,\"to_ns\":1001000000000,"
	"\"cause\":{\"reason\":\"slow answer\"}}";

TEST(a_decision)
{
	struct fr_agent_decision d;

	assert_int_equal(read_text(good, &d), 1);
	assert_string_equal(d.key, "boot/slow/1000000000000");
	assert_string_equal(d.trigger, "slow");
	assert_string_equal(d.reason, "slow answer");
	assert_int_equal(d.n, 2);
	assert_string_equal(d.selectors[0], "role=db,zone=a");
	assert_string_equal(d.selectors[1], "*");
	assert_int_equal(d.from_ns, 998 * S);
	assert_int_equal(d.to_ns, 1001 * S);
}

TEST(a_decision_that_does_not_ask)
{
	static const char *const texts[] = {
		"{\"monotonic_ns\":1,\"trigger\":\"a\",\"verdict\":\"fire\"}",
		"{\"trigger\":\"a\",\"verdict\":\"fire\",\"fleet\":[]}",
		"{\"monotonic_ns\":1,\"to_ns\":1,\"trigger\":\"a\",\"verdict\":\"cool-down\",\"fleet\":[\"*"
		"\"]}",
	};
	struct fr_agent_decision d;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(read_text(texts[i], &d), 0);
}

TEST(a_malformed_decision)
{
	static const char *const texts[] = {
		"{" ASKS "\"trigger\":\"a b\",\"fleet\":[\"*\"]}",
		"{" ASKS "\"fleet\":[\"*\"]}",
		"{" ASKS "\"trigger\":\"a\",\"fleet\":[\"==\"]}",
		"{" ASKS "\"trigger\":\"a\",\"fleet\":[7]}",
		"{" ASKS "\"trigger\":\"a\",\"from_ns\":6,\"fleet\":[\"*\"]}",
		"{\"to_ns\":5,\"verdict\":\"fire\",\"trigger\":\"a\",\"fleet\":[\"*\"]}",
		"{" ASKS "\"trigger\":\"a\",\"fleet\":"
		"[\"a=1\",\"a=2\",\"a=3\",\"a=4\",\"a=5\",\"a=6\",\"a=7\",\"a=8\",\"a=9\"]}",
	};
	struct fr_agent_decision d;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(read_text(texts[i], &d), -EBADMSG);
}

TEST(the_command_has_the_window_in_fleet_time)
{
	const struct fr_fleet_clock clock = {.offset_ns = (int64_t)(1800000000 * S), .error_ns = 1};
	struct fr_agent_decision d;
	struct fr_fleet_command c;

	assert_int_equal(read_text(good, &d), 1);
	assert_int_equal(fr_decision_command(&d, d.selectors[0], "web-1", &clock, &c), 0);
	assert_true(fr_fleet_id_is_valid(c.id));
	assert_string_equal(c.selector, "role=db,zone=a");
	assert_string_equal(c.trigger, "slow");
	assert_string_equal(c.by, "web-1");
	assert_int_equal(c.from_ns, 1800000998 * S);
	assert_int_equal(c.to_ns, 1800001001 * S);

	/* The whole ring, up to 1 s after the trigger. */
	d.from_ns = 0;
	assert_int_equal(fr_decision_command(&d, "*", "web-1", &clock, &c), 0);
	assert_int_equal(c.from_ns, 0);
	assert_int_equal(c.last_ns, 0);
	assert_int_equal(c.post_ns, S);
}

TEST(the_subject_of_an_incident)
{
	char a[20], b[20], again[20];

	fr_incident_token("role=db", a);
	fr_incident_token("role=db", again);
	fr_incident_token("role=dc", b);
	assert_string_equal(a, again);
	assert_string_not_equal(a, b);
	assert_int_equal(strlen(a), 16);
	assert_int_equal(strspn(a, "0123456789abcdef"), 16);
}

TEST(an_incident_lasts)
{
	assert_true(fr_incident_lasts(100 * S, 159 * S, 60 * S));
	assert_false(fr_incident_lasts(100 * S, 160 * S, 60 * S));
	/* The clock of this machine is a little behind. */
	assert_true(fr_incident_lasts(100 * S, 99 * S, 60 * S));
	assert_false(fr_incident_lasts(100 * S, 100 * S + 1, 0));
}
