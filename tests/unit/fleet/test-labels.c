// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "base/cleanup.h"
#include "fleet/labels.h"
#include "random.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

static const char *text_of(const struct fr_labels *l)
{
	static char text[8192];

	fr_labels_text(l, text, sizeof(text));
	return text;
}

TEST(labels_are_sorted)
{
	struct fr_labels l;
	char small[6];

	assert_int_equal(fr_labels_parse(" zone = a ,role=db", &l, NULL), 0);
	assert_int_equal(l.n, 2);
	assert_string_equal(text_of(&l), "role=db,zone=a");
	fr_labels_text(&l, small, sizeof(small));
	assert_string_equal(small, "role=");
	assert_int_equal(fr_labels_parse("  ", &l, NULL), 0);
	assert_int_equal(l.n, 0);
	assert_string_equal(text_of(&l), "");
}

TEST(labels_that_are_not_valid)
{
	static const char *const bad[] = {"role", "=db", "role=", ",", "a=b,", ",a=b", "a=b,,c=d", "a=b,a=c",
		"a=b=c", "a b=c", "a=b c", "a=*", "name=x", "a=\x1b[m", "a=\xc3\xbc", "a!=b"};
	struct fr_labels l = {.n = 7};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fr_diag d = {0};

		if (fr_labels_parse(bad[i], &l, &d) != -EINVAL || !*d.what)
			fail_msg("'%s'", bad[i]);
	}
	assert_int_equal(l.n, 7);
}

static void add_pair(char *text, size_t size, const char *name, size_t length)
{
	char value[FR_LABEL_SIZE + 8];
	const size_t n = strlen(text);

	random_text(value, length, "abcXYZ019-_./");
	snprintf(text + n, size - n, "%s%s=%s", n ? "," : "", name, value);
}

TEST(labels_have_limits)
{
	char text[8192] = "", name[FR_LABEL_SIZE + 8];
	struct fr_labels l;

	for (size_t i = 0; i < FR_LABELS_MAX; i++) {
		snprintf(name, sizeof(name), "label-%zu", i);
		add_pair(text, sizeof(text), name, FR_LABEL_SIZE - 1);
	}
	assert_int_equal(fr_labels_parse(text, &l, NULL), 0);
	assert_int_equal(l.n, FR_LABELS_MAX);
	add_pair(text, sizeof(text), "more", 1);
	assert_int_equal(fr_labels_parse(text, &l, NULL), -EINVAL);
	text[0] = '\0';
	add_pair(text, sizeof(text), "a", FR_LABEL_SIZE);
	assert_int_equal(fr_labels_parse(text, &l, NULL), -EINVAL);
	random_text(name, FR_LABEL_SIZE, "n");
	text[0] = '\0';
	add_pair(text, sizeof(text), name, 1);
	assert_int_equal(fr_labels_parse(text, &l, NULL), -EINVAL);
}

/* Makes up to 5 labels. Equal names are possible. */
static void make_labels(struct fr_labels *ret)
{
	char text[1024] = "", name[8];

	do {
		text[0] = '\0';
		for (uint64_t n = random_up_to(5); n > 0; n--) {
			random_text(name, 1 + random_up_to(2), "abcd");
			add_pair(text, sizeof(text), name, 1 + random_up_to(10));
		}
	} while (fr_labels_parse(text, ret, NULL) < 0);
}

TEST(labels_come_back_from_text_and_json)
{
	for (int i = 0; i < 1000; i++) {
		struct fr_labels l, again = {0}, from_json = {0};
		cJSON *json;

		make_labels(&l);
		for (size_t k = 1; k < l.n; k++)
			assert_true(strcmp(l.v[k - 1].name, l.v[k].name) < 0);
		assert_int_equal(fr_labels_parse(text_of(&l), &again, NULL), 0);
		assert_string_equal(text_of(&again), text_of(&l));
		json = fr_labels_json(&l);
		assert_int_equal(fr_labels_from_json(json, &from_json), 0);
		cJSON_Delete(json);
		assert_string_equal(text_of(&from_json), text_of(&again));
	}
}

TEST(json_that_is_not_labels)
{
	static const char *const bad[] = {"[]", "\"a=b\"", "{\"a\":1}", "{\"a\":null}", "{\"a\":\"\"}",
		"{\"\":\"b\"}", "{\"a\":\"b\",\"a\":\"c\"}", "{\"name\":\"x\"}", "{\"a\":\"b\\u001b\"}",
		"{\"a\":\"b,c\"}"};
	struct fr_labels l;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cJSON *o = cJSON_Parse(bad[i]);

		assert_non_null(o);
		if (fr_labels_from_json(o, &l) != -EINVAL)
			fail_msg("%s", bad[i]);
		cJSON_Delete(o);
	}
	assert_int_equal(fr_labels_from_json(NULL, &l), -EINVAL);
}

TEST(selectors_choose_machines)
{
	static const struct {
		const char *selector;
		bool db, web; /* whether it chooses db-1 and web-2 */
	} cases[] = {{"", true, true}, {"*", true, true}, {" * ", true, true}, {"role=db", true, false},
		{"role = db", true, false}, {"role!=db", false, true}, {"role=db,zone=a", true, false},
		{"role=db,zone!=a", false, false}, {"zone=?", true, true}, {"zone=??", false, false},
		{"name=web-*", false, true}, {"name=*-*", true, true}, {"name!=*1", false, true},
		{"rack=*", false, true}, {"rack!=7", true, false}, {"rack!=*", true, false},
		{"name=db-1", true, false}, {"name=*b*", true, true}, {"role=d", false, false},
		{"role=dbb", false, false}, {"name=db-1,role=db,role!=web", true, false}};
	struct fr_labels db, web;

	assert_int_equal(fr_labels_parse("role=db,zone=a", &db, NULL), 0);
	assert_int_equal(fr_labels_parse("role=web,zone=b,rack=7", &web, NULL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char form[FR_SELECTOR_SIZE];

		assert_int_equal(fr_selector_check(cases[i].selector, NULL), 0);
		fr_selector_normalize(cases[i].selector, form);
		if (fr_selector_matches(cases[i].selector, "db-1", &db) != cases[i].db ||
			fr_selector_matches(cases[i].selector, "web-2", &web) != cases[i].web ||
			fr_selector_matches(form, "db-1", &db) != cases[i].db ||
			fr_selector_matches(form, "web-2", &web) != cases[i].web)
			fail_msg("'%s'", cases[i].selector);
	}
}

TEST(selectors_that_are_not_valid)
{
	static const char *const bad[] = {"role", "role=", "=db", "!=db", ",", "role=db,", "role=db,*", "**",
		"role==db", "role=d b", "role=[ab]", "ro*e=db", "role!db", "a=\x1b", "a=b,,c=d", "name=a\\*"};
	char longest[FR_SELECTOR_SIZE + 1] = "a=";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fr_diag d = {0};

		if (fr_selector_check(bad[i], &d) != -EINVAL || !*d.what || !*d.hint)
			fail_msg("'%s'", bad[i]);
	}
	random_text(longest + 2, 64, "v");
	assert_int_equal(fr_selector_check(longest, NULL), 0);
	random_text(longest + 2, 65, "v");
	assert_int_equal(fr_selector_check(longest, NULL), -EINVAL);
	for (size_t i = 0; i < FR_SELECTOR_SIZE / 4; i++)
		memcpy(longest + 4 * i, "a=b,", 4);
	longest[FR_SELECTOR_SIZE - 1] = '\0';
	assert_int_equal(fr_selector_check(longest, NULL), 0);
	fr_selector_normalize(longest, longest); /* in place, too */
	assert_string_equal(longest, "a=b");
}

TEST(equal_selectors_have_one_form)
{
	static const struct {
		const char *selector, *form;
	} cases[] = {{"", "*"}, {" ", "*"}, {"*", "*"}, {"b=1,a=2", "a=2,b=1"},
		{" b = 1 , a != 2 ", "a!=2,b=1"}, {"a=1,a=1", "a=1"}, {"a=2,a=1", "a=1,a=2"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char form[FR_SELECTOR_SIZE];

		fr_selector_normalize(cases[i].selector, form);
		assert_string_equal(form, cases[i].form);
	}
}

TEST(patterns_match_as_fnmatch)
{
	struct fr_labels none = {0};

	for (int i = 0; i < 20000; i++) {
		char selector[32] = "name=", name[16];
		bool want;

		random_text(selector + 5, 1 + random_up_to(7), "ab*?");
		random_text(name, 1 + random_up_to(8), "ab");
		want = fnmatch(selector + 5, name, 0) == 0;
		if (fr_selector_matches(selector, name, &none) != want)
			fail_msg("'%s' and '%s'", selector, name);
	}
}

TEST(the_form_of_a_form_is_the_same)
{
	for (int i = 0; i < 5000; i++) {
		char selector[40], form[FR_SELECTOR_SIZE], again[FR_SELECTOR_SIZE];
		struct fr_labels l;

		random_text(selector, random_up_to(sizeof(selector) - 1), "ab=!,* ");
		if (fr_selector_check(selector, NULL) < 0)
			continue;
		fr_selector_normalize(selector, form);
		assert_int_equal(fr_selector_check(form, NULL), 0);
		fr_selector_normalize(form, again);
		assert_string_equal(again, form);
		make_labels(&l);
		assert_int_equal(
			fr_selector_matches(form, "ab", &l), fr_selector_matches(selector, "ab", &l));
	}
}
