// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The index can have 100,000 entries, so each is only looked at by fr_manifest_scan(). With a limit of time,
 * older entries are not even read: an entry is stored after the time of its id, except that the wall clock
 * which made the id can be wrong.
 */
#include "flightrec-fleet/index.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fleet/manifest_scan.h"

#include <errno.h>
#include <string.h>

#define CLOCK_ERROR_NS (600 * FR_NSEC_PER_SEC)
#define FIRST_READ 512 /* sequences, to find the newest ids */
#define END_READ                                                                                             \
	(1 << 20) /* a stream has gaps, so only the second reading finds out if there are no more            \
		   */

struct reading {
	struct fleet *f;
	const struct index_filter *filter;
	struct fleet_index *index;
	uint64_t messages, ignored;
	bool failed; /* no memory */
};

void index_deinit(struct fleet_index *i)
{
	for (size_t k = 0; k < i->n; k++) {
		free(i->v[k].cause);
		free(i->v[k].by);
	}
	free(i->v);
	free(i->table);
	*i = (struct fleet_index){0};
}

/* FNV-1a */
static size_t hash(const char *id)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 0x100000001b3;
	return (size_t)(h ^ h >> 32);
}

/* Returns the place of ID in the table: its own, or the empty one where it belongs. */
static uint32_t *find_place(const struct fleet_index *i, const char *id)
{
	for (size_t at = hash(id) & (i->table_size - 1);; at = (at + 1) & (i->table_size - 1))
		if (!i->table[at] || strcmp(i->v[i->table[at] - 1].id, id) == 0)
			return &i->table[at];
}

/* Makes room for one more entry: the table is at most half full. */
static int make_room(struct fleet_index *i)
{
	const size_t room = FR_MAX(2 * i->room, (size_t)256);
	struct fleet_dump_entry *v;
	uint32_t *table;

	if (i->n < i->room)
		return 0;
	v = reallocarray(i->v, room, sizeof(*v));
	if (!v)
		return -ENOMEM;
	i->v = v;
	table = calloc(2 * room, sizeof(*table));
	if (!table)
		return -ENOMEM;
	free(i->table);
	i->table = table;
	i->table_size = 2 * room;
	i->room = room;
	for (size_t k = 0; k < i->n; k++)
		*find_place(i, i->v[k].id) = (uint32_t)(k + 1);
	return 0;
}

static char *copy_slice(struct fr_json_slice s)
{
	char text[FR_FLEET_TEXT_SIZE];

	fr_json_slice_text(s, text, sizeof(text));
	return strdup(text);
}

static int add(struct fleet_index *i, const char *id, const struct fr_manifest_scan *m)
{
	struct fleet_dump_entry *e;
	uint32_t *place;

	if (make_room(i) < 0)
		return -ENOMEM;
	place = find_place(i, id);
	if (!*place) {
		e = &i->v[i->n];
		*e = (struct fleet_dump_entry){.cause = copy_slice(m->cause), .by = copy_slice(m->by)};
		snprintf(e->id, sizeof(e->id), "%s", id);
		(void)fr_fleet_id_time(id, &e->at_ns);
		fr_json_slice_text(m->trigger, e->trigger, sizeof(e->trigger));
		*place = (uint32_t)++i->n;
		if (!e->cause || !e->by)
			return -ENOMEM;
	}
	e = &i->v[*place - 1];
	e->machines++;
	e->bytes += m->bytes;
	return 0;
}

static bool is_chosen(const struct index_filter *f, const char *name, const struct fr_bus_message *m)
{
	struct fr_fleet_manifest full = {0};

	return fr_fleet_manifest_read(m->data, m->n, &full, NULL) == 0 &&
	       fr_selector_matches(f->selector, name, &full.labels);
}

static bool has_trigger(const struct index_filter *f, const struct fr_manifest_scan *scan)
{
	char trigger[sizeof(((struct fleet_dump_entry *)0)->trigger)];

	fr_json_slice_text(scan->trigger, trigger, sizeof(trigger));
	return strcmp(trigger, f->trigger) == 0;
}

static bool on_entry(void *ctx, const struct fr_bus_message *m)
{
	struct reading *r = ctx;
	const struct index_filter *f = r->filter;
	char id[FR_FLEET_ID_SIZE], name[FR_FLEET_NAME_SIZE];
	struct fr_manifest_scan scan;
	uint64_t at_ns;

	r->messages++;
	if (fr_fleet_subject_parse(m->subject, FR_SUBJECT_INDEX, id, name) < 0 ||
		fr_fleet_id_time(id, &at_ns) < 0 || fr_manifest_scan(m->data, m->n, &scan) < 0) {
		r->ignored++;
		return true;
	}
	if (at_ns < f->since_ns || at_ns > f->until_ns || (f->trigger && !has_trigger(f, &scan)) ||
		(*f->selector && !is_chosen(f, name, m)))
		return true;
	r->failed = add(r->index, id, &scan) < 0;
	return !r->failed;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct fleet_dump_entry *)a)->id, ((const struct fleet_dump_entry *)b)->id);
}

static uint64_t before(uint64_t at_ns)
{
	return at_ns > CLOCK_ERROR_NS ? at_ns - CLOCK_ERROR_NS : 0;
}

/* Reads the entries that were stored at SINCE_NS and later, or the NEWEST ones. */
static int read_some(struct reading *r, uint64_t since_ns, uint64_t newest, struct fr_diag *d)
{
	const struct fr_bus_read what = {.stream = FR_STREAM_INDEX,
		.subject = FR_SUBJECT_INDEX ".>",
		.since_ns = since_ns,
		.newest = newest,
		.timeout_ns = FLEET_TIMEOUT_NS};
	int error;

	index_deinit(r->index);
	r->messages = r->ignored = 0;
	error = fr_bus_read(r->f->bus, &what, on_entry, r, d);
	if (error == 0 && r->failed)
		error = -ENOMEM;
	if (r->index->n)
		qsort(r->index->v, r->index->n, sizeof(r->index->v[0]), compare);
	return error;
}

/* Removes all but the newest N. */
static void keep_newest(struct fleet_index *i, size_t n)
{
	const size_t less = i->n > n ? i->n - n : 0;

	for (size_t k = 0; k < less; k++) {
		free(i->v[k].cause);
		free(i->v[k].by);
	}
	if (less)
		memmove(i->v, i->v + less, n * sizeof(i->v[0]));
	i->n -= less;
}

/* Finds a time such that the newest ids are later: an old dump can be stored late, so the newest messages are
   not those of the newest ids, but enough ids in any of them give a time. */
static int find_since(struct reading *r, uint64_t *ret_ns, struct fr_diag *d)
{
	const uint64_t n = r->filter->newest;
	uint64_t last = 0;

	for (uint64_t newest = FR_MAX(8 * n, (uint64_t)FIRST_READ);; newest *= 32) {
		int error = read_some(r, before(r->filter->since_ns), newest, d);

		if (error < 0)
			return error;
		if (r->index->n >= n) {
			*ret_ns = r->index->v[r->index->n - n].at_ns;
			return 0;
		}
		if (newest > END_READ || r->messages == last)
			break;
		last = r->messages;
	}
	*ret_ns = r->filter->since_ns;
	return 0;
}

int index_read(struct fleet *f, const struct index_filter *filter, struct fleet_index *ret, struct fr_diag *d)
{
	struct index_filter own = *filter;
	struct reading r = {.f = f, .filter = &own, .index = ret};
	uint64_t since_ns = filter->since_ns;
	int error = 0;

	if (strcmp(own.selector, "*") == 0)
		own.selector = "";
	if (filter->newest)
		error = find_since(&r, &since_ns, d);
	if (error == 0)
		error = read_some(&r, before(since_ns), 0, d);
	f->ignored += r.ignored;
	if (error < 0)
		index_deinit(ret);
	else if (filter->newest)
		keep_newest(ret, filter->newest);
	return error;
}
