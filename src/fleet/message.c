// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/message.h"
#include "base/cleanup.h"
#include "fleet/message_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DAY_NS (86400 * 1000000000ULL)
#define WAIT_MAX_NS (3600 * 1000000000ULL) /* of a window in the future, and of an operator */
#define DUMP "perf.data.sample."

#define FIELD(type, member, kind)                                                                            \
#member, kind, offsetof(struct type, member), sizeof(((struct type *)0)->member)

static const struct fr_fleet_field command_fields[] = {
	{FIELD(fr_fleet_command, id, FR_FLEET_ID), false},
	{FIELD(fr_fleet_command, selector, FR_FLEET_KEY), false},
	{FIELD(fr_fleet_command, from_ns, FR_FLEET_TIME), true},
	{FIELD(fr_fleet_command, to_ns, FR_FLEET_TIME), true},
	{FIELD(fr_fleet_command, last_ns, FR_FLEET_COUNT), true},
	{FIELD(fr_fleet_command, post_ns, FR_FLEET_COUNT), true},
	{FIELD(fr_fleet_command, limit_ns, FR_FLEET_COUNT), true},
	{FIELD(fr_fleet_command, reason, FR_FLEET_TEXT), true},
	{FIELD(fr_fleet_command, by, FR_FLEET_TEXT), true},
	{FIELD(fr_fleet_command, trigger, FR_FLEET_WORD), true},
};
const struct fr_fleet_table fr_fleet_command_table = {
	"the command", command_fields, FR_ARRAY_SIZE(command_fields)};

static const struct fr_fleet_field answer_fields[] = {
	{FIELD(fr_fleet_answer, id, FR_FLEET_ID), false},
	{FIELD(fr_fleet_answer, machine, FR_FLEET_NAME), false},
	{FIELD(fr_fleet_answer, state, FR_FLEET_STATE), false},
	{FIELD(fr_fleet_answer, why, FR_FLEET_TEXT), true},
	{FIELD(fr_fleet_answer, path, FR_FLEET_KEY), true},
	{FIELD(fr_fleet_answer, object, FR_FLEET_KEY), true},
	{FIELD(fr_fleet_answer, bytes, FR_FLEET_COUNT), true},
	{FIELD(fr_fleet_answer, uploaded_bytes, FR_FLEET_COUNT), true},
};
const struct fr_fleet_table fr_fleet_answer_table = {
	"the answer", answer_fields, FR_ARRAY_SIZE(answer_fields)};

static const struct fr_fleet_field presence_fields[] = {
	{FIELD(fr_fleet_presence, machine, FR_FLEET_NAME), false},
	{FIELD(fr_fleet_presence, labels, FR_FLEET_LABELS), false},
	{FIELD(fr_fleet_presence, boot_id, FR_FLEET_WORD), true},
	{FIELD(fr_fleet_presence, version, FR_FLEET_WORD), true},
	{FIELD(fr_fleet_presence, recorder, FR_FLEET_TEXT), true},
	{FIELD(fr_fleet_presence, clock, FR_FLEET_CLOCK), false},
	{FIELD(fr_fleet_presence, uploads, FR_FLEET_COUNT), true},
	{FIELD(fr_fleet_presence, uploads_bytes, FR_FLEET_COUNT), true},
	{FIELD(fr_fleet_presence, store, FR_FLEET_TEXT), true},
	{FIELD(fr_fleet_presence, leaving, FR_FLEET_FLAG), true},
};
const struct fr_fleet_table fr_fleet_presence_table = {
	"the presence", presence_fields, FR_ARRAY_SIZE(presence_fields)};

static const struct fr_fleet_field manifest_fields[] = {
	{FIELD(fr_fleet_manifest, id, FR_FLEET_ID), false},
	{FIELD(fr_fleet_manifest, machine, FR_FLEET_NAME), false},
	{FIELD(fr_fleet_manifest, labels, FR_FLEET_LABELS), false},
	{FIELD(fr_fleet_manifest, clock, FR_FLEET_CLOCK), false},
	{FIELD(fr_fleet_manifest, from_ns, FR_FLEET_TIME), false},
	{FIELD(fr_fleet_manifest, to_ns, FR_FLEET_TIME), false},
	{FIELD(fr_fleet_manifest, at_ns, FR_FLEET_TIME), false},
	{FIELD(fr_fleet_manifest, boot_id, FR_FLEET_WORD), true},
	{FIELD(fr_fleet_manifest, trigger, FR_FLEET_WORD), true},
	{FIELD(fr_fleet_manifest, cause, FR_FLEET_TEXT), true},
	{FIELD(fr_fleet_manifest, by, FR_FLEET_TEXT), true},
	{FIELD(fr_fleet_manifest, file, FR_FLEET_WORD), false},
	{FIELD(fr_fleet_manifest, object, FR_FLEET_KEY), true},
	{FIELD(fr_fleet_manifest, sha256, FR_FLEET_SHA), true},
	{FIELD(fr_fleet_manifest, bytes, FR_FLEET_COUNT), false},
	{FIELD(fr_fleet_manifest, samples, FR_FLEET_COUNT), true},
	{FIELD(fr_fleet_manifest, lost, FR_FLEET_COUNT), true},
};
const struct fr_fleet_table fr_fleet_manifest_table = {
	"the manifest", manifest_fields, FR_ARRAY_SIZE(manifest_fields)};

static const struct fr_fleet_field clock_fields[] = {
	{FIELD(fr_fleet_clock, offset_ns, FR_FLEET_SHIFT), false},
	{FIELD(fr_fleet_clock, error_ns, FR_FLEET_ERROR), false},
	{FIELD(fr_fleet_clock, wall_offset_ns, FR_FLEET_SHIFT), true},
	{FIELD(fr_fleet_clock, measured_ns, FR_FLEET_TIME), true},
};
const struct fr_fleet_table fr_fleet_clock_table = {"clock", clock_fields, FR_ARRAY_SIZE(clock_fields)};

const char *fr_fleet_state_name(enum fr_fleet_state s)
{
	static const char *const names[] = {[FR_FLEET_RECORDING] = "recording",
		[FR_FLEET_DONE] = "done",
		[FR_FLEET_STORED] = "stored",
		[FR_FLEET_REFUSED] = "refused",
		[FR_FLEET_FAILED] = "failed"};

	return (size_t)s < FR_ARRAY_SIZE(names) ? names[s] : "unknown";
}

static char *print(const struct fr_fleet_table *t, const void *base)
{
	cJSON *o = fr_fleet_fields_json(t, base);
	char *text = o ? cJSON_PrintUnformatted(o) : NULL;

	cJSON_Delete(o);
	return text;
}

char *fr_fleet_command_json(const struct fr_fleet_command *c)
{
	return print(&fr_fleet_command_table, c);
}

char *fr_fleet_answer_json(const struct fr_fleet_answer *a)
{
	return print(&fr_fleet_answer_table, a);
}

char *fr_fleet_presence_json(const struct fr_fleet_presence *p)
{
	return print(&fr_fleet_presence_table, p);
}

char *fr_fleet_manifest_json(const struct fr_fleet_manifest *m)
{
	return print(&fr_fleet_manifest_table, m);
}

static int bad(const struct fr_fleet_table *t, const char *why, struct fr_diag *d)
{
	return fr_fail(d, -EBADMSG, NULL, "%s is not valid: %s", t->what, why);
}

static int read_message(
	const struct fr_fleet_table *t, const char *data, size_t n, void *base, struct fr_diag *d)
{
	_cleanup_free_ char *copy = NULL;
	const char *end = NULL;
	cJSON *o;
	int r;

	if (n > FR_FLEET_MESSAGE_MAX)
		return bad(t, "it is too large", d);
	/* cJSON 1.7.15 can read the byte behind a text that is cut, so there are some. */
	copy = malloc(n + 8);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, data, n);
	memset(copy + n, 0, 8);
	if (memchr(copy, '\0', n))
		return bad(t, "it is not JSON", d);
	o = cJSON_ParseWithLengthOpts(copy, n + 1, &end, true);
	r = o ? fr_fleet_fields_read(t, o, base, d) : bad(t, "it is not JSON", d);
	cJSON_Delete(o);
	return r;
}

int fr_fleet_command_read(const char *data, size_t n, struct fr_fleet_command *ret, struct fr_diag *d)
{
	struct fr_fleet_command c = {0};
	int r = read_message(&fr_fleet_command_table, data, n, &c, d);

	if (r < 0)
		return r;
	if (fr_selector_check(c.selector, NULL) < 0)
		return bad(&fr_fleet_command_table, "its selector cannot be read", d);
	if (c.from_ns > c.to_ns || (c.to_ns > 0 && c.from_ns == 0))
		return bad(&fr_fleet_command_table, "its window ends before it begins", d);
	if (c.last_ns > 366 * DAY_NS || c.post_ns > WAIT_MAX_NS || c.limit_ns > WAIT_MAX_NS)
		return bad(&fr_fleet_command_table, "a span is too long", d);
	*ret = c;
	return 0;
}

int fr_fleet_answer_read(const char *data, size_t n, struct fr_fleet_answer *ret, struct fr_diag *d)
{
	struct fr_fleet_answer a = {0};
	int r = read_message(&fr_fleet_answer_table, data, n, &a, d);

	if (r == 0)
		*ret = a;
	return r;
}

int fr_fleet_presence_read(const char *data, size_t n, struct fr_fleet_presence *ret, struct fr_diag *d)
{
	struct fr_fleet_presence p = {0};
	int r = read_message(&fr_fleet_presence_table, data, n, &p, d);

	if (r == 0)
		*ret = p;
	return r;
}

/* The file becomes a name in a folder of the reader. */
static bool is_file(const char *name)
{
	return strncmp(name, DUMP, strlen(DUMP)) == 0 && name[strlen(DUMP)] &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
		       strlen(name);
}

static bool ends_with_file(const char *object, const char *file)
{
	const char *slash = strrchr(object, '/');

	return slash && strcmp(slash + 1, file) == 0;
}

int fr_fleet_manifest_read(const char *data, size_t n, struct fr_fleet_manifest *ret, struct fr_diag *d)
{
	struct fr_fleet_manifest m = {0};
	int r = read_message(&fr_fleet_manifest_table, data, n, &m, d);

	if (r < 0)
		return r;
	if (m.from_ns > m.to_ns)
		return bad(&fr_fleet_manifest_table, "its window ends before it begins", d);
	if (!is_file(m.file))
		return bad(&fr_fleet_manifest_table, "'file' is not the name of a dump", d);
	if (*m.object && (!ends_with_file(m.object, m.file) || !*m.sha256))
		return bad(&fr_fleet_manifest_table, "'object' does not fit 'file', or has no hash", d);
	*ret = m;
	return 0;
}
