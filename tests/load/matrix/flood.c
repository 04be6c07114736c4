/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Makes system calls so that a recorder's ring evicts its frames. For each byte of its input, the program
 * calls getppid() CALLS times, and then writes a byte. The calls have six random arguments, so the records of
 * their tracepoint can hardly be compressed. So few calls, and little CPU time, fill the ring.
 */

#include <err.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

int main(int argc, char *argv[])
{
	uint64_t x = 88172645463325252ULL;
	long calls = argc > 1 ? atol(argv[1]) : 0;
	char byte;

	if (calls < 1)
		errx(2, "usage: flood CALLS");
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		for (long i = 0; i < calls; i++) {
			uint64_t a = next(&x), b = next(&x), c = next(&x), d = next(&x), e = next(&x);

			syscall(SYS_getppid, a, b, c, d, e, next(&x));
		}
		if (write(STDOUT_FILENO, &byte, 1) != 1)
			err(EXIT_FAILURE, "cannot report a step");
	}
	return EXIT_SUCCESS;
}
