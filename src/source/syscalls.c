// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/syscalls.h"
#include "base/cleanup.h"

#include <asm/unistd.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define NAME_SIZE 32

static const char names[FR_SYSCALLS][NAME_SIZE] = {
#define SYSCALL(name) [__NR_##name] = #name,
#define SYSCALL_WAITS SYSCALL
#include "syscalls.inc"
};

int fr_syscall_number(const char *name)
{
	if (name[0] == '\0')
		return -ENOENT;
	for (int nr = 0; nr < FR_SYSCALLS; nr++)
		if (strcmp(names[nr], name) == 0)
			return nr;
	return -ENOENT;
}

int fr_syscalls_parse(const char *text, uint8_t ret[static FR_SYSCALLS], struct fr_diag *d)
{
	_cleanup_free_ char *copy = strdup(text);
	uint8_t set[FR_SYSCALLS] = {0};
	char *rest = copy, *name;
	bool any = false;

	if (!copy)
		return -ENOMEM;
	while ((name = strsep(&rest, " \t,"))) {
		int nr;

		if (!*name)
			continue;
		nr = fr_syscall_number(name);
		if (nr < 0)
			return fr_fail(d, -EINVAL,
				"use the names of syscalls(2), for example Syscall=fsync openat",
				"no system call is named \"%.64s\" on this machine", name);
		set[nr] = 1;
		any = true;
	}
	if (!any)
		return fr_fail(d, -EINVAL, "write names, for example Syscall=fsync openat",
			"no system call is named");
	memcpy(ret, set, sizeof(set));
	return 0;
}
