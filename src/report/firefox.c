// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The format of Firefox Profiler ("processed profile format" in its documents: src/types/profile.ts). A
 * sample has no event, so there is one thread of the profile for each thread and event. A thread has tables
 * of its own, whose columns are arrays; frames and stacks are numbered anew in each. The weight of a sample
 * is its period: ms if the event measures a time.
 *
 * The version of the format is an old one, which Firefox Profiler converts. Later ones have one table of all
 * threads, which would have to be in memory as a whole.
 */

#include "base/cleanup.h"
#include "base/clock.h"
#include "report/json_out.h"
#include "report/output.h"
#include "report/samples.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define VERSION 49 /* of the format */
#define RESOURCE_LIBRARY "1"

enum { CATEGORY_OTHER, CATEGORY_USER, CATEGORY_KERNEL };

/* The numbers of a thread's stacks, frames and objects. A number belongs to the current thread if it is in
   its list. */
struct numbers {
	uint32_t *of;	/* of each element of the profile: its place in `list` */
	uint32_t *list; /* the elements of the current thread */
	size_t n;
};

struct firefox {
	const struct fr_profile *profile;
	FILE *out;
	struct numbers stacks, frames, objects;
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
static void number_stack(struct firefox *x, uint32_t stack)
{
	const struct fr_stacks *stacks = fr_profile_stacks(x->profile);
	uint32_t new_nodes[FR_STACK_DEPTH_MAX], frame;
	size_t n = 0;

	for (; stack != FR_STACK_NONE && !has_number(&x->stacks, stack); stack = stacks->nodes[stack].parent)
		new_nodes[n++] = stack;
	while (n > 0) {
		add_number(&x->stacks, new_nodes[--n]);
		frame = stacks->nodes[new_nodes[n]].frame;
		add_number(&x->frames, frame);
		add_number(&x->objects, fr_frames_get(fr_profile_frames(x->profile), frame)->object);
	}
}

static int category_of(const struct firefox *x, const struct fr_frame *f)
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

/* Begins a column of a table, which is not the first member. */
static void begin_column(const struct firefox *x, const char *name)
{
	fprintf(x->out, ",\n\"%s\":[", name);
}

/* Writes N times VALUE. */
static void put_column(const struct firefox *x, const char *name, size_t n, const char *value)
{
	begin_column(x, name);
	for (size_t i = 0; i < n; i++)
		fprintf(x->out, "%s%s", i ? "," : "", value);
	fputc(']', x->out);
}

/* Writes 0, 1, … */
static void put_count(const struct firefox *x, const char *name, size_t n)
{
	begin_column(x, name);
	for (size_t i = 0; i < n; i++)
		fprintf(x->out, "%s%zu", i ? "," : "", i);
	fputc(']', x->out);
}

static const struct fr_frame *frame_at(const struct firefox *x, size_t i)
{
	return fr_frames_get(fr_profile_frames(x->profile), x->frames.list[i]);
}

/* The strings of a thread: the names of the frames, then those of the objects. */
static void put_strings(const struct firefox *x)
{
	fprintf(x->out, ",\n\"stringArray\":[");
	for (size_t i = 0; i < x->frames.n; i++) {
		fputs(i ? ",\n" : "\n", x->out);
		fr_json_out_text(x->out, frame_at(x, i)->name);
	}
	for (size_t i = 0; i < x->objects.n; i++) {
		fputs(",\n", x->out);
		fr_json_out_text(x->out,
			fr_frames_object(fr_profile_frames(x->profile), x->objects.list[i])->short_name);
	}
	fputc(']', x->out);
}

/* A frame has one function, with the same number. */
static void put_frames(const struct firefox *x)
{
	const size_t n = x->frames.n;

	fprintf(x->out, ",\n\"frameTable\":{\"length\":%zu", n);
	put_count(x, "func", n);
	begin_column(x, "category");
	for (size_t i = 0; i < n; i++)
		fprintf(x->out, "%s%d", i ? "," : "", category_of(x, frame_at(x, i)));
	fputc(']', x->out);
	put_column(x, "subcategory", n, "0");
	put_column(x, "address", n, "-1");
	put_column(x, "inlineDepth", n, "0");
	put_column(x, "nativeSymbol", n, "null");
	put_column(x, "innerWindowID", n, "0");
	put_column(x, "implementation", n, "null");
	put_column(x, "line", n, "null");
	put_column(x, "column", n, "null");
	fprintf(x->out, "}");
}

static void put_functions(const struct firefox *x)
{
	const size_t n = x->frames.n;

	fprintf(x->out, ",\n\"funcTable\":{\"length\":%zu", n);
	put_count(x, "name", n);
	begin_column(x, "resource");
	for (size_t i = 0; i < n; i++)
		fprintf(x->out, "%s%u", i ? "," : "", x->objects.of[frame_at(x, i)->object]);
	fputc(']', x->out);
	put_column(x, "isJS", n, "false");
	put_column(x, "relevantForJS", n, "false");
	put_column(x, "fileName", n, "null");
	put_column(x, "lineNumber", n, "null");
	put_column(x, "columnNumber", n, "null");
	fprintf(x->out, "}");
}

/* A resource is an object. */
static void put_resources(const struct firefox *x)
{
	const size_t n = x->objects.n;

	fprintf(x->out, ",\n\"resourceTable\":{\"length\":%zu", n);
	begin_column(x, "name");
	for (size_t i = 0; i < n; i++)
		fprintf(x->out, "%s%zu", i ? "," : "", x->frames.n + i);
	fputc(']', x->out);
	put_column(x, "lib", n, "null");
	put_column(x, "host", n, "null");
	put_column(x, "type", n, RESOURCE_LIBRARY);
	fprintf(x->out, "}");
}

static void put_stacks(const struct firefox *x)
{
	const struct fr_stacks *stacks = fr_profile_stacks(x->profile);
	const size_t n = x->stacks.n;

	fprintf(x->out, ",\n\"stackTable\":{\"length\":%zu", n);
	begin_column(x, "prefix");
	for (size_t i = 0; i < n; i++) {
		const uint32_t parent = stacks->nodes[x->stacks.list[i]].parent;

		fputs(i ? "," : "", x->out);
		if (parent == FR_STACK_NONE)
			fputs("null", x->out);
		else
			fprintf(x->out, "%u", x->stacks.of[parent]);
	}
	fputc(']', x->out);
	begin_column(x, "frame");
	for (size_t i = 0; i < n; i++)
		fprintf(x->out, "%s%u", i ? "," : "", x->frames.of[stacks->nodes[x->stacks.list[i]].frame]);
	fputc(']', x->out);
	begin_column(x, "category");
	for (size_t i = 0; i < n; i++)
		fprintf(x->out, "%s%d", i ? "," : "",
			category_of(x, frame_at(x, x->frames.of[stacks->nodes[x->stacks.list[i]].frame])));
	fputc(']', x->out);
	put_column(x, "subcategory", n, "0");
	fprintf(x->out, "}");
}

static void put_ms(const struct firefox *x, uint64_t ns)
{
	fprintf(x->out, "%llu.%06u", ns / FR_NSEC_PER_MSEC, (unsigned)(ns % FR_NSEC_PER_MSEC));
}

static void put_samples(const struct firefox *x, const struct fr_samples_part *part, bool is_time)
{
	const struct fr_kept_sample *s;
	const char *separator = "";

	fprintf(x->out, ",\n\"samples\":{\"length\":%zu,\"weightType\":\"%s\"", part->n,
		is_time ? "tracing-ms" : "samples");
	begin_column(x, "stack");
	for (struct fr_samples_place at = {0}; (s = fr_samples_get(part, &at)); separator = ",") {
		fputs(separator, x->out);
		if (s->stack == FR_STACK_NONE)
			fputs("null", x->out);
		else
			fprintf(x->out, "%u", x->stacks.of[s->stack]);
	}
	fputc(']', x->out);
	begin_column(x, "time");
	separator = "";
	for (struct fr_samples_place at = {0}; (s = fr_samples_get(part, &at)); separator = ",") {
		fputs(separator, x->out);
		put_ms(x, s->time - x->first_ns);
	}
	fputc(']', x->out);
	begin_column(x, "weight");
	separator = "";
	for (struct fr_samples_place at = {0}; (s = fr_samples_get(part, &at)); separator = ",") {
		fputs(separator, x->out);
		if (is_time)
			put_ms(x, s->period);
		else
			fprintf(x->out, "%" PRIu64, s->period);
	}
	fprintf(x->out, "]}");
}

static void put_thread(struct firefox *x, const struct fr_samples_part *part)
{
	const struct fr_recording_event *e =
		fr_recording_event(fr_profile_recording(x->profile), part->event);
	const struct fr_kept_sample *s;
	_cleanup_free_ char *name = NULL;

	x->stacks.n = x->frames.n = x->objects.n = 0;
	for (struct fr_samples_place at = {0}; (s = fr_samples_get(part, &at));)
		number_stack(x, s->stack);
	if (asprintf(&name, "%s, %s", part->comm, e->name) < 0)
		name = NULL;
	fprintf(x->out, "{\"name\":");
	fr_json_out_text(x->out, name ? name : "?");
	fprintf(x->out, ",\"processType\":\"default\",\"processName\":");
	fr_json_out_text(x->out, part->process);
	fprintf(x->out,
		",\"isMainThread\":%s,\"pid\":\"%u\",\"tid\":%u,\"registerTime\":0,\"unregisterTime\":null,"
		"\"processStartupTime\":0,\"processShutdownTime\":null,\"pausedRanges\":[],\n"
		"\"markers\":{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":"
		"[],"
		"\"category\":[]},\n"
		"\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":"
		"[]}",
		part->pid == part->tid ? "true" : "false", part->pid, part->tid);
	put_strings(x);
	put_frames(x);
	put_functions(x);
	put_resources(x);
	put_stacks(x);
	put_samples(x, part, fr_recording_event_is_time(e));
	fprintf(x->out, "}");
}

static void put_head(const struct firefox *x)
{
	const uint64_t start =
		x->first_ns + (uint64_t)fr_recording_wall_offset(fr_profile_recording(x->profile));

	fprintf(x->out,
		"{\"meta\":{\"version\":24,\"preprocessedProfileVersion\":%d,\"product\":\"flightrec\",",
		VERSION);
	fprintf(x->out, "\"startTime\":");
	put_ms(x, start);
	fprintf(x->out,
		",\"interval\":1,\"stackwalk\":1,\"processType\":0,\"debug\":false,\"symbolicated\":true,"
		"\"platform\":\"Linux\",\"oscpu\":\"Linux\",\"markerSchema\":[],"
		"\"doesNotUseFrameImplementation\":true,\"sourceCodeIsNotOnSearchfox\":true,"
		"\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},"
		"\"extensions\":{\"length\":0,\"id\":[],\"name\":[],\"baseURL\":[]},"
		"\"categories\":[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]}]},\n"
		"\"libs\":[],\"pages\":[],\"counters\":[],\"profilerOverhead\":[]");
}

static void put_profile(struct firefox *x, struct fr_samples *samples)
{
	struct fr_samples_part part;

	put_head(x);
	fprintf(x->out, ",\n\"threads\":[");
	for (bool first = true; fr_samples_next(x->profile, samples, &part); first = false) {
		fputs(first ? "\n" : ",\n", x->out);
		put_thread(x, &part);
	}
	fprintf(x->out, "]}\n");
}

int fr_output_firefox(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	struct firefox x = {.profile = p, .out = out};
	struct fr_samples samples;
	int r = fr_samples_read(p, &samples, d);

	if (r == 0)
		r = new_numbers(&x.stacks, fr_profile_stacks(p)->n);
	if (r == 0)
		r = new_numbers(&x.frames, fr_frames_n(fr_profile_frames(p)));
	if (r == 0)
		r = new_numbers(&x.objects, fr_frames_n_objects(fr_profile_frames(p)));
	x.first_ns = samples.first_ns;
	if (r == 0) {
		put_profile(&x, &samples);
		r = fr_samples_check(&samples, d);
	}
	free_numbers(&x.stacks);
	free_numbers(&x.frames);
	free_numbers(&x.objects);
	fr_samples_deinit(&samples);
	return r;
}
