// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/waits.h"
#include "base/cleanup.h"
#include "bpf/sleep.h"
#include "perfdata/features.h"
#include "perfdata/sample.h"

#include <errno.h>
#include <string.h>

#define NAME "flightrec:waiting"
/* The first sample id of our event. It is far away from the kernel's ids, and from those of
   flightrec:trigger. */
#define ID_BASE 0xf11647ed00000000ULL
#define ID_CALLCHAIN (1ULL << 16)

static const struct fr_event_desc *find_off_cpu(const struct fr_session *s)
{
	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].attr.type == PERF_TYPE_TRACEPOINT &&
			s->events[i].attr.config == FR_SLEEP_TRACEPOINT)
			return &s->events[i];
	return NULL;
}

/* Each attr that the event can have gets an id of its own, because flightrec-merge can read dumps of two
   recorders, whose events have different attrs. */
static uint64_t sample_id(const struct perf_event_attr *a)
{
	return ID_BASE | a->sample_max_stack | (a->sample_type & PERF_SAMPLE_CALLCHAIN ? ID_CALLCHAIN : 0);
}

static int add_event(struct fr_session *s, const struct perf_event_attr *attr)
{
	const uint64_t id = sample_id(attr);
	const int r = fr_session_add_event(s, attr, NAME, &id, 1, NULL);

	return r < 0 ? r : fr_feature_set_event_desc(s);
}

/* The begin of a sample of flightrec:offcpu. */
struct sample {
	struct fr_sample head;
	uint32_t cpu, reserved;
	uint64_t period;
};

/* Changes RAW so that the wait, which began at BEGIN_NS, ends at TO_NS. */
static void end_at(struct fr_sleep_raw *raw, uint64_t begin_ns, uint64_t to_ns)
{
	raw->common_type = FR_WAITING_TRACEPOINT;
	raw->duration = to_ns - begin_ns;
	raw->blocked = FR_MIN(raw->blocked, raw->duration);
	raw->runqueue = raw->duration - raw->blocked;
}

/* Appends the wait of SAMPLE, if it began before W->time_ns. ATTR is the attr of the event, and ID its id.
   Returns 0 or a negative errno. */
static int add_wait(struct fr_waits *w, const struct perf_event_attr *attr, uint64_t id,
	const struct perf_event_header *sample)
{
	struct fr_sample_fields f;
	struct fr_sleep_raw raw;
	struct sample *to;
	uint64_t begin_ns;
	size_t raw_at;
	int r = fr_sample_parse(attr, sample, &f);

	if (r < 0 || f.raw_bytes != sizeof(raw) - sizeof(raw.size))
		return -EBADMSG;
	raw_at = (size_t)(f.raw - (const uint8_t *)sample) - sizeof(raw.size);
	memcpy(&raw, (const uint8_t *)sample + raw_at, sizeof(raw));
	if (raw.duration > f.time || f.time - raw.duration >= w->time_ns)
		return 0;
	begin_ns = f.time - raw.duration;
	r = fr_buf_append(&w->records, sample, sample->size);
	if (r < 0)
		return r;
	end_at(&raw, begin_ns, w->time_ns);
	to = (void *)(w->records.data + w->records.len - sample->size);
	to->head.id = id;
	to->head.time = w->time_ns;
	to->period = raw.duration;
	memcpy((uint8_t *)to + raw_at, &raw, sizeof(raw));
	w->n++;
	return 0;
}

static const struct perf_event_header *next_sample(const struct fr_buf *from, size_t at)
{
	const struct perf_event_header *h = (const void *)(from->data + at);

	if (from->len - at < sizeof(struct sample) || h->type != PERF_RECORD_SAMPLE || h->size & 7 ||
		h->size < sizeof(struct sample) || h->size > from->len - at)
		return NULL;
	return h;
}

/* Returns the time of the newest sample, which is the last one: the kernel makes one after the other. */
static int read_last_time(const struct fr_buf *from, uint64_t *ret_ns)
{
	const struct perf_event_header *h;

	for (size_t at = 0; at < from->len; at += h->size) {
		h = next_sample(from, at);
		if (!h)
			return -EBADMSG;
		*ret_ns = ((const struct fr_sample *)h)->time;
	}
	return 0;
}

int fr_waits_init(struct fr_waits *ret, struct fr_session *s, const struct fr_buf *from, uint64_t to_ns)
{
	const struct fr_event_desc *off_cpu = find_off_cpu(s);
	const struct perf_event_header *h;
	struct perf_event_attr attr;
	uint64_t last_ns = 0;
	int r = from->len ? read_last_time(from, &last_ns) : 0;

	*ret = (struct fr_waits){.time_ns = FR_MIN(to_ns, last_ns)};
	if (r < 0 || from->len == 0)
		return r;
	if (!off_cpu)
		return -EBADMSG;
	attr = off_cpu->attr;
	attr.config = FR_WAITING_TRACEPOINT;
	for (size_t at = 0; r == 0 && at < from->len; at += h->size) {
		h = next_sample(from, at);
		r = add_wait(ret, &attr, sample_id(&attr), h);
	}
	if (r == 0 && ret->n)
		r = add_event(s, &attr);
	if (r < 0)
		fr_waits_deinit(ret);
	return r;
}

void fr_waits_deinit(struct fr_waits *w)
{
	fr_buf_deinit(&w->records);
	*w = (struct fr_waits){0};
}
