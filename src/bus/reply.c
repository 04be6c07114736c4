// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads what a broker writes. Each function accepts exactly one form, because a broker can be hostile. */
#include "bus/bus_private.h"

#include <errno.h>
#include <string.h>
#include <time.h>

int bus_parse_number(const char *text, uint64_t *ret)
{
	uint64_t value = 0;

	if (!text || !*text || (text[0] == '0' && text[1]))
		return -EBADMSG;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, (uint64_t)10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return -EBADMSG;
	}
	*ret = value;
	return 0;
}

/* Reads a field of N digits, and the byte AFTER it. */
static const char *digits(const char *text, unsigned n, char after, unsigned low, unsigned high, int *ret)
{
	unsigned value = 0;

	if (!text)
		return NULL;
	for (; n; n--, text++) {
		if (*text < '0' || *text > '9')
			return NULL;
		value = value * 10 + (unsigned)(*text - '0');
	}
	*ret = (int)value;
	if (value < low || value > high || (after && *text != after))
		return NULL;
	return after ? text + 1 : text;
}

int bus_parse_time(const char *text, uint64_t *ret_ns)
{
	struct tm tm = {0};
	uint64_t ns = 0, scale = 100000000;
	time_t s;
	int day;

	text = digits(text, 4, '-', 1970, 2261, &tm.tm_year);
	text = digits(text, 2, '-', 1, 12, &tm.tm_mon);
	text = digits(text, 2, 'T', 1, 31, &tm.tm_mday);
	text = digits(text, 2, ':', 0, 23, &tm.tm_hour);
	text = digits(text, 2, ':', 0, 59, &tm.tm_min);
	text = digits(text, 2, '\0', 0, 59, &tm.tm_sec);
	if (!text)
		return -EBADMSG;
	if (*text == '.') {
		for (text++; *text >= '0' && *text <= '9'; text++, scale /= 10) {
			if (!scale)
				return -EBADMSG;
			ns += (uint64_t)(*text - '0') * scale;
		}
		if (scale == 100000000)
			return -EBADMSG;
	}
	if (strcmp(text, "Z") != 0)
		return -EBADMSG;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	day = tm.tm_mday;
	s = timegm(&tm); /* changes February 30 to March 2 */
	if (s < 0 || tm.tm_mday != day)
		return -EBADMSG;
	*ret_ns = (uint64_t)s * FR_NSEC_PER_SEC + ns;
	return 0;
}

const char *bus_header(natsMsg *msg, const char *name)
{
	const char **values = NULL, *value = NULL;
	int n = 0;

	if (natsMsgHeader_Values(msg, name, &values, &n) != NATS_OK)
		return NULL;
	if (n == 1)
		value = values[0];
	free((void *)values);
	return value;
}

int bus_status(natsMsg *msg)
{
	const char *text = bus_header(msg, "Status");
	uint64_t value;

	return text && bus_parse_number(text, &value) == 0 && value < 1000 ? (int)value : 0;
}

bool bus_subject_is_valid(const char *subject, bool wildcards)
{
	bool starts = true; /* a token */

	if (!*subject || strlen(subject) >= FR_BUS_SUBJECT_SIZE)
		return false;
	for (const char *p = subject; *p; p++) {
		if (*p <= ' ' || *p > '~')
			return false;
		if (*p == '.' && (starts || !p[1]))
			return false;
		if ((*p == '*' || *p == '>') &&
			(!wildcards || !starts || (p[1] && p[1] != '.') || (*p == '>' && p[1])))
			return false;
		starts = *p == '.';
	}
	return true;
}

bool bus_name_is_valid(const char *stream)
{
	size_t n = strlen(stream);

	return n > 0 && n < 64 &&
	       strspn(stream, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

bool bus_subject_matches(const char *pattern, const char *subject)
{
	for (;;) {
		size_t n = strcspn(pattern, "."), m = strcspn(subject, ".");

		if (!m)
			return false;
		if (strcmp(pattern, ">") == 0)
			return true;
		if (!(n == 1 && *pattern == '*') && (n != m || memcmp(pattern, subject, n) != 0))
			return false;
		if (!pattern[n] || !subject[m])
			return !pattern[n] && !subject[m];
		pattern += n + 1;
		subject += m + 1;
	}
}

uint64_t bus_json_u64(const cJSON *object, const char *name, bool *ok)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	/* cJSON has doubles. They are exact up to 2^53; a larger age of a stream is rounded. */
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > 9e18 ||
		item->valuedouble != (double)(uint64_t)item->valuedouble) {
		*ok = false;
		return 0;
	}
	return (uint64_t)item->valuedouble;
}
