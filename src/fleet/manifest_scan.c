// SPDX-License-Identifier: GPL-2.0-or-later
/* An index has many entries, and a list of them needs few members of each. So this reads JSON without
   building a tree. */
#include "fleet/manifest_scan.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 64

struct scan {
	const char *p, *end;
};

static void skip_blanks(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

static bool take(struct scan *s, char c)
{
	skip_blanks(s);
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

/* Takes a string. RET is its content between the quotes, with its escapes. */
static bool take_string(struct scan *s, struct fr_json_slice *ret)
{
	const char *quote;

	if (!take(s, '"'))
		return false;
	ret->s = s->p;
	for (;;) {
		const char *back;

		quote = memchr(s->p, '"', (size_t)(s->end - s->p));
		if (!quote)
			return false;
		back = quote;
		while (back > ret->s && back[-1] == '\\')
			back--;
		s->p = quote + 1;
		if ((quote - back) % 2 == 0)
			break;
	}
	ret->n = (size_t)(quote - ret->s);
	return true;
}

/* Takes a number, true, false or null. */
static bool take_word(struct scan *s, struct fr_json_slice *ret)
{
	ret->s = s->p;
	while (s->p < s->end &&
		(strchr("+-.", *s->p) ? *s->p != '\0'
				      : (*s->p >= '0' && *s->p <= '9') || (*s->p >= 'a' && *s->p <= 'z') ||
						*s->p == 'E'))
		s->p++;
	ret->n = (size_t)(s->p - ret->s);
	return ret->n > 0;
}

/* Takes the rest of an object or an array, after its first bracket. It is not needed, so only its brackets
   and strings are looked at. */
static bool skip_nested(struct scan *s)
{
	struct fr_json_slice string;

	for (int depth = 1; depth > 0;) {
		skip_blanks(s);
		if (s->p == s->end || depth == DEPTH_MAX)
			return false;
		if (*s->p == '"') {
			if (!take_string(s, &string))
				return false;
			continue;
		}
		depth += (*s->p == '{' || *s->p == '[') - (*s->p == '}' || *s->p == ']');
		s->p++;
	}
	return true;
}

static bool take_value(struct scan *s, struct fr_json_slice *ret, bool *ret_is_string)
{
	skip_blanks(s);
	if (s->p == s->end)
		return false;
	*ret_is_string = *s->p == '"';
	if (*ret_is_string)
		return take_string(s, ret);
	if (*s->p != '{' && *s->p != '[')
		return take_word(s, ret);
	*ret = (struct fr_json_slice){s->p++, 1};
	return skip_nested(s);
}

static bool read_number(struct fr_json_slice v, uint64_t *ret)
{
	uint64_t n = 0;

	if (v.n == 0)
		return false;
	for (size_t i = 0; i < v.n; i++) {
		if (v.s[i] < '0' || v.s[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
			__builtin_add_overflow(n, v.s[i] - '0', &n))
			return false;
	}
	*ret = n;
	return true;
}

static bool is(struct fr_json_slice name, const char *text)
{
	return name.n == strlen(text) && memcmp(name.s, text, name.n) == 0;
}

static bool keep_member(
	struct fr_manifest_scan *m, struct fr_json_slice name, struct fr_json_slice v, bool is_string)
{
	if (is(name, "bytes"))
		return read_number(v, &m->bytes);
	if (is(name, "trigger"))
		m->trigger = v;
	else if (is(name, "cause"))
		m->cause = v;
	else if (is(name, "by"))
		m->by = v;
	else
		return true;
	return is_string;
}

int fr_manifest_scan(const char *data, size_t n, struct fr_manifest_scan *ret)
{
	struct scan s = {data, data + n};
	struct fr_manifest_scan m = {0};
	struct fr_json_slice name, value;
	bool is_string, has_bytes = false;

	if (n > FR_FLEET_MESSAGE_MAX || !take(&s, '{'))
		return -EBADMSG;
	do {
		if (!take_string(&s, &name) || !take(&s, ':') || !take_value(&s, &value, &is_string) ||
			!keep_member(&m, name, value, is_string))
			return -EBADMSG;
		has_bytes = has_bytes || is(name, "bytes");
	} while (take(&s, ','));
	if (!take(&s, '}') || !has_bytes)
		return -EBADMSG;
	skip_blanks(&s);
	if (s.p != s.end)
		return -EBADMSG;
	*ret = m;
	return 0;
}

void fr_json_slice_text(struct fr_json_slice v, char *ret, size_t size)
{
	char quoted[4 * FR_FLEET_TEXT_SIZE + 8] = "\"";
	cJSON *o;
	size_t n = v.n;

	ret[0] = '\0';
	if (n == 0 || n > sizeof(quoted) - 8)
		return;
	memcpy(quoted + 1, v.s, n);
	quoted[n + 1] = '"';
	o = cJSON_ParseWithLength(quoted, n + 3);
	if (cJSON_IsString(o))
		snprintf(ret, size, "%s", o->valuestring);
	cJSON_Delete(o);
	fr_utf8_sanitize(ret);
}
