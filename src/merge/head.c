// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Makes one head from the heads of all inputs. The kernel gives an event new ids each time that it is opened.
 * So two sets of ids in the inputs belong to the same event if attr and name are equal. Within one boot, an
 * id belongs to only one event.
 */

#include "merge/head.h"
#include "base/cleanup.h"
#include "merge/dedup.h"
#include "perfdata/features.h"
#include "perfdata/tracing_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The head of an input says that an event has an id. `event` is the index of the event in the united
   session. */
struct claim {
	uint64_t id;
	size_t event, input;
};

static int compare_ids(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Returns the attr of E for a comparison. The bit for call chains of a side-band event is cleared, because
   this bit depends on the other events of the file (fr_session_set_sideband_stacks()). */
static struct perf_event_attr get_comparable_attr(const struct fr_event_desc *e)
{
	struct perf_event_attr a = e->attr;

	if (fr_attr_is_sideband(&a))
		a.sample_type &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
	return a;
}

static bool is_same_name(const char *a, const char *b)
{
	return !a[0] || !b[0] || strcmp(a, b) == 0;
}

/* Adds E to S, unless S already has an equal event. Returns the index of the event in S, or -ENOMEM. */
static int64_t add_event(struct fr_session *s, const struct fr_event_desc *e)
{
	const struct perf_event_attr attr = get_comparable_attr(e);
	int r = 0;

	for (size_t i = 0; i < s->n_events; i++) {
		struct fr_event_desc *have = &s->events[i];

		if (memcmp(&have->attr, &attr, sizeof(attr)) != 0 || !is_same_name(have->name, e->name))
			continue;
		if (!have->name[0])
			r = fr_event_desc_set_name(have, e->name, strlen(e->name));
		return r < 0 ? r : (int64_t)i;
	}
	r = fr_session_add_event(s, &attr, e->name, NULL, 0, NULL);
	return r < 0 ? r : (int64_t)s->n_events - 1;
}

/* Adds the events of all inputs to S, and a claim for each id to CLAIMS. An id of 0 is left out, because the
   kernel never gives it. */
static int unite_events(const struct fr_inputs *in, struct fr_session *s, struct fr_buf *claims)
{
	for (size_t i = 0; i < in->n; i++)
		for (size_t e = 0; e < in->v[i].head.n_events; e++) {
			const struct fr_event_desc *desc = &in->v[i].head.events[e];
			int64_t event = add_event(s, desc);

			for (size_t k = 0; k < desc->n_ids && event >= 0; k++) {
				const struct claim claim = {desc->ids[k], (size_t)event, i};

				if (claim.id && fr_buf_append(claims, &claim, sizeof(claim)) < 0)
					return -ENOMEM;
			}
			if (event < 0)
				return (int)event;
		}
	return 0;
}

/* All N claims are for the same id. Returns the event that has most of the claims. Returns -1 if two events
   with different attrs have equally many claims. */
static int64_t elect_event(const struct fr_session *s, const struct claim *claims, size_t n)
{
	size_t best = claims[0].event, best_votes = 0;
	bool tied = false;

	for (size_t i = 0; i < n; i++) {
		size_t votes = 0;

		for (size_t k = 0; k < n; k++)
			votes += claims[k].event == claims[i].event;
		if (claims[i].event != best && votes == best_votes)
			tied |= memcmp(&s->events[best].attr, &s->events[claims[i].event].attr,
					sizeof(struct perf_event_attr)) != 0;
		if (votes > best_votes) {
			tied = false;
			best = claims[i].event;
			best_votes = votes;
		}
	}
	return tied ? -1 : (int64_t)best;
}

static int refuse_id(const struct fr_inputs *in, const struct fr_session *s, const struct claim *claims,
	size_t n, struct fr_diag *d)
{
	size_t other = 1;

	while (other < n - 1 && claims[other].event == claims[0].event)
		other++;
	return fr_fail(d, -EINVAL,
		"merge the files one by one: one is damaged, or they come from different recordings",
		"event id %llu is \"%.60s\" in %.100s and something else (\"%.60s\") in %.100s",
		(unsigned long long)claims[0].id, s->events[claims[0].event].name,
		in->v[claims[0].input].path, s->events[claims[other].event].name,
		in->v[claims[other].input].path);
}

/* Gives each id to the elected event. If an input claims the id for another event, the head of the input is
   damaged. */
static int assign_ids(
	struct fr_inputs *in, struct fr_session *s, struct claim *claims, size_t n, struct fr_diag *d)
{
	if (n > 0)
		qsort(claims, n, sizeof(*claims), compare_ids);
	for (size_t i = 0, end; i < n; i = end) {
		int64_t event;
		int r;

		for (end = i + 1; end < n && claims[end].id == claims[i].id;)
			end++;
		event = elect_event(s, claims + i, end - i);
		if (event < 0)
			return refuse_id(in, s, claims + i, end - i, d);
		for (size_t k = i; k < end; k++)
			if (claims[k].event != (size_t)event)
				in->v[claims[k].input].head_damaged = true;
		r = fr_event_desc_add_id(&s->events[event], claims[i].id);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool has_no_id(const struct fr_event_desc *e, const void *ctx)
{
	return e->n_ids == 0;
}

/* Returns whether there is an input that has only one event, and this event has no id. All records of the
   input belong to this event, so the event must stay in the output. */
static bool has_input_without_ids(const struct fr_inputs *in)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct fr_session *head = &in->v[i].head;
		uint64_t any = 0;

		for (size_t k = 0; k < head->events[0].n_ids; k++)
			any |= head->events[0].ids[k];
		if (head->n_events == 1 && !any)
			return true;
	}
	return false;
}

/* Makes the readers of inputs with damaged heads use the events of S. Removes from S the events that only
   damaged heads have: these events have no ids. */
static int correct_inputs(const struct fr_merge_options *o, struct fr_inputs *in, struct fr_session *s)
{
	for (size_t i = 0; i < in->n; i++) {
		int r;

		if (!in->v[i].head_damaged)
			continue;
		fr_merge_warn(o,
			"%s: its list of events is damaged. The events of the other files are used, and it "
			"is kept",
			in->v[i].path);
		r = fr_reader_replace_attrs(in->v[i].reader, s);
		if (r < 0)
			return r;
	}
	if (s->n_events > 1 && !has_input_without_ids(in))
		fr_session_remove_events(s, has_no_id, NULL);
	fr_session_set_sideband_stacks(s);
	return 0;
}

/* Refuses the events if a reader of the output could not find the event of a record, or could not compare the
   times of two records. Returns 0; or -EINVAL, with a message in D. */
static int check_events(const struct fr_session *s, struct fr_diag *d)
{
	const struct perf_event_attr *a = &s->events[0].attr;
	struct fr_layout first, l;

	fr_layout_from_attr(a, &first);
	for (size_t i = 0; i < s->n_events; i++) {
		const struct perf_event_attr *b = &s->events[i].attr;

		fr_layout_from_attr(b, &l);
		if (!l.sample_time || !l.tail_time)
			return fr_fail(d, -EINVAL, "record with -T", "the event \"%.100s\" has no times",
				s->events[i].name);
		if (s->n_events > 1 &&
			(!l.sample_id || l.sample_id != first.sample_id || l.tail_id != first.tail_id ||
				a->sample_id_all != b->sample_id_all))
			return fr_fail(d, -EINVAL, "record all of them with PERF_SAMPLE_IDENTIFIER",
				"the records of \"%.100s\" and \"%.100s\" could not be distinguished",
				s->events[0].name, s->events[i].name);
		if (a->use_clockid != b->use_clockid || a->clockid != b->clockid)
			return fr_fail(d, -EINVAL, NULL,
				"the events \"%.100s\" and \"%.100s\" have different clocks",
				s->events[0].name, s->events[i].name);
	}
	return 0;
}

/* Returns the section F of the newest input that has it, or NULL. */
static const struct fr_buf *find_newest(const struct fr_inputs *in, unsigned f)
{
	const struct fr_input *best = NULL;

	for (size_t i = 0; i < in->n; i++)
		if (in->v[i].head.features[f].len > 0 && (!best || in->v[i].clock_ns >= best->clock_ns))
			best = &in->v[i];
	return best ? &best->head.features[f] : NULL;
}

static int unite_tracing_data(
	const struct fr_merge_options *o, const struct fr_inputs *in, struct fr_session *s)
{
	struct fr_buf *to = &s->features[FR_FEATURE_TRACING_DATA];

	for (size_t i = 0; i < in->n; i++) {
		const struct fr_buf *b = &in->v[i].head.features[FR_FEATURE_TRACING_DATA];
		int r = to->len ? fr_tracing_data_unite(to, b) : fr_buf_append(to, b->data, b->len);

		if (r == -EBADMSG)
			fr_merge_warn(
				o, "%s: its formats of tracepoints are damaged and left out", in->v[i].path);
		else if (r < 0)
			return r;
	}
	return 0;
}

/* Unites the sections BUILD_ID of the inputs. Each section is a sequence of records. If a record is not
   whole, the rest of its section is left out. */
static int unite_build_ids(const struct fr_inputs *in, struct fr_session *s)
{
	struct fr_dedup seen = {0};
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < in->n && r >= 0; i++) {
		const struct fr_buf *b = &in->v[i].head.features[FR_FEATURE_BUILD_ID];
		_Alignas(8) uint8_t record[FR_RECORD_MAX];
		struct perf_event_header h;

		for (size_t at = 0; r >= 0 && b->len - at >= sizeof(h); at += h.size) {
			memcpy(&h, b->data + at, sizeof(h));
			if (h.size < sizeof(h) || h.size > b->len - at)
				break;
			memcpy(record, b->data + at, h.size);
			/* Each record counts as a record of another input, so that equal records are written
			   once. */
			r = fr_dedup_add(&seen, n++, (const void *)record);
			if (r == 1)
				r = fr_buf_append(&s->features[FR_FEATURE_BUILD_ID], record, h.size);
		}
	}
	fr_dedup_clear(&seen);
	return FR_MIN(r, 0);
}

/* Returns whether the section F is not copied from one input. Such a section describes the data of one file
   (GROUP_DESC refers to events by their index), or it is united from all inputs. */
static bool is_not_copied(unsigned f)
{
	return f == FR_FEATURE_EVENT_DESC || f == FR_FEATURE_SAMPLE_TIME || f == FR_FEATURE_COMPRESSED ||
	       f == FR_FEATURE_AUXTRACE || f == FR_FEATURE_DIR_FORMAT || f == FR_FEATURE_STAT ||
	       f == FR_FEATURE_GROUP_DESC || f == FR_FEATURE_BUILD_ID || f == FR_FEATURE_TRACING_DATA;
}

static int unite_features(const struct fr_merge_options *o, const struct fr_inputs *in, struct fr_session *s)
{
	int r = 0;

	for (unsigned f = 0; f < _FR_FEATURE_MAX && r == 0; f++) {
		const struct fr_buf *b = is_not_copied(f) ? NULL : find_newest(in, f);

		r = b ? fr_buf_append(&s->features[f], b->data, b->len) : 0;
	}
	if (r == 0)
		r = unite_tracing_data(o, in, s);
	if (r == 0)
		r = unite_build_ids(in, s);
	return r < 0 ? r : fr_feature_set_event_desc(s);
}

int fr_head_unite(
	const struct fr_merge_options *o, struct fr_inputs *in, struct fr_session *ret, struct fr_diag *d)
{
	_cleanup_buf_ struct fr_buf claims = {0};
	int r = unite_events(in, ret, &claims);

	if (r == 0)
		r = assign_ids(in, ret, (void *)claims.data, claims.len / sizeof(struct claim), d);
	if (r == 0)
		r = correct_inputs(o, in, ret);
	if (r == 0)
		r = check_events(ret, d);
	return r < 0 ? r : unite_features(o, in, ret);
}
