// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/page_json.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "report/page_out.h"
#include "report/protobuf.h"

#include <errno.h>
#include <string.h>

#define HEAT_MAX (256u << 10) /* bytes */

/* The number of entries is chosen so that a page has about PAGE_BYTES at most. Bytes in the file: */
#define PAGE_BYTES 1900000u
#define OTHER_BYTES 190000u /* the program, the explanation, the heat map and the lanes */
#define ENTRY_BYTES 16u
#define NODE_BYTES 4u
#define NAME_BYTES 20u /* of a frame, without its name; of a task */
#define ENTRIES_MIN 20000u
#define ENTRIES_MAX 60000u

static int new_numbers(struct fr_page_numbers *x, size_t n)
{
	x->of = calloc(n + 1, sizeof(*x->of));
	x->list = calloc(n + 1, sizeof(*x->list));
	return x->of && x->list ? 0 : -ENOMEM;
}

static void free_numbers(struct fr_page_numbers *x)
{
	free(x->of);
	free(x->list);
}

void fr_page_deinit(struct fr_page *x)
{
	free_numbers(&x->frames);
	free_numbers(&x->objects);
	free_numbers(&x->tasks);
	free(x->lanes);
	free(x->lane_of);
}

static void add_number(struct fr_page_numbers *x, uint32_t element)
{
	if (x->of[element])
		return;
	x->list[x->n++] = element;
	x->of[element] = x->n;
}

static int number_frames(struct fr_page *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);
	const struct fr_stacks *stacks = &x->data->stacks;

	if (new_numbers(&x->frames, fr_frames_n(frames)) < 0 ||
		new_numbers(&x->objects, fr_frames_n_objects(frames)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < stacks->n; i++) {
		add_number(&x->frames, stacks->nodes[i].frame);
		add_number(&x->objects, fr_frames_get(frames, stacks->nodes[i].frame)->object);
	}
	return 0;
}

static int number_tasks(struct fr_page *x)
{
	if (new_numbers(&x->tasks, fr_profile_n_tasks(x->profile)) < 0)
		return -ENOMEM;
	for (const struct fr_page_entry *e = x->data->entries; e; e = e->hh.next)
		add_number(&x->tasks, e->key.task);
	return 0;
}

/* Returns how many entries there is room for. */
static size_t entries_max(const struct fr_page *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);
	size_t bytes = OTHER_BYTES + NODE_BYTES * x->data->stacks.n + NAME_BYTES * x->frames.n +
		       NAME_BYTES * (fr_profile_n_tasks(x->profile) + x->data->others.len / sizeof(void *));

	for (uint32_t i = 0; i < x->frames.n; i++)
		bytes += FR_MIN(
			strlen(fr_frames_get(frames, x->frames.list[i])->name), (size_t)FR_PAGE_NAME_MAX);
	bytes = FR_MIN(bytes, (size_t)PAGE_BYTES);
	return FR_MIN(FR_MAX((PAGE_BYTES - bytes) / ENTRY_BYTES, (size_t)ENTRIES_MIN), (size_t)ENTRIES_MAX);
}

static int put_bytes(const struct fr_page *x, const char *name, const struct fr_protobuf *b)
{
	fprintf(x->out, ",\n\"%s\":\"", name);
	fr_page_base64(x->out, b->buf.data, b->buf.len);
	fputc('"', x->out);
	return b->failed ? -ENOMEM : 0;
}

static int put_entries(const struct fr_page *x)
{
	_cleanup_pb_ struct fr_protobuf b = {0};
	uint32_t bucket = 0;

	for (const struct fr_page_entry *e = x->data->entries; e; e = e->hh.next) {
		const uint64_t numbers[] = {e->key.bucket - bucket, e->key.source,
			x->tasks.of[e->key.task] - 1, e->key.stack + 1u, e->key.other, e->count, e->weight};

		bucket = e->key.bucket;
		for (size_t i = 0; i < FR_ARRAY_SIZE(numbers); i++)
			fr_pb_varint(&b, numbers[i]);
	}
	return put_bytes(x, "entries", &b);
}

static int put_stacks(const struct fr_page *x)
{
	const struct fr_stacks *stacks = &x->data->stacks;
	_cleanup_pb_ struct fr_protobuf b = {0};

	for (uint32_t i = 0; i < stacks->n; i++) {
		const uint32_t parent = stacks->nodes[i].parent;

		fr_pb_varint(&b, parent == FR_STACK_NONE ? 0 : i - parent);
		fr_pb_varint(&b, x->frames.of[stacks->nodes[i].frame] - 1);
	}
	return put_bytes(x, "stacks", &b);
}

static void put_names(const struct fr_page *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);

	fprintf(x->out, ",\n\"frames\":[");
	for (uint32_t i = 0; i < x->frames.n; i++) {
		const struct fr_frame *f = fr_frames_get(frames, x->frames.list[i]);
		const enum fr_object_kind kind = fr_frames_object(frames, f->object)->kind;

		fputs(i ? ",[" : "[", x->out);
		fr_page_name(x->out, f->name, strlen(f->name));
		fprintf(x->out, ",%u,%d]", x->objects.of[f->object] - 1,
			kind == FR_OBJECT_KERNEL || kind == FR_OBJECT_MODULE || kind == FR_OBJECT_BPF);
	}
	fprintf(x->out, "],\n\"objects\":[");
	for (uint32_t i = 0; i < x->objects.n; i++) {
		const char *name = fr_frames_object(frames, x->objects.list[i])->short_name;

		fputs(i ? "," : "", x->out);
		fr_page_name(x->out, name, strlen(name));
	}
}

static void put_tasks(const struct fr_page *x)
{
	const uint32_t n_others = (uint32_t)(x->data->others.len / sizeof(void *));

	fprintf(x->out, "],\n\"tasks\":[");
	for (uint32_t i = 0; i < x->tasks.n; i++) {
		const struct fr_task *t = fr_profile_task(x->profile, x->tasks.list[i]);

		if (fr_page_is_merged(x->data, x->tasks.list[i]))
			fprintf(x->out, "%s[null,null,", i ? "," : "");
		else
			fprintf(x->out, "%s[%u,%u,", i ? "," : "", t->pid, t->tid);
		fr_page_name(x->out, t->comm, strlen(t->comm));
		fputc(']', x->out);
	}
	fprintf(x->out, "],\n\"others\":[");
	for (uint32_t i = 1; i <= n_others; i++) {
		size_t len;
		const char *name = fr_page_other(x->data, i, &len);

		fputs(i > 1 ? "," : "", x->out);
		fr_page_name(x->out, name, len);
	}
	fputc(']', x->out);
}

static const char *kind_of(const struct fr_recording_event *e)
{
	if (fr_recording_event_is_cpu(e))
		return "cpu";
	if (fr_page_is_wait(e))
		return "wait";
	return fr_page_is_waking(e) ? "waking" : "other";
}

/* Returns whether the recording has such an event, which can have no samples. */
static bool has_event(const struct fr_page *x, bool (*is_such)(const struct fr_recording_event *e))
{
	const struct fr_recording *r = fr_profile_recording(x->profile);

	for (size_t i = 0; i < fr_recording_n_events(r); i++)
		if (is_such(fr_recording_event(r, i)))
			return true;
	return false;
}

static void put_sources(const struct fr_page *x)
{
	fprintf(x->out, ",\n\"sources\":[");
	for (uint32_t i = 0; i < x->data->n_sources; i++) {
		const struct fr_page_source *s = &x->data->sources[i];
		const struct fr_recording_event *e =
			fr_recording_event(fr_profile_recording(x->profile), s->event);

		fprintf(x->out, "%s{\"event\":", i ? "," : "");
		fr_page_name(x->out, e->name, strlen(e->name));
		fprintf(x->out, ",\"kind\":\"%s\",\"idle\":%s,\"open\":%s,\"unit\":\"%s\"}", kind_of(e),
			s->idle ? "true" : "false", fr_page_is_open_wait(e) ? "true" : "false",
			fr_recording_event_is_time(e) ? "ns" : "");
	}
	fprintf(x->out, "],\n\"recorded\":{\"cpu\":%s,\"wait\":%s}",
		has_event(x, fr_recording_event_is_cpu) ? "true" : "false",
		has_event(x, fr_page_is_wait) ? "true" : "false");
}

/* Writes how busy each CPU was in each column: a byte, 255 is all the time. A column is STEP of the first
 * buckets. */
static int put_heat(const struct fr_page *x)
{
	const struct fr_page_data *d = x->data;
	const uint64_t *ns = (const void *)d->heat.data, span = d->to_ns - d->from_ns;
	const uint64_t bucket_ns = span / FR_PAGE_BUCKETS + 1;
	const uint32_t n = (uint32_t)(span / bucket_ns) + 1,
		       step = FR_PAGE_BUCKETS * d->n_cpus / HEAT_MAX + 1;
	_cleanup_buf_ struct fr_buf b = {0};

	for (uint32_t cpu = 0; cpu < d->n_cpus; cpu++)
		for (uint32_t i = 0; i < n; i += step) {
			double sum = 0;
			uint8_t busy;

			for (uint32_t k = i; k < FR_MIN(i + step, n); k++)
				sum += (double)ns[cpu * FR_PAGE_BUCKETS + k];
			busy = (uint8_t)FR_MIN(255.0, 255 * sum / (double)bucket_ns / step);
			if (fr_buf_append(&b, &busy, 1) < 0)
				return -ENOMEM;
		}
	fprintf(x->out, ",\n\"cpus\":%u,\"heat_ns\":%" PRIu64 ",\"heat\":\"", d->n_cpus, bucket_ns * step);
	fr_page_base64(x->out, b.data, b.len);
	fputc('"', x->out);
	return 0;
}

/* --- the trigger --- */

static void put_mark(const struct fr_page *x, uint64_t time, const char *text, size_t *n)
{
	if (time < x->data->from_ns)
		return;
	fprintf(x->out, "%s[%" PRIu64 ",", *n ? "," : "", time - x->data->from_ns);
	fr_page_name(x->out, text, strlen(text));
	fputc(']', x->out);
	(*n)++;
}

static bool get_time(const cJSON *cause, uint64_t *ret_ns)
{
	const double ns = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(cause, "monotonic_ns"));

	if (!(ns > 0 && ns < 1e18))
		return false;
	*ret_ns = (uint64_t)ns;
	return true;
}

uint64_t fr_page_end(const cJSON *meta, uint64_t from_ns, uint64_t to_ns)
{
	const cJSON *causes = cJSON_GetObjectItemCaseSensitive(meta, "causes"), *cause;
	const uint64_t limit = to_ns + FR_MAX(to_ns - from_ns, (uint64_t)FR_NSEC_PER_SEC);
	uint64_t time;

	cJSON_ArrayForEach (cause, causes)
		if (get_time(cause, &time) && time > to_ns && time < limit)
			to_ns = time;
	return to_ns;
}

/* Writes the triggers of the dump: those that its JSON has, or else its trigger samples, which can be
   other marks, too. */
static void put_marks(const struct fr_page *x)
{
	const cJSON *causes = cJSON_GetObjectItemCaseSensitive(x->explanation->meta, "causes"), *cause;
	const uint64_t *times = (const void *)x->data->marks.data;
	size_t n = 0;
	uint64_t time;

	fprintf(x->out, ",\n\"marks\":[");
	cJSON_ArrayForEach (cause, causes)
		if (get_time(cause, &time) && n < 100)
			put_mark(x, time, fr_json_text(cause, "trigger"), &n);
	for (size_t i = 0; n == 0 && i < x->data->marks.len / sizeof(*times); i++)
		put_mark(x, times[i], "trigger", &n);
	fputc(']', x->out);
}

static void put_times(const struct fr_page *x)
{
	const struct fr_page_data *d = x->data;
	const int64_t offset = fr_recording_wall_offset(fr_profile_recording(x->profile));

	fprintf(x->out,
		"{\"bucket_ns\":%" PRIu64 ",\"buckets\":%u,\"span_ns\":%" PRIu64 ",\"incident_ns\":%" PRIu64,
		d->bucket_ns, d->n_buckets, d->to_ns - d->from_ns,
		x->explanation->facts.incident_ns - d->from_ns);
	/* A text, because the program of the page has exact numbers only up to 2^53. */
	if (offset)
		fprintf(x->out, ",\"wall_ns\":\"%" PRIu64 "\"", d->from_ns + (uint64_t)offset);
	else
		fprintf(x->out, ",\"wall_ns\":null");
	fprintf(x->out, ",\n\"without_stack\":%" PRIu64 ",\"left_out\":%" PRIu64, d->without_stack,
		d->left_out);
}

int fr_page_json(struct fr_page *x)
{
	int r = number_frames(x);

	if (r == 0)
		r = fr_page_lanes_choose(x);
	if (r == 0)
		r = fr_page_data_finish(x->data, x->profile, entries_max(x), x->lane_of);
	if (r == 0)
		r = number_tasks(x);
	if (r < 0)
		return r;
	put_times(x);
	put_marks(x);
	put_sources(x);
	put_names(x);
	put_tasks(x);
	r = put_entries(x);
	if (r == 0)
		r = put_stacks(x);
	if (r == 0)
		r = put_heat(x);
	if (r == 0)
		r = fr_page_lanes(x);
	fputc('}', x->out);
	return r;
}
