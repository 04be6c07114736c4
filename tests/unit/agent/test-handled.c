// SPDX-License-Identifier: GPL-2.0-or-later
#include "agent/handled.h"
#include "../unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW (1700000000ULL * 1000000000ULL)

TEST(a_key_is_there_once)
{
	struct fr_handled h = {0};

	assert_false(fr_handled_has(&h, "a"));
	assert_int_equal(fr_handled_add(&h, "a", NOW), 0);
	assert_int_equal(fr_handled_add(&h, "a", NOW + 1), 0);
	assert_int_equal(h.n, 1);
	assert_true(fr_handled_has(&h, "a"));
	fr_handled_deinit(&h);
}

TEST(no_key)
{
	struct fr_handled h = {0};
	char key[FR_HANDLED_KEY_SIZE + 1];

	memset(key, 'x', sizeof(key));
	key[FR_HANDLED_KEY_SIZE] = '\0';
	assert_int_equal(fr_handled_add(&h, key, NOW), -EINVAL);
	key[FR_HANDLED_KEY_SIZE - 1] = '\0';
	assert_int_equal(fr_handled_add(&h, key, NOW), 0);
	assert_int_equal(fr_handled_add(&h, "", NOW), -EINVAL);
	assert_int_equal(fr_handled_add(&h, "a b", NOW), -EINVAL);
	assert_int_equal(fr_handled_add(&h, "a\nb", NOW), -EINVAL);
	assert_int_equal(h.n, 1);
	fr_handled_deinit(&h);
}

TEST(old_keys_are_forgotten)
{
	struct fr_handled h = {0};

	assert_int_equal(fr_handled_add(&h, "old", NOW), 0);
	assert_int_equal(fr_handled_add(&h, "young", NOW + 1), 0);
	assert_int_equal(fr_handled_add(&h, "new", NOW + FR_HANDLED_AGE_NS + 1), 0);
	assert_false(fr_handled_has(&h, "old"));
	assert_true(fr_handled_has(&h, "young"));
	/* A clock that was set back forgets nothing. */
	assert_int_equal(fr_handled_add(&h, "back", 1), 0);
	assert_int_equal(h.n, 3);
	fr_handled_deinit(&h);
}

TEST(the_number_is_bounded)
{
	struct fr_handled h = {0};
	char key[32];

	for (unsigned i = 0; i < FR_HANDLED_MAX + 2; i++) {
		snprintf(key, sizeof(key), "%u", i);
		assert_int_equal(fr_handled_add(&h, key, NOW), 0);
	}
	assert_int_equal(h.n, FR_HANDLED_MAX);
	assert_false(fr_handled_has(&h, "1"));
	assert_true(fr_handled_has(&h, "2"));
	assert_true(fr_handled_has(&h, key));
	fr_handled_deinit(&h);
}

TEST(the_text_has_all)
{
	struct fr_handled h = {0}, copy = {0};
	size_t n = 0;
	char *text;

	assert_int_equal(fr_handled_add(&h, "20261128T205726Z-1f3a5c7e", NOW), 0);
	assert_int_equal(fr_handled_add(&h, "boot/slow/17", NOW + 7), 0);
	text = fr_handled_text(&h, &n);
	assert_non_null(text);
	assert_int_equal(fr_handled_parse(&copy, text, n), 0);
	assert_int_equal(copy.n, 2);
	assert_int_equal(copy.v[1].time_ns, NOW + 7);
	assert_string_equal(copy.v[1].key, "boot/slow/17");
	free(text);
	fr_handled_deinit(&copy);
	fr_handled_deinit(&h);
}

TEST(damaged_lines_are_ignored)
{
	static const char text[] = "5 a\n\nx b\n6\n7 \n8 c d\n99999999999999999999999 e\n9 f";
	static const char cut[] = "5 a\n\0"
				  "6 b\n";
	struct fr_handled h = {0};

	assert_int_equal(fr_handled_parse(&h, text, sizeof(text) - 1), 5);
	assert_int_equal(h.n, 2);
	assert_true(fr_handled_has(&h, "a"));
	assert_true(fr_handled_has(&h, "f"));
	fr_handled_deinit(&h);
	assert_int_equal(fr_handled_parse(&h, cut, sizeof(cut) - 1), 1);
	assert_int_equal(h.n, 1);
	fr_handled_deinit(&h);
}
