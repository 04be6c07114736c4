// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/recording.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "merge/cursor.h"
#include "perfdata/bytes.h"
#include "perfdata/tracing_format.h"
#include "report/exits.h"
#include "sideband/blob.h"

#include <errno.h>
#include <string.h>

#define FORMAT_MAX (64u << 10)

struct fr_recording {
	char *path;
	struct fr_reader *reader;
	struct fr_cursor *cursor;
	struct fr_model *model;
	struct fr_exits exits;
	struct fr_blob_pool
		pool; /* of the model; readers can keep its blobs as long as the recording is open */
	struct fr_recording_event *events;
	size_t n_events;
	uint64_t skipped;
};

struct fr_recording *fr_recording_free(struct fr_recording *r)
{
	if (!r)
		return NULL;
	for (size_t i = 0; i < r->n_events; i++)
		free((void *)r->events[i].format);
	free(r->events);
	fr_exits_deinit(&r->exits);
	fr_model_free(r->model);
	while (r->pool.all)
		fr_blob_unref(&r->pool, r->pool.all);
	fr_cursor_free(r->cursor);
	fr_reader_free(r->reader);
	free(r->path);
	free(r);
	return NULL;
}

/* Gives the format, which has LEN bytes, to the tracepoint events with its id. */
static void add_format(void *ctx, const char *system, const char *format, size_t len)
{
	_cleanup_free_ struct fr_tracepoint_format *parsed = malloc(sizeof(*parsed));
	_cleanup_free_ char *text = len < FORMAT_MAX ? strndup(format, len) : NULL;
	struct fr_recording *r = ctx;

	if (!text || !parsed || fr_tracepoint_format_parse(text, parsed) < 0)
		return;
	for (size_t i = 0; i < r->n_events; i++) {
		struct fr_recording_event *e = &r->events[i];
		struct fr_tracepoint_format *copy;

		if (e->format || e->attr->type != PERF_TYPE_TRACEPOINT || e->attr->config != parsed->id)
			continue;
		copy = malloc(sizeof(*copy));
		if (!copy)
			return;
		*copy = *parsed;
		e->format = copy;
	}
}

/* A file in pipe format gets its events while it is read, so this is called again when there are more. */
static int add_events(struct fr_recording *r)
{
	const struct fr_session *s = fr_reader_session(r->reader);
	struct fr_recording_event *events = reallocarray(r->events, s->n_events + 1, sizeof(*events));
	const struct fr_buf *formats = &s->features[FR_FEATURE_TRACING_DATA];

	if (!events)
		return -ENOMEM;
	r->events = events;
	for (size_t i = 0; i < s->n_events; i++)
		events[i] =
			(struct fr_recording_event){.name = s->events[i].name ? s->events[i].name : "unknown",
				.attr = &s->events[i].attr,
				.format = i < r->n_events ? events[i].format : NULL,
				.is_sideband = fr_attr_is_sideband(&s->events[i].attr)};
	r->n_events = s->n_events;
	/* Without formats, the samples have no fields; the rest of the file can be read nevertheless. */
	if (formats->len > 0 && fr_tracing_data_for_each(formats, add_format, r) == -ENOMEM)
		return -ENOMEM;
	return 0;
}

int fr_recording_open(const char *path, struct fr_recording **ret, struct fr_diag *d)
{
	struct fr_recording *r = calloc(1, sizeof(*r));
	int x;

	if (!r)
		return -ENOMEM;
	r->path = strdup(path);
	x = r->path ? fr_reader_open(path, &r->reader, d) : -ENOMEM;
	if (x == 0)
		x = fr_cursor_new(r->reader, NULL, 0, 0, 0, &r->cursor);
	if (x == 0)
		x = fr_model_new(&r->pool, &r->model);
	if (x == 0)
		x = add_events(r);
	if (x < 0) {
		fr_recording_free(r);
		return x;
	}
	*ret = r;
	return 0;
}

/* Returns 1 if X is a usable sample, else 0. */
static int read_sample(struct fr_recording *r, struct fr_recorded *x)
{
	uint64_t id;

	x->event = 0;
	if (r->n_events > 1) {
		/* The id has the same place in all samples (reader_layout.c), so any attr finds it. */
		(void)fr_sample_parse(r->events[0].attr, x->record, &x->sample);
		id = x->sample.id;
		x->event = fr_reader_find_event(r->reader, id);
	}
	if (x->event >= r->n_events)
		return 0;
	return fr_sample_parse(r->events[x->event].attr, x->record, &x->sample) == 0;
}

int fr_recording_next(struct fr_recording *r, struct fr_recorded *ret)
{
	struct fr_cursor_record x;
	int n;

	while ((n = fr_cursor_next(r->cursor, &x)) == 1) {
		*ret = (struct fr_recorded){.time = x.key, .record = x.record, .is_sample = x.sample};
		if (fr_reader_session(r->reader)->n_events != r->n_events) {
			n = add_events(r);
			if (n < 0)
				return n;
		}
		if (!x.sample) {
			n = fr_exits_apply(&r->exits, r->model, x.record,
				fr_reader_tail_size(r->reader, x.record), x.key);
			return n < 0 ? n : 1;
		}
		if (!read_sample(r, ret)) {
			r->skipped++;
			continue;
		}
		n = fr_exits_run(&r->exits, r->model, &ret->sample);
		return n < 0 ? n : 1;
	}
	return n;
}

const struct fr_model *fr_recording_model(const struct fr_recording *r)
{
	return r->model;
}

size_t fr_recording_n_events(const struct fr_recording *r)
{
	return r->n_events;
}

const struct fr_recording_event *fr_recording_event(const struct fr_recording *r, size_t i)
{
	return &r->events[i];
}

bool fr_recording_event_is_cpu(const struct fr_recording_event *e)
{
	if (e->attr->type == PERF_TYPE_SOFTWARE)
		return e->attr->config == PERF_COUNT_SW_CPU_CLOCK ||
		       e->attr->config == PERF_COUNT_SW_TASK_CLOCK;
	return strncmp(e->name, "cycles", 6) == 0 || strstr(e->name, "/cycles");
}

uint64_t fr_recording_event_ns(const struct fr_recording_event *e, uint64_t period)
{
	/* The period of a clock is in ns, and that of cycles is not. */
	if (e->attr->type == PERF_TYPE_SOFTWARE && period)
		return period;
	if (e->attr->freq && e->attr->sample_freq)
		return FR_NSEC_PER_SEC / e->attr->sample_freq;
	return e->attr->type == PERF_TYPE_SOFTWARE ? e->attr->sample_period : FR_NSEC_PER_SEC / 99;
}

/* Reads the whole file, because its head does not have the times: it is in pipe format, or truncated. Leaves
   TIMES as they are if no sample has a time. */
static int find_window(const char *path, uint64_t times[2])
{
	const struct perf_event_header *h;
	struct fr_reader *reader;
	int x = fr_reader_open(path, &reader, NULL);

	if (x < 0)
		return x;
	while ((x = fr_reader_next(reader, &h, NULL)) == 1) {
		const uint64_t time = h->type == PERF_RECORD_SAMPLE ? fr_reader_time(reader, h) : 0;

		if (time) {
			times[0] = times[1] ? FR_MIN(times[0], time) : time;
			times[1] = FR_MAX(times[1], time);
		}
	}
	fr_reader_free(reader);
	return x;
}

int fr_recording_window(
	const struct fr_recording *r, uint64_t *ret_from_ns, uint64_t *ret_to_ns, struct fr_diag *d)
{
	const struct fr_buf *section = &fr_recording_session(r)->features[FR_FEATURE_SAMPLE_TIME];
	uint64_t times[2] = {0};
	int x = 0;

	if (section->len >= sizeof(times))
		memcpy(times, section->data, sizeof(times));
	if (times[1] <= times[0]) {
		times[0] = times[1] = 0;
		x = find_window(r->path, times);
	}
	if (x < 0)
		return fr_fail_errno(d, x, NULL, "cannot read %s", r->path);
	if (!times[1])
		return fr_fail(d, -ENODATA, "record with perf record -T, or with flightrecd",
			"%s has no samples with times", r->path);
	*ret_from_ns = times[0];
	*ret_to_ns = times[1];
	return 0;
}

bool fr_recording_event_is_wait(const struct fr_recording_event *e)
{
	return strcmp(e->name, "flightrec:offcpu") == 0 || strcmp(e->name, "flightrec:waiting") == 0;
}

bool fr_recording_event_is_time(const struct fr_recording_event *e)
{
	if (e->attr->type == PERF_TYPE_SOFTWARE)
		return fr_recording_event_is_cpu(e);
	return fr_recording_event_is_wait(e) || strcmp(e->name, "flightrec:waker") == 0;
}

int64_t fr_recording_wall_offset(const struct fr_recording *r)
{
	/* u32 version, u32 clock, u64 wall time, u64 time of the clock */
	const struct fr_buf *section = &fr_recording_session(r)->features[FR_FEATURE_CLOCK_DATA];
	struct byte_reader in = {section->data, section->len, false};
	uint64_t wall, clock;

	(void)read_u64(&in);
	wall = read_u64(&in);
	clock = read_u64(&in);
	return in.failed ? 0 : (int64_t)(wall - clock);
}

uint32_t fr_recording_n_cpus(const struct fr_recording *r)
{
	/* u32 present, u32 online */
	const struct fr_buf *section = &fr_recording_session(r)->features[FR_FEATURE_NRCPUS];
	uint32_t numbers[2];

	if (section->len < sizeof(numbers))
		return 0;
	memcpy(numbers, section->data, sizeof(numbers));
	return numbers[1];
}

const struct fr_session *fr_recording_session(const struct fr_recording *r)
{
	return fr_reader_session(r->reader);
}

uint64_t fr_recording_skipped(const struct fr_recording *r)
{
	return r->skipped;
}

const struct fr_damage *fr_recording_damage(const struct fr_recording *r)
{
	return fr_reader_damage(r->reader);
}

void fr_recording_progress(const struct fr_recording *r, uint64_t *ret_done, uint64_t *ret_total)
{
	fr_reader_progress(r->reader, ret_done, ret_total);
}

/* Returns the field, which SAMPLE has as a whole; or NULL. */
static const struct fr_field *find_field(
	const struct fr_recording_event *event, const struct fr_sample_fields *sample, const char *name)
{
	const struct fr_field *f = event->format ? fr_tracepoint_format_find(event->format, name) : NULL;

	return f && f->offset <= sample->raw_bytes && f->bytes <= sample->raw_bytes - f->offset ? f : NULL;
}

bool fr_recorded_number(const struct fr_recording_event *event, const struct fr_sample_fields *sample,
	const char *field, uint64_t *ret)
{
	const struct fr_field *f = find_field(event, sample, field);
	uint64_t v = 0;

	if (!f || f->kind != FR_FIELD_NUMBER)
		return false;
	memcpy(&v, sample->raw + f->offset, f->bytes); /* little-endian, as the reader requires */
	if (f->is_signed && f->bytes < 8 && v >> (8 * f->bytes - 1))
		v |= UINT64_MAX << (8 * f->bytes);
	*ret = v;
	return true;
}

const char *fr_recorded_text(const struct fr_recording_event *event, const struct fr_sample_fields *sample,
	const char *field, size_t *ret_len)
{
	const struct fr_field *f = find_field(event, sample, field);
	uint32_t offset = f ? f->offset : 0, bytes = f ? f->bytes : 0, where;

	*ret_len = 0;
	if (!f || (f->kind != FR_FIELD_TEXT && f->kind != FR_FIELD_DYNAMIC))
		return "";
	if (f->kind == FR_FIELD_DYNAMIC) { /* the place of the text: its size, and its offset */
		if (f->bytes < sizeof(where))
			return "";
		memcpy(&where, sample->raw + f->offset, sizeof(where));
		offset = where & 0xffff;
		bytes = where >> 16;
		if (offset > sample->raw_bytes || bytes > sample->raw_bytes - offset)
			return "";
	}
	*ret_len = strnlen((const char *)sample->raw + offset, bytes);
	return (const char *)sample->raw + offset;
}
