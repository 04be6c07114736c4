// SPDX-License-Identifier: GPL-2.0-or-later
#include "history/regroup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* If a chunk has more runs, the newest of these gets all later bytes, of any CPU. */
#define RUNS_MAX 4096u
/* If the mean run has this many bytes or more, the copy costs more than it gains. */
#define MEAN_RUN_MAX (64u << 10)

struct run {
	unsigned cpu_index;
	uint32_t at, len; /* AT is an offset behind the bytes that were not added */
};

struct fr_regroup {
	size_t max_bytes;
	uint8_t *copy;
	uint32_t n, bytes; /* number of runs, and of their bytes */
	struct run runs[RUNS_MAX];
};

int fr_regroup_new(size_t max_bytes, struct fr_regroup **ret)
{
	struct fr_regroup *g = malloc(sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->max_bytes = max_bytes;
	g->copy = malloc(max_bytes);
	fr_regroup_clear(g);
	if (!g->copy) {
		fr_regroup_free(g);
		return -ENOMEM;
	}
	*ret = g;
	return 0;
}

struct fr_regroup *fr_regroup_free(struct fr_regroup *g)
{
	if (!g)
		return NULL;
	free(g->copy);
	free(g);
	return NULL;
}

void fr_regroup_clear(struct fr_regroup *g)
{
	g->n = g->bytes = 0;
}

void fr_regroup_add(struct fr_regroup *g, unsigned cpu_index, size_t len)
{
	struct run *newest = g->n ? &g->runs[g->n - 1] : NULL;

	if (newest && (newest->cpu_index == cpu_index || g->n == RUNS_MAX))
		newest->len += (uint32_t)len;
	else
		g->runs[g->n++] = (struct run){cpu_index, g->bytes, (uint32_t)len};
	g->bytes += (uint32_t)len;
}

static int compare_runs(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->cpu_index != y->cpu_index)
		return x->cpu_index < y->cpu_index ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

const uint8_t *fr_regroup_join(struct fr_regroup *g, const uint8_t *data, size_t len)
{
	uint8_t *out = g->copy;
	const uint8_t *runs;

	if (g->n < 3 || g->bytes / g->n >= MEAN_RUN_MAX || g->bytes > len || len > g->max_bytes)
		return data;
	qsort(g->runs, g->n, sizeof(*g->runs), compare_runs);
	runs = data + (len - g->bytes);
	memcpy(out, data, len - g->bytes);
	out += len - g->bytes;
	for (uint32_t i = 0; i < g->n; i++) {
		memcpy(out, runs + g->runs[i].at, g->runs[i].len);
		out += g->runs[i].len;
	}
	return g->copy;
}
