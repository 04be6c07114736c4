// SPDX-License-Identifier: GPL-2.0-or-later

/* The samples with stacks of a trace for Perfetto. See perfetto.c. */

#include "report/perfetto.h"
#include "perfdata/record.h"

#include <errno.h>
#include <stdlib.h>

#define CPUS_MAX 65536u

enum { DEFAULTS_PERF_SAMPLE = 12, DEFAULTS_TIMEBASE = 1, TIMEBASE_NAME = 10 };
enum { SAMPLE_CPU = 1, SAMPLE_PID, SAMPLE_TID, SAMPLE_STACK, SAMPLE_MODE, SAMPLE_COUNT };
enum {
	INTERNED_FUNCTION = 5,
	INTERNED_FRAME,
	INTERNED_STACK,
	INTERNED_BUILD_ID = 16,
	INTERNED_PATH,
	INTERNED_MAPPING = 19
};
enum { STRING_ID = 1, STRING_TEXT };
enum { FRAME_ID = 1, FRAME_FUNCTION, FRAME_MAPPING, FRAME_ADDRESS };
enum { STACK_ID = 1, STACK_FRAMES };
enum { MAPPING_ID = 1, MAPPING_BUILD_ID, MAPPING_PATH = 7 };

#define SEQUENCE_OF_EVENT(event) (FR_PERFETTO_SEQUENCE + 1 + (event))

static void put_string(struct fr_perfetto *x, uint32_t field, uint64_t id, const void *text, size_t len)
{
	fr_pb_number(&x->part, STRING_ID, id);
	fr_pb_bytes(&x->part, STRING_TEXT, text, len);
	fr_pb_message(&x->interned, field, &x->part);
}

static int define_object(
	struct fr_perfetto *x, const struct fr_profile *p, struct fr_perfetto_sequence *q, uint32_t object)
{
	const struct fr_code_object *o = fr_frames_object(fr_profile_frames(p), object);
	const uint64_t id = object + 1ull;
	const int r = fr_bits_add(&q->objects, object);

	if (r <= 0)
		return r;
	put_string(x, INTERNED_PATH, id, o->path, strlen(o->path));
	put_string(x, INTERNED_BUILD_ID, id, o->build_id, o->build_id_len);
	fr_pb_number(&x->part, MAPPING_ID, id);
	fr_pb_number(&x->part, MAPPING_BUILD_ID, id);
	fr_pb_number(&x->part, MAPPING_PATH, id);
	fr_pb_message(&x->interned, INTERNED_MAPPING, &x->part);
	return 0;
}

static int define_frame(
	struct fr_perfetto *x, const struct fr_profile *p, struct fr_perfetto_sequence *q, uint32_t frame)
{
	const struct fr_frame *f = fr_frames_get(fr_profile_frames(p), frame);
	const uint64_t id = frame + 1ull;
	int r = fr_bits_add(&q->frames, frame);

	if (r <= 0)
		return r;
	r = define_object(x, p, q, f->object);
	put_string(x, INTERNED_FUNCTION, id, f->name, strlen(f->name));
	fr_pb_number(&x->part, FRAME_ID, id);
	fr_pb_number(&x->part, FRAME_FUNCTION, id);
	fr_pb_number(&x->part, FRAME_MAPPING, f->object + 1ull);
	fr_pb_number(&x->part, FRAME_ADDRESS, id); /* readers take frames with one address as one frame */
	fr_pb_message(&x->interned, INTERNED_FRAME, &x->part);
	return r;
}

static int define_stack(
	struct fr_perfetto *x, const struct fr_profile *p, struct fr_perfetto_sequence *q, uint32_t stack)
{
	uint32_t frames[FR_STACK_DEPTH_MAX];
	size_t n;
	int r = fr_bits_add(&q->stacks, stack);

	if (r <= 0)
		return r;
	n = fr_stacks_frames(fr_profile_stacks(p), stack, frames, FR_STACK_DEPTH_MAX);
	r = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = define_frame(x, p, q, frames[i]);
	fr_pb_number(&x->part, STACK_ID, stack + 1ull);
	for (size_t i = n; i > 0; i--)
		fr_pb_number(&x->part, STACK_FRAMES, frames[i - 1] + 1ull);
	fr_pb_message(&x->interned, INTERNED_STACK, &x->part);
	return r;
}

/* Makes room for the sequences of all events. */
static int add_sequences(struct fr_perfetto *x, const struct fr_profile *p)
{
	const size_t n = fr_recording_n_events(fr_profile_recording(p));
	struct fr_perfetto_sequence *v;

	if (n <= x->n_sequences)
		return 0;
	v = reallocarray(x->sequences, n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	memset(v + x->n_sequences, 0, (n - x->n_sequences) * sizeof(*v));
	x->sequences = v;
	x->n_sequences = n;
	return 0;
}

/* The first packet of a sequence names its event. */
static int begin_sequence(struct fr_perfetto *x, const struct fr_profile *p, uint32_t event, uint64_t time)
{
	x->sequences[event].has_begun = true;
	fr_pb_text(&x->small, TIMEBASE_NAME, fr_recording_event(fr_profile_recording(p), event)->name);
	fr_pb_message(&x->part, DEFAULTS_TIMEBASE, &x->small);
	fr_pb_message(&x->message, DEFAULTS_PERF_SAMPLE, &x->part);
	fr_pb_message(&x->packet, FR_PACKET_DEFAULTS, &x->message);
	return fr_perfetto_put_packet(x, time, SEQUENCE_OF_EVENT(event), FR_PACKET_CLEARED);
}

/* Adds the period of S to the counter of its CPU, and writes the value of the counter, as Perfetto expects
   it. The counter begins at 0. */
static int put_count(struct fr_perfetto *x, struct fr_perfetto_sequence *q, const struct fr_profile_sample *s)
{
	if (s->cpu >= CPUS_MAX)
		return 0;
	if (s->cpu >= q->n_cpus) {
		const uint32_t n = 2 * s->cpu + 8;
		uint64_t *v = reallocarray(q->counts, n, sizeof(*v));

		if (!v)
			return -ENOMEM;
		memset(v + q->n_cpus, 0, (n - q->n_cpus) * sizeof(*v));
		q->counts = v;
		q->n_cpus = n;
	}
	q->counts[s->cpu] += s->period;
	fr_pb_number(&x->message, SAMPLE_COUNT, q->counts[s->cpu]);
	return 0;
}

int fr_perfetto_put_sample(
	struct fr_perfetto *x, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	const struct fr_task *task = fr_profile_task(p, s->task);
	struct fr_perfetto_sequence *q;
	int r = add_sequences(x, p);

	if (r < 0)
		return r;
	q = &x->sequences[s->event];
	if (!q->has_begun)
		r = begin_sequence(x, p, s->event, s->time);
	if (r == 0 && s->stack != FR_STACK_NONE)
		r = define_stack(x, p, q, s->stack);
	if (r < 0)
		return r;
	if (x->interned.buf.len > 0)
		fr_pb_message(&x->packet, FR_PACKET_INTERNED, &x->interned);
	fr_pb_number(&x->message, SAMPLE_CPU, (uint64_t)x->machine.cpus + s->cpu);
	fr_pb_number(&x->message, SAMPLE_PID, fr_perfetto_pid(x, task->pid));
	fr_pb_number(&x->message, SAMPLE_TID, fr_perfetto_pid(x, task->tid));
	/* The values of the mode are those of perf: 1 kernel, 2 user. */
	fr_pb_number(&x->message, SAMPLE_MODE, s->recorded->sample.mode);
	if (s->stack != FR_STACK_NONE)
		fr_pb_number(&x->message, SAMPLE_STACK, s->stack + 1ull);
	r = put_count(x, q, s);
	if (r < 0)
		return r;
	fr_pb_message(&x->packet, FR_PACKET_PERF_SAMPLE, &x->message);
	return fr_perfetto_put_packet(x, s->time, SEQUENCE_OF_EVENT(s->event), FR_PACKET_NEEDS_STATE);
}

void fr_perfetto_free_sequences(struct fr_perfetto *x)
{
	for (size_t i = 0; i < x->n_sequences; i++) {
		fr_buf_deinit(&x->sequences[i].objects.buf);
		fr_buf_deinit(&x->sequences[i].frames.buf);
		fr_buf_deinit(&x->sequences[i].stacks.buf);
		free(x->sequences[i].counts);
	}
	free(x->sequences);
}
