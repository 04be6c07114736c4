// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/timestamp.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define LENGTH_MAX 64
#define DAY_NS (86400 * FR_NSEC_PER_SEC)
#define NS_MAX ((uint64_t)INT64_MAX)

/* Reads the digits after the point ("123456"), at most nine. */
static int parse_fraction(const char *s, uint64_t *ret_ns)
{
	uint64_t ns = 0, digit_ns = FR_NSEC_PER_SEC / 10;

	if (!*s)
		return -EINVAL;
	for (; *s; s++, digit_ns /= 10) {
		if (!isdigit((unsigned char)*s) || !digit_ns)
			return -EINVAL;
		ns += (uint64_t)(*s - '0') * digit_ns;
	}
	*ret_ns = ns;
	return 0;
}

static int add_seconds(time_t seconds, uint64_t fraction_ns, uint64_t *ret_ns)
{
	if (seconds < 0 || (uint64_t)seconds >= NS_MAX / FR_NSEC_PER_SEC)
		return -ERANGE;
	*ret_ns = (uint64_t)seconds * FR_NSEC_PER_SEC + fraction_ns;
	return 0;
}

/* Returns -EINVAL for a day that the calendar does not have. */
static int from_calendar(const struct tm *tm, bool utc, uint64_t fraction_ns, uint64_t *ret_ns)
{
	struct tm normal = *tm;
	time_t seconds;

	normal.tm_isdst = -1;
	seconds = utc ? timegm(&normal) : mktime(&normal);
	if (normal.tm_mday != tm->tm_mday || normal.tm_mon != tm->tm_mon)
		return -EINVAL;
	return add_seconds(seconds, fraction_ns, ret_ns);
}

/* Sets the date of TM to the date of the time NS. */
static void set_date(struct tm *tm, uint64_t ns, bool utc)
{
	const time_t seconds = (time_t)(ns / FR_NSEC_PER_SEC);
	struct tm day;

	if (utc)
		gmtime_r(&seconds, &day);
	else
		localtime_r(&seconds, &day);
	tm->tm_year = day.tm_year;
	tm->tm_mon = day.tm_mon;
	tm->tm_mday = day.tm_mday;
}

/* Reads a date, a time of day or both into RET, in one of the forms below. strptime() skips blanks and
   accepts single digits. So this function first replaces each digit by 0, and compares the result with the
   forms. */
static int match_form(const char *s, struct tm *ret, bool *ret_has_date, bool *ret_has_seconds)
{
	static const char *const forms[][2] = {{"0000-00-00 00:00:00", "%Y-%m-%d %H:%M:%S"},
		{"0000-00-00T00:00:00", "%Y-%m-%dT%H:%M:%S"}, {"0000-00-00 00:00", "%Y-%m-%d %H:%M"},
		{"0000-00-00T00:00", "%Y-%m-%dT%H:%M"}, {"0000-00-00", "%Y-%m-%d"}, {"00:00:00", "%H:%M:%S"},
		{"00:00", "%H:%M"}};
	char shape[LENGTH_MAX];
	const char *format = NULL, *end;

	strcpy(shape, s);
	for (char *c = shape; *c; c++)
		if (isdigit((unsigned char)*c))
			*c = '0';
	for (size_t i = 0; i < FR_ARRAY_SIZE(forms); i++)
		if (!strcmp(shape, forms[i][0]))
			format = forms[i][1];
	*ret = (struct tm){0};
	end = format ? strptime(s, format, ret) : NULL;
	if (!end || *end || ret->tm_sec > 59)
		return -EINVAL;
	*ret_has_date = strchr(format, 'Y');
	*ret_has_seconds = strchr(format, 'S');
	return 0;
}

/* Reads a date, a time of day or both. Changes S. */
static int parse_calendar(char *s, bool utc, uint64_t now_ns, uint64_t *ret_ns)
{
	char *fraction = s;
	uint64_t fraction_ns = 0;
	bool has_date, has_seconds;
	struct tm tm;
	int r;

	s = strsep(&fraction, ".");
	r = match_form(s, &tm, &has_date, &has_seconds);
	if (r == 0 && fraction)
		r = has_seconds ? parse_fraction(fraction, &fraction_ns) : -EINVAL;
	if (r < 0)
		return r;
	if (has_date)
		return from_calendar(&tm, utc, fraction_ns, ret_ns);
	set_date(&tm, now_ns, utc);
	r = from_calendar(&tm, utc, fraction_ns, ret_ns);
	if (r < 0 || *ret_ns <= now_ns)
		return r;
	set_date(&tm, now_ns - DAY_NS, utc);
	return from_calendar(&tm, utc, fraction_ns, ret_ns);
}

/* Reads the midnight of "today" or "yesterday". */
static int parse_day_name(const char *s, bool utc, uint64_t now_ns, uint64_t *ret_ns)
{
	struct tm tm = {0};

	if (strcmp(s, "today") != 0 && strcmp(s, "yesterday") != 0)
		return -EINVAL;
	set_date(&tm, *s == 't' ? now_ns : now_ns - DAY_NS, utc);
	return from_calendar(&tm, utc, 0, ret_ns);
}

/* Reads "1795216297.5". Changes S. */
static int parse_epoch(char *s, uint64_t *ret_ns)
{
	char *fraction = s;
	uint64_t seconds, fraction_ns = 0;
	int r = fr_u64_parse(strsep(&fraction, "."), &seconds);

	if (r == 0 && fraction)
		r = parse_fraction(fraction, &fraction_ns);
	return r < 0 ? r : add_seconds((time_t)FR_MIN(seconds, NS_MAX), fraction_ns, ret_ns);
}

static int parse_distance(const char *span, bool is_past, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t ns;
	int r = fr_duration_parse(span, &ns);

	if (r < 0)
		return r;
	if (is_past ? ns > now_ns : ns > NS_MAX - now_ns)
		return -ERANGE;
	*ret_ns = is_past ? now_ns - ns : now_ns + ns;
	return 0;
}

static bool remove_suffix(char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	if (n <= m || strcmp(s + n - m, suffix))
		return false;
	s[n - m] = '\0';
	return true;
}

static int parse(char *s, uint64_t now_ns, uint64_t *ret_ns)
{
	bool utc;
	int r;

	if (!strcmp(s, "now"))
		return parse_distance("0", true, now_ns, ret_ns);
	if (*s == '@')
		return parse_epoch(s + 1, ret_ns);
	if (*s == '-' || *s == '+')
		return parse_distance(s + 1, *s == '-', now_ns, ret_ns);
	if (remove_suffix(s, " ago"))
		return parse_distance(s, true, now_ns, ret_ns);
	if (remove_suffix(s, " left"))
		return parse_distance(s, false, now_ns, ret_ns);
	utc = remove_suffix(s, " UTC") || remove_suffix(s, "Z");
	r = parse_day_name(s, utc, now_ns, ret_ns);
	return r == -EINVAL ? parse_calendar(s, utc, now_ns, ret_ns) : r;
}

int fr_timestamp_parse(const char *s, uint64_t now_ns, uint64_t *ret_ns)
{
	char text[LENGTH_MAX];
	uint64_t ns;
	int r;

	if (strlen(s) >= sizeof(text))
		return -EINVAL;
	strcpy(text, s);
	r = parse(text, now_ns, &ns);
	if (r == 0)
		*ret_ns = ns;
	return r;
}
