// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "base/clock.h"
#include "fleet/fleet.h"
#include "fleet/location.h"
#include "random.h"

#include <errno.h>
#include <string.h>

#define NOW_NS (1795899446ULL * FR_NSEC_PER_SEC) /* 2026-11-28 20:57:26 UTC */
#define ID "20261128T205726Z-1f3a5c7e"

TEST(id_has_the_time_and_sorts_by_it)
{
	char a[FR_FLEET_ID_SIZE], b[FR_FLEET_ID_SIZE];
	uint64_t ns;

	assert_int_equal(fr_fleet_id_new(NOW_NS + 999, a), 0);
	assert_int_equal(fr_fleet_id_new(NOW_NS + FR_NSEC_PER_SEC, b), 0);
	assert_int_equal(strncmp(a, "20261128T205726Z-", 17), 0);
	assert_true(strcmp(a, b) < 0);
	assert_int_equal(fr_fleet_id_time(a, &ns), 0);
	assert_int_equal(ns, NOW_NS);
	/* Also within a second. */
	assert_int_equal(fr_fleet_id_new(NOW_NS + FR_NSEC_PER_SEC / 1000, b), 0);
	assert_true(strcmp(a, b) < 0);
}

TEST(id_of_any_time_is_valid)
{
	for (int i = 0; i < 2000; i++) {
		const uint64_t at_ns = random_up_to(UINT64_MAX - 2 * FR_NSEC_PER_SEC);
		char id[FR_FLEET_ID_SIZE];
		uint64_t ns;

		assert_int_equal(fr_fleet_id_new(at_ns, id), 0);
		assert_true(fr_fleet_id_is_valid(id));
		assert_int_equal(fr_fleet_id_time(id, &ns), 0);
		assert_int_equal(ns, at_ns - at_ns % FR_NSEC_PER_SEC);
	}
}

TEST(ids_of_one_second_differ)
{
	char a[FR_FLEET_ID_SIZE], b[FR_FLEET_ID_SIZE];

	/* Eight equal pairs of 32-bit numbers do not happen. */
	for (int i = 0; i < 8; i++) {
		assert_int_equal(fr_fleet_id_new(NOW_NS, a), 0);
		assert_int_equal(fr_fleet_id_new(NOW_NS, b), 0);
		if (strcmp(a, b) != 0)
			return;
	}
	fail_msg("the ids are not random");
}

TEST(text_of_another_form_is_no_id)
{
	static const char *const bad[] = {"", "x", "20261128T205726Z", "20261128T205726Z-", (ID "0"),
		"20261128T205726Z-1f3a5c7", "20261128T205726Z-1F3A5C7E", "20261128T205726Z-1f3a5c7g",
		"20261128 205726Z-1f3a5c7e", "20261328T205726Z-1f3a5c7e", "20260230T205726Z-1f3a5c7e",
		"20261128T245726Z-1f3a5c7e", "20261128T206026Z-1f3a5c7e", "20261128T205760Z-1f3a5c7e",
		"19691231T235959Z-1f3a5c7e", "99991231T235959Z-1f3a5c7e", "2026112-T205726Z-1f3a5c7e",
		"../61128T205726Z-1f3a5c7e", " 0261128T205726Z-1f3a5c7e"};
	uint64_t ns = 7;

	assert_true(fr_fleet_id_is_valid(ID));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (fr_fleet_id_is_valid(bad[i]))
			fail_msg("'%s'", bad[i]);
		assert_int_equal(fr_fleet_id_time(bad[i], &ns), -EINVAL);
	}
	assert_int_equal(ns, 7);
}

TEST(names_become_tokens)
{
	static const struct {
		const char *name, *token;
	} cases[] = {{"db-1", "db-1"}, {"a_B9", "a_B9"}, {"db.example.com", "db=2Eexample=2Ecom"},
		{"..", "=2E=2E"}, {"*", "=2A"}, {">", "=3E"}, {"=", "=3D"}, {"~", "=7E"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char token[FR_FLEET_TOKEN_SIZE], name[FR_FLEET_NAME_SIZE];

		assert_true(fr_fleet_name_is_valid(cases[i].name));
		fr_fleet_token(cases[i].name, token);
		assert_string_equal(token, cases[i].token);
		assert_int_equal(fr_fleet_token_decode(token, strlen(token), name), 0);
		assert_string_equal(name, cases[i].name);
	}
}

static void make_name(char *ret)
{
	char set[96];
	size_t n = 0;

	for (int c = '!'; c <= '~'; c++)
		if (c != '/')
			set[n++] = (char)c;
	set[n] = '\0';
	random_text(ret, 1 + random_up_to(FR_FLEET_NAME_SIZE - 2), set);
}

TEST(each_name_comes_back_from_its_token)
{
	for (int i = 0; i < 2000; i++) {
		char name[FR_FLEET_NAME_SIZE], token[FR_FLEET_TOKEN_SIZE], back[FR_FLEET_NAME_SIZE];

		make_name(name);
		assert_true(fr_fleet_name_is_valid(name));
		fr_fleet_token(name, token);
		assert_null(strpbrk(token, "./*> "));
		assert_int_equal(fr_fleet_token_decode(token, strlen(token), back), 0);
		assert_string_equal(back, name);
	}
}

TEST(a_token_that_no_name_has_is_refused)
{
	static const char *const bad[] = {"", "a.b", "a b", "=2e", "=41", "=2", "=", "a=", "=2F", "=00",
		"=0A", "=7F", "=FF", "a/b", "*"};
	char name[FR_FLEET_NAME_SIZE] = "same", longest[FR_FLEET_TOKEN_SIZE];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (fr_fleet_token_decode(bad[i], strlen(bad[i]), name) != -EINVAL)
			fail_msg("'%s'", bad[i]);
	random_text(longest, 65, "a");
	assert_int_equal(fr_fleet_token_decode(longest, 65, name), -EINVAL);
	assert_string_equal(name, "same");
	assert_int_equal(fr_fleet_token_decode(longest, 64, name), 0);
	assert_int_equal(fr_fleet_token_decode("a\0b", 3, name), -EINVAL);
}

/* A token that can be decoded is the only token of its name. */
TEST(random_tokens)
{
	for (int i = 0; i < 20000; i++) {
		char token[16], name[FR_FLEET_NAME_SIZE], again[FR_FLEET_TOKEN_SIZE];
		const size_t n = random_up_to(sizeof(token) - 1);

		random_text(token, n, "=234567ABCDEFaz.");
		if (fr_fleet_token_decode(token, n, name) < 0)
			continue;
		assert_true(fr_fleet_name_is_valid(name));
		fr_fleet_token(name, again);
		assert_string_equal(again, token);
	}
}

TEST(names_that_are_not_valid)
{
	char name[80];

	assert_false(fr_fleet_name_is_valid(""));
	assert_false(fr_fleet_name_is_valid("a b"));
	assert_false(fr_fleet_name_is_valid("a/b"));
	assert_false(fr_fleet_name_is_valid("\x1b[m"));
	assert_false(fr_fleet_name_is_valid("b\xc3\xbc"));
	random_text(name, 64, "a");
	assert_true(fr_fleet_name_is_valid(name));
	random_text(name, 65, "a");
	assert_false(fr_fleet_name_is_valid(name));
}

TEST(subjects_are_made_and_split)
{
	char subject[FR_FLEET_SUBJECT_SIZE], id[FR_FLEET_ID_SIZE], name[FR_FLEET_NAME_SIZE];

	fr_fleet_subject(FR_SUBJECT_COMMAND, ID, NULL, subject);
	assert_string_equal(subject, "flightrec.command." ID);
	assert_int_equal(fr_fleet_subject_parse(subject, FR_SUBJECT_COMMAND, id, NULL), 0);
	assert_string_equal(id, ID);
	fr_fleet_subject(FR_SUBJECT_PRESENCE, NULL, "a.b", subject);
	assert_string_equal(subject, "flightrec.presence.a=2Eb");
	assert_int_equal(fr_fleet_subject_parse(subject, FR_SUBJECT_PRESENCE, NULL, name), 0);
	assert_string_equal(name, "a.b");
	fr_fleet_subject(FR_SUBJECT_ANSWER, ID, "web", subject);
	assert_string_equal(subject, "flightrec.answer." ID ".web");
	assert_int_equal(fr_fleet_subject_parse(subject, FR_SUBJECT_ANSWER, id, name), 0);
	assert_string_equal(name, "web");
}

TEST(each_subject_comes_back)
{
	for (int i = 0; i < 2000; i++) {
		char subject[FR_FLEET_SUBJECT_SIZE], id[FR_FLEET_ID_SIZE], name[FR_FLEET_NAME_SIZE],
			back_id[FR_FLEET_ID_SIZE], back[FR_FLEET_NAME_SIZE];

		make_name(name);
		assert_int_equal(fr_fleet_id_new(random_up_to(1ULL << 62), id), 0);
		fr_fleet_subject(FR_SUBJECT_INDEX, id, name, subject);
		assert_int_equal(fr_fleet_subject_parse(subject, FR_SUBJECT_INDEX, back_id, back), 0);
		assert_string_equal(back_id, id);
		assert_string_equal(back, name);
	}
}

TEST(subjects_of_another_form)
{
	static const char *const bad[] = {"", "flightrec", "flightrec.answer", "flightrec.answer.",
		"flightrec.answer." ID, "flightrec.answer." ID ".", "flightrec.answer." ID ".a.b",
		"flightrec.answer." ID "-a", "flightrec.answers." ID ".a", "flightrec.answer.x.a",
		"flightrec.answer..a", "flightrec.answer." ID ".*"};
	char id[FR_FLEET_ID_SIZE] = "same", name[FR_FLEET_NAME_SIZE] = "same";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (fr_fleet_subject_parse(bad[i], FR_SUBJECT_ANSWER, id, name) != -EINVAL)
			fail_msg("'%s'", bad[i]);
	assert_string_equal(id, "same");
	assert_int_equal(
		fr_fleet_subject_parse("flightrec.command." ID ".a", FR_SUBJECT_COMMAND, id, NULL), -EINVAL);
	assert_int_equal(
		fr_fleet_subject_parse("flightrec.presence.a.b", FR_SUBJECT_PRESENCE, NULL, name), -EINVAL);
}

TEST(locations)
{
	static const struct {
		const char *text, *bucket, *prefix; /* bucket NULL: bad */
	} cases[] = {{"s3://dumps", "dumps", ""}, {"s3://dumps/", "dumps", ""},
		{"s3://dumps/a/b", "dumps", "a/b"}, {"s3://dumps/a/b//", "dumps", "a/b"},
		{"s3://dumps//a", "dumps", "a"}, {"s3://my.dumps-1/x=1", "my.dumps-1", "x=1"}, {"", NULL, ""},
		{"s3://", NULL, ""}, {"s3:///a", NULL, ""}, {"http://dumps/a", NULL, ""},
		{"s3://ab", NULL, ""}, {"s3://Dumps", NULL, ""}, {"s3://-ab", NULL, ""},
		{"s3://ab.", NULL, ""}, {"s3://a..b", NULL, ""}, {"s3://dumps/a//b", NULL, ""},
		{"s3://dumps/a/../b", NULL, ""}, {"s3://dumps/..", NULL, ""}, {"s3://dumps/a b", NULL, ""},
		{"s3://dumps/a?b", NULL, ""}, {"s3://dumps/\x1b[m", NULL, ""}, {"s3://a b/c", NULL, ""}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fr_fleet_location l = {0};
		struct fr_diag d = {0};
		const int r = fr_fleet_location_parse(cases[i].text, &l, &d);

		if (r != (cases[i].bucket ? 0 : -EINVAL))
			fail_msg("'%s': %d", cases[i].text, r);
		assert_int_equal(d.code, r);
		assert_string_equal(l.bucket, cases[i].bucket ? cases[i].bucket : "");
		assert_string_equal(l.prefix, cases[i].prefix);
	}
}

TEST(a_key_is_valid_only_for_its_machine_and_id)
{
	struct fr_fleet_location with, without;
	char key[512], small[16];

	assert_int_equal(fr_fleet_location_parse("s3://dumps/p/q", &with, NULL), 0);
	assert_int_equal(fr_fleet_location_parse("s3://dumps", &without, NULL), 0);
	assert_int_equal(fr_fleet_key(&without, ID, "a.b", "perf.data.sample.1", key, sizeof(key)), 0);
	assert_string_equal(key, ID "/a=2Eb/perf.data.sample.1");
	assert_true(fr_fleet_key_is_valid(&without, ID, "a.b", key));
	assert_false(fr_fleet_key_is_valid(&with, ID, "a.b", key));
	assert_int_equal(fr_fleet_key(&with, ID, "web", "perf.data.sample.1.json", key, sizeof(key)), 0);
	assert_string_equal(key, "p/q/" ID "/web/perf.data.sample.1.json");
	assert_true(fr_fleet_key_is_valid(&with, ID, "web", key));
	assert_false(fr_fleet_key_is_valid(&with, ID, "we", key));
	assert_false(fr_fleet_key_is_valid(&with, "20261128T205726Z-1f3a5c7f", "web", key));
	assert_false(fr_fleet_key_is_valid(&without, ID, "web", key));
	assert_int_equal(fr_fleet_key(&with, ID, "web", "x", small, sizeof(small)), -ENAMETOOLONG);
}

TEST(keys_that_nobody_follows)
{
	static const char *const bad[] = {"", "../etc/passwd", "/perf.data.sample.1", "p/" ID "/web/",
		"p/" ID "/web/passwd", "p/" ID "/web/perf.data.sample.", "p/" ID "/web/perf.data.sample.a/b",
		"p/" ID "/web/perf.data.sample./../..", "p/" ID "/web/perf.data.sample.a\n",
		"p/" ID "/web/../web/perf.data.sample.1", "p/" ID "/web/perf.data.sample.a%2f",
		"p/" ID "/web//perf.data.sample.1", "/p/" ID "/web/perf.data.sample.1"};
	struct fr_fleet_location l;

	assert_int_equal(fr_fleet_location_parse("s3://dumps/p", &l, NULL), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (fr_fleet_key_is_valid(&l, ID, "web", bad[i]))
			fail_msg("'%s'", bad[i]);
	assert_true(fr_fleet_key_is_valid(&l, ID, "web", "p/" ID "/web/perf.data.sample.1"));
}
