// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input as a perf.data file. The reader returns only complete, aligned records. */

#include "fuzz.h"
#include "perfdata/reader.h"

#include <stdio.h>

/* The AUX data of T, which is at file offset AT, is inside the file of SIZE bytes. */
static void check_auxtrace(const struct fr_record_auxtrace *t, uint64_t at, uint64_t size)
{
	check(t->header.size >= sizeof(*t));
	check(at <= size && t->header.size <= size - at && t->size <= size - at - t->header.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct perf_event_header *h;
	int fd = make_memfd(data, size);
	volatile uint64_t sum = 0;
	struct fr_reader *r = NULL;
	uint64_t at;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fr_reader_open(path, &r, NULL) == 0) {
		/* A compressed frame of a few bytes can have very many records, so the number of records is
		   limited. */
		for (int n = 0; n < 100000 && fr_reader_next(r, &h, &at) == 1; n++) {
			check(h->size >= sizeof(*h) && ((uintptr_t)h & 7) == 0);
			if (h->type == FR_RECORD_AUXTRACE)
				check_auxtrace((const void *)h, at, size);
			sum += fr_reader_time(r, h);
			for (size_t i = 0; i < h->size; i++)
				sum += ((const uint8_t *)h)[i];
		}
		sum += fr_reader_damage(r)->lost_bytes;
	}
	(void)sum;
	fr_reader_free(r);
	close(fd);
	return 0;
}
