// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/datagram.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "base/utf8.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

struct text {
	const uint8_t *p;
	size_t len;
};

static bool is_equal(const struct text *t, const char *s)
{
	return t->len == strlen(s) && memcmp(t->p, s, t->len) == 0;
}

/* Copies T into RET, which has SIZE bytes, with '?' for each byte that must not be shown. Truncates a long
   text between two characters. Returns whether RET is equal to T. */
static bool copy_text(const struct text *t, char *ret, size_t size)
{
	size_t out = 0, i = 0, n;
	bool is_exact = true;

	for (; i < t->len; i += FR_MAX(n, 1u)) {
		n = fr_utf8_printable(t->p + i, t->len - i);
		if (out + FR_MAX(n, 1u) >= size)
			break;
		if (n)
			memcpy(ret + out, t->p + i, n);
		else
			ret[out] = '?';
		is_exact &= n > 0;
		out += FR_MAX(n, 1u);
	}
	ret[out] = '\0';
	return is_exact && i == t->len;
}

static int parse_trigger(const struct text *t, void *ret)
{
	return copy_text(t, ret, FR_TRIGGER_NAME_SIZE) ? 0 : -EINVAL;
}

/* A malformed reason is not an error, because the anomaly itself is still valid. */
static int parse_reason(const struct text *t, void *ret)
{
	copy_text(t, ret, FR_CAUSE_TEXT_SIZE);
	return 0;
}

static int parse_u64(const struct text *t, void *ret)
{
	char digits[24];

	return copy_text(t, digits, sizeof(digits)) ? fr_u64_parse(digits, ret) : -EINVAL;
}

static int parse_tid(const struct text *t, void *ret)
{
	uint64_t tid;

	if (parse_u64(t, &tid) < 0 || tid > INT_MAX)
		return -EINVAL;
	*(pid_t *)ret = (pid_t)tid;
	return 0;
}

static int parse_unit(const struct text *t, void *ret)
{
	char name[16];
	enum fr_unit_of_cause unit;

	if (!copy_text(t, name, sizeof(name)))
		return -EINVAL;
	unit = fr_cause_unit_parse(name);
	*(enum fr_unit_of_cause *)ret = unit;
	return unit == FR_CAUSE_NONE ? -EINVAL : 0;
}

static int parse_line(const struct text *line, struct fr_datagram *ret)
{
#define MEMBER(name) offsetof(struct fr_datagram, name)
	static const struct {
		const char *key;
		int (*parse)(const struct text *value, void *ret);
		size_t offset;
	} keys[] = {
		{"TRIGGER", parse_trigger, MEMBER(trigger)},
		{"REASON", parse_reason, MEMBER(reason)},
		{"VALUE", parse_u64, MEMBER(value)},
		{"THRESHOLD", parse_u64, MEMBER(threshold)},
		{"UNIT", parse_unit, MEMBER(unit)},
		{"TIME", parse_u64, MEMBER(time_ns)},
		{"TID", parse_tid, MEMBER(tid)},
	};
	const uint8_t *equals = memchr(line->p, '=', line->len);
	struct text key, value;

	if (!equals || equals == line->p)
		return -EINVAL;
	key = (struct text){line->p, (size_t)(equals - line->p)};
	value = (struct text){equals + 1, line->len - key.len - 1};
	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++)
		if (is_equal(&key, keys[i].key))
			return keys[i].parse(&value, (char *)ret + keys[i].offset);
	return 0;
}

int fr_datagram_parse(const void *data, size_t len, struct fr_datagram *ret)
{
	const uint8_t *p = data, *end = p + len;
	struct fr_datagram d = {0};
	bool has_line = false;

	while (p < end) {
		const uint8_t *newline = memchr(p, '\n', (size_t)(end - p));
		const struct text line = {p, (size_t)((newline ? newline : end) - p)};

		if (line.len > 0 && parse_line(&line, &d) < 0)
			return -EINVAL;
		has_line |= line.len > 0;
		p = newline ? newline + 1 : end;
	}
	*ret = d;
	return has_line ? 0 : -EINVAL;
}
