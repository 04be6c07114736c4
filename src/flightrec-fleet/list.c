// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/clock.h"
#include "base/json.h"
#include "base/timestamp.h"
#include "flightrec-fleet/index.h"
#include "flightrec-fleet/print.h"

#include <errno.h>
#include <inttypes.h>

static int parse_time(const char *option, const char *text, uint64_t *ret, struct fr_diag *d)
{
	if (text && fr_timestamp_parse(text, fr_now_ns(CLOCK_REALTIME), ret) < 0)
		return fr_fail(d, -EINVAL, "write it as 23:11, -2h, \"2026-11-20 23:11:37\" or @EPOCH",
			"%s: '%s' is not a time", option, text);
	return 0;
}

static int print_text(const struct fleet *f, const struct fleet_index *index)
{
	struct fr_table *t = fr_table_new("TIME|ID|>MACHINES|>SIZE|TRIGGER|CAUSE|BY");
	char time[FR_UNIT_SIZE], size[FR_UNIT_SIZE];

	for (size_t i = 0; i < index->n; i++) {
		const struct fleet_dump_entry *e = &index->v[i];

		fr_table_texts(t, print_time(f->command, e->at_ns, time), e->id, NULL);
		fr_table_cell(t, "%" PRIu64, e->machines);
		fr_table_texts(t, fr_size_format(e->bytes, size), e->trigger, e->cause, e->by, NULL);
	}
	if (index->n == 0)
		fputs(FLEET_PROGRAM ": the index has no such dumps\n", stderr);
	return print_table(f->command, t);
}

static int print_as_json(const struct fleet *f, const struct fleet_index *index)
{
	cJSON *list = cJSON_CreateArray();

	for (size_t i = 0; list && i < index->n; i++) {
		const struct fleet_dump_entry *e = &index->v[i];
		cJSON *o = cJSON_CreateObject();

		cJSON_AddStringToObject(o, "id", e->id);
		fr_json_add_time(o, "time", e->at_ns);
		FR_JSON_ADD_NUMBERS(o, {"machines", e->machines}, {"bytes", e->bytes});
		cJSON_AddStringToObject(o, "trigger", e->trigger);
		cJSON_AddStringToObject(o, "cause", e->cause);
		cJSON_AddStringToObject(o, "by", e->by);
		cJSON_AddItemToArray(list, o);
	}
	return print_json(f->command, list);
}

int fleet_list(struct fleet *f, struct fr_diag *d)
{
	const struct fleet_command *c = f->command;
	struct index_filter filter = {
		.selector = c->match, .trigger = c->trigger, .until_ns = UINT64_MAX, .newest = c->newest};
	struct fleet_index index = {0};
	int r = parse_time("--since", c->since, &filter.since_ns, d);

	if (r == 0)
		r = parse_time("--until", c->until, &filter.until_ns, d);
	if (r == 0)
		r = fleet_open_bus(f, NULL, d);
	if (r == 0)
		r = index_read(f, &filter, &index, d);
	if (r < 0)
		return r;
	if (c->json != FR_JSON_OFF) {
		r = print_as_json(f, &index);
	} else {
		print_begin(c);
		r = print_text(f, &index);
	}
	index_deinit(&index);
	return r;
}
