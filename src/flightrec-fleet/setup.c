// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "flightrec-fleet/print.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#define DAY_NS (86400 * FR_NSEC_PER_SEC)
#define CHECK_TEXT "flightrec-fleet setup checks that the store keeps this\n"

static int ensure_streams(struct fleet *f, struct fr_diag *d)
{
	const struct fr_bus_stream streams[] = {
		{FR_STREAM_COMMANDS, FR_SUBJECT_COMMAND ".>", "flightrec: commands to the machines", DAY_NS,
			0, 0},
		{FR_STREAM_ANSWERS, FR_SUBJECT_ANSWER ".>", "flightrec: answers of the machines", 30 * DAY_NS,
			0, 0},
		{FR_STREAM_PRESENCE, FR_SUBJECT_PRESENCE ".>", "flightrec: the machines", 30 * DAY_NS, 0, 0},
		{FR_STREAM_INDEX, FR_SUBJECT_INDEX ".>", "flightrec: the index of the dumps",
			f->command->keep_ns, 0, 0},
		{FR_STREAM_INCIDENTS, FR_SUBJECT_INCIDENT ".>", "flightrec: the last commands of triggers",
			DAY_NS, 0, 0},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(streams); i++) {
		struct fr_bus_stream s = streams[i];
		const char *done = "";
		char keep[FR_UNIT_SIZE];
		int r;

		s.replicas = (unsigned)f->command->replicas;
		r = fr_bus_stream_ensure(f->bus, &s, FLEET_TIMEOUT_NS, &done, d);
		if (r < 0) {
			fr_diag_prefix(d, "the stream %s", s.name);
			return r;
		}
		printf("stream %s: %s; keeps messages for %s\n", s.name, done,
			fr_duration_format(s.max_age_ns, keep));
	}
	return 0;
}

static int check_object(struct fleet *f, const char *key, const char *sha256, struct fr_diag *d)
{
	_cleanup_free_ char *text = NULL;
	struct fr_store_object object;
	size_t n = 0;
	int r = fr_store_put(f->store, key, CHECK_TEXT, strlen(CHECK_TEXT), sha256, d);

	if (r < 0)
		return r;
	r = fr_store_head(f->store, key, &object, d);
	if (r == 0 && object.bytes != strlen(CHECK_TEXT))
		r = fr_fail(d, -EBADMSG, NULL, "the store says another size than that which it got");
	if (r == 0)
		r = fr_store_get_small(f->store, key, 4096, &text, &n, d);
	if (r == 0 && (n != strlen(CHECK_TEXT) || memcmp(text, CHECK_TEXT, n) != 0))
		r = fr_fail(d, -EBADMSG, NULL, "the store returns another content than that which it got");
	if (r < 0) {
		(void)fr_store_remove(f->store, key, NULL);
		return r;
	}
	return fr_store_remove(f->store, key, d);
}

/* Stores, reads and removes a small object. */
static int check_store(struct fleet *f, struct fr_diag *d)
{
	char key[FR_FLEET_SUBJECT_SIZE + 64];
	uint64_t number;
	int r = fleet_open_store(f, d);

	if (r < 0)
		return r;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	snprintf(key, sizeof(key), "%s%sflightrec-setup-%016" PRIx64, f->location.prefix,
		*f->location.prefix ? "/" : "", number);
	r = check_object(f, key, NULL, d);
	if (r < 0) {
		fr_diag_prefix(d, "the store, bucket %s", f->location.bucket);
		return r;
	}
	printf("store s3://%s/%s: objects can be stored, read and removed\n", f->location.bucket,
		f->location.prefix);
	return 0;
}

/* Some stores have no rules for the age of objects, and dumps can be pruned without them. */
static int set_expiry(struct fleet *f)
{
	const uint64_t days = (f->command->keep_ns + DAY_NS - 1) / DAY_NS;
	char prefix[sizeof(f->location.prefix) + 1];
	struct fr_diag d = {0};
	int r;

	snprintf(prefix, sizeof(prefix), "%s%s", f->location.prefix, *f->location.prefix ? "/" : "");
	r = fr_store_expire(f->store, prefix, (unsigned)FR_MIN(days, (uint64_t)36500), &d);
	if (r == 0) {
		printf("store s3://%s/%s: objects are removed after %" PRIu64 " days\n", f->location.bucket,
			f->location.prefix, days);
		return FR_EXIT_OK;
	}
	fr_fail(&d, r, NULL, "%s", strerror(-r));
	fr_diag_prefix(&d, "the store does not remove old objects by itself");
	snprintf(d.hint, sizeof(d.hint),
		"run this each day: flightrecctl fleet prune --older-than %" PRIu64 "d", days);
	fr_diag_print(FLEET_PROGRAM, &d, r);
	return FR_EXIT_PARTLY;
}

int fleet_setup(struct fleet *f, struct fr_diag *d)
{
	int r = fleet_open_bus(f, NULL, d);

	if (r == 0)
		r = ensure_streams(f, d);
	if (r < 0)
		return r;
	if (!*f->location.bucket) {
		puts("store: Upload= is not set, so the dumps stay on the machines");
		return FR_EXIT_OK;
	}
	r = check_store(f, d);
	return r < 0 ? r : set_expiry(f);
}
