/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * How fast a dump reaches the disk: the writer with a few block sizes and depths, against write() and
 * fsync(). Bytes of random content, to durable. Usage: writer-bench [DIRECTORY [MiB]]
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "fileio/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#define STEP (1u << 20)

static int create_in(const char *dir)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/flightrec-bench.XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	unlink(path);
	return fd;
}

static int with_writer(int fd, const uint8_t *data, unsigned mib, const struct fr_file_writer_config *config,
	char *ret_how, size_t how_size)
{
	struct fr_writer *w;
	int r = fr_writer_new(fd, config, &w, NULL);

	for (unsigned i = 0; i < mib && r == 0; i++)
		r = fr_writer_append(w, data, STEP);
	if (r == 0)
		r = fr_writer_finish(w, data, 104);
	if (r == 0)
		snprintf(ret_how, how_size, "%s", fr_writer_describe(w));
	fr_writer_free(w);
	return r;
}

static int with_write(int fd, const uint8_t *data, unsigned mib)
{
	int r = 0;

	for (unsigned i = 0; i < mib && r == 0; i++)
		r = fr_write_all(fd, data, STEP);
	return r == 0 && fsync(fd) < 0 ? -1 : r;
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char *argv[])
{
	static const struct fr_file_writer_config configs[] = {{.block_bytes = 1u << 20, .depth = 8},
		{.block_bytes = 1u << 20, .depth = 2}, {.block_bytes = 1u << 20, .depth = 16},
		{.block_bytes = 256u << 10, .depth = 16}, {.block_bytes = 4u << 20, .depth = 4}};
	const char *dir = argc > 1 ? argv[1] : ".";
	unsigned mib = argc > 2 ? (unsigned)atoi(argv[2]) : 1024;
	_cleanup_free_ uint8_t *data = malloc(STEP);

	for (unsigned i = 0; i < STEP; i += 256)
		if (getrandom(data + i, 256, 0) != 256)
			return 1;
	for (unsigned i = 0; i <= FR_ARRAY_SIZE(configs); i++) {
		char how[96] = "write() and fsync()";
		_cleanup_close_ int fd = create_in(dir);
		double cpu = cpu_s();
		uint64_t start = fr_monotonic_ns();
		int r = i == 0 ? with_write(fd, data, mib)
			       : with_writer(fd, data, mib, &configs[i - 1], how, sizeof(how));
		double seconds = (double)(fr_monotonic_ns() - start) / 1e9;

		if (r < 0) {
			fprintf(stderr, "%s: %s\n", how, strerror(-r));
			return 1;
		}
		printf("%-48s %8.0f MB/s  %6.3f s CPU\n", how, mib * 1.048576 / seconds, cpu_s() - cpu);
	}
	return 0;
}
