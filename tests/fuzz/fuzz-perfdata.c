// SPDX-License-Identifier: GPL-2.0-or-later

/* Any bytes as a perf.data: the reader neither crashes nor reads out of bounds, and every record that it
   hands out is whole. */

#include "perfdata/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct fr_reader *r)
{
	const struct perf_event_header *h;
	uint64_t records = 0, sum = 0;
	volatile uint64_t sink;

	/* A frame of a few bytes may hold a great many records; that is no hang. */
	while (records++ < 100000 && fr_reader_next(r, &h, NULL) == 1) {
		if (h->size < sizeof(*h) || ((uintptr_t)h & 7))
			abort();
		sum += fr_reader_time(r, h);
		for (size_t i = 0; i < h->size; i++)
			sum += ((const uint8_t *)h)[i];
	}
	sink = sum + fr_reader_damage(r)->lost_bytes;
	(void)sink;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct fr_reader *r = NULL;
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fr_reader_open(path, &r, NULL) == 0)
		read_all(r);
	fr_reader_free(r);
	close(fd);
	return 0;
}
