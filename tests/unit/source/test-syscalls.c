// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the names of system calls in Syscall=. */

#include "../unit.h"
#include "source/syscalls.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

TEST(names_have_this_machines_numbers)
{
	assert_int_equal(fr_syscall_number("read"), SYS_read);
	assert_int_equal(fr_syscall_number("openat"), SYS_openat);
	assert_int_equal(fr_syscall_number("set_mempolicy_home_node"), 450);
	assert_int_equal(fr_syscall_number(""), -ENOENT);
	assert_int_equal(fr_syscall_number("syscalls"), -ENOENT);
	assert_int_equal(fr_syscall_number("READ"), -ENOENT);
}

TEST(list_is_parsed_or_refused_as_a_whole)
{
	static char wide[100001];
	const struct {
		const char *names, *what; /* if what is NULL, the names mean fsync and openat */
	} cases[] = {
		{" fsync,\topenat  fsync ", NULL},
		{"", "no system call is named"},
		{" , ", "no system call is named"},
		{"fsync opennat", "\"opennat\""},
		{wide, "\"aaaa"},
	};

	memset(wide, 'a', sizeof(wide) - 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t set[FR_SYSCALLS], expected[FR_SYSCALLS];
		struct fr_diag d = {0};

		memset(set, 7, sizeof(set));
		memset(expected, cases[i].what ? 7 : 0, sizeof(expected));
		if (!cases[i].what)
			expected[SYS_fsync] = expected[SYS_openat] = 1;
		assert_int_equal(fr_syscalls_parse(cases[i].names, set, &d), cases[i].what ? -EINVAL : 0);
		assert_memory_equal(set, expected, sizeof(set));
		if (cases[i].what)
			assert_non_null(strstr(d.what, cases[i].what));
	}
}
