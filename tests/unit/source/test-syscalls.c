// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of system calls, as Syscall= has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "source/syscalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static void test_numbers(void **state)
{
	assert_int_equal(fr_syscall_number("read"), SYS_read);
	assert_int_equal(fr_syscall_number("openat"), SYS_openat);
	assert_int_equal(fr_syscall_number("set_mempolicy_home_node"), 450);
	assert_int_equal(fr_syscall_number(""), -ENOENT);
	assert_int_equal(fr_syscall_number("syscalls"), -ENOENT);
	assert_int_equal(fr_syscall_number("READ"), -ENOENT);
}

static void test_lists(void **state)
{
	uint8_t set[FR_SYSCALLS], expected[FR_SYSCALLS] = {0};
	struct fr_diag d = {0};

	expected[SYS_fsync] = expected[SYS_openat] = 1;
	memset(set, 7, sizeof(set));
	assert_int_equal(fr_syscalls_parse(" fsync,\topenat  fsync ", set, &d), 0);
	assert_memory_equal(set, expected, sizeof(set));
}

static void refused(const char *names, const char *what)
{
	uint8_t set[FR_SYSCALLS], before[FR_SYSCALLS];
	struct fr_diag d = {0};

	memset(set, 7, sizeof(set));
	memcpy(before, set, sizeof(set));
	assert_int_equal(fr_syscalls_parse(names, set, &d), -EINVAL);
	assert_memory_equal(set, before, sizeof(set));
	assert_non_null(strstr(d.what, what));
}

static void test_what_is_none(void **state)
{
	char *wide = malloc(100001);

	refused("", "no system call is named");
	refused(" , ", "no system call is named");
	refused("fsync opennat", "\"opennat\"");
	assert_non_null(wide);
	memset(wide, 'a', 100000);
	wide[100000] = '\0';
	refused(wide, "\"aaaa");
	free(wide);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
