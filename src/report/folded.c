// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "report/output.h"
#include "sideband/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct key {
	const char *comm; /* equal names are one text (profile.h) */
	uint32_t stack, event;
};

struct line {
	UT_hash_handle hh;
	struct key key;
	uint64_t samples;
};

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	struct line **lines = ctx, *line;
	struct key key;

	memset(&key, 0, sizeof(key));
	key.comm = fr_profile_task(p, s->task)->comm;
	key.stack = s->stack;
	line = FR_HASH_FIND(*lines, key, key);
	if (!line)
		line = FR_HASH_NEW(*lines, key, key);
	if (!line)
		return -ENOMEM;
	line->samples++;
	return 0;
}

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
	fprintf(out, " %" PRIu64 "\n", line->samples);
}

int fr_output_folded(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	struct line *lines = NULL;
	const struct fr_view view = {.sample = add_sample, .ctx = &lines};
	int r = fr_profile_read(p, &view, d);

	for (const struct line *l = r == 0 ? lines : NULL; l; l = l->hh.next)
		print_line(p, l, out);
	FR_HASH_CLEAR(lines, free);
	return r;
}
