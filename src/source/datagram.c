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

static bool is(const struct text *t, const char *s)
{
	return t->len == strlen(s) && memcmp(t->p, s, t->len) == 0;
}

/* The length of the character at T's byte AT that may be shown, or 0. */
static size_t character(const struct text *t, size_t at)
{
	const uint8_t *p = t->p + at;

	/* With two bytes, 0x80 to 0x9f are control characters, which terminals obey. */
	if (*p < ' ' || *p == 0x7f || (*p == 0xc2 && at + 1 < t->len && p[1] < 0xa0))
		return 0;
	return fr_utf8_sequence(p, t->len - at);
}

/* Into RET what fits of it. What is no text becomes '?': an anomaly is not lost for its words. */
static void take_text(const struct text *t, char *ret, size_t size)
{
	size_t out = 0, n;

	for (size_t i = 0; i < t->len; i += FR_MAX(n, 1u)) {
		n = character(t, i);
		if (out + FR_MAX(n, 1u) >= size)
			break;
		if (n)
			memcpy(ret + out, t->p + i, n);
		else
			ret[out] = '?';
		out += FR_MAX(n, 1u);
	}
	ret[out] = '\0';
}

static int take_name(const struct text *t, char *ret, size_t size)
{
	if (t->len >= size)
		return -EINVAL;
	for (size_t i = 0, n; i < t->len; i += n) {
		n = character(t, i);
		if (n == 0)
			return -EINVAL;
	}
	take_text(t, ret, size);
	return 0;
}

static int take_number(const struct text *t, uint64_t max, uint64_t *ret)
{
	char digits[24];
	uint64_t value;

	if (t->len == 0 || t->len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, t->p, t->len);
	digits[t->len] = '\0';
	if (strspn(digits, "0123456789") != t->len || fr_u64_parse(digits, &value) < 0 || value > max)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int take_unit(const struct text *t, enum fr_unit_of_cause *ret)
{
	static const struct {
		const char *name;
		enum fr_unit_of_cause unit;
	} units[] = {{"ns", FR_CAUSE_NS}, {"count", FR_CAUSE_COUNT}, {"bytes", FR_CAUSE_BYTES},
		{"percent", FR_CAUSE_PERCENT}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(units); i++)
		if (is(t, units[i].name)) {
			*ret = units[i].unit;
			return 0;
		}
	return -EINVAL;
}

static int take_pair(const struct text *key, const struct text *value, struct fr_datagram *ret)
{
	uint64_t tid;

	if (is(key, "TRIGGER"))
		return take_name(value, ret->trigger, sizeof(ret->trigger));
	if (is(key, "REASON"))
		take_text(value, ret->reason, sizeof(ret->reason));
	if (is(key, "VALUE"))
		return take_number(value, UINT64_MAX, &ret->value);
	if (is(key, "THRESHOLD"))
		return take_number(value, UINT64_MAX, &ret->threshold);
	if (is(key, "TIME"))
		return take_number(value, UINT64_MAX, &ret->time_ns);
	if (is(key, "UNIT"))
		return take_unit(value, &ret->unit);
	if (is(key, "TID")) {
		if (take_number(value, INT_MAX, &tid) < 0)
			return -EINVAL;
		ret->tid = (pid_t)tid;
	}
	return 0;
}

static int take_line(const struct text *line, struct fr_datagram *ret)
{
	const uint8_t *equals = memchr(line->p, '=', line->len);
	struct text key, value;

	if (!equals || equals == line->p)
		return -EINVAL;
	key = (struct text){line->p, (size_t)(equals - line->p)};
	value = (struct text){equals + 1, line->len - key.len - 1};
	return take_pair(&key, &value, ret);
}

int fr_datagram_parse(const void *data, size_t len, struct fr_datagram *ret)
{
	struct text left = {data, len};
	struct fr_datagram d = {0};
	bool any = false;

	while (left.len > 0) {
		const uint8_t *newline = memchr(left.p, '\n', left.len);
		struct text line = {left.p, newline ? (size_t)(newline - left.p) : left.len};
		size_t whole = line.len + (newline ? 1 : 0);

		if (line.len > 0 && take_line(&line, &d) < 0)
			return -EINVAL;
		any |= line.len > 0;
		left.p += whole;
		left.len -= whole;
	}
	*ret = d;
	return any ? 0 : -EINVAL;
}
