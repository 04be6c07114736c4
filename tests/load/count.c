/* SPDX-License-Identifier: GPL-2.0-or-later */

/* One thread that counts up in an argument of a system call: lseek(-1, 0), lseek(-1, 1), … which fails and
   does nothing, as fast as it can, or with a pause every 256 numbers. A recording of it has each number,
   once. */

#include "load.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BATCH 256

FR_LOAD_FRAME static uint64_t frtest_count(uint64_t ns, useconds_t pause)
{
	uint64_t n = 0, end = fr_load_now_ns() + ns;

	while (fr_load_now_ns() < end) {
		for (unsigned i = 0; i < BATCH; i++)
			syscall(SYS_lseek, -1, n++, SEEK_SET);
		if (pause)
			usleep(pause);
	}
	return n;
}

int main(int argc, char *argv[])
{
	uint64_t ns = 1000000000ULL, begin, n;
	useconds_t pause = 0;
	int opt, cpu = -1;

	while ((opt = getopt(argc, argv, "t:c:p:")) != -1) {
		if (opt == 't')
			ns = fr_load_seconds(optarg);
		else if (opt == 'c')
			cpu = atoi(optarg);
		else if (opt == 'p')
			pause = (useconds_t)fr_load_count(optarg);
		else
			errx(2, "usage: frtest-count [-t SECONDS] [-c CPU] [-p MICROSECONDS]");
	}
	fr_load_pin(cpu);
	begin = fr_load_now_ns();
	n = frtest_count(ns, pause);
	printf("{\"pid\":%d,\"calls\":%" PRIu64 ",\"nr\":%d,\"ns\":%" PRIu64 "}\n", getpid(), n, SYS_lseek,
		fr_load_now_ns() - begin);
	return 0;
}
