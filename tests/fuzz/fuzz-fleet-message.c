// SPDX-License-Identifier: GPL-2.0-or-later

/* Reads the input as each message of the fleet. A message that is accepted has valid names and texts, and is
   the same after it was written and read again. */

#include "fuzz.h"
#include "fleet/manifest_scan.h"
#include "fleet/message.h"

#include <errno.h>

static void check_result(int r, const struct fr_diag *d)
{
	check(r == 0 ? d->code == 0 : r == -EBADMSG && d->code == r && d->what[0]);
}

/* Checks that a message which was read, written and read again is written the same. */
#define AGAIN(kind, value)                                                                                   \
	do {                                                                                                 \
		struct fr_fleet_##kind again = {0};                                                          \
		char *json = fr_fleet_##kind##_json(&(value)), *second;                                      \
                                                                                                             \
		check(json &&fr_fleet_##kind##_read(json, strlen(json), &again, NULL) == 0);                 \
		second = fr_fleet_##kind##_json(&again);                                                     \
		check(second &&strcmp(json, second) == 0);                                                   \
		free(json);                                                                                  \
		free(second);                                                                                \
	} while (0)

static void try_command(const char *data, size_t size)
{
	struct fr_fleet_command c = {0};
	struct fr_diag d = {0};
	int r = fr_fleet_command_read(data, size, &c, &d);

	check_result(r, &d);
	if (r < 0)
		return;
	check(fr_fleet_id_is_valid(c.id) && fr_selector_check(c.selector, NULL) == 0 && c.from_ns <= c.to_ns);
	check_text(c.reason, sizeof(c.reason));
	check_text(c.by, sizeof(c.by));
	check_text(c.trigger, sizeof(c.trigger));
	AGAIN(command, c);
}

static void try_answer(const char *data, size_t size)
{
	struct fr_fleet_answer a = {0};
	struct fr_diag d = {0};
	int r = fr_fleet_answer_read(data, size, &a, &d);

	check_result(r, &d);
	if (r < 0)
		return;
	check(fr_fleet_id_is_valid(a.id) && fr_fleet_name_is_valid(a.machine) && a.state < FR_FLEET_STATES);
	check_text(a.why, sizeof(a.why));
	check_text(a.path, sizeof(a.path));
	check_text(a.object, sizeof(a.object));
	AGAIN(answer, a);
}

static void try_presence(const char *data, size_t size)
{
	struct fr_fleet_presence p = {0};
	struct fr_diag d = {0};
	int r = fr_fleet_presence_read(data, size, &p, &d);

	check_result(r, &d);
	if (r < 0)
		return;
	check(fr_fleet_name_is_valid(p.machine) && p.labels.n <= FR_LABELS_MAX);
	check_text(p.boot_id, sizeof(p.boot_id));
	check_text(p.version, sizeof(p.version));
	check_text(p.recorder, sizeof(p.recorder));
	check_text(p.store, sizeof(p.store));
	AGAIN(presence, p);
}

/* The fast look needs not to agree with the slow one about a message that nobody of us writes. */
static void try_scan(const char *data, size_t size)
{
	char text[64];
	struct fr_manifest_scan scan;

	if (fr_manifest_scan(data, size, &scan) < 0)
		return;
	check(scan.trigger.n <= size && scan.cause.n <= size && scan.by.n <= size);
	fr_json_slice_text(scan.cause, text, sizeof(text));
	check_text(text, sizeof(text));
	fr_json_slice_text(scan.trigger, text, sizeof(text));
	check_text(text, sizeof(text));
}

static void try_manifest(const char *data, size_t size)
{
	struct fr_fleet_manifest m = {0};
	struct fr_diag d = {0};
	int r = fr_fleet_manifest_read(data, size, &m, &d);

	check_result(r, &d);
	try_scan(data, size);
	if (r < 0)
		return;
	check(fr_fleet_id_is_valid(m.id) && fr_fleet_name_is_valid(m.machine) && m.from_ns <= m.to_ns);
	check(!strchr(m.file, '/') && (!*m.object || strlen(m.sha256) == 64));
	check_text(m.cause, sizeof(m.cause));
	check_text(m.by, sizeof(m.by));
	check_text(m.file, sizeof(m.file));
	check_text(m.object, sizeof(m.object));
	AGAIN(manifest, m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	try_command(text, size);
	try_answer(text, size);
	try_presence(text, size);
	try_manifest(text, size);
	return 0;
}
