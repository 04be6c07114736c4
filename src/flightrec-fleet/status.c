// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "flightrec-fleet/machines.h"
#include "flightrec-fleet/print.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Writes "+1.2s ± 0.1ms", the wall clock of the machine compared with that of the fleet. */
static const char *format_clock(const struct fr_fleet_clock *c, char *ret, size_t size)
{
	/* wall_offset_ns is fleet time minus wall time. */
	const uint64_t ns =
		c->wall_offset_ns < 0 ? 0 - (uint64_t)c->wall_offset_ns : (uint64_t)c->wall_offset_ns;
	char offset[FR_UNIT_SIZE], error[FR_UNIT_SIZE];

	if (c->error_ns == UINT64_MAX)
		return "not measured";
	snprintf(ret, size, "%s%s ± %s", c->wall_offset_ns <= 0 ? "+" : "-", fr_duration_format(ns, offset),
		fr_duration_format(c->error_ns, error));
	return ret;
}

static const char *format_uploads(const struct fr_fleet_presence *p, char *ret, size_t size)
{
	char bytes[FR_UNIT_SIZE];

	if (p->uploads == 0)
		return "-";
	snprintf(ret, size, "%" PRIu64 " (%s)", p->uploads, fr_size_format(p->uploads_bytes, bytes));
	return ret;
}

static const char *state_of(const struct machine *m, uint64_t now_ns)
{
	return m->is_leaving ? "stopped" : machine_is_reachable(m, now_ns) ? "here" : "gone";
}

static int print_fleet(const struct fleet *f, const struct machines *all, uint64_t now_ns)
{
	struct fr_table *t = fr_table_new("MACHINE|STATE|>SEEN|LABELS|CLOCK|VERSION|>UPLOADS|PROBLEMS");

	for (size_t i = 0; i < all->n; i++) {
		const struct machine *m = all->v[i];
		const struct fr_fleet_presence *p = m->presence;
		char age[FR_UNIT_SIZE], labels[512], clock[96], uploads[64];

		if (!m->is_chosen || !p)
			continue;
		fr_labels_text(&p->labels, labels, sizeof(labels));
		fr_table_texts(t, m->name, state_of(m, now_ns), print_age(m->seen_ns, now_ns, age), labels,
			format_clock(&p->clock, clock, sizeof(clock)), p->version,
			format_uploads(p, uploads, sizeof(uploads)), NULL);
		if (*p->recorder || *p->store)
			fr_table_cell(t, "%s%s%s%s%s", *p->recorder ? "recorder: " : "", p->recorder,
				*p->recorder && *p->store ? "; " : "", *p->store ? "store: " : "", p->store);
		else
			fr_table_texts(t, "-", NULL);
	}
	return print_table(f->command, t);
}

static cJSON *presence_json(const struct machine *m, uint64_t now_ns)
{
	char *text = fr_fleet_presence_json(m->presence);
	cJSON *o = text ? cJSON_Parse(text) : NULL;

	free(text);
	if (!o)
		return NULL;
	cJSON_AddStringToObject(o, "state", state_of(m, now_ns));
	fr_json_add_time(o, "last_seen", m->seen_ns);
	return o;
}

static int print_fleet_json(const struct fleet *f, const struct machines *all, uint64_t now_ns)
{
	cJSON *list = cJSON_CreateArray();

	for (size_t i = 0; i < all->n; i++)
		if (all->v[i]->is_chosen && all->v[i]->presence)
			cJSON_AddItemToArray(list, presence_json(all->v[i], now_ns));
	return print_json(f->command, list);
}

static int show_fleet(struct fleet *f, struct machines *all, struct fr_diag *d)
{
	uint64_t now_ns;
	int r = machines_read_presence(f, all, f->command->match, true, d);

	if (r < 0)
		return r;
	now_ns = fleet_now(f, machines_newest(all));
	machines_sort(all);
	if (f->command->json != FR_JSON_OFF)
		return print_fleet_json(f, all, now_ns);
	if (all->n == 0)
		fputs(FLEET_PROGRAM ": the broker knows no machine\n", stderr);
	print_begin(f->command);
	return print_fleet(f, all, now_ns);
}

static int print_id(const struct fleet *f, const struct machines *all, uint64_t now_ns)
{
	struct fr_table *t = fr_table_new("MACHINE|STATE|>SIZE|WHERE OR WHY");
	char text[640], size[FR_UNIT_SIZE];

	for (size_t i = 0; i < all->n; i++) {
		const struct machine *m = all->v[i];
		const uint64_t bytes = m->manifest ? m->manifest->bytes : m->answer ? m->answer->bytes : 0;

		if (machine_takes_part(m))
			fr_table_texts(t, m->name, machine_state(m),
				bytes ? fr_size_format(bytes, size) : "-",
				machine_where(m, now_ns, text, sizeof(text)), NULL);
	}
	return print_table(f->command, t);
}

static int print_id_json(const struct fleet *f, const struct machines *all, const struct fr_fleet_command *c,
	uint64_t stored_ns, uint64_t now_ns)
{
	_cleanup_free_ char *text = *c->id ? fr_fleet_command_json(c) : NULL;
	cJSON *o = cJSON_CreateObject(), *list;

	if (text)
		cJSON_AddRawToObject(o, "command", text);
	cJSON_AddStringToObject(o, "id", f->command->argument);
	if (stored_ns)
		fr_json_add_time(o, "time", stored_ns);
	list = cJSON_AddArrayToObject(o, "machines");
	for (size_t i = 0; list && i < all->n; i++)
		if (machine_takes_part(all->v[i]))
			cJSON_AddItemToArray(list, machine_json(all->v[i], now_ns));
	return print_json(f->command, o);
}

static void print_command(const struct fleet *f, const struct fr_fleet_command *c, uint64_t stored_ns)
{
	char time[FR_UNIT_SIZE];

	if (f->command->no_legend || !*c->id)
		return;
	printf("%s%s%s by %s at %s, for %s%s%s%s%s\n", print_colour(PRINT_BOLD), c->id,
		print_colour(PRINT_NORMAL), *c->by ? c->by : "?", print_time(f->command, stored_ns, time),
		c->selector, *c->trigger ? ", trigger " : "", c->trigger, *c->reason ? ": " : "", c->reason);
}

static int show_id(struct fleet *f, struct machines *all, struct fr_diag *d)
{
	const char *id = f->command->argument;
	struct fr_fleet_command c = {0};
	uint64_t stored_ns = 0, now_ns;
	int r = machines_read_command(f, id, &c, &stored_ns, d);

	if (r >= 0)
		r = machines_read_answers(f, all, id, d);
	if (r == 0)
		r = machines_read_index(f, all, id, d);
	if (r == 0 && !*c.id && all->n == 0)
		return fr_fail(d, -ENOENT, "flightrecctl fleet list shows the ids",
			"the broker knows no fleet dump %s", id);
	if (r == 0 && *c.id)
		r = machines_read_presence(f, all, c.selector, false, d);
	if (r < 0)
		return r;
	now_ns = fleet_now(f, machines_newest(all));
	machines_sort(all);
	if (f->command->json != FR_JSON_OFF)
		return print_id_json(f, all, &c, stored_ns, now_ns);
	print_begin(f->command);
	print_command(f, &c, stored_ns);
	return print_id(f, all, now_ns);
}

int fleet_status(struct fleet *f, struct fr_diag *d)
{
	struct machines all = {0};
	int r = fleet_open_bus(f, NULL, d);

	if (r == 0)
		r = f->command->argument ? show_id(f, &all, d) : show_fleet(f, &all, d);
	machines_deinit(&all);
	return r;
}
