// SPDX-License-Identifier: GPL-2.0-or-later
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

static struct CMUnitTest tests[64];
static size_t n_tests;
static CMFixtureFunction group_setup, group_teardown;

void unit_add(const char *name, CMUnitTestFunction test)
{
	if (n_tests == sizeof(tests) / sizeof(*tests))
		abort();
	tests[n_tests].name = name;
	tests[n_tests++].test_func = test;
}

void unit_use_fixture(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	/* All places get the fixture, also the free places, because tests may register later. */
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		tests[i].setup_func = setup;
		tests[i].teardown_func = teardown;
	}
}

void unit_use_group_fixture(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	group_setup = setup;
	group_teardown = teardown;
}

void unit_skip(const char *why, ...)
{
	va_list ap;

	va_start(ap, why);
	print_message("skipped: ");
	vprint_message(why, ap);
	print_message("\n");
	va_end(ap);
	skip();
	__builtin_unreachable();
}

int unit_shell(const char *fmt, ...)
{
	char command[16384];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return n >= 0 && (size_t)n < sizeof(command) ? system(command) : -1;
}

int main(void)
{
	/* cmocka ignores the free places, because they have no name. */
	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
