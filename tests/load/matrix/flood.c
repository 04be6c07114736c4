/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Evicts: getppid() with six random arguments, argument 1 times a second, until it is killed. What
 * a tracepoint records of such a call does not compress, so that a ring of 1 MiB turns over in a moment at
 * little CPU.
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
	long per_ms = argc > 1 ? atol(argv[1]) / 1000 : 0;

	if (per_ms < 1)
		errx(2, "usage: flood CALLS_PER_SECOND");
	for (;; usleep(1000)) {
		for (long i = 0; i < per_ms; i++) {
			uint64_t a = next(&x), b = next(&x), c = next(&x), d = next(&x), e = next(&x);

			syscall(SYS_getppid, a, b, c, d, e, next(&x));
		}
	}
}
