// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/mark.h"
#include "base/cleanup.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/tracing_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM "flightrec"
/* Of the ids that samples have. The kernel counts its own up from 1. */
#define ID_BASE 0xf11647ec00000000ULL
#define ID_CALLCHAIN (1ULL << 16)
/* Of each text; what is longer is cut. */
#define TEXT_MAX 256u
/* The kernel gives a tracepoint the lowest id that is free, of 16 bits. */
#define TRACEPOINT_MAX 65535u

/* As a tracepoint's raw data lies there: offsets of the format. A text is a u32 of its offset and its length,
   from the begin of the raw data, and stands behind the fixed part, with its NUL. */
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

/* Up to the call chain. */
struct record {
	struct fr_sample head;
	uint32_t cpu, reserved;
	uint64_t period;
};

static bool is_taken(const struct fr_session *s, uint64_t id)
{
	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].attr.type == PERF_TYPE_TRACEPOINT && s->events[i].attr.config == id)
			return true;
	return false;
}

/* One that no tracepoint of the file has, and for all that a machine has tracepoints, none at all. */
static uint64_t free_id(const struct fr_session *s)
{
	uint64_t id = TRACEPOINT_MAX;

	while (is_taken(s, id))
		id--;
	return id;
}

/* perf report shows the stack of the sample before with one that has no stack, not even an empty one; and
   where no event has stacks, one that has would turn on all that is about stacks. */
static uint64_t callchain_of(const struct fr_session *s)
{
	uint64_t types = 0;

	for (size_t i = 0; i < s->n_events; i++)
		types |= s->events[i].attr.sample_type;
	return types & PERF_SAMPLE_CALLCHAIN;
}

/* For each attr that an event of ours may have one: two recorders' dumps may come to one merge. */
static uint64_t id_of(const struct perf_event_attr *a)
{
	const bool callchain = a->sample_type & PERF_SAMPLE_CALLCHAIN;

	return ID_BASE | a->config | (callchain ? ID_CALLCHAIN : 0);
}

/* Clock and layout are those of all events: a reader compares any two of them. */
static struct perf_event_attr make_attr(const struct fr_session *s)
{
	const struct perf_event_attr *like = &s->events[0].attr;

	return (struct perf_event_attr){
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(struct perf_event_attr),
		.config = free_id(s),
		.sample_period = 1,
		/* With a period: `perf script -F period` gives up at an event without. */
		.sample_type = FR_SAMPLE_TYPE | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW | callchain_of(s),
		.read_format = like->read_format,
		.sample_id_all = 1,
		.use_clockid = like->use_clockid,
		.clockid = like->clockid,
	};
}

int fr_marks_add_event(struct fr_session *s)
{
	const struct perf_event_attr attr = s->n_events ? make_attr(s) : (struct perf_event_attr){0};
	const uint64_t id = id_of(&attr);
	char text[sizeof(format) + 16];
	int n = snprintf(text, sizeof(text), format, (unsigned)attr.config), r;

	if (s->n_events == 0)
		return -EINVAL;
	r = fr_session_add_event(s, &attr, FR_MARK_EVENT, &id, 1, NULL);
	if (r == 0)
		r = fr_tracing_data_add(&s->features[FR_FEATURE_TRACING_DATA], SYSTEM, text, (size_t)n);
	return r < 0 ? r : fr_feature_set_event_desc(s);
}

/* One line, whatever the text holds: it may come from a program of anybody. */
static void put_clean(char *to, size_t size, const char *text)
{
	size_t n = 0;

	for (; text && text[n] && n < size - 1; n++)
		to[n] = (unsigned char)text[n] < ' ' || text[n] == '\x7f' ? ' ' : text[n];
	to[n] = '\0';
}

static int put_text(struct fr_buf *raw, uint32_t *loc, const char *text)
{
	size_t len = strlen(text) + 1;

	*loc = (uint32_t)(len << 16 | raw->len);
	return fr_buf_append(raw, text, len);
}

/* What perf script prints. */
static void compose(const struct fr_trigger_sample *m, char *to, size_t size)
{
	char trigger[TEXT_MAX], reason[TEXT_MAX], detail[TEXT_MAX], value[TEXT_MAX], threshold[TEXT_MAX];

	put_clean(trigger, sizeof(trigger), m->trigger);
	put_clean(reason, sizeof(reason), m->reason);
	put_clean(detail, sizeof(detail), m->detail);
	put_clean(value, sizeof(value), m->value_text);
	put_clean(threshold, sizeof(threshold), m->threshold_text);
	snprintf(to, size, "%s:%s%s%s%s%s%s%s%s%s", trigger, reason[0] ? " " : "", reason,
		detail[0] ? " (" : "", detail, detail[0] ? ")" : "", value[0] ? " value=" : "", value,
		threshold[0] ? " threshold=" : "", threshold);
}

static int make_raw(const struct fr_trigger_sample *m, uint16_t type, struct fr_buf *ret)
{
	struct raw head = {
		.common_type = type, .common_pid = m->tid, .value = m->value, .threshold = m->threshold};
	char text[6 * TEXT_MAX];
	struct {
		uint32_t *loc;
		const char *text;
	} const parts[] = {{&head.trigger, m->trigger}, {&head.reason, m->reason}, {&head.detail, m->detail},
		{&head.unit, m->unit}};
	int r = fr_buf_append(ret, &head, sizeof(head));

	for (size_t i = 0; i < FR_ARRAY_SIZE(parts) && r == 0; i++) {
		put_clean(text, TEXT_MAX, parts[i].text);
		r = put_text(ret, parts[i].loc, text);
	}
	compose(m, text, sizeof(text));
	if (r == 0)
		r = put_text(ret, &head.text, text);
	/* With the u32 before it a multiple of 8. */
	if (r == 0)
		r = fr_buf_append_zero(ret, FR_ALIGN_UP(ret->len + 4, 8) - 4 - ret->len);
	if (r == 0)
		memcpy(ret->data, &head, sizeof(head));
	return r;
}

/* A reader counts CPUs, and has no number for none. */
static uint32_t cpu_of(const struct fr_trigger_sample *m)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return m->cpu < 0 || m->cpu >= n ? 0 : (uint32_t)m->cpu;
}

static int append_record(struct fr_buf *b, const struct fr_event_desc *e, const struct fr_trigger_sample *m)
{
	const bool callchain = e->attr.sample_type & PERF_SAMPLE_CALLCHAIN;
	_cleanup_buf_ struct fr_buf raw = {0};
	int r = make_raw(m, (uint16_t)e->attr.config, &raw);
	const struct record record = {
		.head = {.header = {.type = PERF_RECORD_SAMPLE,
				 .misc = PERF_RECORD_MISC_USER,
				 .size = (uint16_t)(sizeof(record) + (callchain ? 8 : 0) + 4 + raw.len)},
			.id = e->ids[0],
			/* As the kernel says it of a task that is no more: 0 would be the idle task. */
			.pid = m->pid > 0 ? (uint32_t)m->pid : UINT32_MAX,
			.tid = m->tid > 0   ? (uint32_t)m->tid
			       : m->pid > 0 ? (uint32_t)m->pid
					    : UINT32_MAX,
			.time = m->time_ns},
		.cpu = cpu_of(m),
		.period = 1,
	};

	if (r == 0)
		r = fr_buf_append(b, &record, sizeof(record));
	if (r == 0 && callchain)
		r = fr_buf_append_u64(b, 0);
	if (r == 0)
		r = fr_buf_append_u32(b, (uint32_t)raw.len);
	return r < 0 ? r : fr_buf_append(b, raw.data, raw.len);
}

/* Pointers into one array: equal times stay in its order. */
static int by_time(const void *a, const void *b)
{
	const struct fr_trigger_sample *x = *(const struct fr_trigger_sample *const *)a;
	const struct fr_trigger_sample *y = *(const struct fr_trigger_sample *const *)b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

int fr_marks_init(
	struct fr_marks *m, const struct fr_session *s, const struct fr_trigger_sample *marks, size_t n)
{
	_cleanup_free_ const struct fr_trigger_sample **sorted =
		calloc(n ? n : 1, sizeof(struct fr_trigger_sample *));
	int r = sorted ? 0 : -ENOMEM;

	*m = (struct fr_marks){.n = n};
	for (size_t i = 0; i < n && r == 0; i++)
		sorted[i] = &marks[i];
	if (r == 0)
		qsort(sorted, n, sizeof(struct fr_trigger_sample *), by_time);
	for (size_t i = 0; i < n && r == 0; i++)
		r = append_record(&m->records, &s->events[s->n_events - 1], sorted[i]);
	return r;
}

void fr_marks_deinit(struct fr_marks *m)
{
	fr_buf_deinit(&m->records);
	*m = (struct fr_marks){0};
}

int fr_marks_write(struct fr_marks *m, struct fr_file_writer *out, uint64_t until_ns)
{
	const size_t begin = m->at;

	while (m->at < m->records.len) {
		const struct perf_event_header *h = (const void *)(m->records.data + m->at);

		if (fr_record_time(h) > until_ns)
			break;
		m->at += h->size;
	}
	return fr_file_records(out, m->records.data + begin, m->at - begin);
}
