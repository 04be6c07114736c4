// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The format of pprof (github.com/google/pprof, proto/profile.proto), compressed by gzip. All samples of a profile have
 * the same list of values. So the list has two values for each event: the number of samples, and the sum of their periods.
 * A sample of one event has zeros for the others. Labels have the name, the process and the thread.
 *
 * Frames are written as locations, with their numbers plus 1, because 0 is no location. The table of strings has the texts
 * in a fixed order, so that a text is found without a search:
 *
 *     words │ names of events │ paths of objects │ build-ids of objects │ names of frames │ names of tasks
 */

#include "base/cleanup.h"
#include "report/output.h"
#include "report/protobuf.h"
#include "sideband/hash.h"

#include <errno.h>
#include <zlib.h>

#define FLUSH_AT (1u << 20)

/* The fields of the messages. */
enum { PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_DURATION = 10,
	PROFILE_DEFAULT_TYPE = 14 };
enum { VALUE_TYPE = 1, VALUE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum { MAPPING_ID = 1, MAPPING_FILE = 5, MAPPING_BUILD_ID, MAPPING_HAS_FUNCTIONS };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME };

static const char *const words[] = {"", "count", "events", "nanoseconds", "thread", "pid", "tid"};
enum { WORD_NONE, WORD_COUNT, WORD_EVENTS, WORD_NS, WORD_THREAD, WORD_PID, WORD_TID };

struct key {
	uint32_t task, stack, event;
};

struct entry {
	UT_hash_handle hh;
	struct key key;
	uint64_t samples, period;
};

struct pprof {
	const struct fr_profile *profile;
	struct entry *entries;
	uint64_t first_ns, last_ns;
	uint32_t *column; /* of each event: its number among the events with samples, plus 1; 0: it has none */
	size_t n_events;
	uint32_t n_columns;
	size_t first_object, first_id, first_frame, first_task; /* in the table of strings */
	struct fr_protobuf out;
	gzFile file;
};

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	struct pprof *x = ctx;
	const struct key key = {s->task, s->stack, s->event};
	struct entry *e = FR_HASH_FIND(x->entries, key, key);

	if (!e)
		e = FR_HASH_NEW(x->entries, key, key);
	if (!e)
		return -ENOMEM;
	e->samples++;
	e->period += s->period;
	if (!x->first_ns)
		x->first_ns = s->time;
	x->last_ns = s->time;
	return 0;
}

static int plan(struct pprof *x)
{
	x->n_events = fr_recording_n_events(fr_profile_recording(x->profile));
	x->column = calloc(x->n_events + 1, sizeof(*x->column));
	if (!x->column)
		return -ENOMEM;
	for (const struct entry *e = x->entries; e; e = e->hh.next)
		x->column[e->key.event] = 1;
	for (size_t i = 0; i < x->n_events; i++)
		if (x->column[i])
			x->column[i] = ++x->n_columns;
	x->first_object = FR_ARRAY_SIZE(words) + x->n_events;
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
			r = -EIO;
		x->out.buf.len = 0;
	}
	return r;
}

static void put_types(struct pprof *x)
{
	_cleanup_pb_ struct fr_protobuf type = {0};

	for (size_t i = 0; i < x->n_events; i++) {
		const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(x->profile), i);
		const int units[] = {WORD_COUNT, fr_recording_event_is_time(e) ? WORD_NS : WORD_EVENTS};

		for (size_t k = 0; k < FR_ARRAY_SIZE(units) && x->column[i]; k++) {
			fr_pb_number(&type, VALUE_TYPE, FR_ARRAY_SIZE(words) + i);
			fr_pb_number(&type, VALUE_UNIT, (uint64_t)units[k]);
			fr_pb_message(&x->out, PROFILE_SAMPLE_TYPE, &type);
		}
	}
	fr_pb_number(&x->out, PROFILE_DURATION, x->last_ns - x->first_ns);
}

static void put_label(struct fr_protobuf *sample, struct fr_protobuf *label, int key, uint32_t field, uint64_t value)
{
	fr_pb_number(label, LABEL_KEY, (uint64_t)key);
	fr_pb_number(label, field, value);
	fr_pb_message(sample, SAMPLE_LABEL, label);
}

static void put_sample(struct pprof *x, const struct entry *e, struct fr_protobuf *sample, struct fr_protobuf *part)
{
	const struct fr_task *task = fr_profile_task(x->profile, e->key.task);
	uint32_t frames[FR_STACK_DEPTH_MAX];
	const size_t n = fr_stacks_frames(fr_profile_stacks(x->profile), e->key.stack, frames, FR_STACK_DEPTH_MAX);

	for (size_t i = 0; i < n; i++)
		fr_pb_varint(part, frames[i] + 1ull);
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
}

static int put_samples(struct pprof *x)
{
	_cleanup_pb_ struct fr_protobuf sample = {0}, part = {0};
	int r = 0;

	for (const struct entry *e = x->entries; e && r == 0; e = e->hh.next) {
		put_sample(x, e, &sample, &part);
		r = flush(x, FLUSH_AT);
	}
	return r;
}

static void put_objects(struct pprof *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);
	_cleanup_pb_ struct fr_protobuf mapping = {0};

	for (size_t i = 0; i < fr_frames_n_objects(frames); i++) {
		fr_pb_number(&mapping, MAPPING_ID, i + 1);
		fr_pb_number(&mapping, MAPPING_FILE, x->first_object + i);
		fr_pb_number(&mapping, MAPPING_BUILD_ID, x->first_id + i);
		fr_pb_number(&mapping, MAPPING_HAS_FUNCTIONS, fr_frames_object(frames, (uint32_t)i)->found != NULL);
		fr_pb_message(&x->out, PROFILE_MAPPING, &mapping);
	}
}

static int put_frames(struct pprof *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);
	_cleanup_pb_ struct fr_protobuf message = {0}, line = {0};
	int r = 0;

	for (size_t i = 0; i < fr_frames_n(frames) && r == 0; i++) {
		fr_pb_number(&message, FUNCTION_ID, i + 1);
		fr_pb_number(&message, FUNCTION_NAME, x->first_frame + i);
		fr_pb_number(&message, FUNCTION_SYSTEM_NAME, x->first_frame + i);
		fr_pb_message(&x->out, PROFILE_FUNCTION, &message);
		fr_pb_number(&message, LOCATION_ID, i + 1);
		fr_pb_number(&message, LOCATION_MAPPING, fr_frames_get(frames, (uint32_t)i)->object + 1ull);
		fr_pb_number(&line, LINE_FUNCTION, i + 1);
		fr_pb_message(&message, LOCATION_LINE, &line);
		fr_pb_message(&x->out, PROFILE_LOCATION, &message);
		r = flush(x, FLUSH_AT);
	}
	return r;
}

static int put_strings(struct pprof *x)
{
	const struct fr_frames *frames = fr_profile_frames(x->profile);
	int r = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(words); i++)
		fr_pb_text(&x->out, PROFILE_STRING, words[i]);
	for (size_t i = 0; i < x->n_events; i++)
		fr_pb_text(&x->out, PROFILE_STRING, fr_recording_event(fr_profile_recording(x->profile), i)->name);
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
	put_types(x);
	r = put_samples(x);
	put_objects(x);
	if (r == 0)
		r = put_frames(x);
	if (r == 0)
		r = put_strings(x);
	if (r == 0)
		r = flush(x, 0);
	if (gzclose(x->file) != Z_OK && r == 0)
		r = -EIO;
	return r;
}

int fr_output_pprof(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	struct pprof x = {.profile = p};
	const struct fr_view view = {.sample = add_sample, .ctx = &x};
	int r = fr_profile_read(p, &view, d);

	if (r == 0)
		r = plan(&x);
	if (r == 0)
		r = write_profile(&x, out);
	FR_HASH_CLEAR(x.entries, free);
	free(x.column);
	fr_pb_deinit(&x.out);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot write the profile") : 0;
}
