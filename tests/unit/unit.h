/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* cmocka.h with the headers that it needs, and unit tests that register themselves. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Begins the definition of a test. The program runs its tests in their order in the file. */
#define TEST(name)                                                                                           \
	static void test_##name(void **state);                                                               \
	static __attribute__((constructor)) void add_test_##name(void)                                       \
	{                                                                                                    \
		unit_add("test_" #name, test_##name);                                                        \
	}                                                                                                    \
	static void test_##name(void **state)

/* Calls SETUP before each test of the program, and TEARDOWN after each test. */
#define FIXTURE(setup, teardown)                                                                             \
	static __attribute__((constructor)) void use_fixture(void)                                           \
	{                                                                                                    \
		unit_use_fixture(setup, teardown);                                                           \
	}

/* Calls SETUP before the first test of the program, and TEARDOWN after the last test. */
#define GROUP_FIXTURE(setup, teardown)                                                                       \
	static __attribute__((constructor)) void use_group_fixture(void)                                     \
	{                                                                                                    \
		unit_use_group_fixture(setup, teardown);                                                     \
	}

/* Ends the test as skipped, and does not return. The format WHY and the other arguments make a message with
   the reason. */
void unit_skip(const char *why, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Runs a command of the shell. Returns the same as system(); or -1 if the command has more than 16 KiB. */
int unit_shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void unit_add(const char *name, CMUnitTestFunction test);
void unit_use_fixture(CMFixtureFunction setup, CMFixtureFunction teardown);
void unit_use_group_fixture(CMFixtureFunction setup, CMFixtureFunction teardown);
