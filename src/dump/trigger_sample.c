// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/trigger_sample.h"
#include "base/cleanup.h"
#include "perfdata/bytes.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/tracing_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM "flightrec"
/* The first sample id of our event. It is far away from the kernel's ids, which begin with 1. */
#define ID_BASE 0xf11647ec00000000ULL
#define ID_CALLCHAIN (1ULL << 16)
#define TEXT_MAX 255u /* bytes of one text; a longer text is truncated */
/* The kernel gives a tracepoint the lowest free id of 16 bits. Our tracepoint has the highest free id, which
   is far away from the ids of the kernel. */
#define TRACEPOINT_MAX 65535u

/* The raw data, at the offsets of the format below. A text is a u32: the lower 16 bits are its offset in the
   raw data, the upper 16 bits its length. The bytes of the texts, each with its NUL, follow this struct. */
struct raw {
	uint16_t common_type;
	uint8_t common_flags, common_preempt_count;
	int32_t common_pid;
	uint32_t trigger, reason, detail, unit;
	uint64_t value, threshold;
	uint32_t text, reserved;
};
_Static_assert(offsetof(struct raw, value) == 24 && offsetof(struct raw, text) == 40, "as the format says");

static const char format[] = "name: trigger\n"
			     "ID: %u\n"
			     "format:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			     "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
			     "\n"
			     "\tfield:__data_loc char[] trigger;\toffset:8;\tsize:4;\tsigned:0;\n"
			     "\tfield:__data_loc char[] reason;\toffset:12;\tsize:4;\tsigned:0;\n"
			     "\tfield:__data_loc char[] detail;\toffset:16;\tsize:4;\tsigned:0;\n"
			     "\tfield:__data_loc char[] unit;\toffset:20;\tsize:4;\tsigned:0;\n"
			     "\tfield:u64 value;\toffset:24;\tsize:8;\tsigned:0;\n"
			     "\tfield:u64 threshold;\toffset:32;\tsize:8;\tsigned:0;\n"
			     "\tfield:__data_loc char[] text;\toffset:40;\tsize:4;\tsigned:0;\n"
			     "\n"
			     "print fmt: \"%%s\", __get_str(text)\n";

/* A sample record up to its call chain. */
struct record {
	struct fr_sample head;
	uint32_t cpu, reserved;
	uint64_t period;
};

static bool has_tracepoint(const struct fr_session *s, uint64_t id)
{
	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].attr.type == PERF_TYPE_TRACEPOINT && s->events[i].attr.config == id)
			return true;
	return false;
}

static uint64_t find_free_tracepoint(const struct fr_session *s)
{
	uint64_t id = TRACEPOINT_MAX;

	while (has_tracepoint(s, id))
		id--;
	return id;
}

/* Returns PERF_SAMPLE_CALLCHAIN if another event has a call chain, and 0 otherwise: our event has a call
   chain if and only if another event has one. If other events have call chains and ours has none, perf report
   shows our samples with the stack of the previous sample. If only our event had one, perf report would show
   stacks for all events. */
static uint64_t callchain_bit(const struct fr_session *s)
{
	uint64_t types = 0;

	for (size_t i = 0; i < s->n_events; i++)
		types |= s->events[i].attr.sample_type;
	return types & PERF_SAMPLE_CALLCHAIN;
}

/* Each attr that our event can have gets an id of its own, because flightrec-merge can read dumps of two
   recorders, whose events have different attrs. */
static uint64_t sample_id(const struct perf_event_attr *a)
{
	const bool callchain = a->sample_type & PERF_SAMPLE_CALLCHAIN;

	return ID_BASE | a->config | (callchain ? ID_CALLCHAIN : 0);
}

/* Our event has the clock and the layout of the other events, because a reader requires that all events have
   the same clock and layout. */
static struct perf_event_attr make_attr(const struct fr_session *s)
{
	const struct perf_event_attr *like = &s->events[0].attr;

	return (struct perf_event_attr){
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(struct perf_event_attr),
		.config = find_free_tracepoint(s),
		.sample_period = 1,
		/* `perf script -F period` refuses a file in which one event has no period. */
		.sample_type = FR_SAMPLE_TYPE | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW | callchain_bit(s),
		.read_format = like->read_format,
		.sample_id_all = 1,
		.use_clockid = like->use_clockid,
		.clockid = like->clockid,
	};
}

int fr_trigger_samples_add_event(struct fr_session *s)
{
	const struct perf_event_attr attr = s->n_events ? make_attr(s) : (struct perf_event_attr){0};
	const uint64_t id = sample_id(&attr);
	char text[sizeof(format) + 16];
	int n = snprintf(text, sizeof(text), format, (unsigned)attr.config), r;

	if (s->n_events == 0)
		return -EINVAL;
	r = fr_session_add_event(s, &attr, FR_TRIGGER_SAMPLE_EVENT, &id, 1, NULL);
	if (r == 0)
		r = fr_tracing_data_add_format(
			&s->features[FR_FEATURE_TRACING_DATA], SYSTEM, text, (size_t)n);
	return r < 0 ? r : fr_feature_set_event_desc(s);
}

/* Appends TEXT, at most MAX bytes of it, to RAW. Control characters become blanks, because any program can
   have chosen the text. */
static void append_text(struct builder *raw, uint32_t *ret_location, const char *text, size_t max)
{
	const size_t at = raw->buf.len, len = strnlen(text, max);

	put_bytes(raw, text, len);
	put_zeros(raw, 1);
	for (size_t i = at; !raw->failed && i < at + len; i++)
		if (raw->buf.data[i] < ' ' || raw->buf.data[i] == '\x7f')
			raw->buf.data[i] = ' ';
	*ret_location = (uint32_t)((len + 1) << 16 | at);
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* Formats the line that perf script prints for S. */
static void format_line(const struct fr_trigger_sample *s, char *ret, size_t size)
{
	const char *reason = or_empty(s->reason), *detail = or_empty(s->detail),
		   *value = or_empty(s->value_text), *threshold = or_empty(s->threshold_text);

	snprintf(ret, size, "%.255s:%s%.255s%s%.255s%s%s%.255s%s%.255s", or_empty(s->trigger),
		*reason ? " " : "", reason, *detail ? " (" : "", detail, *detail ? ")" : "",
		*value ? " value=" : "", value, *threshold ? " threshold=" : "", threshold);
}

static void make_raw(const struct fr_trigger_sample *s, uint16_t type, struct builder *ret)
{
	struct raw head = {
		.common_type = type, .common_pid = s->tid, .value = s->value, .threshold = s->threshold};
	char line[6 * TEXT_MAX];
	const struct {
		uint32_t *location;
		const char *text;
		size_t max;
	} texts[] = {
		{&head.trigger, s->trigger, TEXT_MAX},
		{&head.reason, s->reason, TEXT_MAX},
		{&head.detail, s->detail, TEXT_MAX},
		{&head.unit, s->unit, TEXT_MAX},
		{&head.text, line, sizeof(line)},
	};

	put_bytes(ret, &head, sizeof(head));
	format_line(s, line, sizeof(line));
	for (size_t i = 0; i < FR_ARRAY_SIZE(texts); i++)
		append_text(ret, texts[i].location, or_empty(texts[i].text), texts[i].max);
	/* The record has a u32 with the size of the raw data, and then the raw data. The size of the u32 and
	   the raw data together must be a multiple of 8. */
	put_zeros(ret, FR_ALIGN_UP(ret->buf.len + 4, 8) - 4 - ret->buf.len);
	set_bytes(ret, 0, &head, sizeof(head));
}

/* Readers use the CPU as an index, so a sample without a CPU, or with an unknown CPU, gets CPU 0. */
static uint32_t cpu_of(const struct fr_trigger_sample *s)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return s->cpu < 0 || s->cpu >= n ? 0 : (uint32_t)s->cpu;
}

static void append_record(struct builder *b, const struct fr_event_desc *e, const struct fr_trigger_sample *s)
{
	const bool callchain = e->attr.sample_type & PERF_SAMPLE_CALLCHAIN;
	/* The kernel writes -1 for a task that is gone; 0 would be the idle task. */
	const uint32_t pid = s->pid > 0 ? (uint32_t)s->pid : UINT32_MAX;
	struct builder raw = {0};
	struct record record = {
		.head = {.header = {.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER},
			.id = e->ids[0],
			.pid = pid,
			.tid = s->tid > 0 ? (uint32_t)s->tid : pid,
			.time = s->time_ns},
		.cpu = cpu_of(s),
		.period = 1,
	};

	make_raw(s, (uint16_t)e->attr.config, &raw);
	record.head.header.size = (uint16_t)(sizeof(record) + (callchain ? 8 : 0) + 4 + raw.buf.len);
	put_bytes(b, &record, sizeof(record));
	put_zeros(b, callchain ? 8 : 0); /* an empty call chain */
	put_u32(b, (uint32_t)raw.buf.len);
	put_bytes(b, raw.buf.data, raw.buf.len);
	b->failed |= raw.failed;
	fr_buf_deinit(&raw.buf);
}

/* A and B point to pointers to elements of one array. Samples of the same time keep their order in this
   array. */
static int compare_times(const void *a, const void *b)
{
	const struct fr_trigger_sample *x = *(const struct fr_trigger_sample *const *)a;
	const struct fr_trigger_sample *y = *(const struct fr_trigger_sample *const *)b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

int fr_trigger_samples_init(struct fr_trigger_samples *t, const struct fr_session *s,
	const struct fr_trigger_sample *samples, size_t n)
{
	_cleanup_free_ const struct fr_trigger_sample **sorted =
		calloc(n + 1, sizeof(struct fr_trigger_sample *));
	struct builder records = {0};

	*t = (struct fr_trigger_samples){.n = n};
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &samples[i];
	qsort(sorted, n, sizeof(struct fr_trigger_sample *), compare_times);
	for (size_t i = 0; i < n; i++)
		append_record(&records, &s->events[s->n_events - 1], sorted[i]);
	return finish_section(&records, &t->records);
}

int fr_trigger_samples_add_records(
	struct fr_trigger_samples *t, const struct fr_buf *records, uint64_t time_ns)
{
	struct builder all = {0};
	size_t at = 0;

	while (at < t->records.len) {
		const struct perf_event_header *h = (const void *)(t->records.data + at);

		if (fr_record_time(h) > time_ns)
			break;
		at += h->size;
	}
	put_bytes(&all, t->records.data, at);
	put_bytes(&all, records->data, records->len);
	put_bytes(&all, t->records.data + at, t->records.len - at);
	fr_buf_deinit(&t->records);
	return finish_section(&all, &t->records);
}

void fr_trigger_samples_deinit(struct fr_trigger_samples *t)
{
	fr_buf_deinit(&t->records);
	*t = (struct fr_trigger_samples){0};
}

uint64_t fr_trigger_samples_next_ns(const struct fr_trigger_samples *t)
{
	return t->written < t->records.len
		       ? fr_record_time((const struct perf_event_header *)(t->records.data + t->written))
		       : UINT64_MAX;
}

int fr_trigger_samples_write(struct fr_trigger_samples *t, struct fr_file_writer *out, uint64_t until_ns)
{
	const size_t begin = t->written;

	while (t->written < t->records.len) {
		const struct perf_event_header *h = (const void *)(t->records.data + t->written);

		if (fr_record_time(h) > until_ns)
			break;
		t->written += h->size;
	}
	return fr_file_write_records(out, t->records.data + begin, t->written - begin);
}
