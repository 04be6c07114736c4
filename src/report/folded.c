// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "report/output.h"
#include "sideband/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LINES_MAX (1u << 20) /* in memory at a time; readers add up the lines of a stack */

struct key {
	const char *comm; /* equal names are one text (profile.h) */
	uint32_t stack, event;
};

struct line {
	UT_hash_handle hh;
	struct key key;
	uint64_t weight;
};

struct folded {
	struct line *lines;
	FILE *out;
	enum fr_output_weight weight;
};

/* A ';' separates frames, so it cannot be in a name. */
static void print_name(const char *name, FILE *out)
{
	for (; *name; name++)
		fputc(*name == ';' || *name == '\n' ? ':' : *name, out);
}

static void print_line(const struct fr_profile *p, const struct line *line, FILE *out)
{
	uint32_t frames[FR_STACK_DEPTH_MAX];
	size_t n = fr_stacks_frames(fr_profile_stacks(p), line->key.stack, frames, FR_STACK_DEPTH_MAX);

	print_name(line->key.comm, out);
	while (n > 0) {
		fputc(';', out);
		print_name(fr_frames_get(fr_profile_frames(p), frames[--n])->name, out);
	}
	fprintf(out, " %" PRIu64 "\n", line->weight);
}

static void print_lines(struct folded *x, const struct fr_profile *p)
{
	for (const struct line *l = x->lines; l; l = l->hh.next)
		print_line(p, l, x->out);
	FR_HASH_CLEAR(x->lines, free);
}

static uint64_t weight_of(
	const struct folded *x, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(p), s->event);

	if (x->weight == FR_WEIGHT_DEFAULT)
		return fr_recording_event_is_time(e) && !fr_recording_event_is_cpu(e) ? s->period : 1;
	return x->weight == FR_WEIGHT_PERIODS ? s->period : 1;
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	struct folded *x = ctx;
	struct line *line;
	struct key key;

	memset(&key, 0, sizeof(key));
	key.comm = fr_profile_task(p, s->task)->comm;
	key.stack = s->stack;
	line = FR_HASH_FIND(x->lines, key, key);
	if (!line) {
		if (HASH_COUNT(x->lines) == LINES_MAX)
			print_lines(x, p);
		line = FR_HASH_NEW(x->lines, key, key);
	}
	if (!line)
		return -ENOMEM;
	line->weight += weight_of(x, p, s);
	return 0;
}

int fr_output_folded(struct fr_profile *p, FILE *out, enum fr_output_weight weight, struct fr_diag *d)
{
	struct folded x = {.out = out, .weight = weight};
	const struct fr_view view = {.sample = add_sample, .ctx = &x};
	int r = fr_profile_read(p, &view, d);

	if (r == 0)
		print_lines(&x, p);
	FR_HASH_CLEAR(x.lines, free);
	return r;
}
