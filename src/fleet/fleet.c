// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/fleet.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define STAMP_LENGTH 16 /* "20261128T205726Z" */
#define ID_LENGTH (STAMP_LENGTH + 1 + 8)

_Static_assert(ID_LENGTH < FR_FLEET_ID_SIZE, "an id fits");

/* The functions of <ctype.h> depend on the locale. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_plain(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

int fr_fleet_id_new(uint64_t wall_ns, char ret[FR_FLEET_ID_SIZE])
{
	const time_t seconds = (time_t)(wall_ns / FR_NSEC_PER_SEC);
	uint32_t number;
	struct tm tm;
	size_t n;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	if (!gmtime_r(&seconds, &tm))
		return -ERANGE;
	/* The first 12 bits are the fraction of the second, so ids of one second sort by time, too. */
	number = (uint32_t)((wall_ns % FR_NSEC_PER_SEC << 12) / FR_NSEC_PER_SEC) << 20 | number >> 12;
	n = strftime(ret, FR_FLEET_ID_SIZE, "%Y%m%dT%H%M%SZ", &tm);
	snprintf(ret + n, FR_FLEET_ID_SIZE - n, "-%08x", number);
	return 0;
}

/* Reads N digits. Returns -1 if there are others. */
static int read_digits(const char *s, size_t n)
{
	int v = 0;

	for (size_t i = 0; i < n; i++) {
		if (!is_digit(s[i]))
			return -1;
		v = 10 * v + (s[i] - '0');
	}
	return v;
}

static int read_stamp(const char *s, uint64_t *ret_s)
{
	const int year = read_digits(s, 4), month = read_digits(s + 4, 2), day = read_digits(s + 6, 2),
		  hour = read_digits(s + 9, 2), minute = read_digits(s + 11, 2),
		  second = read_digits(s + 13, 2);
	struct tm tm = {.tm_year = year - 1900,
		.tm_mon = month - 1,
		.tm_mday = day,
		.tm_hour = hour,
		.tm_min = minute,
		.tm_sec = second};
	time_t t;

	if (year < 1970 || month < 1 || day < 1 || hour < 0 || minute < 0 || second < 0 || s[8] != 'T' ||
		s[15] != 'Z')
		return -EINVAL;
	t = timegm(&tm);
	/* timegm() corrects a date that does not exist, so the parts change. */
	if (t < 0 || (uint64_t)t > UINT64_MAX / FR_NSEC_PER_SEC - 1 || tm.tm_year != year - 1900 ||
		tm.tm_mon != month - 1 || tm.tm_mday != day || tm.tm_hour != hour || tm.tm_min != minute ||
		tm.tm_sec != second)
		return -EINVAL;
	*ret_s = (uint64_t)t;
	return 0;
}

int fr_fleet_id_time(const char *id, uint64_t *ret_wall_ns)
{
	uint64_t seconds;

	if (strnlen(id, ID_LENGTH + 1) != ID_LENGTH || id[STAMP_LENGTH] != '-' ||
		strspn(id + STAMP_LENGTH + 1, "0123456789abcdef") != 8 || read_stamp(id, &seconds) < 0)
		return -EINVAL;
	*ret_wall_ns = seconds * FR_NSEC_PER_SEC;
	return 0;
}

bool fr_fleet_id_is_valid(const char *text)
{
	uint64_t ns;

	return fr_fleet_id_time(text, &ns) == 0;
}

bool fr_fleet_name_is_valid(const char *name)
{
	const size_t n = strnlen(name, FR_FLEET_NAME_SIZE);

	for (size_t i = 0; i < n; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
			return false;
	return n > 0 && n < FR_FLEET_NAME_SIZE;
}

void fr_fleet_token(const char *name, char ret[FR_FLEET_TOKEN_SIZE])
{
	static const char digits[] = "0123456789ABCDEF";
	char *to = ret;

	for (; *name && to + 3 < ret + FR_FLEET_TOKEN_SIZE; name++) {
		const unsigned char c = (unsigned char)*name;

		if (is_plain(*name)) {
			*to++ = *name;
			continue;
		}
		*to++ = '=';
		*to++ = digits[c >> 4];
		*to++ = digits[c & 15];
	}
	*to = '\0';
}

static int read_hex(char c)
{
	return is_digit(c) ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int fr_fleet_token_decode(const char *token, size_t n, char ret[FR_FLEET_NAME_SIZE])
{
	char name[FR_FLEET_NAME_SIZE] = "", again[FR_FLEET_TOKEN_SIZE];
	size_t len = 0;

	for (size_t i = 0; i < n; len++) {
		int high, low;

		if (len == FR_FLEET_NAME_SIZE - 1)
			return -EINVAL;
		if (token[i] != '=') {
			name[len] = token[i++];
			continue;
		}
		if (n - i < 3)
			return -EINVAL;
		high = read_hex(token[i + 1]);
		low = read_hex(token[i + 2]);
		if (high < 0 || low < 0)
			return -EINVAL;
		name[len] = (char)(high << 4 | low);
		i += 3;
	}
	if (strnlen(name, sizeof(name)) != len || !fr_fleet_name_is_valid(name))
		return -EINVAL;
	/* A name has only one token. */
	fr_fleet_token(name, again);
	if (strlen(again) != n || memcmp(again, token, n) != 0)
		return -EINVAL;
	memcpy(ret, name, FR_FLEET_NAME_SIZE);
	return 0;
}

void fr_fleet_subject(const char *prefix, const char *id, const char *name, char ret[FR_FLEET_SUBJECT_SIZE])
{
	char token[FR_FLEET_TOKEN_SIZE] = "";

	if (name)
		fr_fleet_token(name, token);
	snprintf(ret, FR_FLEET_SUBJECT_SIZE, "%s%s%s%s%s", prefix, id ? "." : "", id ? id : "",
		name ? "." : "", token);
}

int fr_fleet_subject_parse(const char *subject, const char *prefix, char ret_id[FR_FLEET_ID_SIZE],
	char ret_name[FR_FLEET_NAME_SIZE])
{
	char id[FR_FLEET_ID_SIZE] = "", name[FR_FLEET_NAME_SIZE];
	const size_t n = strlen(prefix);

	if (strncmp(subject, prefix, n) != 0)
		return -EINVAL;
	subject += n;
	if (ret_id) {
		if (*subject != '.' || strnlen(subject, 1 + ID_LENGTH) != 1 + ID_LENGTH)
			return -EINVAL;
		memcpy(id, subject + 1, ID_LENGTH);
		if (!fr_fleet_id_is_valid(id))
			return -EINVAL;
		subject += 1 + ID_LENGTH;
	}
	if (ret_name) {
		if (*subject != '.' || fr_fleet_token_decode(subject + 1, strlen(subject + 1), name) < 0)
			return -EINVAL;
		memcpy(ret_name, name, sizeof(name));
	} else if (*subject) {
		return -EINVAL;
	}
	if (ret_id)
		memcpy(ret_id, id, sizeof(id));
	return 0;
}
