// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the choice and the search of symbols, of kallsyms, and of demangled names. */
#include "../unit.h"
#include "report/demangle.h"
#include "report/json_out.h"
#include "report/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(
	struct fr_symbols *s, uint64_t start, uint64_t size, bool is_weak, bool is_global, const char *name)
{
	assert_int_equal(fr_symbols_add(s, start, size, is_weak, is_global, name, strlen(name)), 0);
}

static const char *name_at(const struct fr_symbols *s, uint64_t address)
{
	const struct fr_symbol *found = fr_symbols_find(s, address);

	return found ? fr_symbols_name(s, found) : "";
}

TEST(of_symbols_with_one_address_the_best_is_taken)
{
	struct fr_symbols s = {0};

	add(&s, 0x100, 0x10, false, true, "__underscored");
	add(&s, 0x100, 0x10, false, true, "plain");
	add(&s, 0x200, 0x10, true, false, "weak");
	add(&s, 0x200, 0x10, false, false, "strong");
	add(&s, 0x300, 0, false, true, "without_a_size");
	add(&s, 0x300, 0x10, true, false, "with_a_size");
	add(&s, 0x400, 0x10, false, false, "local");
	add(&s, 0x400, 0x10, false, true, "glob");
	add(&s, 0x500, 0x10, false, true, "short");
	add(&s, 0x500, 0x10, false, true, "a_longer_name");
	add(&s, 0x600, 0x10, false, true, "_Znwm"); /* operator new */
	add(&s, 0x600, 0x10, false, true, "_Znam"); /* operator new[] */
	fr_symbols_finish(&s, false);
	assert_int_equal(s.n, 6);
	assert_string_equal(name_at(&s, 0x100), "plain");
	assert_string_equal(name_at(&s, 0x20f), "strong");
	assert_string_equal(name_at(&s, 0x300), "with_a_size");
	assert_string_equal(name_at(&s, 0x400), "glob");
	assert_string_equal(name_at(&s, 0x500), "a_longer_name");
	assert_string_equal(name_at(&s, 0x600), "_Znam");
	assert_string_equal(name_at(&s, 0x510), "");
	assert_string_equal(name_at(&s, 0xff), "");
	fr_symbols_deinit(&s);
}

TEST(a_symbol_without_a_size_ends_where_the_next_one_begins)
{
	struct fr_symbols s = {0};

	add(&s, 0x300, 0, false, true, "third");
	add(&s, 0x100, 0, false, true, "first");
	add(&s, 0x200, 0x20, false, true, "second");
	fr_symbols_finish(&s, false);
	assert_string_equal(name_at(&s, 0x1ff), "first");
	assert_string_equal(name_at(&s, 0x21f), "second");
	assert_string_equal(name_at(&s, 0x220), "");
	assert_string_equal(name_at(&s, 0xfff), "third"); /* the last one: to the end of its page */
	assert_string_equal(name_at(&s, 0x1000), "");
	fr_symbols_deinit(&s);
}

TEST(a_symbol_inside_of_another_one_wins)
{
	struct fr_symbols s = {0};

	add(&s, 0x100, 0x100, false, true, "outer");
	add(&s, 0x120, 0x10, false, true, "inner");
	fr_symbols_finish(&s, false);
	assert_string_equal(name_at(&s, 0x125), "inner");
	assert_string_equal(name_at(&s, 0x140), "outer");
	fr_symbols_deinit(&s);
}

TEST(symbols_that_wrap_around_are_ignored)
{
	struct fr_symbols s = {0};

	add(&s, UINT64_MAX - 4, 0x100, false, true, "wraps");
	fr_symbols_finish(&s, false);
	assert_int_equal(s.n, 0);
	assert_null(fr_symbols_find(&s, 5));
	fr_symbols_deinit(&s);
}

static const char kallsyms[] = "ffffffff81000000 T _text\n"
			       "ffffffff81000100 T memcpy\n"
			       "ffffffff81000100 T __memcpy\n"
			       "ffffffff81000200 t local_function\n"
			       "ffffffff81000300 D data\n"
			       "nonsense\n"
			       "ffffffff81000300\n"
			       "ffffffffc0000000 t ext4_one\t[ext4]\n"
			       "ffffffffc0000100 t ext4_two\t[ext4]\n"
			       "ffffffffc0100000 t other\t[other]";

TEST(kallsyms_of_the_kernel_and_of_a_module)
{
	struct fr_symbols kernel = {0}, ext4 = {0}, last = {0};

	assert_int_equal(fr_symbols_add_kallsyms(&kernel, kallsyms, sizeof(kallsyms) - 1, ""), 0);
	assert_int_equal(fr_symbols_add_kallsyms(&ext4, kallsyms, sizeof(kallsyms) - 1, "ext4"), 0);
	assert_int_equal(fr_symbols_add_kallsyms(&last, kallsyms, sizeof(kallsyms) - 1, "other"), 0);
	fr_symbols_finish(&kernel, true);
	fr_symbols_finish(&ext4, true);
	fr_symbols_finish(&last, true);
	assert_string_equal(name_at(&kernel, 0xffffffff81000150), "__memcpy"); /* the last one in the file */
	assert_string_equal(name_at(&kernel, 0xffffffff81000210), "local_function");
	assert_string_equal(name_at(&kernel, 0xffffffff81001000), "");
	assert_string_equal(name_at(&ext4, 0xffffffffc00000ff), "ext4_one");
	assert_string_equal(name_at(&ext4, 0xffffffffc0000fff), "ext4_two");
	assert_string_equal(name_at(&ext4, 0xffffffffc0100000), "");
	assert_string_equal(name_at(&last, 0xffffffffc0100000), "other");
	assert_int_equal(fr_kallsyms_find(kallsyms, sizeof(kallsyms) - 1, "_text"), 0xffffffff81000000);
	assert_int_equal(fr_kallsyms_find(kallsyms, sizeof(kallsyms) - 1, "ext4_one"), 0);
	fr_symbols_deinit(&kernel);
	fr_symbols_deinit(&ext4);
	fr_symbols_deinit(&last);
}

TEST(a_truncated_kallsyms_is_read_within_its_bounds)
{
	for (size_t len = 0; len < sizeof(kallsyms); len++) {
		char *copy = malloc(len ? len : 1); /* a sanitizer sees a read behind its end */
		struct fr_symbols s = {0};

		memcpy(copy, kallsyms, len);
		assert_int_equal(fr_symbols_add_kallsyms(&s, copy, len, NULL), 0);
		fr_symbols_finish(&s, true);
		fr_symbols_deinit(&s);
		free(copy);
	}
}

TEST(names_are_demangled)
{
	static const char *const names[][2] = {{"_ZN5space6object4moveEi", "space::object::move"},
		{"_ZN4core3ptr13drop_in_place17h1234567890abcdefE", "core::ptr::drop_in_place"},
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *plain = fr_demangle(names[i][0]);

		assert_non_null(plain);
		assert_string_equal(plain, names[i][1]);
		free(plain);
	}
	assert_null(fr_demangle("main"));
	assert_null(fr_demangle("_Z"));
	assert_null(fr_demangle("_start"));
	assert_null(fr_demangle(""));
}

/* Each type of this name is a pair of the one before, so the text has 2^40 parts. */
TEST(a_name_that_stands_for_a_huge_text_is_given_up)
{
	char name[1024] = "_Z1fI4pairIiiE", *end = name + strlen(name);

	for (unsigned i = 0; i < 40; i++)
		end += sprintf(end, "S_IS%c_S%c_E", i < 10 ? '0' + (int)i : 'A' + (int)i - 10,
			i < 10 ? '0' + (int)i : 'A' + (int)i - 10);
	strcpy(end, "Evv");
	free(fr_demangle(name)); /* ends at once */
}

TEST(json_texts_are_valid_and_stay_in_their_script)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fr_json_out_text(f, "a\"b\\c\n</script>\xff\xc3\xa9");
	fclose(f);
	assert_string_equal(text, "\"a\\\"b\\\\c\\u000a\\u003c/script>\xef\xbf\xbd\xc3\xa9\"");
	free(text);
}
