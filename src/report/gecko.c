// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The format of the profiles that Firefox records ("Gecko profile format" in the documents of Firefox Profiler, which
 * reads it). A sample has no event, so there is one thread of the profile for each thread and event. Frames and stacks are
 * known in one thread only, and are numbered anew in each.
 */

#include "base/cleanup.h"
#include "report/json_out.h"
#include "report/output.h"
#include "report/samples.h"

#include <errno.h>
#include <string.h>

#define VERSION 24 /* of the format */

enum { CATEGORY_OTHER, CATEGORY_USER, CATEGORY_KERNEL };

/* The numbers of a thread's stacks and frames. A number belongs to the current thread if it is in its list. */
struct numbers {
	uint32_t *of;	/* of each element of the profile: its place in `list` */
	uint32_t *list; /* the elements of the current thread */
	size_t n;
};

struct gecko {
	const struct fr_profile *profile;
	FILE *out;
	struct numbers stacks, frames;
	uint64_t first_ns;
};

static bool has_number(const struct numbers *x, uint32_t element)
{
	return x->of[element] < x->n && x->list[x->of[element]] == element;
}

static void add_number(struct numbers *x, uint32_t element)
{
	if (has_number(x, element))
		return;
	x->of[element] = (uint32_t)x->n;
	x->list[x->n++] = element;
}

static int new_numbers(struct numbers *x, size_t n)
{
	x->of = calloc(n + 1, sizeof(*x->of));
	x->list = calloc(n + 1, sizeof(*x->list));
	return x->of && x->list ? 0 : -ENOMEM;
}

static void free_numbers(struct numbers *x)
{
	free(x->of);
	free(x->list);
}

/* Numbers the nodes of a stack, the outer ones first, because a stack refers to the one before it. */
static void number_stack(struct gecko *x, uint32_t stack)
{
	const struct fr_stacks *stacks = fr_profile_stacks(x->profile);
	uint32_t new_nodes[FR_STACK_DEPTH_MAX];
	size_t n = 0;

	for (; stack != FR_STACK_NONE && !has_number(&x->stacks, stack); stack = stacks->nodes[stack].parent)
		new_nodes[n++] = stack;
	while (n > 0) {
		add_number(&x->stacks, new_nodes[--n]);
		add_number(&x->frames, stacks->nodes[new_nodes[n]].frame);
	}
}

static int category_of(const struct gecko *x, const struct fr_frame *f)
{
	switch (fr_frames_object(fr_profile_frames(x->profile), f->object)->kind) {
	case FR_OBJECT_KERNEL:
	case FR_OBJECT_MODULE:
	case FR_OBJECT_BPF:
		return CATEGORY_KERNEL;
	case FR_OBJECT_FILE:
		return CATEGORY_USER;
	case FR_OBJECT_NONE:
		break;
	}
	return CATEGORY_OTHER;
}

/* The location of a frame: "function (in object)", from which Firefox Profiler takes both names. */
static void put_locations(const struct gecko *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);

	fprintf(x->out, "\"stringTable\":[");
	for (size_t i = 0; i < x->frames.n; i++) {
		const struct fr_frame *f = fr_frames_get(frames, x->frames.list[i]);
		_cleanup_free_ char *text = NULL;

		if (asprintf(&text, "%s (in %s)", f->name, fr_frames_object(frames, f->object)->short_name) < 0)
			text = NULL;
		fputs(i ? ",\n" : "\n", x->out);
		fr_json_out_text(x->out, text ? text : f->name);
	}
	fprintf(x->out, "],\n");
}

static void put_frames(const struct gecko *x)
{
	fprintf(x->out, "\"frameTable\":{\"schema\":{\"location\":0,\"relevantForJS\":1,\"innerWindowID\":2,"
			"\"implementation\":3,\"line\":4,\"column\":5,\"category\":6,\"subcategory\":7},\"data\":[");
	for (size_t i = 0; i < x->frames.n; i++)
		fprintf(x->out, "%s[%zu,false,0,null,null,null,%d,0]", i ? "," : "", i,
			category_of(x, fr_frames_get(fr_profile_frames(x->profile), x->frames.list[i])));
	fprintf(x->out, "]},\n");
}

static void put_stacks(const struct gecko *x)
{
	const struct fr_stacks *stacks = fr_profile_stacks(x->profile);

	fprintf(x->out, "\"stackTable\":{\"schema\":{\"prefix\":0,\"frame\":1},\"data\":[");
	for (size_t i = 0; i < x->stacks.n; i++) {
		const struct fr_stack_node *node = &stacks->nodes[x->stacks.list[i]];

		fputs(i ? ",[" : "[", x->out);
		if (node->parent == FR_STACK_NONE)
			fputs("null", x->out);
		else
			fprintf(x->out, "%u", x->stacks.of[node->parent]);
		fprintf(x->out, ",%u]", x->frames.of[node->frame]);
	}
	fprintf(x->out, "]},\n");
}

static void put_samples(const struct gecko *x, const struct fr_samples_part *part)
{
	fprintf(x->out, "\"samples\":{\"schema\":{\"stack\":0,\"time\":1,\"eventDelay\":2},\"data\":[");
	for (size_t i = 0; i < part->n; i++) {
		fputs(i ? ",[" : "[", x->out);
		if (part->v[i].stack == FR_STACK_NONE)
			fputs("null", x->out);
		else
			fprintf(x->out, "%u", x->stacks.of[part->v[i].stack]);
		fprintf(x->out, ",%.6f,0]", (double)(part->v[i].time - x->first_ns) / 1e6);
	}
	fprintf(x->out, "]},\n");
}

static void put_thread(struct gecko *x, const struct fr_samples_part *part)
{
	const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(x->profile), part->event);
	_cleanup_free_ char *name = NULL;

	x->stacks.n = x->frames.n = 0;
	for (size_t i = 0; i < part->n; i++)
		number_stack(x, part->v[i].stack);
	if (asprintf(&name, "%s, %s", part->comm, e->name) < 0)
		name = NULL;
	fprintf(x->out, "{\"name\":");
	fr_json_out_text(x->out, name ? name : "?");
	fprintf(x->out, ",\"processType\":\"default\",\"processName\":");
	fr_json_out_text(x->out, part->comm);
	fprintf(x->out, ",\"pid\":%u,\"tid\":%u,\"registerTime\":0,\"unregisterTime\":null,\n", part->pid, part->tid);
	fprintf(x->out, "\"markers\":{\"schema\":{\"name\":0,\"startTime\":1,\"endTime\":2,\"phase\":3,\"category\":4,"
			"\"data\":5},\"data\":[]},\n");
	put_locations(x);
	put_frames(x);
	put_stacks(x);
	put_samples(x, part);
	fprintf(x->out, "\"pausedRanges\":[]}");
}

static void put_profile(struct gecko *x, const struct fr_samples *samples)
{
	struct fr_samples_part part;
	size_t at = 0;

	fprintf(x->out, "{\"meta\":{\"version\":%d,\"product\":\"flightrec\",\"interval\":1,\"stackwalk\":1,"
			"\"processType\":0,\"debug\":0,\"gcpoison\":0,\"asyncstack\":0,\"startTime\":0,"
			"\"shutdownTime\":null,\"presymbolicated\":true,\"platform\":\"Linux\",\"markerSchema\":[],"
			"\"categories\":[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
			"{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
			"{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]}]},\n"
			"\"libs\":[],\"pages\":[],\"pausedRanges\":[],\"processes\":[],\n\"threads\":[",
		VERSION);
	for (bool first = true; fr_samples_next(x->profile, samples, &at, &part); first = false) {
		fputs(first ? "\n" : ",\n", x->out);
		put_thread(x, &part);
	}
	fprintf(x->out, "]}\n");
}

int fr_output_gecko(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	struct gecko x = {.profile = p, .out = out};
	struct fr_samples samples;
	int r = fr_samples_read(p, &samples, d);

	if (r == 0)
		r = new_numbers(&x.stacks, fr_profile_stacks(p)->n);
	if (r == 0)
		r = new_numbers(&x.frames, fr_frames_n(fr_profile_frames(p)));
	x.first_ns = samples.first_ns;
	if (r == 0)
		put_profile(&x, &samples);
	free_numbers(&x.stacks);
	free_numbers(&x.frames);
	fr_samples_deinit(&samples);
	return r;
}
