// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The format of Perfetto (github.com/google/perfetto, protos/perfetto/trace): a sequence of messages
 * TracePacket, written while the recording is read.
 *
 *   sched:sched_switch, sched_waking …
 *       events of ftrace, from which Perfetto draws the CPUs and the states of threads
 *   other samples
 *       PerfSample, with its stack; each event has a packet sequence of its own, because strings, frames and
 *       stacks are known in the sequence only
 *   flightrec:offcpu, flightrec:waiting
 *       also a slice on a track of its thread: for how long and for what it waited
 *   flightrec:trigger
 *       an instant on the track "flightrec"
 *
 * All times are of CLOCK_MONOTONIC. Perfetto takes the times of ftrace as CLOCK_BOOTTIME, so the first packet
 * says that both clocks are equal.
 *
 * Several machines are written one after the other. All their times are of the clock of the fleet. Ids of
 * processes, CPUs, sequences and tracks get different numbers, and the names of processes begin with the name
 * of the machine.
 */

#include "base/cleanup.h"
#include "perfdata/features.h"
#include "report/output.h"
#include "report/perfetto.h"

#include <errno.h>

#define FLUSH_AT (1u << 20)
#define BUNDLE_MAX 512 /* events of ftrace in one packet */

enum { TRACE_PACKET = 1 };
enum { CLOCK_CLOCKS = 1, CLOCK_PRIMARY };
enum { CLOCK_ID = 1, CLOCK_TIME };
enum { BUNDLE_CPU = 1, BUNDLE_EVENT };
enum {
	FTRACE_TIME = 1,
	FTRACE_PID,
	FTRACE_SWITCH = 4,
	FTRACE_WAKEUP = 17,
	FTRACE_WAKING = 20,
	FTRACE_WAKEUP_NEW = 114
};
enum { TREE_PROCESS = 1, TREE_THREAD };
enum { PROCESS_PID = 1, PROCESS_COMMAND = 3 };
enum { THREAD_TID = 1, THREAD_NAME, THREAD_PID };
enum { TRACK_ID = 1, TRACK_NAME, TRACK_THREAD = 4, TRACK_PARENT };
enum { TRACK_THREAD_PID = 1, TRACK_THREAD_TID, TRACK_THREAD_NAME = 5 };
enum { EVENT_DETAIL = 4, EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_CATEGORY = 22, EVENT_NAME };
enum { EVENT_BEGIN = 1, EVENT_END, EVENT_INSTANT };
enum { DETAIL_TEXT = 6, DETAIL_NAME = 10 };
enum { SYSTEM_NAMES = 1, NAMES_SYSTEM = 1, NAMES_RELEASE = 3, NAMES_MACHINE };

#define TRACK_OF_TRIGGERS(x) (FR_PERFETTO_TRACKS * (x)->machine.number + 1)
#define TRACK_OF_TASK(x, task) (FR_PERFETTO_TRACKS * (x)->machine.number + 2 + (task))

/* A field of a tracepoint, and the field of the message that gets it. */
struct field {
	const char *name;
	uint32_t field;
	enum { IS_NUMBER, IS_TEXT, IS_PID, IS_CPU } kind;
};

static const struct field switch_fields[] = {{"prev_comm", 1, IS_TEXT}, {"prev_pid", 2, IS_PID},
	{"prev_prio", 3, IS_NUMBER}, {"prev_state", 4, IS_NUMBER}, {"next_comm", 5, IS_TEXT},
	{"next_pid", 6, IS_PID}, {"next_prio", 7, IS_NUMBER}, {0}};
static const struct field waking_fields[] = {{"comm", 1, IS_TEXT}, {"pid", 2, IS_PID}, {"prio", 3, IS_NUMBER},
	{"success", 4, IS_NUMBER}, {"target_cpu", 5, IS_CPU}, {0}};

static const struct ftrace_event {
	const char *name;
	uint32_t field;
	const struct field *fields;
} ftrace_events[] = {{"sched:sched_switch", FTRACE_SWITCH, switch_fields},
	{"sched:sched_waking", FTRACE_WAKING, waking_fields},
	{"sched:sched_wakeup", FTRACE_WAKEUP, waking_fields},
	{"sched:sched_wakeup_new", FTRACE_WAKEUP_NEW, waking_fields}};

int fr_bits_add(struct fr_bits *b, size_t n)
{
	if (n / 8 >= b->buf.len && fr_buf_append_zero(&b->buf, n / 8 + 1024 - b->buf.len) < 0)
		return -ENOMEM;
	if (b->buf.data[n / 8] & 1u << n % 8)
		return 0;
	b->buf.data[n / 8] |= (uint8_t)(1u << n % 8);
	return 1;
}

static int flush(struct fr_perfetto *x, size_t at)
{
	if (x->file.failed)
		return -ENOMEM;
	if (x->file.buf.len < at || x->file.buf.len == 0)
		return 0;
	if (fwrite(x->file.buf.data, 1, x->file.buf.len, x->out) != x->file.buf.len)
		return -errno;
	x->file.buf.len = 0;
	return 0;
}

/* Returns a time on the clock of the file. */
static uint64_t shift(const struct fr_perfetto *x, uint64_t time)
{
	return time + (uint64_t)x->machine.offset_ns;
}

int fr_perfetto_put_packet(struct fr_perfetto *x, uint64_t time, uint64_t sequence, uint64_t flags)
{
	if (time) {
		fr_pb_number(&x->packet, FR_PACKET_TIME, shift(x, time));
		fr_pb_number(&x->packet, FR_PACKET_TIME_CLOCK, FR_CLOCK_MONOTONIC);
	}
	fr_pb_number(&x->packet, FR_PACKET_SEQUENCE, sequence + FR_PERFETTO_SEQUENCES * x->machine.number);
	if (flags)
		fr_pb_number(&x->packet, FR_PACKET_FLAGS, flags);
	fr_pb_message(&x->file, TRACE_PACKET, &x->packet);
	return flush(x, FLUSH_AT);
}

static void put_clock(struct fr_perfetto *x, uint64_t id, uint64_t time)
{
	fr_pb_number(&x->part, CLOCK_ID, id);
	fr_pb_number(&x->part, CLOCK_TIME, shift(x, time));
	fr_pb_message(&x->message, CLOCK_CLOCKS, &x->part);
}

/* Readers need the release of the kernel, because the numbers of the states of tasks depend on it. */
static int put_system(struct fr_perfetto *x, const struct fr_session *s)
{
	const char *release = fr_feature_get_string(s, FR_FEATURE_OSRELEASE),
		   *machine = fr_feature_get_string(s, FR_FEATURE_ARCH);

	if (!release)
		return 0;
	fr_pb_text(&x->part, NAMES_SYSTEM, "Linux");
	fr_pb_text(&x->part, NAMES_RELEASE, release);
	if (machine)
		fr_pb_text(&x->part, NAMES_MACHINE, machine);
	fr_pb_message(&x->message, SYSTEM_NAMES, &x->part);
	fr_pb_message(&x->packet, FR_PACKET_SYSTEM, &x->message);
	return fr_perfetto_put_packet(x, 0, FR_PERFETTO_SEQUENCE, 0);
}

static int begin(struct fr_perfetto *x, const struct fr_profile *p, uint64_t time)
{
	/* Fleet time is a wall time already. */
	const int64_t offset = x->machine.name ? 0 : fr_recording_wall_offset(fr_profile_recording(p));
	int r;

	x->has_begun = true;
	put_clock(x, FR_CLOCK_MONOTONIC, time);
	put_clock(x, FR_CLOCK_BOOTTIME, time);
	if (offset || x->machine.name)
		put_clock(x, FR_CLOCK_REALTIME, time + (uint64_t)offset);
	fr_pb_number(&x->message, CLOCK_PRIMARY, FR_CLOCK_BOOTTIME);
	fr_pb_message(&x->packet, FR_PACKET_CLOCK, &x->message);
	r = fr_perfetto_put_packet(x, 0, FR_PERFETTO_SEQUENCE, FR_PACKET_CLEARED);
	return r < 0 || x->machine.number > 0 ? r
					      : put_system(x, fr_recording_session(fr_profile_recording(p)));
}

/* --- tasks --- */

static int put_task(struct fr_perfetto *x, const struct fr_profile *p, uint32_t task, uint64_t time)
{
	const struct fr_task *t = fr_profile_task(p, task);
	const int r = fr_bits_add(&x->tasks, task);
	_cleanup_free_ char *name = NULL;

	if (r <= 0)
		return r;
	if (x->machine.name && t->pid != 0 && asprintf(&name, "%s: %s", x->machine.name, t->process) < 0)
		return -ENOMEM;
	fr_pb_number(&x->part, PROCESS_PID, fr_perfetto_pid(x, t->pid));
	fr_pb_text(&x->part, PROCESS_COMMAND, name ? name : t->process);
	fr_pb_message(&x->message, TREE_PROCESS, &x->part);
	fr_pb_number(&x->part, THREAD_TID, fr_perfetto_pid(x, t->tid));
	fr_pb_text(&x->part, THREAD_NAME, t->comm);
	fr_pb_number(&x->part, THREAD_PID, fr_perfetto_pid(x, t->pid));
	fr_pb_message(&x->message, TREE_THREAD, &x->part);
	fr_pb_message(&x->packet, FR_PACKET_PROCESS_TREE, &x->message);
	return fr_perfetto_put_packet(x, time, FR_PERFETTO_SEQUENCE, 0);
}

/* --- events of ftrace --- */

static int put_bundle(struct fr_perfetto *x)
{
	if (x->n_bundle == 0)
		return 0;
	fr_pb_number(&x->bundle, BUNDLE_CPU, (uint64_t)x->machine.cpus + x->bundle_cpu);
	fr_pb_message(&x->packet, FR_PACKET_FTRACE, &x->bundle);
	x->n_bundle = 0;
	return fr_perfetto_put_packet(x, 0, FR_PERFETTO_SEQUENCE, 0);
}

static const struct ftrace_event *find_ftrace(const struct fr_recording_event *e)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(ftrace_events); i++)
		if (!strcmp(e->name, ftrace_events[i].name))
			return &ftrace_events[i];
	return NULL;
}

/* Returns the value of a field in the file. */
static uint64_t renumber(const struct fr_perfetto *x, const struct field *field, uint64_t number)
{
	if (field->kind == IS_PID)
		return fr_perfetto_pid(x, (uint32_t)number);
	return field->kind == IS_CPU ? number + x->machine.cpus : number;
}

static int put_ftrace(struct fr_perfetto *x, const struct ftrace_event *f, const struct fr_recording_event *e,
	const struct fr_profile_sample *s)
{
	const struct fr_sample_fields *sample = &s->recorded->sample;
	int r = x->n_bundle == BUNDLE_MAX || x->bundle_cpu != s->cpu ? put_bundle(x) : 0;
	uint64_t number;
	size_t len;

	if (r < 0)
		return r;
	for (const struct field *field = f->fields; field->name; field++)
		if (field->kind == IS_TEXT) {
			const char *text = fr_recorded_text(e, sample, field->name, &len);

			fr_pb_bytes(&x->small, field->field, text, len);
		} else if (fr_recorded_number(e, sample, field->name, &number)) {
			fr_pb_number(&x->small, field->field, renumber(x, field, number));
		}
	fr_pb_number(&x->part, FTRACE_TIME, shift(x, s->time));
	fr_pb_number(&x->part, FTRACE_PID, fr_perfetto_pid(x, sample->tid));
	fr_pb_message(&x->part, f->field, &x->small);
	fr_pb_message(&x->bundle, BUNDLE_EVENT, &x->part);
	x->bundle_cpu = s->cpu;
	x->n_bundle++;
	return 0;
}

/* --- waits and triggers --- */

static int put_event(
	struct fr_perfetto *x, uint64_t time, uint64_t type, uint64_t track, const char *name, size_t len)
{
	fr_pb_number(&x->message, EVENT_TYPE, type);
	fr_pb_number(&x->message, EVENT_TRACK, track);
	fr_pb_text(&x->message, EVENT_CATEGORY, "flightrec");
	if (len > 0)
		fr_pb_bytes(&x->message, EVENT_NAME, name, len);
	fr_pb_message(&x->packet, FR_PACKET_TRACK_EVENT, &x->message);
	return fr_perfetto_put_packet(x, time, FR_PERFETTO_SEQUENCE, 0);
}

/* Draws a wait on the track of its thread: the state, and the innermost function of its stack. */
static int put_wait(struct fr_perfetto *x, const struct fr_profile *p, const struct fr_recording_event *e,
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
	r = fr_bits_add(&x->tracks, s->task);
	if (r < 0)
		return r;
	if (r == 1) {
		fr_pb_number(&x->message, TRACK_ID, TRACK_OF_TASK(x, s->task));
		fr_pb_text(&x->message, TRACK_NAME, "waits");
		fr_pb_number(&x->part, TRACK_THREAD_PID, fr_perfetto_pid(x, task->pid));
		fr_pb_number(&x->part, TRACK_THREAD_TID, fr_perfetto_pid(x, task->tid));
		fr_pb_text(&x->part, TRACK_THREAD_NAME, task->comm);
		fr_pb_message(&x->message, TRACK_THREAD, &x->part);
		fr_pb_message(&x->packet, FR_PACKET_TRACK, &x->message);
		r = fr_perfetto_put_packet(x, s->time - duration, FR_PERFETTO_SEQUENCE, 0);
		if (r < 0)
			return r;
	}
	state = fr_recorded_text(e, &s->recorded->sample, "state", &len);
	if (s->stack != FR_STACK_NONE)
		function = fr_frames_get(fr_profile_frames(p), stacks->nodes[s->stack].frame)->name;
	n = asprintf(&name, "%.*s %s", (int)len, state, function);
	if (n < 0)
		return -ENOMEM;
	r = put_event(x, s->time - duration, EVENT_BEGIN, TRACK_OF_TASK(x, s->task), name, (size_t)n);
	return r < 0 ? r : put_event(x, s->time, EVENT_END, TRACK_OF_TASK(x, s->task), NULL, 0);
}

/* Marks a trigger by its name. The text says more, as "load > 5". */
static int put_trigger(
	struct fr_perfetto *x, const struct fr_recording_event *e, const struct fr_profile_sample *s)
{
	size_t len, text_len;
	const char *name = fr_recorded_text(e, &s->recorded->sample, "trigger", &len),
		   *text = fr_recorded_text(e, &s->recorded->sample, "text", &text_len);
	int r = 0;

	if (!x->has_trigger_track) {
		x->has_trigger_track = true;
		fr_pb_number(&x->message, TRACK_ID, TRACK_OF_TRIGGERS(x));
		fr_pb_text(&x->message, TRACK_NAME, x->machine.name ? x->machine.name : "flightrec");
		fr_pb_message(&x->packet, FR_PACKET_TRACK, &x->message);
		r = fr_perfetto_put_packet(x, s->time, FR_PERFETTO_SEQUENCE, 0);
	}
	if (r < 0)
		return r;
	if (text_len > 0) {
		fr_pb_text(&x->part, DETAIL_NAME, "text");
		fr_pb_bytes(&x->part, DETAIL_TEXT, text, text_len);
		fr_pb_message(&x->message, EVENT_DETAIL, &x->part);
	}
	return put_event(
		x, s->time, EVENT_INSTANT, TRACK_OF_TRIGGERS(x), len ? name : "trigger", len ? len : 7);
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(p), s->event);
	const struct ftrace_event *ftrace = find_ftrace(e);
	struct fr_perfetto *x = ctx;
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
	r = fr_perfetto_put_sample(x, p, s);
	if (r == 0 && fr_recording_event_is_wait(e))
		r = put_wait(x, p, e, s);
	return r;
}

static void deinit(struct fr_perfetto *x)
{
	struct fr_protobuf *all[] = {
		&x->file, &x->packet, &x->message, &x->part, &x->small, &x->interned, &x->bundle};

	for (size_t i = 0; i < FR_ARRAY_SIZE(all); i++)
		fr_pb_deinit(all[i]);
	fr_perfetto_free_sequences(x);
	fr_buf_deinit(&x->tasks.buf);
	fr_buf_deinit(&x->tracks.buf);
}

int fr_output_perfetto(
	struct fr_profile *p, const struct fr_perfetto_machine *machine, FILE *out, struct fr_diag *d)
{
	struct fr_perfetto x = {.out = out};
	const struct fr_view view = {.sample = add_sample, .ctx = &x};
	int r;

	if (machine)
		x.machine = *machine;
	r = fr_profile_read(p, &view, d);
	if (r == 0)
		r = put_bundle(&x);
	if (r == 0)
		r = flush(&x, 0);
	deinit(&x);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot write the trace") : 0;
}
