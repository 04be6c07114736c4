// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "flightrec-fleet/index.h"
#include "flightrec-fleet/print.h"

#include <errno.h>
#include <string.h>

#define KEYS_MAX (1u << 20) /* of one run */

struct keys {
	const struct fleet *f;
	const char *prefix; /* of the keys: that of the location, with '/' */
	uint64_t until_ns;  /* only ids up to this time */
	char **v;
	size_t n, room;
	uint64_t bytes;
	bool failed;
};

/* Returns whether KEY is one of a fleet dump that is old enough: PREFIX/ID/…. Other objects stay. */
static bool is_old(const struct keys *k, const char *key)
{
	const size_t n = strlen(k->prefix);
	char id[FR_FLEET_ID_SIZE] = "";
	const char *slash;
	uint64_t at_ns;

	if (strncmp(key, k->prefix, n) != 0)
		return false;
	slash = strchr(key + n, '/');
	if (!slash || (size_t)(slash - key) - n >= sizeof(id))
		return false;
	memcpy(id, key + n, (size_t)(slash - key) - n);
	return fr_fleet_id_time(id, &at_ns) == 0 && at_ns <= k->until_ns;
}

static bool on_object(void *ctx, const char *key, uint64_t bytes)
{
	struct keys *k = ctx;

	if (!is_old(k, key))
		return true;
	if (k->n == k->room) {
		const size_t room = FR_MAX(2 * k->room, (size_t)256);
		char **v = reallocarray(k->v, room, sizeof(*v));

		k->failed = !v;
		if (!v)
			return false;
		k->v = v;
		k->room = room;
	}
	k->v[k->n] = strdup(key);
	k->failed = !k->v[k->n];
	if (k->failed)
		return false;
	k->n++;
	k->bytes += bytes;
	return k->n < KEYS_MAX;
}

/* Removes the objects whose keys begin with LISTED. */
static int remove_objects(
	struct fleet *f, const char *listed, const char *prefix, uint64_t until_ns, struct fr_diag *d)
{
	struct keys k = {.f = f, .prefix = prefix, .until_ns = until_ns};
	char size[FR_UNIT_SIZE];
	int r = fleet_open_store(f, d);

	if (r == 0)
		r = fr_store_list(f->store, listed, on_object, &k, d);
	if (r == 0 && k.failed)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < k.n; i++)
		r = fr_store_remove(f->store, k.v[i], d);
	if (r == 0)
		printf("removed %zu objects from the store: %s\n", k.n, fr_size_format(k.bytes, size));
	for (size_t i = 0; i < k.n; i++)
		free(k.v[i]);
	free(k.v);
	return r;
}

static int remove_messages(struct fleet *f, const char *id, struct fr_diag *d)
{
	char subject[FR_FLEET_SUBJECT_SIZE];
	int r;

	snprintf(subject, sizeof(subject), FR_SUBJECT_INDEX ".%s.*", id);
	r = fr_bus_purge(f->bus, FR_STREAM_INDEX, subject, FLEET_TIMEOUT_NS, d);
	if (r < 0)
		return r;
	snprintf(subject, sizeof(subject), FR_SUBJECT_ANSWER ".%s.*", id);
	return fr_bus_purge(f->bus, FR_STREAM_ANSWERS, subject, FLEET_TIMEOUT_NS, d);
}

static int remove_entries(struct fleet *f, uint64_t until_ns, struct fr_diag *d)
{
	const struct index_filter filter = {.selector = "", .until_ns = until_ns};
	struct fleet_index index = {0};
	int r = index_read(f, &filter, &index, d);

	for (size_t i = 0; r == 0 && i < index.n; i++)
		r = remove_messages(f, index.v[i].id, d);
	if (r == 0)
		printf("removed %zu fleet dumps from the index\n", index.n);
	index_deinit(&index);
	return r;
}

/* The objects go first: an entry without objects is easier to find than objects without an entry. */
int fleet_prune(struct fleet *f, struct fr_diag *d)
{
	const char *id = f->command->argument;
	const uint64_t now_ns = fr_now_ns(CLOCK_REALTIME);
	uint64_t until_ns = f->command->older_ns < now_ns ? now_ns - f->command->older_ns : 0;
	char prefix[sizeof(f->location.prefix) + 1], listed[sizeof(prefix) + FR_FLEET_ID_SIZE + 1];
	int r = fleet_open_bus(f, NULL, d);

	if (r < 0)
		return r;
	snprintf(prefix, sizeof(prefix), "%s%s", f->location.prefix, *f->location.prefix ? "/" : "");
	snprintf(listed, sizeof(listed), "%s%s%s", prefix, id ? id : "", id ? "/" : "");
	if (id)
		until_ns = UINT64_MAX;
	if (*f->location.bucket)
		r = remove_objects(f, listed, prefix, until_ns, d);
	if (r < 0)
		return r;
	if (!id)
		return remove_entries(f, until_ns, d);
	r = remove_messages(f, id, d);
	if (r == 0)
		printf("removed %s from the index\n", id);
	return r;
}

int fleet_forget(struct fleet *f, struct fr_diag *d)
{
	const char *machine = f->command->argument;
	char subject[FR_FLEET_SUBJECT_SIZE];
	struct fr_bus_message m = {0};
	int r = fleet_open_bus(f, NULL, d);

	if (r < 0)
		return r;
	fr_fleet_subject(FR_SUBJECT_PRESENCE, NULL, machine, subject);
	r = fr_bus_last(f->bus, FR_STREAM_PRESENCE, subject, FLEET_TIMEOUT_NS, &m, d);
	if (r > 0)
		return fr_fail(d, -ENOENT, "flightrecctl fleet status shows the names",
			"the broker knows no machine %s", machine);
	fr_bus_message_deinit(&m);
	if (r == 0)
		r = fr_bus_purge(f->bus, FR_STREAM_PRESENCE, subject, FLEET_TIMEOUT_NS, d);
	if (r == 0)
		printf("forgot %s\n", machine);
	return r;
}
