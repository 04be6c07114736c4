/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Makes the calls to which the BPF program switches.bpf.c reacts. Each of -n rounds is: getppid(), which
 * switches an event off; -k calls of getuid(); getpgrp(), which switches it on; and -k calls of geteuid(). So
 * all calls of geteuid() and none of getuid() must be recorded.
 *
 *   -o off  only getppid()       -o on    only getpgrp()      -o for  only getsid()
 *   -o mean only getpgid()       -o fast  only getegid()
 */

#include "load.h"

#include <sys/syscall.h>

static void call(long number, uint64_t times)
{
	for (uint64_t i = 0; i < times; i++)
		syscall(number, 0, 0, 0, 0, 0, 0);
}

static int call_one(const char *which)
{
	static const struct {
		const char *name;
		long number;
	} calls[] = {{"off", SYS_getppid}, {"on", SYS_getpgrp}, {"for", SYS_getsid}, {"mean", SYS_getpgid},
		{"fast", SYS_getegid}};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(calls[i].name, which)) {
			call(calls[i].number, 1);
			return 0;
		}
	return 2;
}

int main(int argc, char *argv[])
{
	uint64_t rounds = 1, calls = 1;
	char *only = NULL;
	int cpu = -1;

	fr_load_options(argc, argv, "frtest-switch [-n ROUNDS] [-k CALLS] [-c CPU] [-o CALL]",
		(struct fr_load_option[]){{'n', .count = &rounds}, {'k', .count = &calls},
			{'c', .number = &cpu}, {'o', .text = &only}, {0}});
	fr_load_pin(cpu);
	if (only)
		return call_one(only);
	for (uint64_t i = 0; i < rounds; i++) {
		call(SYS_getppid, 1);
		call(SYS_getuid, calls);
		call(SYS_getpgrp, 1);
		call(SYS_geteuid, calls);
	}
	printf("{\"pid\":%d,\"off\":%d,\"on\":%d}\n", getpid(), SYS_getuid, SYS_geteuid);
	return 0;
}
