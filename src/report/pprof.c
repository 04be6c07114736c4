// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The format of pprof (github.com/google/pprof, proto/profile.proto), compressed by gzip. All samples of a
 * profile have the same list of values. So the list has two values for each event: the number of samples, and
 * the sum of their periods. A sample of one event has zeros for the others. Labels have the name, the process
 * and the thread.
 *
 *   the first event of CPU time   samples/count           cpu/nanoseconds
 *   flightrec:offcpu              off-cpu-samples/count   off-cpu/nanoseconds
 *   sched:sched_switch            sched:sched_switch-samples/count   sched:sched_switch/events
 *
 * The first two are the names in profiles of Go. Readers show the value of CPU time, unless the user chooses
 * another one.
 *
 * Frames are written as locations, with their numbers plus 1, because 0 is no location. The table of strings
 * has the texts in a fixed order, so that a text is found without a search:
 *
 *     words │ names of values │ paths of objects │ build-ids of objects │ names of frames │ names of tasks
 */

#include "base/cleanup.h"
#include "report/output.h"
#include "report/protobuf.h"
#include "report/spill.h"
#include "sideband/hash.h"

#include <errno.h>
#include <zlib.h>

#define OWN "flightrec:"
#define OFF_CPU OWN "offcpu"
#define FLUSH_AT (1u << 20)
#define READ_AT_ONCE 1024u     /* entries */
#define ENTRIES_MAX (1u << 20) /* in memory at a time. Readers add up entries that are equal */

/* The fields of the messages. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_DEFAULT_TYPE = 14
};
enum { VALUE_TYPE = 1, VALUE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum { MAPPING_ID = 1, MAPPING_FILE = 5, MAPPING_BUILD_ID, MAPPING_HAS_FUNCTIONS };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME };

static const char *const words[] = {
	"", "count", "events", "nanoseconds", "thread", "pid", "tid", "[no stack]"};
/* The values of an event. */
enum { VALUE_SAMPLES, VALUE_PERIODS, VALUES };
enum { WORD_NONE, WORD_COUNT, WORD_EVENTS, WORD_NS, WORD_THREAD, WORD_PID, WORD_TID, WORD_NO_STACK };

struct key {
	uint32_t task, stack, event;
};

struct sums {
	struct key key;
	uint64_t samples, period;
};

struct entry {
	UT_hash_handle hh;
	struct sums sums;
};

struct pprof {
	const struct fr_profile *profile;
	struct entry *entries;
	struct fr_spill spill; /* struct sums: older entries */
	uint64_t first_ns, last_ns;
	uint32_t
		*column; /* of each event: its number among the events with samples, plus 1; 0: it has none */
	size_t n_events;
	uint32_t n_columns;
	size_t main_event; /* whose value is shown first; n_events: there are no samples */
	bool has_cpu;	   /* it has the names of CPU time */
	bool has_no_stack; /* there are samples without a stack */
	size_t first_object, first_id, first_frame, first_task; /* in the table of strings */
	struct fr_protobuf out, sample, part;			/* from the outer to the inner messages */
	gzFile file;
};

/* Moves all entries to the file. */
static int spill_entries(struct pprof *x)
{
	_cleanup_buf_ struct fr_buf b = {0};
	int r = 0;

	for (const struct entry *e = x->entries; e && r == 0; e = e->hh.next)
		r = fr_buf_append(&b, &e->sums, sizeof(e->sums));
	if (r == 0)
		r = fr_spill_append(&x->spill, b.data, b.len);
	FR_HASH_CLEAR(x->entries, free);
	return r;
}

/* Calls FN for each entry, those in the file first. */
static int for_each_entry(struct pprof *x, int (*fn)(struct pprof *x, const struct sums *s))
{
	_cleanup_free_ struct sums *v = malloc(READ_AT_ONCE * sizeof(*v));
	int r = v ? 0 : -ENOMEM;

	for (uint64_t at = 0; r == 0 && at < x->spill.size;) {
		const size_t len = FR_MIN(x->spill.size - at, READ_AT_ONCE * sizeof(*v));

		r = fr_spill_read(&x->spill, at, v, len);
		for (size_t i = 0; i < len / sizeof(*v) && r == 0; i++)
			r = fn(x, &v[i]);
		at += len;
	}
	for (const struct entry *e = x->entries; e && r == 0; e = e->hh.next)
		r = fn(x, &e->sums);
	return r;
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	struct pprof *x = ctx;
	const struct key key = {s->task, s->stack, s->event};
	struct entry *e = FR_HASH_FIND(x->entries, sums.key, key);
	int r = 0;

	if (!e && HASH_COUNT(x->entries) == ENTRIES_MAX)
		r = spill_entries(x);
	if (r < 0)
		return r;
	if (!e)
		e = FR_HASH_NEW(x->entries, sums.key, key);
	if (!e)
		return -ENOMEM;
	e->sums.samples++;
	e->sums.period += s->period;
	if (!x->first_ns)
		x->first_ns = s->time;
	x->last_ns = s->time;
	return 0;
}

static int mark_event(struct pprof *x, const struct sums *s)
{
	x->column[s->key.event] = 1;
	return 0;
}

static const struct fr_recording_event *event_at(const struct pprof *x, size_t i)
{
	return fr_recording_event(fr_profile_recording(x->profile), i);
}

/* Finds the event whose value readers show first: CPU time, or else another time, or else any. */
static void choose_main_event(struct pprof *x)
{
	int best = 0;

	x->main_event = x->n_events;
	for (size_t i = 0; i < x->n_events; i++) {
		const struct fr_recording_event *e = event_at(x, i);
		const int rank = fr_recording_event_is_cpu(e) ? 3 : fr_recording_event_is_time(e) ? 2 : 1;

		if (!x->column[i] || rank <= best)
			continue;
		best = rank;
		x->main_event = i;
	}
	x->has_cpu = best == 3 && fr_recording_event_is_time(event_at(x, x->main_event));
}

static int plan(struct pprof *x)
{
	int r;

	x->n_events = fr_recording_n_events(fr_profile_recording(x->profile));
	x->column = calloc(x->n_events + 1, sizeof(*x->column));
	if (!x->column)
		return -ENOMEM;
	r = for_each_entry(x, mark_event);
	if (r < 0)
		return r;
	for (size_t i = 0; i < x->n_events; i++)
		if (x->column[i])
			x->column[i] = ++x->n_columns;
	choose_main_event(x);
	x->first_object = FR_ARRAY_SIZE(words) + VALUES * x->n_events;
	x->first_id = x->first_object + fr_frames_n_objects(fr_profile_frames(x->profile));
	x->first_frame = x->first_id + fr_frames_n_objects(fr_profile_frames(x->profile));
	x->first_task = x->first_frame + fr_frames_n(fr_profile_frames(x->profile));
	return 0;
}

static int flush(struct pprof *x, size_t at)
{
	int r = x->out.failed ? -ENOMEM : 0;

	if (r == 0 && x->out.buf.len >= at && x->out.buf.len > 0) {
		if (gzwrite(x->file, x->out.buf.data, (unsigned)x->out.buf.len) != (int)x->out.buf.len)
			r = errno ? -errno : -EIO;
		x->out.buf.len = 0;
	}
	return r;
}

/* Returns the place of the name of a value in the table of strings. */
static size_t name_of_value(size_t event, int value)
{
	return FR_ARRAY_SIZE(words) + VALUES * event + (size_t)value;
}

static void put_value_name(struct pprof *x, size_t event, int value)
{
	const char *name = event_at(x, event)->name;
	_cleanup_free_ char *text = NULL;

	if (strcmp(name, OFF_CPU) == 0)
		name = "off-cpu";
	else if (strncmp(name, OWN, strlen(OWN)) == 0)
		name += strlen(OWN);
	if (event == x->main_event && x->has_cpu)
		text = strdup(value == VALUE_SAMPLES ? "samples" : "cpu");
	else if (asprintf(&text, "%s%s", name, value == VALUE_SAMPLES ? "-samples" : "") < 0)
		text = NULL;
	x->out.failed |= !text;
	fr_pb_text(&x->out, PROFILE_STRING, text ? text : "");
}

static void put_type(struct pprof *x, uint32_t field, size_t event, int value)
{
	const int unit = value == VALUE_SAMPLES				  ? WORD_COUNT
			 : fr_recording_event_is_time(event_at(x, event)) ? WORD_NS
									  : WORD_EVENTS;
	_cleanup_pb_ struct fr_protobuf type = {0};

	fr_pb_number(&type, VALUE_TYPE, name_of_value(event, value));
	fr_pb_number(&type, VALUE_UNIT, (uint64_t)unit);
	fr_pb_message(&x->out, field, &type);
}

static void put_head(struct pprof *x)
{
	const int64_t offset = fr_recording_wall_offset(fr_profile_recording(x->profile));

	for (size_t i = 0; i < x->n_events; i++)
		for (int value = 0; value < VALUES && x->column[i]; value++)
			put_type(x, PROFILE_SAMPLE_TYPE, i, value);
	if (offset)
		fr_pb_number(&x->out, PROFILE_TIME, x->first_ns + (uint64_t)offset);
	fr_pb_number(&x->out, PROFILE_DURATION, x->last_ns - x->first_ns);
	if (x->main_event == x->n_events)
		return;
	fr_pb_number(&x->out, PROFILE_DEFAULT_TYPE, name_of_value(x->main_event, VALUE_PERIODS));
	if (!x->has_cpu)
		return;
	put_type(x, PROFILE_PERIOD_TYPE, x->main_event, VALUE_PERIODS);
	fr_pb_number(&x->out, PROFILE_PERIOD, fr_recording_event_ns(event_at(x, x->main_event), 0));
}

static void put_label(
	struct fr_protobuf *sample, struct fr_protobuf *label, int key, uint32_t field, uint64_t value)
{
	fr_pb_number(label, LABEL_KEY, (uint64_t)key);
	fr_pb_number(label, field, value);
	fr_pb_message(sample, SAMPLE_LABEL, label);
}

static int put_sample(struct pprof *x, const struct sums *e)
{
	struct fr_protobuf *sample = &x->sample, *part = &x->part;
	const struct fr_task *task = fr_profile_task(x->profile, e->key.task);
	uint32_t frames[FR_STACK_DEPTH_MAX];
	const size_t n =
		fr_stacks_frames(fr_profile_stacks(x->profile), e->key.stack, frames, FR_STACK_DEPTH_MAX);

	for (size_t i = 0; i < n; i++)
		fr_pb_varint(part, frames[i] + 1ull);
	if (n == 0) { /* go tool pprof drops samples without a location */
		fr_pb_varint(part, fr_frames_n(fr_profile_frames(x->profile)) + 1ull);
		x->has_no_stack = true;
	}
	fr_pb_message(sample, SAMPLE_LOCATION, part);
	for (uint32_t column = 1; column <= x->n_columns; column++) {
		const bool is_own = column == x->column[e->key.event];

		fr_pb_varint(part, is_own ? e->samples : 0);
		fr_pb_varint(part, is_own ? e->period : 0);
	}
	fr_pb_message(sample, SAMPLE_VALUE, part);
	put_label(sample, part, WORD_THREAD, LABEL_TEXT, x->first_task + e->key.task);
	put_label(sample, part, WORD_PID, LABEL_NUMBER, task->pid);
	put_label(sample, part, WORD_TID, LABEL_NUMBER, task->tid);
	fr_pb_message(&x->out, PROFILE_SAMPLE, sample);
	return flush(x, FLUSH_AT);
}

static void put_objects(struct pprof *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);
	_cleanup_pb_ struct fr_protobuf mapping = {0};

	for (size_t i = 0; i < fr_frames_n_objects(frames); i++) {
		fr_pb_number(&mapping, MAPPING_ID, i + 1);
		fr_pb_number(&mapping, MAPPING_FILE, x->first_object + i);
		fr_pb_number(&mapping, MAPPING_BUILD_ID, x->first_id + i);
		/* Otherwise, readers would look for the names again; they cannot, without addresses. */
		fr_pb_number(&mapping, MAPPING_HAS_FUNCTIONS, 1);
		fr_pb_message(&x->out, PROFILE_MAPPING, &mapping);
	}
}

static void put_location(struct pprof *x, uint64_t id, uint64_t name, uint64_t mapping)
{
	struct fr_protobuf *message = &x->sample, *line = &x->part;

	fr_pb_number(message, FUNCTION_ID, id);
	fr_pb_number(message, FUNCTION_NAME, name);
	fr_pb_number(message, FUNCTION_SYSTEM_NAME, name);
	fr_pb_message(&x->out, PROFILE_FUNCTION, message);
	fr_pb_number(message, LOCATION_ID, id);
	if (mapping)
		fr_pb_number(message, LOCATION_MAPPING, mapping);
	fr_pb_number(line, LINE_FUNCTION, id);
	fr_pb_message(message, LOCATION_LINE, line);
	fr_pb_message(&x->out, PROFILE_LOCATION, message);
}

static int put_frames(struct pprof *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);
	const size_t n = fr_frames_n(frames);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		put_location(x, i + 1, x->first_frame + i, fr_frames_get(frames, (uint32_t)i)->object + 1ull);
		r = flush(x, FLUSH_AT);
	}
	if (x->has_no_stack)
		put_location(x, n + 1, WORD_NO_STACK, 0);
	return r;
}

static int put_strings(struct pprof *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);
	int r = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(words); i++)
		fr_pb_text(&x->out, PROFILE_STRING, words[i]);
	for (size_t i = 0; i < x->n_events; i++)
		for (int value = 0; value < VALUES; value++)
			put_value_name(x, i, value);
	for (size_t i = 0; i < fr_frames_n_objects(frames); i++)
		fr_pb_text(&x->out, PROFILE_STRING, fr_frames_object(frames, (uint32_t)i)->path);
	for (size_t i = 0; i < fr_frames_n_objects(frames); i++) {
		const struct fr_code_object *o = fr_frames_object(frames, (uint32_t)i);
		char id[2 * sizeof(o->build_id) + 1] = "";

		for (size_t k = 0; k < o->build_id_len; k++)
			snprintf(id + 2 * k, 3, "%02x", o->build_id[k]);
		fr_pb_text(&x->out, PROFILE_STRING, id);
	}
	for (size_t i = 0; i < fr_frames_n(frames) && r == 0; i++) {
		fr_pb_text(&x->out, PROFILE_STRING, fr_frames_get(frames, (uint32_t)i)->name);
		r = flush(x, FLUSH_AT);
	}
	for (size_t i = 0; i < fr_profile_n_tasks(x->profile) && r == 0; i++) {
		fr_pb_text(&x->out, PROFILE_STRING, fr_profile_task(x->profile, (uint32_t)i)->comm);
		r = flush(x, FLUSH_AT);
	}
	return r;
}

static int write_profile(struct pprof *x, FILE *out)
{
	const int fd = fflush(out) == 0 ? dup(fileno(out)) : -1;
	int r = fd < 0 ? -errno : 0;

	x->file = fd < 0 ? NULL : gzdopen(fd, "wb");
	if (!x->file) {
		fr_closep(&(int){fd});
		return r < 0 ? r : -ENOMEM;
	}
	errno = 0; /* zlib does not set it at errors of its own */
	put_head(x);
	r = for_each_entry(x, put_sample);
	put_objects(x);
	if (r == 0)
		r = put_frames(x);
	if (r == 0)
		r = put_strings(x);
	if (r == 0)
		r = flush(x, 0);
	if (gzclose(x->file) != Z_OK && r == 0)
		r = errno ? -errno : -EIO;
	return r;
}

int fr_output_pprof(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	struct pprof x = {.profile = p, .spill = FR_SPILL_INIT};
	const struct fr_view view = {.sample = add_sample, .ctx = &x};
	int r = fr_profile_read(p, &view, d);

	if (r == 0)
		r = plan(&x);
	if (r == 0)
		r = write_profile(&x, out);
	FR_HASH_CLEAR(x.entries, free);
	free(x.column);
	fr_spill_deinit(&x.spill);
	fr_pb_deinit(&x.out);
	fr_pb_deinit(&x.sample);
	fr_pb_deinit(&x.part);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot write the profile") : 0;
}
