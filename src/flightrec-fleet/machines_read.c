// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "flightrec-fleet/machines.h"

#include <errno.h>
#include <string.h>

/* What a reader of messages needs. */
struct reading {
	struct fleet *f;
	struct machines *machines;
	const char *id, *selector;
	bool keep;
	bool failed; /* no memory */
};

/* Sets *PLACE to a copy of N bytes, which replaces an older one. */
static bool keep_copy(struct reading *r, void *place, const void *data, size_t n)
{
	void *copy = *(void **)place ? *(void **)place : malloc(n);

	if (!copy) {
		r->failed = true;
		return false;
	}
	*(void **)place = memcpy(copy, data, n);
	return true;
}

static struct machine *find_machine(struct reading *r, const char *name)
{
	struct machine *m = machines_get(r->machines, name);

	r->failed = r->failed || !m;
	return m;
}

static bool on_presence(void *ctx, const struct fr_bus_message *m)
{
	struct reading *r = ctx;
	struct fr_fleet_presence p = {0};
	char name[FR_FLEET_NAME_SIZE];
	struct machine *machine;

	if (fr_fleet_subject_parse(m->subject, FR_SUBJECT_PRESENCE, NULL, name) < 0 ||
		fr_fleet_presence_read(m->data, m->n, &p, NULL) < 0 || strcmp(p.machine, name) != 0) {
		r->f->ignored++;
		return true;
	}
	machine = find_machine(r, name);
	if (!machine)
		return false;
	machine->seen_ns = m->time_ns;
	machine->is_leaving = p.leaving;
	machine->is_chosen = fr_selector_matches(r->selector, name, &p.labels);
	return !r->keep || keep_copy(r, &machine->presence, &p, sizeof(p));
}

static bool on_answer(void *ctx, const struct fr_bus_message *m)
{
	struct reading *r = ctx;
	struct fr_fleet_answer a = {0};
	char id[FR_FLEET_ID_SIZE], name[FR_FLEET_NAME_SIZE];
	struct machine *machine;

	if (fr_fleet_subject_parse(m->subject, FR_SUBJECT_ANSWER, id, name) < 0 || strcmp(id, r->id) != 0 ||
		fr_fleet_answer_read(m->data, m->n, &a, NULL) < 0 || strcmp(a.id, id) != 0 ||
		strcmp(a.machine, name) != 0) {
		r->f->ignored++;
		return true;
	}
	machine = find_machine(r, name);
	return machine && keep_copy(r, &machine->answer, &a, sizeof(a));
}

static bool on_entry(void *ctx, const struct fr_bus_message *m)
{
	struct reading *r = ctx;
	struct fr_fleet_manifest entry = {0};
	char id[FR_FLEET_ID_SIZE], name[FR_FLEET_NAME_SIZE];
	struct machine *machine;

	if (fr_fleet_subject_parse(m->subject, FR_SUBJECT_INDEX, id, name) < 0 || strcmp(id, r->id) != 0 ||
		fr_fleet_manifest_read(m->data, m->n, &entry, NULL) < 0 || strcmp(entry.id, id) != 0 ||
		strcmp(entry.machine, name) != 0) {
		r->f->ignored++;
		return true;
	}
	machine = find_machine(r, name);
	return machine && keep_copy(r, &machine->manifest, &entry, sizeof(entry));
}

static int read_messages(struct reading *r, const char *stream, const char *subject,
	bool (*on_message)(void *ctx, const struct fr_bus_message *m), struct fr_diag *d)
{
	const struct fr_bus_read what = {
		.stream = stream, .subject = subject, .timeout_ns = FLEET_TIMEOUT_NS};
	int error = fr_bus_read(r->f->bus, &what, on_message, r, d);

	if (error < 0)
		return error;
	return r->failed ? -ENOMEM : 0;
}

int machines_read_presence(
	struct fleet *f, struct machines *m, const char *selector, bool keep, struct fr_diag *d)
{
	struct reading r = {.f = f, .machines = m, .selector = selector, .keep = keep};

	return read_messages(&r, FR_STREAM_PRESENCE, FR_SUBJECT_PRESENCE ".*", on_presence, d);
}

int machines_read_answers(struct fleet *f, struct machines *m, const char *id, struct fr_diag *d)
{
	struct reading r = {.f = f, .machines = m, .id = id};
	char subject[FR_FLEET_SUBJECT_SIZE];

	snprintf(subject, sizeof(subject), FR_SUBJECT_ANSWER ".%s.*", id);
	return read_messages(&r, FR_STREAM_ANSWERS, subject, on_answer, d);
}

int machines_read_index(struct fleet *f, struct machines *m, const char *id, struct fr_diag *d)
{
	struct reading r = {.f = f, .machines = m, .id = id};
	char subject[FR_FLEET_SUBJECT_SIZE];

	snprintf(subject, sizeof(subject), FR_SUBJECT_INDEX ".%s.*", id);
	return read_messages(&r, FR_STREAM_INDEX, subject, on_entry, d);
}

int machines_read_command(struct fleet *f, const char *id, struct fr_fleet_command *ret,
	uint64_t *ret_stored_ns, struct fr_diag *d)
{
	char subject[FR_FLEET_SUBJECT_SIZE];
	struct fr_bus_message m = {0};
	int r;

	fr_fleet_subject(FR_SUBJECT_COMMAND, id, NULL, subject);
	r = fr_bus_last(f->bus, FR_STREAM_COMMANDS, subject, FLEET_TIMEOUT_NS, &m, d);
	if (r != 0)
		return r;
	r = fr_fleet_command_read(m.data, m.n, ret, d);
	if (r == 0 && strcmp(ret->id, id) != 0)
		r = fr_fail(d, -EBADMSG, NULL, "the command is for another id");
	if (r < 0)
		fr_diag_prefix(d, "%s", subject);
	*ret_stored_ns = m.time_ns;
	fr_bus_message_deinit(&m);
	return r;
}
