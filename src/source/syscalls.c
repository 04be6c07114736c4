// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/syscalls.h"

#include <asm/unistd.h>
#include <errno.h>
#include <stdio.h>
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
	static const char separators[] = " \t,";
	uint8_t set[FR_SYSCALLS] = {0};
	const char *p = text + strspn(text, separators);

	if (*p == '\0')
		return fr_fail(d, -EINVAL, "write names, for example Syscall=fsync openat",
			"no system call is named");
	while (*p != '\0') {
		size_t length = strcspn(p, separators);
		char name[NAME_SIZE];
		int nr = -ENOENT;

		if (length < sizeof(name)) {
			snprintf(name, sizeof(name), "%.*s", (int)length, p);
			nr = fr_syscall_number(name);
		}
		if (nr < 0)
			return fr_fail(d, -EINVAL,
				"use the names of syscalls(2), for example Syscall=fsync openat",
				"no system call is named \"%.*s\" on this machine",
				length > 64 ? 64 : (int)length, p);
		set[nr] = 1;
		p += length;
		p += strspn(p, separators);
	}
	memcpy(ret, set, sizeof(set));
	return 0;
}
