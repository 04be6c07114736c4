// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/json.h"
#include "base/units.h"
#include "base/utf8.h"
#include "fleet/message_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_MAX (1ULL << 53) /* a double has all whole numbers up to here */

/* Copies TEXT, cut at a whole character. */
static void copy_text(const char *text, char *ret, size_t size)
{
	size_t n = strnlen(text, size);

	if (n == size) {
		n--;
		while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
			n--;
	}
	memcpy(ret, text, n);
	memset(ret + n, 0, size - n);
	fr_utf8_sanitize(ret);
}

static bool is_printable(const char *text)
{
	const uint8_t *s = (const uint8_t *)text, *end = s + strlen(text);

	for (size_t n; s < end; s += n) {
		n = fr_utf8_printable(s, (size_t)(end - s));
		if (n == 0)
			return false;
	}
	return true;
}

static bool is_word(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

static bool is_sha(const char *text)
{
	return !*text || (strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64);
}

static bool is_valid(enum fr_fleet_kind kind, const char *text)
{
	switch (kind) {
	case FR_FLEET_ID:
		return fr_fleet_id_is_valid(text);
	case FR_FLEET_NAME:
		return fr_fleet_name_is_valid(text);
	case FR_FLEET_WORD:
		return is_word(text);
	case FR_FLEET_SHA:
		return is_sha(text);
	default:
		return is_printable(text);
	}
}

static int read_text(const struct fr_fleet_field *f, const cJSON *item, void *to)
{
	const char *text = cJSON_GetStringValue(item);

	if (!text)
		return -EBADMSG;
	if (f->kind == FR_FLEET_TEXT) {
		copy_text(text, to, f->size);
		return 0;
	}
	if (strnlen(text, f->size) == f->size || !is_valid(f->kind, text))
		return -EBADMSG;
	strcpy(to, text);
	return 0;
}

static int read_u64(const cJSON *item, uint64_t *ret)
{
	const char *text = cJSON_GetStringValue(item);
	double v;

	if (text)
		return fr_u64_parse(text, ret) < 0 ? -EBADMSG : 0;
	if (!cJSON_IsNumber(item))
		return -EBADMSG;
	v = item->valuedouble;
	if (!(v >= 0 && v <= (double)EXACT_MAX) || v != (double)(uint64_t)v)
		return -EBADMSG;
	*ret = (uint64_t)v;
	return 0;
}

static int read_i64(const cJSON *item, int64_t *ret)
{
	const char *text = cJSON_GetStringValue(item);
	const bool negative = text && *text == '-';
	uint64_t v;

	if (!text || fr_u64_parse(text + negative, &v) < 0 || v > (uint64_t)INT64_MAX + negative)
		return -EBADMSG;
	*ret = negative ? (int64_t)(0 - v) : (int64_t)v;
	return 0;
}

static int read_state(const cJSON *item, enum fr_fleet_state *ret)
{
	const char *text = cJSON_GetStringValue(item);

	for (int i = 0; text && i < FR_FLEET_STATES; i++)
		if (strcmp(text, fr_fleet_state_name((enum fr_fleet_state)i)) == 0) {
			*ret = (enum fr_fleet_state)i;
			return 0;
		}
	return -EBADMSG;
}

static int read_field(const struct fr_fleet_field *f, const cJSON *item, void *to, struct fr_diag *d)
{
	switch (f->kind) {
	case FR_FLEET_ERROR:
		if (cJSON_IsNull(item)) {
			*(uint64_t *)to = UINT64_MAX;
			return 0;
		}
		return read_u64(item, to);
	case FR_FLEET_TIME:
	case FR_FLEET_COUNT:
		return read_u64(item, to);
	case FR_FLEET_SHIFT:
		return read_i64(item, to);
	case FR_FLEET_FLAG:
		*(bool *)to = cJSON_IsTrue(item);
		return cJSON_IsBool(item) ? 0 : -EBADMSG;
	case FR_FLEET_STATE:
		return read_state(item, to);
	case FR_FLEET_LABELS:
		return fr_labels_from_json(item, to) < 0 ? -EBADMSG : 0;
	case FR_FLEET_CLOCK:
		return cJSON_IsObject(item) ? fr_fleet_fields_read(&fr_fleet_clock_table, item, to, d)
					    : -EBADMSG;
	default:
		return read_text(f, item, to);
	}
}

int fr_fleet_fields_read(const struct fr_fleet_table *t, const cJSON *object, void *base, struct fr_diag *d)
{
	if (!cJSON_IsObject(object))
		return fr_fail(d, -EBADMSG, NULL, "%s is not valid: it is not an object", t->what);
	for (const struct fr_fleet_field *f = t->fields; f < t->fields + t->n; f++) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, f->name);

		if (!item && f->is_optional)
			continue;
		if (!item)
			return fr_fail(
				d, -EBADMSG, NULL, "%s is not valid: it has no '%s'", t->what, f->name);
		if (read_field(f, item, (char *)base + f->offset, d) < 0)
			return fr_fail(
				d, -EBADMSG, NULL, "%s is not valid: '%s' has a bad value", t->what, f->name);
	}
	return 0;
}

static cJSON *add_decimal(cJSON *o, const char *name, uint64_t magnitude, bool is_negative)
{
	char text[24];

	snprintf(text, sizeof(text), "%s%" PRIu64, is_negative ? "-" : "", magnitude);
	return cJSON_AddStringToObject(o, name, text);
}

static cJSON *add_text(cJSON *o, const struct fr_fleet_field *f, const char *text)
{
	_cleanup_free_ char *copy = NULL;

	if (!*text && f->is_optional)
		return o;
	copy = strndup(text, f->size - 1);
	if (!copy)
		return NULL;
	fr_utf8_sanitize(copy);
	return cJSON_AddStringToObject(o, f->name, copy);
}

/* Adds OBJECT, and owns it. */
static cJSON *add_object(cJSON *o, const char *name, cJSON *object)
{
	if (object && cJSON_AddItemToObject(o, name, object))
		return object;
	cJSON_Delete(object);
	return NULL;
}

/* Returns something, or NULL if there is no memory. */
static cJSON *add_field(cJSON *o, const struct fr_fleet_field *f, const void *from)
{
	const uint64_t number = f->size == sizeof(uint64_t) ? *(const uint64_t *)from : 0;
	const bool is_negative = f->kind == FR_FLEET_SHIFT && (int64_t)number < 0;

	switch (f->kind) {
	case FR_FLEET_ERROR:
		if (number == UINT64_MAX)
			return cJSON_AddNullToObject(o, f->name);
		return add_decimal(o, f->name, number, false);
	case FR_FLEET_COUNT:
		if (number <= EXACT_MAX)
			return fr_json_add_u64(o, f->name, number);
		return add_decimal(o, f->name, number, false);
	case FR_FLEET_TIME:
	case FR_FLEET_SHIFT:
		return add_decimal(o, f->name, is_negative ? 0 - number : number, is_negative);
	case FR_FLEET_FLAG:
		return cJSON_AddBoolToObject(o, f->name, *(const bool *)from);
	case FR_FLEET_STATE:
		return cJSON_AddStringToObject(
			o, f->name, fr_fleet_state_name(*(const enum fr_fleet_state *)from));
	case FR_FLEET_LABELS:
		return add_object(o, f->name, fr_labels_json(from));
	case FR_FLEET_CLOCK:
		return add_object(o, f->name, fr_fleet_fields_json(&fr_fleet_clock_table, from));
	default:
		return add_text(o, f, from);
	}
}

cJSON *fr_fleet_fields_json(const struct fr_fleet_table *t, const void *base)
{
	cJSON *o = cJSON_CreateObject();

	for (const struct fr_fleet_field *f = t->fields; o && f < t->fields + t->n; f++)
		if (!add_field(o, f, (const char *)base + f->offset)) {
			cJSON_Delete(o);
			o = NULL;
		}
	return o;
}
