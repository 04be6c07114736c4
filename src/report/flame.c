// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A flame graph for a terminal: a line for each depth, the callers above. A frame is as wide as its share of
 * the samples. Behind the head, the first line has the names of the threads.
 */

#include "base/cleanup.h"
#include "report/output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LINES_MAX 60
#define WIDTH_MIN 40u
#define WIDTH_MAX 1000u
#define NAMES 0x80000000u /* frames from here on are the names of threads */
#define NAMES_MAX 4096u

struct flame {
	struct fr_stacks tree;
	uint64_t *weights, *totals; /* of each node: without, and with the frames that it calls */
	size_t cap;
	const char *names[NAMES_MAX]; /* equal names are one text in memory (profile.h) */
	uint32_t n_names;
	uint64_t all, samples;
	uint32_t event; /* of the last sample */
};

static uint32_t find_name(struct flame *x, const char *comm)
{
	uint32_t i = 0;

	while (i < x->n_names && x->names[i] != comm)
		i++;
	if (i == x->n_names && i < NAMES_MAX - 1)
		x->names[x->n_names++] = comm;
	return NAMES | i; /* if there are too many: the last one is of all others */
}

static int add_weight(struct flame *x, uint32_t node, uint64_t weight)
{
	if (node >= x->cap) {
		const size_t cap = FR_MAX((size_t)1024, 2 * ((size_t)node + 1));
		uint64_t *v = reallocarray(x->weights, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		memset(v + x->cap, 0, (cap - x->cap) * sizeof(*v));
		x->weights = v;
		x->cap = cap;
	}
	x->weights[node] += weight;
	x->all += weight;
	return 0;
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	uint32_t frames[FR_STACK_DEPTH_MAX];
	size_t n = fr_stacks_frames(fr_profile_stacks(p), s->stack, frames, FR_STACK_DEPTH_MAX);
	struct flame *x = ctx;
	uint32_t node =
		fr_stacks_push(&x->tree, FR_STACK_NONE, find_name(x, fr_profile_task(p, s->task)->comm));

	x->samples++;
	x->event = s->event;
	if (node == FR_STACK_FULL)
		return 0;
	while (n > 0 && node != FR_STACK_NONE) {
		const uint32_t parent = node;

		node = fr_stacks_push(&x->tree, parent, frames[--n]);
		if (node == FR_STACK_FULL)
			return add_weight(x, parent, s->period); /* without the inner frames */
	}
	return node == FR_STACK_NONE ? -ENOMEM : add_weight(x, node, s->period);
}

/* A frame on a line: its node, and its place in the graph, from 0 to `all`. */
struct span {
	uint32_t node;
	uint64_t from, to;
};

struct line {
	struct span *v;
	size_t n;
};

static const char *name_of(const struct flame *x, const struct fr_profile *p, uint32_t node)
{
	const uint32_t frame = x->tree.nodes[node].frame;

	if (frame & NAMES)
		return (frame ^ NAMES) < x->n_names ? x->names[frame ^ NAMES] : "others";
	return fr_frames_get(fr_profile_frames(p), frame)->name;
}

/* The children of each node are linked in lists, the heaviest first. */
struct children {
	uint32_t *first, *next;
};

static void link_child(const struct flame *x, struct children *c, uint32_t parent, uint32_t node)
{
	uint32_t *at = &c->first[parent == FR_STACK_NONE ? x->tree.n : parent];

	while (*at != FR_STACK_NONE && x->totals[*at] > x->totals[node])
		at = &c->next[*at];
	c->next[node] = *at;
	*at = node;
}

/* Links only the children that have at least COLUMN, because a hostile file can have very many small ones. */
static int link_children(struct flame *x, struct children *c, uint64_t column)
{
	const size_t n = x->tree.n;

	x->totals = calloc(n + 1, sizeof(*x->totals));
	c->first = malloc((n + 1) * sizeof(*c->first));
	c->next = malloc((n + 1) * sizeof(*c->next));
	if (!x->totals || !c->first || !c->next)
		return -ENOMEM;
	memset(c->first, 0xff, (n + 1) * sizeof(*c->first));
	/* A node comes after its parent. */
	for (size_t i = n; i > 0; i--) {
		const uint32_t node = (uint32_t)(i - 1), parent = x->tree.nodes[node].parent;

		x->totals[node] += node < x->cap ? x->weights[node] : 0;
		if (parent != FR_STACK_NONE)
			x->totals[parent] += x->totals[node];
	}
	for (uint32_t i = 0; i < n; i++)
		if (x->totals[i] >= column)
			link_child(x, c, x->tree.nodes[i].parent, i);
	return 0;
}

/* Makes the next line: the children of the frames of LINE. */
static int make_line(
	const struct flame *x, const struct children *c, const struct line *line, struct line *ret)
{
	size_t cap = 0;

	*ret = (struct line){0};
	for (size_t i = 0; i < line->n; i++) {
		uint64_t at = line->v[i].from;

		for (uint32_t child = c->first[line->v[i].node]; child != FR_STACK_NONE;
			child = c->next[child]) {
			const struct span span = {child, at, at + x->totals[child]};

			at = span.to;
			if (ret->n == cap) {
				struct span *v = reallocarray(ret->v, cap = cap ? 2 * cap : 64, sizeof(*v));

				if (!v)
					return -ENOMEM;
				ret->v = v;
			}
			ret->v[ret->n++] = span;
		}
	}
	return 0;
}

/* Writes the name of a frame and its share of all samples, so far as there is room, to the WIDTH columns of
   TEXT. A long name pushes the share out. */
static void put_label(
	const struct flame *x, const struct fr_profile *p, const struct span *s, unsigned width, FILE *out)
{
	char label[4 * WIDTH_MAX + 1];
	unsigned columns = 0;

	snprintf(label, sizeof(label), "%s %.1f%%", name_of(x, p, s->node),
		(double)(s->to - s->from) / (double)x->all * 100);
	for (const char *at = label; *at; at++) {
		const bool begins =
			((unsigned char)*at & 0xc0) != 0x80; /* a character, and not its other bytes */

		if (begins && columns == width)
			return;
		columns += begins;
		fputc(*at, out);
	}
	fprintf(out, "%*s", (int)(width - columns), "");
}

static void print_line(const struct flame *x, const struct fr_profile *p, const struct line *line,
	unsigned width, bool colours, FILE *out)
{
	unsigned at = 0;

	for (size_t i = 0; i < line->n; i++) {
		const unsigned from = (unsigned)((double)line->v[i].from / (double)x->all * width),
			       to = (unsigned)((double)line->v[i].to / (double)x->all * width);

		if (from < at || to <= from)
			continue;
		fprintf(out, "%*s", (int)(from - at), "");
		if (colours)
			fprintf(out, "\033[%d;30m", i % 2 ? 43 : 103);
		put_label(x, p, &line->v[i], to - from - !colours, out);
		fputs(colours ? "\033[0m" : "|", out);
		at = to;
	}
	fputc('\n', out);
}

static void print_head(const struct flame *x, const struct fr_profile *p, FILE *out)
{
	fprintf(out, "# %" PRIu64 " samples of event '%s', event count %" PRIu64 "\n", x->samples,
		fr_recording_event(fr_profile_recording(p), x->event)->name, x->all);
}

static int print(struct flame *x, const struct fr_profile *p, unsigned width, bool colours, FILE *out)
{
	struct children c = {0};
	int r = link_children(x, &c, FR_MAX(x->all / width, 1ull));
	struct line line = {.n = 1}, next = {0};

	if (r == 0) {
		line.v = malloc(sizeof(*line.v));
		r = line.v ? 0 : -ENOMEM;
	}
	if (r == 0)
		line.v[0] = (struct span){(uint32_t)x->tree.n, 0, x->all};
	for (int depth = 0; depth < LINES_MAX && r == 0; depth++) {
		r = make_line(x, &c, &line, &next);
		free(line.v);
		line = next;
		next = (struct line){0};
		if (r == 0 && line.n == 0)
			break;
		if (r == 0)
			print_line(x, p, &line, width, colours, out);
	}
	free(line.v);
	free(c.first);
	free(c.next);
	return r;
}

int fr_output_flame(struct fr_profile *p, FILE *out, unsigned width, bool colours, struct fr_diag *d)
{
	struct flame *x = calloc(1, sizeof(*x));
	const struct fr_view view = {.sample = add_sample, .ctx = x};
	int r = x ? fr_profile_read(p, &view, d) : -ENOMEM;

	if (r == 0 && x->all == 0)
		fprintf(out, "no samples\n");
	else if (r == 0)
		print_head(x, p, out);
	if (r == 0 && x->all > 0)
		r = print(x, p, FR_MIN(FR_MAX(width, WIDTH_MIN), WIDTH_MAX), colours, out);
	if (x) {
		fr_stacks_deinit(&x->tree);
		free(x->weights);
		free(x->totals);
	}
	free(x);
	return r;
}
