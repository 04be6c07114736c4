// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The format of Perfetto (github.com/google/perfetto, protos/perfetto/trace): a sequence of messages TracePacket, written
 * while the recording is read.
 *
 *   sched:sched_switch, sched_waking …   events of ftrace, from which Perfetto draws the CPUs and the states of threads
 *   other samples                        PerfSample, with its stack; each event has a packet sequence of its own, because
 *                                        strings, frames and stacks are known in the sequence only
 *   flightrec:offcpu                     also a slice on a track of its thread: for how long and for what it waited
 *   flightrec:trigger                    an instant on the track "flightrec"
 *
 * All times are of CLOCK_MONOTONIC. Perfetto takes the times of ftrace as CLOCK_BOOTTIME, so the first packet says that
 * both clocks are equal.
 */

#include "base/cleanup.h"
#include "report/output.h"
#include "report/protobuf.h"

#include <errno.h>

#define FLUSH_AT (1u << 20)
#define BUNDLE_MAX 512 /* events of ftrace in one packet */

enum { CLOCK_REALTIME_ID = 1, CLOCK_MONOTONIC_ID = 3, CLOCK_BOOTTIME_ID = 6 };
enum { TRACE_PACKET = 1 };
enum { PACKET_FTRACE = 1,
	PACKET_PROCESS_TREE,
	PACKET_CLOCK = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT,
	PACKET_INTERNED,
	PACKET_FLAGS,
	PACKET_TIME_CLOCK = 58,
	PACKET_DEFAULTS,
	PACKET_TRACK,
	PACKET_PERF_SAMPLE = 66 };
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum { CLOCK_CLOCKS = 1, CLOCK_PRIMARY };
enum { CLOCK_ID = 1, CLOCK_TIME };
enum { BUNDLE_CPU = 1, BUNDLE_EVENT };
enum { FTRACE_TIME = 1, FTRACE_PID, FTRACE_SWITCH = 4, FTRACE_WAKEUP = 17, FTRACE_WAKING = 20, FTRACE_WAKEUP_NEW = 114 };
enum { DEFAULTS_PERF_SAMPLE = 12, DEFAULTS_TIMEBASE = 1, TIMEBASE_NAME = 10 };
enum { SAMPLE_CPU = 1, SAMPLE_PID, SAMPLE_TID, SAMPLE_STACK, SAMPLE_MODE };
enum { INTERNED_FUNCTION = 5, INTERNED_FRAME, INTERNED_STACK, INTERNED_BUILD_ID = 16, INTERNED_PATH, INTERNED_MAPPING = 19 };
enum { STRING_ID = 1, STRING_TEXT };
enum { FRAME_ID = 1, FRAME_FUNCTION, FRAME_MAPPING, FRAME_ADDRESS };
enum { STACK_ID = 1, STACK_FRAMES };
enum { MAPPING_ID = 1, MAPPING_BUILD_ID, MAPPING_PATH = 7 };
enum { TREE_PROCESS = 1, TREE_THREAD };
enum { PROCESS_PID = 1, PROCESS_COMMAND = 3 };
enum { THREAD_TID = 1, THREAD_NAME, THREAD_PID };
enum { TRACK_ID = 1, TRACK_NAME, TRACK_THREAD = 4, TRACK_PARENT };
enum { TRACK_THREAD_PID = 1, TRACK_THREAD_TID, TRACK_THREAD_NAME = 5 };
enum { EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_CATEGORY = 22, EVENT_NAME };
enum { EVENT_BEGIN = 1, EVENT_END, EVENT_INSTANT };

#define TRACK_OF_TRIGGERS 1ull
#define TRACK_OF_TASK(task) (2ull + (task))
/* The sequence 1 has all that is of no perf event. */
#define SEQUENCE_OF_EVENT(event) (2ull + (event))

/* A set of small numbers. */
struct bits {
	struct fr_buf buf;
};

/* A field of a tracepoint, and the field of the message that gets it. */
struct field {
	const char *name;
	uint32_t field;
	bool is_text;
};

static const struct field switch_fields[] = {{"prev_comm", 1, true}, {"prev_pid", 2, false}, {"prev_prio", 3, false},
	{"prev_state", 4, false}, {"next_comm", 5, true}, {"next_pid", 6, false}, {"next_prio", 7, false}, {0}};
static const struct field waking_fields[] = {
	{"comm", 1, true}, {"pid", 2, false}, {"prio", 3, false}, {"success", 4, false}, {"target_cpu", 5, false}, {0}};

static const struct ftrace_event {
	const char *name;
	uint32_t field;
	const struct field *fields;
} ftrace_events[] = {{"sched:sched_switch", FTRACE_SWITCH, switch_fields},
	{"sched:sched_waking", FTRACE_WAKING, waking_fields}, {"sched:sched_wakeup", FTRACE_WAKEUP, waking_fields},
	{"sched:sched_wakeup_new", FTRACE_WAKEUP_NEW, waking_fields}};

/* What a sequence has defined already. */
struct sequence {
	bool has_begun;
	struct bits objects, frames, stacks;
};

struct perfetto {
	FILE *out;
	struct fr_protobuf file, packet, message, part, small; /* from the outer to the inner messages */
	struct fr_protobuf interned, bundle;
	uint32_t bundle_cpu, n_bundle;
	struct sequence *sequences; /* of each event */
	size_t n_sequences;
	struct bits tasks, tracks;
	bool has_begun, has_trigger_track;
};

/* Adds N to the set. Returns 1 if it is new, 0 if the set has it, or -ENOMEM. */
static int add_bit(struct bits *b, size_t n)
{
	if (n / 8 >= b->buf.len && fr_buf_append_zero(&b->buf, n / 8 + 1024 - b->buf.len) < 0)
		return -ENOMEM;
	if (b->buf.data[n / 8] & 1u << n % 8)
		return 0;
	b->buf.data[n / 8] |= (uint8_t)(1u << n % 8);
	return 1;
}

static int flush(struct perfetto *x, size_t at)
{
	if (x->file.failed)
		return -ENOMEM;
	if (x->file.buf.len < at || x->file.buf.len == 0)
		return 0;
	if (fwrite(x->file.buf.data, 1, x->file.buf.len, x->out) != x->file.buf.len)
		return -EIO;
	x->file.buf.len = 0;
	return 0;
}

/* Ends the packet. TIME 0: it has none. */
static int put_packet(struct perfetto *x, uint64_t time, uint64_t sequence, uint64_t flags)
{
	if (time) {
		fr_pb_number(&x->packet, PACKET_TIME, time);
		fr_pb_number(&x->packet, PACKET_TIME_CLOCK, CLOCK_MONOTONIC_ID);
	}
	fr_pb_number(&x->packet, PACKET_SEQUENCE, sequence);
	if (flags)
		fr_pb_number(&x->packet, PACKET_FLAGS, flags);
	fr_pb_message(&x->file, TRACE_PACKET, &x->packet);
	return flush(x, FLUSH_AT);
}

static void put_clock(struct perfetto *x, uint64_t id, uint64_t time)
{
	fr_pb_number(&x->part, CLOCK_ID, id);
	fr_pb_number(&x->part, CLOCK_TIME, time);
	fr_pb_message(&x->message, CLOCK_CLOCKS, &x->part);
}

static int begin(struct perfetto *x, const struct fr_profile *p, uint64_t time)
{
	const int64_t offset = fr_recording_wall_offset(fr_profile_recording(p));

	x->has_begun = true;
	put_clock(x, CLOCK_MONOTONIC_ID, time);
	put_clock(x, CLOCK_BOOTTIME_ID, time);
	if (offset)
		put_clock(x, CLOCK_REALTIME_ID, time + (uint64_t)offset);
	fr_pb_number(&x->message, CLOCK_PRIMARY, CLOCK_BOOTTIME_ID);
	fr_pb_message(&x->packet, PACKET_CLOCK, &x->message);
	return put_packet(x, 0, 1, FLAG_CLEARED);
}

/* --- tasks --- */

static int put_task(struct perfetto *x, const struct fr_profile *p, uint32_t task, uint64_t time)
{
	const struct fr_task *t = fr_profile_task(p, task);
	const int r = add_bit(&x->tasks, task);

	if (r <= 0)
		return r;
	if (t->pid == t->tid) {
		fr_pb_number(&x->part, PROCESS_PID, t->pid);
		fr_pb_text(&x->part, PROCESS_COMMAND, t->comm);
		fr_pb_message(&x->message, TREE_PROCESS, &x->part);
	}
	fr_pb_number(&x->part, THREAD_TID, t->tid);
	fr_pb_text(&x->part, THREAD_NAME, t->comm);
	fr_pb_number(&x->part, THREAD_PID, t->pid);
	fr_pb_message(&x->message, TREE_THREAD, &x->part);
	fr_pb_message(&x->packet, PACKET_PROCESS_TREE, &x->message);
	return put_packet(x, time, 1, 0);
}

/* --- events of ftrace --- */

static int put_bundle(struct perfetto *x)
{
	if (x->n_bundle == 0)
		return 0;
	fr_pb_number(&x->bundle, BUNDLE_CPU, x->bundle_cpu);
	fr_pb_message(&x->packet, PACKET_FTRACE, &x->bundle);
	x->n_bundle = 0;
	return put_packet(x, 0, 1, 0);
}

static const struct ftrace_event *find_ftrace(const struct fr_recording_event *e)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(ftrace_events); i++)
		if (!strcmp(e->name, ftrace_events[i].name))
			return &ftrace_events[i];
	return NULL;
}

static int put_ftrace(struct perfetto *x, const struct ftrace_event *f, const struct fr_recording_event *e,
	const struct fr_profile_sample *s)
{
	const struct fr_sample_fields *sample = &s->recorded->sample;
	int r = x->n_bundle == BUNDLE_MAX || x->bundle_cpu != s->cpu ? put_bundle(x) : 0;
	uint64_t number;
	size_t len;

	if (r < 0)
		return r;
	for (const struct field *field = f->fields; field->name; field++)
		if (field->is_text) {
			const char *text = fr_recorded_text(e, sample, field->name, &len);

			fr_pb_bytes(&x->small, field->field, text, len);
		} else if (fr_recorded_number(e, sample, field->name, &number)) {
			fr_pb_number(&x->small, field->field, number);
		}
	fr_pb_number(&x->part, FTRACE_TIME, s->time);
	fr_pb_number(&x->part, FTRACE_PID, sample->tid);
	fr_pb_message(&x->part, f->field, &x->small);
	fr_pb_message(&x->bundle, BUNDLE_EVENT, &x->part);
	x->bundle_cpu = s->cpu;
	x->n_bundle++;
	return 0;
}

/* --- samples with stacks --- */

static void put_string(struct perfetto *x, uint32_t field, uint64_t id, const void *text, size_t len)
{
	fr_pb_number(&x->part, STRING_ID, id);
	fr_pb_bytes(&x->part, STRING_TEXT, text, len);
	fr_pb_message(&x->interned, field, &x->part);
}

static int define_object(struct perfetto *x, const struct fr_profile *p, struct sequence *q, uint32_t object)
{
	const struct fr_code_object *o = fr_frames_object(fr_profile_frames(p), object);
	const uint64_t id = object + 1ull;
	const int r = add_bit(&q->objects, object);

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

static int define_frame(struct perfetto *x, const struct fr_profile *p, struct sequence *q, uint32_t frame)
{
	const struct fr_frame *f = fr_frames_get(fr_profile_frames(p), frame);
	const uint64_t id = frame + 1ull;
	int r = add_bit(&q->frames, frame);

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

static int define_stack(struct perfetto *x, const struct fr_profile *p, struct sequence *q, uint32_t stack)
{
	uint32_t frames[FR_STACK_DEPTH_MAX];
	size_t n;
	int r = add_bit(&q->stacks, stack);

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
static int add_sequences(struct perfetto *x, const struct fr_profile *p)
{
	const size_t n = fr_recording_n_events(fr_profile_recording(p));
	struct sequence *v;

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
static int begin_sequence(struct perfetto *x, const struct fr_profile *p, uint32_t event, uint64_t time)
{
	x->sequences[event].has_begun = true;
	fr_pb_text(&x->small, TIMEBASE_NAME, fr_recording_event(fr_profile_recording(p), event)->name);
	fr_pb_message(&x->part, DEFAULTS_TIMEBASE, &x->small);
	fr_pb_message(&x->message, DEFAULTS_PERF_SAMPLE, &x->part);
	fr_pb_message(&x->packet, PACKET_DEFAULTS, &x->message);
	return put_packet(x, time, SEQUENCE_OF_EVENT(event), FLAG_CLEARED);
}

static int put_perf_sample(struct perfetto *x, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	const struct fr_task *task = fr_profile_task(p, s->task);
	struct sequence *q;
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
		fr_pb_message(&x->packet, PACKET_INTERNED, &x->interned);
	fr_pb_number(&x->message, SAMPLE_CPU, s->cpu);
	fr_pb_number(&x->message, SAMPLE_PID, task->pid);
	fr_pb_number(&x->message, SAMPLE_TID, task->tid);
	/* The values of the mode are those of perf: 1 kernel, 2 user. */
	fr_pb_number(&x->message, SAMPLE_MODE, s->recorded->sample.mode);
	if (s->stack != FR_STACK_NONE)
		fr_pb_number(&x->message, SAMPLE_STACK, s->stack + 1ull);
	fr_pb_message(&x->packet, PACKET_PERF_SAMPLE, &x->message);
	return put_packet(x, s->time, SEQUENCE_OF_EVENT(s->event), FLAG_NEEDS_STATE);
}

/* --- waits and triggers --- */

static int put_event(struct perfetto *x, uint64_t time, uint64_t type, uint64_t track, const char *name, size_t len)
{
	fr_pb_number(&x->message, EVENT_TYPE, type);
	fr_pb_number(&x->message, EVENT_TRACK, track);
	fr_pb_text(&x->message, EVENT_CATEGORY, "flightrec");
	if (len > 0)
		fr_pb_bytes(&x->message, EVENT_NAME, name, len);
	fr_pb_message(&x->packet, PACKET_TRACK_EVENT, &x->message);
	return put_packet(x, time, 1, 0);
}

/* Draws a wait on the track of its thread: the state, and the innermost function of its stack. */
static int put_wait(struct perfetto *x, const struct fr_profile *p, const struct fr_recording_event *e,
	const struct fr_profile_sample *s)
{
	const struct fr_task *task = fr_profile_task(p, s->task);
	const struct fr_stacks *stacks = fr_profile_stacks(p);
	const char *state, *function = "";
	_cleanup_free_ char *name = NULL;
	uint64_t duration;
	size_t len;
	int n, r;

	if (!fr_recorded_number(e, &s->recorded->sample, "duration", &duration) || duration > s->time)
		return 0;
	r = add_bit(&x->tracks, s->task);
	if (r < 0)
		return r;
	if (r == 1) {
		fr_pb_number(&x->message, TRACK_ID, TRACK_OF_TASK(s->task));
		fr_pb_text(&x->message, TRACK_NAME, "waits");
		fr_pb_number(&x->part, TRACK_THREAD_PID, task->pid);
		fr_pb_number(&x->part, TRACK_THREAD_TID, task->tid);
		fr_pb_text(&x->part, TRACK_THREAD_NAME, task->comm);
		fr_pb_message(&x->message, TRACK_THREAD, &x->part);
		fr_pb_message(&x->packet, PACKET_TRACK, &x->message);
		r = put_packet(x, s->time - duration, 1, 0);
		if (r < 0)
			return r;
	}
	state = fr_recorded_text(e, &s->recorded->sample, "state", &len);
	if (s->stack != FR_STACK_NONE)
		function = fr_frames_get(fr_profile_frames(p), stacks->nodes[s->stack].frame)->name;
	n = asprintf(&name, "%.*s %s", (int)len, state, function);
	if (n < 0)
		return -ENOMEM;
	r = put_event(x, s->time - duration, EVENT_BEGIN, TRACK_OF_TASK(s->task), name, (size_t)n);
	return r < 0 ? r : put_event(x, s->time, EVENT_END, TRACK_OF_TASK(s->task), NULL, 0);
}

static int put_trigger(struct perfetto *x, const struct fr_recording_event *e, const struct fr_profile_sample *s)
{
	size_t len;
	const char *name = fr_recorded_text(e, &s->recorded->sample, "trigger", &len);
	int r = 0;

	if (!x->has_trigger_track) {
		x->has_trigger_track = true;
		fr_pb_number(&x->message, TRACK_ID, TRACK_OF_TRIGGERS);
		fr_pb_text(&x->message, TRACK_NAME, "flightrec");
		fr_pb_message(&x->packet, PACKET_TRACK, &x->message);
		r = put_packet(x, s->time, 1, 0);
	}
	return r < 0 ? r : put_event(x, s->time, EVENT_INSTANT, TRACK_OF_TRIGGERS, len ? name : "trigger", len ? len : 7);
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(p), s->event);
	const struct ftrace_event *ftrace = find_ftrace(e);
	struct perfetto *x = ctx;
	int r = x->has_begun ? 0 : begin(x, p, s->time);

	if (r < 0)
		return r;
	if (strcmp(e->name, "flightrec:trigger") == 0)
		return put_trigger(x, e, s);
	r = put_task(x, p, s->task, s->time);
	if (r < 0)
		return r;
	if (ftrace && e->format)
		return put_ftrace(x, ftrace, e, s);
	r = put_perf_sample(x, p, s);
	if (r == 0 && strcmp(e->name, "flightrec:offcpu") == 0)
		r = put_wait(x, p, e, s);
	return r;
}

static void deinit(struct perfetto *x)
{
	struct fr_protobuf *all[] = {&x->file, &x->packet, &x->message, &x->part, &x->small, &x->interned, &x->bundle};

	for (size_t i = 0; i < FR_ARRAY_SIZE(all); i++)
		fr_pb_deinit(all[i]);
	for (size_t i = 0; i < x->n_sequences; i++) {
		fr_buf_deinit(&x->sequences[i].objects.buf);
		fr_buf_deinit(&x->sequences[i].frames.buf);
		fr_buf_deinit(&x->sequences[i].stacks.buf);
	}
	free(x->sequences);
	fr_buf_deinit(&x->tasks.buf);
	fr_buf_deinit(&x->tracks.buf);
}

int fr_output_perfetto(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	struct perfetto x = {.out = out};
	const struct fr_view view = {.sample = add_sample, .ctx = &x};
	int r = fr_profile_read(p, &view, d);

	if (r == 0)
		r = put_bundle(&x);
	if (r == 0)
		r = flush(&x, 0);
	deinit(&x);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot write the trace") : 0;
}
