// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/record_set.h"
#include "perfdata/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	const struct perf_event_header *x = *(const struct perf_event_header *const *)a,
				       *y = *(const struct perf_event_header *const *)b;

	return x->size != y->size ? x->size - y->size : memcmp(x, y, x->size);
}

static size_t count_records(const struct fr_buf *buf)
{
	struct fr_record_iter it = fr_record_iter(buf->data, buf->len);
	size_t n = 0;

	while (fr_record_next(&it))
		n++;
	return n;
}

int fr_record_set_init(struct fr_record_set *ret, const struct fr_buf *buf)
{
	struct fr_record_iter it = fr_record_iter(buf->data, buf->len);
	struct fr_record_set s = {.n = count_records(buf)};

	s.records = calloc(s.n + 1, sizeof(const struct perf_event_header *));
	if (!s.records)
		return -ENOMEM;
	for (size_t i = 0; i < s.n; i++)
		s.records[i] = fr_record_next(&it);
	qsort(s.records, s.n, sizeof(const struct perf_event_header *), compare);
	*ret = s;
	return 0;
}

void fr_record_set_deinit(struct fr_record_set *s)
{
	free(s->records);
	*s = (struct fr_record_set){0};
}

bool fr_record_set_has(const struct fr_record_set *s, const struct perf_event_header *h)
{
	return s->n && bsearch(&h, s->records, s->n, sizeof(const struct perf_event_header *), compare);
}
