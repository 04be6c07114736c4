/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* cmocka.h with the headers that it needs, and unit tests that register themselves. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Begins a test. A program runs its tests in the order in which its file has them. */
#define TEST(name)                                                                                           \
	static void test_##name(void **state);                                                               \
	static __attribute__((constructor)) void add_test_##name(void)                                       \
	{                                                                                                    \
		unit_add("test_" #name, test_##name);                                                        \
	}                                                                                                    \
	static void test_##name(void **state)

/* Each test of the program runs between SETUP and TEARDOWN. */
#define FIXTURE(setup, teardown)                                                                             \
	static __attribute__((constructor)) void use_fixture(void)                                           \
	{                                                                                                    \
		unit_use_fixture(setup, teardown);                                                           \
	}

/* SETUP runs before the first test of the program, and TEARDOWN after the last one. */
#define GROUP_FIXTURE(setup, teardown)                                                                       \
	static __attribute__((constructor)) void use_group_fixture(void)                                     \
	{                                                                                                    \
		unit_use_group_fixture(setup, teardown);                                                     \
	}

/* Ends the test as skipped. WHY is the format of a message that says why. Does not return. */
void unit_skip(const char *why, ...) __attribute__((format(printf, 1, 2), noreturn));

void unit_add(const char *name, CMUnitTestFunction test);
void unit_use_fixture(CMFixtureFunction setup, CMFixtureFunction teardown);
void unit_use_group_fixture(CMFixtureFunction setup, CMFixtureFunction teardown);
