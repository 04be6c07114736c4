// SPDX-License-Identifier: GPL-2.0-or-later
#include "recorder/switching.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/timestamp.h"
#include "base/units.h"
#include "base/utf8.h"
#include "capture/capture.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A program that switches in a loop must not fill the journal. */
#define LOG_PERIOD_NS (10 * FR_NSEC_PER_SEC)
#define LOGS_PER_PERIOD 20

struct fr_switch_step {
	uint64_t time_ns;
	uint32_t slot;
	bool is_off, is_configured; /* is_configured: the event is as configured again */
	uint64_t rate;
	pid_t pid, tid;
	int cpu;
	char event[64], what[96];
	char by[FR_SWITCH_BY_SIZE], why[FR_SWITCH_WHY_SIZE];
};

struct fr_switch_seen {
	uint32_t records; /* of switches by programs, and switches whose records were lost */
	uint32_t changes; /* at the last tick */
};

int fr_switching_init(struct fr_switching *w, struct fr_switches *switches, uint64_t limit_ns)
{
	*w = (struct fr_switching){.switches = switches,
		.limit_ns = limit_ns,
		.seen = calloc(FR_SWITCHES_MAX, sizeof(*w->seen)),
		.steps = calloc(FR_SWITCH_STEPS, sizeof(*w->steps))};
	fr_lock_init(&w->lock);
	return w->seen && w->steps ? 0 : -ENOMEM;
}

void fr_switching_deinit(struct fr_switching *w)
{
	if (!w->switches)
		return;
	fr_lock_deinit(&w->lock);
	free(w->entries);
	free(w->seen);
	free(w->steps);
	*w = (struct fr_switching){0};
}

static struct fr_switched *find(const struct fr_switching *w, uint32_t slot)
{
	for (size_t i = 0; i < w->n_entries; i++)
		if (w->entries[i].slot == slot)
			return &w->entries[i];
	return NULL;
}

const struct fr_switched *fr_switching_find(const struct fr_switching *w, uint32_t slot)
{
	return find(w, slot);
}

static void remove_entry(struct fr_switching *w, struct fr_switched *e)
{
	if (e)
		*e = w->entries[--w->n_entries];
}

/* Stores the entry E instead of the one with the same slot. */
static int put_entry(struct fr_switching *w, const struct fr_switched *e)
{
	struct fr_switched *old = find(w, e->slot), *more;

	if (!old) {
		more = reallocarray(w->entries, w->n_entries + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		w->entries = more;
		old = &more[w->n_entries++];
	}
	*old = *e;
	return 0;
}

static void log_step(struct fr_switching *w, const struct fr_switch_step *s)
{
	const struct fr_log_field fields[] = {{"FLIGHTREC_EVENT", s->event}, {"FLIGHTREC_BY", s->by}};

	if (s->time_ns - w->log_ns >= LOG_PERIOD_NS) {
		w->log_ns = s->time_ns;
		w->logged = 0;
	}
	if (w->logged++ < LOGS_PER_PERIOD)
		fr_log_struct(LOG_NOTICE, FR_MSG_SWITCHED, fields, FR_ARRAY_SIZE(fields),
			"event %s: %s, by %s%s%s", s->event, s->what, s->by, s->why[0] ? ": " : "", s->why);
	else if (w->logged == LOGS_PER_PERIOD + 1)
		fr_log(LOG_NOTICE,
			"more events are being switched; dumps and `flightrecctl status` have them");
}

/* Keeps the steps in the order of their times: a record of a program can come after a later step. */
static void remember(struct fr_switching *w, const struct fr_switch_step *s)
{
	size_t at;

	fr_lock(&w->lock);
	if (w->n_steps == FR_SWITCH_STEPS) {
		w->forgotten++;
		w->forgotten_ns = w->steps[0].time_ns;
		memmove(w->steps, w->steps + 1, --w->n_steps * sizeof(*w->steps));
	}
	for (at = w->n_steps++; at > 0 && w->steps[at - 1].time_ns > s->time_ns; at--)
		w->steps[at] = w->steps[at - 1];
	w->steps[at] = *s;
	fr_unlock(&w->lock);
}

/* Writes what S has done: "off", "on", "on, 999 Hz instead of 99 Hz". */
static void describe(const struct fr_capture *capture, struct fr_switch_step *s)
{
	bool is_frequency = false;
	const uint64_t configured = fr_capture_rate(capture, s->slot, &is_frequency);
	const char *unit = is_frequency ? " Hz" : "";

	if (s->rate)
		snprintf(s->what, sizeof(s->what), "%s, %s%" PRIu64 "%s instead of %" PRIu64 "%s",
			s->is_off ? "off" : "on", is_frequency ? "" : "period ", s->rate, unit, configured,
			unit);
	else
		snprintf(s->what, sizeof(s->what), "%s%s", s->is_off ? "off" : "on",
			s->is_configured ? ", as configured" : "");
}

static void add_step(struct fr_switching *w, const struct fr_capture *capture, struct fr_switch_step *s)
{
	snprintf(s->event, sizeof(s->event), "%s", fr_switches_name(w->switches, s->slot));
	s->is_configured = !s->rate && s->is_off == fr_capture_is_configured_off(capture, s->slot);
	describe(capture, s);
	w->count++;
	remember(w, s);
	log_step(w, s);
}

static void fill_step(struct fr_switch_step *s, const struct fr_switched *e)
{
	s->slot = e->slot;
	s->is_off = e->is_off;
	s->rate = e->rate;
	memcpy(s->by, e->by, sizeof(s->by));
	memcpy(s->why, e->why, sizeof(s->why));
}

/* Removes the entry of the event, or stores E as its entry: depending on whether E is the configuration. */
static int settle(struct fr_switching *w, const struct fr_capture *capture, const struct fr_switched *e)
{
	if (e->rate || e->is_off != fr_capture_is_configured_off(capture, e->slot))
		return put_entry(w, e);
	remove_entry(w, find(w, e->slot));
	return 0;
}

static void set_end(const struct fr_switching *w, struct fr_switched *e, uint64_t for_ns)
{
	const uint64_t ns = for_ns ? for_ns : w->limit_ns;

	e->is_limit = !for_ns;
	e->until_ns = ns ? e->since_ns + FR_MIN(ns, UINT64_MAX - e->since_ns) : 0;
}

/* A request for the state that an event is in changes only the end. The entry still says who has switched
   the event, and when, as the data does. */
static void extend(struct fr_switched *entry, const struct fr_switched *e)
{
	entry->until_ns = e->until_ns;
	entry->is_limit = e->is_limit;
}

/* Makes E, which is the wanted state of its event, the state. Returns 1; 0 if it was the state already; or a
   negative errno, with a message in D. */
static int change(
	struct fr_switching *w, struct fr_capture *capture, const struct fr_switched *e, struct fr_diag *d)
{
	struct fr_switched *old = find(w, e->slot);
	const uint64_t old_rate = old ? old->rate : 0;
	bool changed = e->rate != old_rate;
	int r = changed ? fr_capture_set_rate(capture, e->slot, e->rate, d) : 0;

	if (r < 0)
		return r;
	if (fr_switches_set(w->switches, e->slot, e->is_off)) {
		changed = true;
		r = fr_capture_apply_switch(capture, e->slot, d);
	}
	if (r == 0 && !changed && old)
		extend(old, e);
	else if (r == 0 && settle(w, capture, e) < 0)
		r = fr_fail_errno(d, -ENOMEM, NULL, "cannot remember the switch");
	return r < 0 ? r : changed;
}

/* Returns RATE or OLD, whichever records more: the larger frequency, or the smaller period. An OLD of 0 is
   the configured rate. */
static uint64_t raised_rate(const struct fr_capture *capture, uint32_t slot, uint64_t rate, uint64_t old)
{
	bool is_frequency = false;
	const uint64_t configured = fr_capture_rate(capture, slot, &is_frequency),
		       now = old ? old : configured;

	if (!rate || configured <= 1 || (is_frequency ? rate <= now : rate >= now))
		return old;
	return rate;
}

/* Sets the end of E to that of OLD, if it is later. */
static void keep_later_end(struct fr_switched *e, const struct fr_switched *old)
{
	if (!old->until_ns || (e->until_ns && e->until_ns < old->until_ns)) {
		e->until_ns = old->until_ns;
		e->is_limit = old->is_limit;
	}
}

static struct fr_switched wanted(const struct fr_switching *w, const struct fr_capture *capture,
	uint32_t slot, const struct fr_switch_request *q)
{
	const struct fr_switched *old = find(w, slot);
	struct fr_switched e = {.slot = slot,
		.is_off = fr_switches_is_off(w->switches, slot),
		.rate = old ? old->rate : 0,
		.since_ns = fr_monotonic_ns()};

	snprintf(e.by, sizeof(e.by), "%s", q->by);
	snprintf(e.why, sizeof(e.why), "%s", q->why ? q->why : "");
	/* Any program can have chosen the texts, and a text that is too long ends anywhere. */
	fr_utf8_sanitize(e.by);
	fr_utf8_sanitize(e.why);
	set_end(w, &e, q->for_ns);
	switch (q->action) {
	case FR_SWITCH_OFF:
		e.is_off = true;
		break;
	case FR_SWITCH_RAISE:
		e.is_off = false;
		e.rate = raised_rate(capture, slot, q->rate, e.rate);
		break;
	case FR_SWITCH_RATE:
		e.rate = q->rate;
		break;
	case FR_SWITCH_RESET:
		e.is_off = fr_capture_is_configured_off(capture, slot);
		e.rate = 0;
		break;
	case FR_SWITCH_ON:
	default:
		e.is_off = false;
	}
	if (q->only_extends && old && old->is_off == e.is_off)
		keep_later_end(&e, old);
	return e;
}

/* Returns 1 if this has changed the event with SLOT; 0 if the event was in this state; or a negative errno.
 */
static int ask_one(struct fr_switching *w, struct fr_capture *capture, uint32_t slot,
	const struct fr_switch_request *q, struct fr_diag *d)
{
	const struct fr_switched e = wanted(w, capture, slot, q);
	struct fr_switch_step s = {.time_ns = e.since_ns, .pid = q->pid, .tid = q->pid, .cpu = q->cpu};
	const int r = change(w, capture, &e, d);

	if (r <= 0)
		return r;
	fill_step(&s, &e);
	add_step(w, capture, &s);
	return 1;
}

/* Both events of offcpu have one slot, which has the name of the first one. */
static bool matches(struct fr_switching *w, const struct fr_capture *capture, size_t i, const char *pattern)
{
	const uint32_t slot = fr_capture_slot(capture, i);
	const char *name = slot == FR_SWITCH_NONE ? fr_capture_event_name(capture, i)
						  : fr_switches_name(w->switches, slot);

	if (slot != FR_SWITCH_NONE && i > 0 && fr_capture_slot(capture, i - 1) == slot)
		return false;
	return !strcmp(name, pattern) || fnmatch(pattern, name, 0) == 0 ||
	       (!strcmp(pattern, "offcpu") && !strcmp(name, "flightrec:offcpu"));
}

static int fail_without_slot(const char *name, struct fr_diag *d)
{
	return fr_fail(d, -EOPNOTSUPP,
		"give it a shorter name with the term name=; an event with AUX areas cannot be switched at "
		"all",
		"the event %s cannot be switched", name);
}

int fr_switching_ask(struct fr_switching *w, struct fr_capture *capture, const struct fr_switch_request *q,
	cJSON *changed, struct fr_diag *d)
{
	const char *without_slot = NULL;
	int n = 0, r = 0;

	fr_thread_assert(FR_THREAD_MAIN);
	for (size_t i = 0; r >= 0 && i + 1 < fr_capture_n_events(capture); i++) {
		const uint32_t slot = fr_capture_slot(capture, i);

		if (!matches(w, capture, i, q->event))
			continue;
		if (slot == FR_SWITCH_NONE) {
			without_slot = fr_capture_event_name(capture, i);
			continue;
		}
		n++;
		r = ask_one(w, capture, slot, q, d);
		if (r > 0 && changed)
			cJSON_AddItemToArray(
				changed, cJSON_CreateString(fr_switches_name(w->switches, slot)));
	}
	if (r < 0 || n)
		return r < 0 ? r : n;
	return without_slot ? fail_without_slot(without_slot, d)
			    : fr_capture_fail_no_event(capture, q->event, d);
}

void fr_switching_saw(struct fr_switching *w, const struct fr_capture *capture,
	const struct fr_switch_record *r, const char *trigger)
{
	const struct fr_switched *old = find(w, r->slot);
	struct fr_switch_step s = {.time_ns = r->time_ns, .pid = r->pid, .tid = r->tid, .cpu = r->cpu};
	struct fr_switched e = {
		.slot = r->slot, .is_off = r->is_off, .rate = old ? old->rate : 0, .since_ns = r->time_ns};

	fr_thread_assert(FR_THREAD_MAIN);
	if (r->slot == FR_SWITCH_NONE || r->slot >= FR_SWITCHES_MAX)
		return;
	w->seen[r->slot].records++;
	snprintf(e.by, sizeof(e.by), "the program of trigger %s", trigger);
	if (r->comm[0] && r->tid)
		snprintf(e.why, sizeof(e.why), "in %.15s[%d]", r->comm, (int)r->tid);
	else if (r->comm[0])
		snprintf(e.why, sizeof(e.why), "in %.15s", r->comm);
	set_end(w, &e, r->for_ns);
	/* Somebody can have switched the event again before the record came. */
	if (fr_switches_is_off(w->switches, r->slot) == r->is_off)
		(void)settle(w, capture, &e);
	fill_step(&s, &e);
	add_step(w, capture, &s);
}

uint64_t fr_switching_expire(struct fr_switching *w, struct fr_capture *capture)
{
	const uint64_t now_ns = fr_monotonic_ns();
	uint64_t next_ns = 0;

	/* The end of an entry removes it, and puts the last one in its place. */
	for (size_t i = w->n_entries; i-- > 0;) {
		struct fr_switched *e = &w->entries[i];
		const struct fr_switch_request q = {
			.action = FR_SWITCH_RESET,
			.by = "flightrecd",
			.why = e->is_limit ? "SwitchLimit= is over" : "its time is over",
			.cpu = -1,
		};
		struct fr_diag d = {0};

		if (!e->until_ns || e->until_ns > now_ns)
			continue;
		if (ask_one(w, capture, e->slot, &q, &d) >= 0)
			continue;
		fr_log_diag(LOG_WARNING, &d, d.code);
		e->until_ns = now_ns + LOG_PERIOD_NS; /* try again */
	}
	for (size_t i = 0; i < w->n_entries; i++)
		if (w->entries[i].until_ns && (!next_ns || w->entries[i].until_ns < next_ns))
			next_ns = w->entries[i].until_ns;
	return next_ns;
}

/* The record of a switch is still on its way for a moment, so a record counts as lost one tick later. */
void fr_switching_tick(struct fr_switching *w, const struct fr_capture *capture)
{
	for (uint32_t slot = 1; *fr_switches_name(w->switches, slot); slot++) {
		const uint32_t changes = fr_switches_changes(w->switches, slot);
		struct fr_switch_seen *seen = &w->seen[slot];
		const uint32_t missing = seen->changes - seen->records;
		const struct fr_switch_record r = {
			.time_ns = fr_monotonic_ns(),
			.slot = slot,
			.is_off = fr_switches_is_off(w->switches, slot),
			.cpu = -1,
		};

		seen->changes = changes;
		if (!missing || missing > UINT32_MAX / 2)
			continue;
		w->lost += missing;
		fr_switching_saw(w, capture, &r, "(not known: the ring buffer was full)");
		seen->records += missing - 1;
	}
}

int fr_switching_prepare(const struct fr_switching *w, struct fr_capture *capture, struct fr_diag *d)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->n_entries; i++)
		if (w->entries[i].rate)
			r = fr_capture_set_rate(capture, w->entries[i].slot, w->entries[i].rate, d);
	return r;
}

/* Gives an event without an entry the state of its configuration, unless a program has just switched it. */
static void follow_configuration(struct fr_switching *w, struct fr_capture *capture, uint32_t slot)
{
	struct fr_diag d = {0};

	if (slot == FR_SWITCH_NONE || find(w, slot) ||
		fr_switches_changes(w->switches, slot) != w->seen[slot].records)
		return;
	if (fr_switches_set(w->switches, slot, fr_capture_is_configured_off(capture, slot)) &&
		fr_capture_apply_switch(capture, slot, &d) < 0)
		fr_log_diag(LOG_WARNING, &d, d.code);
}

void fr_switching_set_capture(struct fr_switching *w, struct fr_capture *capture)
{
	for (size_t i = w->n_entries; i-- > 0;) {
		struct fr_switched e = w->entries[i];

		if (fr_capture_has_slot(capture, e.slot)) {
			(void)settle(w, capture, &e);
			continue;
		}
		remove_entry(w, &w->entries[i]);
		(void)fr_switches_set(w->switches, e.slot, false);
	}
	for (size_t i = 0; i + 1 < fr_capture_n_events(capture); i++)
		follow_configuration(w, capture, fr_capture_slot(capture, i));
}

/* The JSON has the members of a cause, because a dump describes each switch with a trigger sample. */
static cJSON *step_json(const struct fr_switch_step *s, bool before)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	cJSON *o = cJSON_CreateObject();
	char reason[192], detail[256];

	snprintf(reason, sizeof(reason), "%s %s", s->event, s->what);
	snprintf(detail, sizeof(detail), "by %s%s%s", s->by, s->why[0] ? ": " : "", s->why);
	cJSON_AddStringToObject(o, "trigger", "switch");
	cJSON_AddStringToObject(o, "reason", reason);
	cJSON_AddStringToObject(o, "detail", detail);
	cJSON_AddStringToObject(o, "event", s->event);
	cJSON_AddBoolToObject(o, "enabled", !s->is_off);
	if (s->rate)
		fr_json_add_u64(o, "rate", s->rate);
	cJSON_AddStringToObject(o, "by", s->by);
	if (s->why[0])
		cJSON_AddStringToObject(o, "why", s->why);
	if (s->pid)
		FR_JSON_ADD_NUMBERS(o, {"pid", (uint64_t)s->pid}, {"tid", (uint64_t)s->tid});
	if (s->cpu >= 0)
		fr_json_add_u64(o, "cpu", (uint64_t)s->cpu);
	fr_json_add_time(o, "time", fr_clock_to_realtime(&pair, s->time_ns));
	fr_json_add_u64(o, "monotonic_ns", s->time_ns);
	if (before)
		cJSON_AddTrueToObject(o, "before_window");
	return o;
}

/* Returns whether the step I is the last one of its event before FROM_NS, and leaves the event switched. */
static bool still_applies(const struct fr_switching *w, size_t i, uint64_t from_ns)
{
	for (size_t k = i + 1; k < w->n_steps && w->steps[k].time_ns < from_ns; k++)
		if (w->steps[k].slot == w->steps[i].slot)
			return false;
	return !w->steps[i].is_configured;
}

void fr_switching_add_steps(struct fr_switching *w, uint64_t from_ns, uint64_t to_ns, cJSON *meta)
{
	cJSON *array = cJSON_CreateArray();

	fr_lock(&w->lock);
	for (size_t i = 0; i < w->n_steps && w->steps[i].time_ns <= to_ns; i++) {
		const bool before = w->steps[i].time_ns < from_ns;

		if (!before || still_applies(w, i, from_ns))
			cJSON_AddItemToArray(array, step_json(&w->steps[i], before));
	}
	if (w->forgotten && w->forgotten_ns >= from_ns)
		fr_json_add_u64(meta, "switches_forgotten", w->forgotten);
	fr_unlock(&w->lock);
	if (cJSON_GetArraySize(array) == 0 || !cJSON_AddItemToObject(meta, "switches", array))
		cJSON_Delete(array);
}
