// SPDX-License-Identifier: GPL-2.0-or-later

/* report --html: one file with all its data, for a browser without a network. src/report/page/ has its style and its
   program, which the build puts into page_assets.h. Numbers are varints (seven bits a byte) in base64. */

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "page_assets.h"
#include "report/explain.h"
#include "report/json_out.h"
#include "report/output.h"
#include "report/page_data.h"
#include "report/protobuf.h"

#include <errno.h>
#include <string.h>

#define LANES_MAX 30u
#define WAITS_SHOWN 3000u /* in all lanes together */

/* The numbers that nodes, frames, objects and tasks have in the page, plus 1; 0: the page does not have it. */
struct numbers {
	uint32_t *of, *list;
	uint32_t n;
};

struct page {
	const struct fr_profile *profile;
	struct fr_page_data *data;
	FILE *out;
	struct numbers nodes, frames, objects, tasks;
};

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

static uint32_t number_of(struct numbers *x, uint32_t element)
{
	if (!x->of[element]) {
		x->list[x->n++] = element;
		x->of[element] = x->n;
	}
	return x->of[element] - 1;
}

/* Numbers the nodes of a stack, the callers first. */
static void number_stack(struct page *x, uint32_t stack)
{
	const struct fr_stacks *stacks = fr_profile_stacks(x->profile);
	const struct fr_frames *frames = fr_profile_frames(x->profile);
	uint32_t new_nodes[FR_STACK_DEPTH_MAX];
	size_t n = 0;

	for (; stack != FR_STACK_NONE && !x->nodes.of[stack]; stack = stacks->nodes[stack].parent)
		new_nodes[n++] = stack;
	while (n > 0) {
		const uint32_t node = new_nodes[--n],
			       frame = fr_frames_get(frames, stacks->nodes[node].frame)->same;

		(void)number_of(&x->nodes, node);
		(void)number_of(&x->frames, frame);
		(void)number_of(&x->objects, fr_frames_get(frames, frame)->object);
	}
}

static int number_all(struct page *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);

	if (new_numbers(&x->nodes, fr_profile_stacks(x->profile)->n) < 0 ||
		new_numbers(&x->frames, fr_frames_n(frames)) < 0 ||
		new_numbers(&x->objects, fr_frames_n_objects(frames)) < 0 ||
		new_numbers(&x->tasks, fr_profile_n_tasks(x->profile)) < 0)
		return -ENOMEM;
	for (const struct fr_page_entry *e = x->data->entries; e; e = e->hh.next) {
		number_stack(x, e->key.stack);
		(void)number_of(&x->tasks, e->key.task);
	}
	return 0;
}

static void put_base64(FILE *out, const uint8_t *p, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	fputc('"', out);
	for (size_t i = 0; i < len; i += 3) {
		const uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0) |
				   (i + 2 < len ? p[i + 2] : 0u);

		fputc(digits[v >> 18], out);
		fputc(digits[v >> 12 & 63], out);
		fputc(i + 1 < len ? digits[v >> 6 & 63] : '=', out);
		fputc(i + 2 < len ? digits[v & 63] : '=', out);
	}
	fputc('"', out);
}

static int put_entries(const struct page *x)
{
	_cleanup_pb_ struct fr_protobuf b = {0};
	uint32_t bucket = 0;

	for (const struct fr_page_entry *e = x->data->entries; e; e = e->hh.next) {
		const uint64_t numbers[] = {e->key.bucket - bucket, e->key.source, x->tasks.of[e->key.task] - 1,
			e->key.stack == FR_STACK_NONE ? 0 : x->nodes.of[e->key.stack], e->count, e->weight};

		bucket = e->key.bucket;
		for (size_t i = 0; i < FR_ARRAY_SIZE(numbers); i++)
			fr_pb_varint(&b, numbers[i]);
	}
	fprintf(x->out, "\"entries\":");
	put_base64(x->out, b.buf.data, b.buf.len);
	return b.failed ? -ENOMEM : 0;
}

static int put_stacks(const struct page *x)
{
	const struct fr_stacks *stacks = fr_profile_stacks(x->profile);
	const struct fr_frames *frames = fr_profile_frames(x->profile);
	_cleanup_pb_ struct fr_protobuf b = {0};

	for (uint32_t i = 0; i < x->nodes.n; i++) {
		const struct fr_stack_node *node = &stacks->nodes[x->nodes.list[i]];

		fr_pb_varint(&b, node->parent == FR_STACK_NONE ? 0 : x->nodes.of[node->parent]);
		fr_pb_varint(&b, x->frames.of[fr_frames_get(frames, node->frame)->same] - 1);
	}
	fprintf(x->out, ",\n\"stacks\":");
	put_base64(x->out, b.buf.data, b.buf.len);
	return b.failed ? -ENOMEM : 0;
}

static void put_names(const struct page *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);

	fprintf(x->out, ",\n\"frames\":[");
	for (uint32_t i = 0; i < x->frames.n; i++) {
		const struct fr_frame *f = fr_frames_get(frames, x->frames.list[i]);
		const enum fr_object_kind kind = fr_frames_object(frames, f->object)->kind;

		fputs(i ? ",[" : "[", x->out);
		fr_json_out_text(x->out, f->name);
		fprintf(x->out, ",%u,%d]", x->objects.of[f->object] - 1,
			kind == FR_OBJECT_KERNEL || kind == FR_OBJECT_MODULE || kind == FR_OBJECT_BPF);
	}
	fprintf(x->out, "],\n\"objects\":[");
	for (uint32_t i = 0; i < x->objects.n; i++) {
		fputs(i ? "," : "", x->out);
		fr_json_out_text(x->out, fr_frames_object(frames, x->objects.list[i])->short_name);
	}
	fprintf(x->out, "],\n\"tasks\":[");
	for (uint32_t i = 0; i < x->tasks.n; i++) {
		const struct fr_task *t = fr_profile_task(x->profile, x->tasks.list[i]);

		fprintf(x->out, "%s[%u,%u,", i ? "," : "", t->pid, t->tid);
		fr_json_out_text(x->out, t->comm);
		fputc(']', x->out);
	}
	fputc(']', x->out);
}

/* The choices: each source, and the waits with and without those for work. CPU time comes first. */
static void put_choices(const struct page *x)
{
	const struct fr_recording *recording = fr_profile_recording(x->profile);
	const char *separator = "";

	fprintf(x->out, ",\n\"choices\":[");
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < x->data->n_sources; i++) {
			const struct fr_page_source *s = &x->data->sources[i];
			const struct fr_recording_event *e = fr_recording_event(recording, s->event);
			_cleanup_free_ char *title = NULL;

			if (fr_recording_event_is_cpu(e) != (pass == 0))
				continue;
			if (asprintf(&title, "%s%s", e->name, s->idle ? ", waits for work and sleeps" : "") < 0)
				title = NULL;
			fprintf(x->out, "%s{\"title\":", separator);
			fr_json_out_text(x->out, title ? title : e->name);
			fprintf(x->out, ",\"unit\":\"%s\",\"sources\":[%u]}",
				fr_recording_event_is_time(e) ? "ns" : "", i);
			separator = ",";
		}
	for (uint32_t i = 0; i < x->data->n_sources; i++)
		for (uint32_t k = 0; k < x->data->n_sources; k++)
			if (x->data->sources[i].idle && !x->data->sources[k].idle &&
				x->data->sources[i].event == x->data->sources[k].event) {
				fprintf(x->out, "%s{\"title\":\"", separator);
				fprintf(x->out, "flightrec:offcpu, all\",\"unit\":\"ns\",\"sources\":[%u,%u]}", i, k);
				separator = ",";
			}
	fputc(']', x->out);
}

/* Writes how busy each CPU was in each bucket: a byte, 255 is all the time. */
static int put_heat(const struct page *x)
{
	const struct fr_page_data *d = x->data;
	const uint64_t *ns = (const void *)d->heat.data;
	const uint32_t step = FR_PAGE_BUCKETS / d->n_buckets + (FR_PAGE_BUCKETS % d->n_buckets != 0);
	const double full = (double)(d->to_ns - d->from_ns) / FR_PAGE_BUCKETS * step;
	_cleanup_buf_ struct fr_buf b = {0};

	for (uint32_t cpu = 0; cpu < d->n_cpus; cpu++)
		for (uint32_t i = 0; i < d->n_buckets; i++) {
			double sum = 0;
			uint8_t busy;

			for (uint32_t k = i * step; k < FR_MIN((i + 1) * step, FR_PAGE_BUCKETS); k++)
				sum += (double)ns[cpu * FR_PAGE_BUCKETS + k];
			busy = (uint8_t)FR_MIN(255.0, 255 * sum / full);
			if (fr_buf_append(&b, &busy, 1) < 0)
				return -ENOMEM;
		}
	fprintf(x->out, ",\n\"cpus\":%u,\"heat\":", d->n_cpus);
	put_base64(x->out, b.data, b.len);
	return 0;
}

/* --- lanes --- */

struct lane {
	uint32_t task;
	double score; /* CPU time, and waits that are not for work */
};

static int compare_lanes(const void *x, const void *y)
{
	const struct lane *a = x, *b = y;

	return a->score > b->score ? -1 : a->score < b->score;
}

static void put_lane(const struct page *x, uint32_t task, uint8_t *runs, size_t *left)
{
	const struct fr_page_data *d = x->data;
	const struct fr_recording *recording = fr_profile_recording(x->profile);
	const struct fr_page_wait *waits = (const void *)d->waits.data;
	const double full = (double)(d->to_ns - d->from_ns) / d->n_buckets;
	const char *separator = "";

	memset(runs, 0, d->n_buckets);
	for (const struct fr_page_entry *e = d->entries; e; e = e->hh.next)
		if (e->key.task == task &&
			fr_recording_event_is_cpu(fr_recording_event(recording, d->sources[e->key.source].event)))
			runs[e->key.bucket] = (uint8_t)FR_MIN(255.0, runs[e->key.bucket] + 255 * (double)e->weight / full);
	fprintf(x->out, "{\"task\":%u,\"runs\":", x->tasks.of[task] - 1);
	put_base64(x->out, runs, d->n_buckets);
	fprintf(x->out, ",\"waits\":[");
	for (size_t i = 0; i < d->waits.len / sizeof(*waits) && *left > 0; i++) {
		if (waits[i].task != task || waits[i].to_ns <= d->from_ns)
			continue;
		fprintf(x->out, "%s[%.1f,%.2f,%d]", separator,
			(double)(FR_MAX(waits[i].from_ns, d->from_ns) - d->from_ns) / FR_NSEC_PER_MSEC,
			(double)(waits[i].to_ns - waits[i].from_ns) / FR_NSEC_PER_MSEC, (int)waits[i].kind);
		separator = ",";
		(*left)--;
	}
	fprintf(x->out, "]}");
}

static int put_lanes(const struct page *x)
{
	const struct fr_page_data *d = x->data;
	const struct fr_recording *recording = fr_profile_recording(x->profile);
	const size_t n = fr_profile_n_tasks(x->profile);
	const struct fr_page_wait *waits = (const void *)d->waits.data;
	_cleanup_free_ struct lane *lanes = calloc(n + 1, sizeof(*lanes));
	_cleanup_free_ uint8_t *runs = malloc(d->n_buckets);
	size_t left = WAITS_SHOWN, shown = 0;

	if (!lanes || !runs)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		lanes[i].task = i;
	for (const struct fr_page_entry *e = d->entries; e; e = e->hh.next)
		if (fr_recording_event_is_cpu(fr_recording_event(recording, d->sources[e->key.source].event)) &&
			fr_profile_task(x->profile, e->key.task)->tid != 0)
			lanes[e->key.task].score += (double)e->weight;
	for (size_t i = 0; i < d->waits.len / sizeof(*waits); i++)
		lanes[waits[i].task].score += (double)(waits[i].to_ns - waits[i].from_ns);
	qsort(lanes, n, sizeof(*lanes), compare_lanes);
	fprintf(x->out, ",\n\"lanes\":[");
	for (size_t i = 0; i < FR_MIN(n, (size_t)LANES_MAX) && lanes[i].score > 0; i++)
		if (x->tasks.of[lanes[i].task]) {
			fputs(shown++ ? ",\n" : "\n", x->out);
			put_lane(x, lanes[i].task, runs, &left);
		}
	fputc(']', x->out);
	return 0;
}

/* --- the file --- */

static void put_html_text(FILE *out, const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		default:
			fputc(*text, out);
		}
}

static int put_data(struct page *x)
{
	const struct fr_page_data *d = x->data;
	int r = number_all(x);

	if (r < 0)
		return r;
	fprintf(x->out, "<script type=\"application/json\" id=\"data\">\n{");
	r = put_entries(x);
	if (r == 0)
		r = put_stacks(x);
	put_names(x);
	put_choices(x);
	if (r == 0)
		r = put_heat(x);
	if (r == 0)
		r = put_lanes(x);
	fprintf(x->out, ",\n\"buckets\":%u,\"bucket_ms\":%.6f,\"trigger_ms\":", d->n_buckets,
		(double)(d->to_ns - d->from_ns) / d->n_buckets / FR_NSEC_PER_MSEC);
	if (d->trigger_ns >= d->from_ns)
		fprintf(x->out, "%.3f", (double)(d->trigger_ns - d->from_ns) / FR_NSEC_PER_MSEC);
	else
		fputs("null", x->out);
	fprintf(x->out, "}\n</script>\n");
	return r;
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	return fr_page_data_add(ctx, p, s);
}

/* The title, and what can be read without the program of the page: the explanation. */
static int put_head(const struct page *x, const struct fr_explanation *e, const char *name)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		return -ENOMEM;
	fr_explanation_print(e, memory);
	if (fclose(memory) != 0)
		return -ENOMEM;
	fprintf(x->out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
		"script-src 'unsafe-inline'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
	put_html_text(x->out, name);
	fprintf(x->out, " - flightrec</title>\n<style>\n%s</style>\n</head>\n<body>\n<header><h1>", page_css);
	put_html_text(x->out, name);
	fprintf(x->out, "</h1></header>\n<main>\n<h2>What happened</h2>\n<pre id=\"explanation\">");
	put_html_text(x->out, text);
	fprintf(x->out, "</pre>\n<noscript><p>The rest of this page needs JavaScript.</p></noscript>\n%s</main>\n", page_html);
	return 0;
}

static int put_page(struct page *x, const struct fr_explanation *e, const char *name)
{
	int r = fr_page_data_finish(x->data);

	if (r == 0)
		r = put_head(x, e, name);
	if (r == 0)
		r = put_data(x);
	fprintf(x->out, "<script>\n%s</script>\n</body>\n</html>\n", page_js);
	return r;
}

int fr_output_page(struct fr_profile *p, const cJSON *meta, const char *name, FILE *out, struct fr_diag *d)
{
	struct fr_page_data data;
	struct page x = {.profile = p, .data = &data, .out = out};
	const struct fr_view view = {.sample = add_sample, .ctx = &data};
	struct fr_explanation e = {0};
	uint64_t from, to;
	int r = fr_recording_window(fr_profile_recording(p), &from, &to, d);

	fr_page_data_init(&data, r == 0 ? from : 0, r == 0 ? to : 1);
	if (r == 0)
		r = fr_explain(p, meta, 0, &view, &e, d);
	if (r == 0)
		r = put_page(&x, &e, name);
	fr_explanation_deinit(&e);
	fr_page_data_deinit(&data);
	free_numbers(&x.nodes);
	free_numbers(&x.frames);
	free_numbers(&x.objects);
	free_numbers(&x.tasks);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot write the page") : 0;
}
