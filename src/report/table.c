// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "report/output.h"
#include "sideband/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Equal names are one text in memory (profile.h, frames.h), so rows are found by pointers: tasks with one
   name, and functions of several versions of a file, share a row. */
struct row_key {
	const char *comm, *object, *function;
	uint32_t event;
};

struct row {
	UT_hash_handle hh;
	struct row_key key;
	uint64_t samples, period;
};

#define ROWS_MAX (1u << 20)
#define MUCH 5.0 /* percent from which on a row has a colour */

static const char unknown[] = "[unknown]", others[] = "[others]";

struct total {
	uint64_t samples, period;
};

struct table {
	double min_percent;
	bool colours;
	struct row *rows;
	struct total *totals; /* of each event */
	size_t n_events;
};

static int count_event(struct table *t, uint32_t event, uint64_t period)
{
	if (event >= t->n_events) {
		struct total *v = reallocarray(t->totals, event + 1u, sizeof(*v));

		if (!v)
			return -ENOMEM;
		memset(v + t->n_events, 0, (event + 1u - t->n_events) * sizeof(*v));
		t->totals = v;
		t->n_events = event + 1u;
	}
	t->totals[event].samples++;
	t->totals[event].period += period;
	return 0;
}

static struct row *find_row(struct table *t, const struct row_key *key)
{
	struct row *row = FR_HASH_FIND(t->rows, key, *key);
	struct row_key rest;

	if (!row && HASH_COUNT(t->rows) >= ROWS_MAX) {
		memset(&rest, 0, sizeof(rest));
		rest.comm = rest.object = rest.function = others;
		rest.event = key->event;
		key = &rest;
		row = FR_HASH_FIND(t->rows, key, *key);
	}
	return row ? row : FR_HASH_NEW(t->rows, key, *key);
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	const struct fr_stacks *stacks = fr_profile_stacks(p);
	const struct fr_frames *frames = fr_profile_frames(p);
	const struct fr_frame *f;
	struct row_key key;
	struct table *t = ctx;
	struct row *row;

	memset(&key, 0, sizeof(key));
	key.comm = fr_profile_task(p, s->task)->comm;
	key.event = s->event;
	key.object = key.function = unknown;
	if (s->stack != FR_STACK_NONE) {
		f = fr_frames_get(frames, stacks->nodes[s->stack].frame);
		key.object = fr_frames_object(frames, f->object)->short_name;
		key.function = f->name;
	}
	row = find_row(t, &key);
	if (!row)
		return -ENOMEM;
	row->samples++;
	row->period += s->period;
	return count_event(t, s->event, s->period);
}

static int compare_rows(const void *x, const void *y)
{
	const struct row *a = *(const struct row *const *)x, *b = *(const struct row *const *)y;

	if (a->key.event != b->key.event)
		return a->key.event < b->key.event ? -1 : 1;
	if (a->period != b->period)
		return a->period > b->period ? -1 : 1;
	return strcmp(a->key.comm, b->key.comm);
}

static const char *color(const struct table *t, const char *sequence)
{
	return t->colours ? sequence : "";
}

static void print_head(const struct fr_profile *p, const struct table *t, uint32_t event, FILE *out)
{
	fprintf(out, "# %" PRIu64 " samples of event '%s', event count %" PRIu64 "\n",
		t->totals[event].samples, fr_recording_event(fr_profile_recording(p), event)->name,
		t->totals[event].period);
	fprintf(out, "%s# %8s  %10s  %-15s  %-28s  %s%s\n", color(t, "\033[1m"), "Overhead", "Samples",
		"Command", "Shared Object", "Symbol", color(t, "\033[0m"));
}

static void print_row(const struct table *t, const struct row *row, FILE *out)
{
	const uint64_t all = t->totals[row->key.event].period;
	const double percent = all ? 100.0 * (double)row->period / (double)all : 0;

	fprintf(out, "  %s%7.2f%%%s  %10" PRIu64 "  %-15s  %-28s  %s\n",
		percent >= MUCH ? color(t, "\033[31m") : "", percent,
		percent >= MUCH ? color(t, "\033[0m") : "", row->samples, row->key.comm, row->key.object,
		row->key.function);
}

static void print(const struct fr_profile *p, const struct table *t, struct row **rows, size_t n, FILE *out)
{
	for (size_t i = 0; i < n; i++) {
		const uint32_t event = rows[i]->key.event;

		if (i == 0 || rows[i - 1]->key.event != event) {
			if (i > 0)
				fputc('\n', out);
			print_head(p, t, event, out);
		}
		if (100.0 * (double)rows[i]->period >= t->min_percent * (double)t->totals[event].period)
			print_row(t, rows[i], out);
	}
}

int fr_output_table(struct fr_profile *p, FILE *out, double min_percent, bool colours, struct fr_diag *d)
{
	struct table t = {.min_percent = min_percent, .colours = colours};
	const struct fr_view view = {.sample = add_sample, .ctx = &t};
	_cleanup_free_ struct row **rows = NULL;
	int r = fr_profile_read(p, &view, d);
	size_t n = 0;

	if (r == 0)
		rows = reallocarray(NULL, HASH_COUNT(t.rows) + 1, sizeof(struct row *));
	if (r == 0 && !rows)
		r = -ENOMEM;
	if (r == 0) {
		for (struct row *row = t.rows; row; row = row->hh.next)
			rows[n++] = row;
		if (n == 0)
			fprintf(out, "no samples\n");
		qsort(rows, n, sizeof(struct row *), compare_rows);
		print(p, &t, rows, n, out);
	}
	FR_HASH_CLEAR(t.rows, free);
	free(t.totals);
	return r;
}
