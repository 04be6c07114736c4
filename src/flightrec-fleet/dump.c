// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/timestamp.h"
#include "flightrec-fleet/print.h"
#include "flightrec-fleet/wait.h"

#include <errno.h>
#include <string.h>

#define WAIT_NS (10 * FR_NSEC_PER_SEC)
#define WAIT_STORED_NS (600 * FR_NSEC_PER_SEC)
#define FUTURE_MAX_NS (3600 * FR_NSEC_PER_SEC)
#define ATTEMPTS 3 /* to find an id that is new */

static int parse_time(const char *option, const char *text, uint64_t now_ns, uint64_t *ret, struct fr_diag *d)
{
	uint64_t ns;

	if (fr_timestamp_parse(text, now_ns, &ns) < 0)
		return fr_fail(d, -EINVAL, "write it as 23:11, -5min, \"2026-11-20 23:11:37\" or @EPOCH",
			"%s: '%s' is not a time", option, text);
	if (ns > now_ns + FUTURE_MAX_NS)
		return fr_fail(d, -EINVAL, "give a time of at most one hour from now",
			"%s: '%s' is too far in the future", option, text);
	*ret = FR_MAX(ns, (uint64_t)1);
	return 0;
}

/* Sets the window of C from --from and --to, by the clock of the broker. Writes the time that is left until
   the window ends into RET_LEFT_NS. */
static int set_window(struct fleet *f, struct fr_fleet_command *c, uint64_t *ret_left_ns, struct fr_diag *d)
{
	const struct fleet_command *o = f->command;
	struct fr_fleet_clock clock;
	uint64_t now_ns;
	int r;

	*ret_left_ns = o->post_ns;
	c->last_ns = o->last_ns;
	c->post_ns = o->post_ns;
	if (!o->from && !o->to)
		return 0;
	r = fleet_measure_clock(f, &clock, d);
	if (r < 0)
		return r;
	now_ns = fr_fleet_clock_to_fleet(&clock, fr_monotonic_ns());
	c->from_ns = 1;
	c->to_ns = now_ns;
	r = o->to ? parse_time("--to", o->to, now_ns, &c->to_ns, d) : 0;
	if (r == 0 && o->from)
		r = parse_time("--from", o->from, now_ns, &c->from_ns, d);
	if (r < 0)
		return r;
	if (o->last_ns && o->last_ns < c->to_ns)
		c->from_ns = c->to_ns - o->last_ns;
	c->last_ns = 0;
	if (c->from_ns > c->to_ns)
		return fr_fail(d, -EINVAL, "give the earlier one with --from", "--from is later than --to");
	*ret_left_ns = c->to_ns > now_ns ? c->to_ns - now_ns : 0;
	return 0;
}

static int make_command(struct fleet *f, struct fr_fleet_command *c, struct fr_diag *d)
{
	const struct fleet_command *o = f->command;
	uint64_t left_ns, limit_ns = o->wait_limit_ns;
	int r = set_window(f, c, &left_ns, d);

	if (r < 0)
		return r;
	if (!limit_ns)
		limit_ns = o->wait == FLEET_WAIT_STORED ? WAIT_STORED_NS : WAIT_NS;
	c->limit_ns = FR_MIN(limit_ns + left_ns, FUTURE_MAX_NS);
	fr_selector_normalize(o->match, c->selector);
	snprintf(c->reason, sizeof(c->reason), "%s", o->reason ? o->reason : "");
	snprintf(c->by, sizeof(c->by), "%s", f->name);
	return 0;
}

static int store_command(struct fleet *f, const struct fr_fleet_command *c, struct fr_diag *d)
{
	_cleanup_free_ char *json = fr_fleet_command_json(c);
	char subject[FR_FLEET_SUBJECT_SIZE];

	if (!json)
		return -ENOMEM;
	fr_fleet_subject(FR_SUBJECT_COMMAND, c->id, NULL, subject);
	return fr_bus_store(
		f->bus, FR_STREAM_COMMANDS, subject, json, strlen(json), 0, FLEET_TIMEOUT_NS, NULL, d);
}

/* Stores the command with a new id, and subscribes to its answers before. */
static int send_command(struct fleet *f, struct wait *w, struct fr_fleet_command *c, struct fr_diag *d)
{
	struct fr_fleet_command stored = {0};
	int r = 1;

	for (int i = 0; r == 1 && i < ATTEMPTS; i++) {
		r = fr_fleet_id_new(fr_now_ns(CLOCK_REALTIME), c->id);
		if (r == 0 && f->command->wait != FLEET_WAIT_NO)
			r = wait_begin(w, d);
		if (r < 0)
			return r;
		w->until_ns = fr_monotonic_ns() + c->limit_ns;
		r = store_command(f, c, d);
	}
	if (r > 0)
		return fr_fail(d, -EEXIST, "try again", "the broker says that each new id is in use");
	if (r == 0)
		r = machines_read_command(f, c->id, &stored, &w->now_ns, d);
	if (r < 0)
		fr_diag_prefix(d, "the command %s", c->id);
	return r > 0 ? fr_fail(d, -EBADMSG, "look at the broker's log", "the broker lost the command") : r;
}

static bool any_is_chosen(const struct machines *m)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i]->is_chosen)
			return true;
	return false;
}

/* How many machines are in which state. */
struct tally {
	size_t all, good, refused;
};

static struct tally count(const struct machines *m)
{
	struct tally t = {0};

	for (size_t i = 0; i < m->n; i++) {
		const struct fr_fleet_answer *a = m->v[i]->answer;

		if (!machine_takes_part(m->v[i]))
			continue;
		t.all++;
		t.good += m->v[i]->manifest ||
			  (a && (a->state == FR_FLEET_DONE || a->state == FR_FLEET_STORED));
		t.refused += a && a->state == FR_FLEET_REFUSED;
	}
	return t;
}

static int print_text(const struct fleet *f, const struct wait *w, const struct tally *t)
{
	struct fr_table *table = fr_table_new("MACHINE|STATE|WHERE OR WHY");
	const enum print_colour colour = t->good == t->all ? PRINT_GREEN : t->good ? PRINT_YELLOW : PRINT_RED;
	char text[640];
	int r;

	for (size_t i = 0; i < w->machines->n; i++) {
		const struct machine *m = w->machines->v[i];

		if (machine_takes_part(m))
			fr_table_texts(table, m->name, machine_state(m),
				machine_where(m, w->now_ns, text, sizeof(text)), NULL);
	}
	r = print_table(f->command, table);
	if (r == 0 && !f->command->no_legend)
		printf("%s%zu of %zu machines have the dump.%s\n", print_colour(colour), t->good, t->all,
			print_colour(PRINT_NORMAL));
	return r;
}

static int print_as_json(
	const struct fleet *f, const struct wait *w, const struct tally *t, const struct fr_fleet_command *c)
{
	_cleanup_free_ char *text = fr_fleet_command_json(c);
	cJSON *o = cJSON_CreateObject(), *list;

	if (!o || !text || !cJSON_AddRawToObject(o, "command", text)) {
		cJSON_Delete(o);
		return -ENOMEM;
	}
	cJSON_AddStringToObject(o, "id", c->id);
	fr_json_add_time(o, "time", w->now_ns);
	cJSON_AddBoolToObject(o, "complete", t->good == t->all);
	list = cJSON_AddArrayToObject(o, "machines");
	for (size_t i = 0; i < w->machines->n; i++)
		if (machine_takes_part(w->machines->v[i]))
			cJSON_AddItemToArray(list, machine_json(w->machines->v[i], w->now_ns));
	return print_json(f->command, o);
}

static int wait_and_print(
	struct fleet *f, struct wait *w, const struct fr_fleet_command *c, struct fr_diag *d)
{
	const bool is_json = f->command->json != FR_JSON_OFF;
	struct tally t;
	int r;

	if (!is_json) {
		puts(c->id);
		fflush(stdout);
	}
	r = f->command->wait == FLEET_WAIT_NO ? 0 : wait_run(w, d);
	if (r < 0)
		return r;
	machines_sort(w->machines);
	t = count(w->machines);
	if (f->command->wait == FLEET_WAIT_NO)
		return is_json ? print_as_json(f, w, &t, c) : 0;
	r = is_json ? print_as_json(f, w, &t, c) : print_text(f, w, &t);
	if (r < 0 || t.good == t.all)
		return r;
	return t.refused == t.all ? FR_EXIT_SUPPRESSED : FR_EXIT_PARTLY;
}

int fleet_dump(struct fleet *f, struct fr_diag *d)
{
	struct machines machines = {0};
	struct fr_fleet_command c = {0};
	struct wait w = {.f = f, .machines = &machines, .id = c.id, .bell = -1};
	int r;

	w.stored = f->command->wait == FLEET_WAIT_STORED;
	r = fleet_open_bus(f, NULL, d);
	if (r == 0)
		r = machines_read_presence(f, &machines, f->command->match, false, d);
	if (r == 0 && !any_is_chosen(&machines))
		r = fr_fail(d, -ENOENT,
			machines.n ? "flightrecctl fleet status shows the machines and their labels"
				   : "start flightrec-agent on the machines",
			machines.n ? "--match chooses none of the machines" : "the broker knows no machine");
	if (r == 0)
		r = make_command(f, &c, d);
	if (r == 0)
		r = send_command(f, &w, &c, d);
	if (r == 0)
		r = wait_and_print(f, &w, &c, d);
	f->bus = fr_bus_free(f->bus);
	wait_end(&w);
	machines_deinit(&machines);
	return r;
}
