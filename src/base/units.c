// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/units.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Reads a decimal number. Refuses a sign, an exponent, 0x and "inf", which strtod() would accept. */
static int parse_number(const char **s, double *ret)
{
	char *end;

	if (!isdigit((unsigned char)**s) && !(**s == '.' && isdigit((unsigned char)(*s)[1])))
		return -EINVAL;
	if ((*s)[0] == '0' && tolower((unsigned char)(*s)[1]) == 'x')
		return -EINVAL;
	*ret = strtod(*s, &end);
	for (const char *p = *s; p < end; p++)
		if (!isdigit((unsigned char)*p) && *p != '.')
			return -EINVAL;
	*s = end;
	return 0;
}

int fr_u64_parse(const char *s, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno)
		return -ERANGE;
	*ret = v;
	return 0;
}

static void skip_blanks(const char **s)
{
	*s += strspn(*s, " \t\n\v\f\r");
}

int fr_size_parse(const char *s, uint64_t *ret_bytes)
{
	static const char suffixes[] = "bkmgt";
	const char *suffix;
	double v;

	skip_blanks(&s);
	if (parse_number(&s, &v) < 0)
		return -EINVAL;
	skip_blanks(&s);
	suffix = *s ? strchr(suffixes, tolower((unsigned char)*s++)) : suffixes;
	if (!suffix)
		return -EINVAL;
	if (suffix != suffixes) {
		s += *s == 'i';
		s += *s == 'B' || *s == 'b';
	}
	skip_blanks(&s);
	if (*s)
		return -EINVAL;
	v = ldexp(v, 10 * (int)(suffix - suffixes));
	if (v >= 0x1p63)
		return -ERANGE;
	*ret_bytes = (uint64_t)v;
	return 0;
}

/* The units of systemd.time(7) up to weeks, and ns. */
static const struct {
	const char *names; /* each with a blank before and after */
	uint64_t ns;
} time_units[] = {
	{" ns ", 1},
	{" us usec ", FR_NSEC_PER_USEC},
	{" ms msec ", FR_NSEC_PER_MSEC},
	{" s sec second seconds ", FR_NSEC_PER_SEC},
	{" m min minute minutes ", 60 * FR_NSEC_PER_SEC},
	{" h hr hour hours ", 3600 * FR_NSEC_PER_SEC},
	{" d day days ", 86400 * FR_NSEC_PER_SEC},
	{" w week weeks ", 7 * 86400 * FR_NSEC_PER_SEC},
};

/* Returns the length, in ns, of the unit of time whose name is the LEN bytes at S. Without a name (LEN is 0),
   the unit is a second. Returns 0 if there is no such unit. */
static uint64_t find_time_unit(const char *s, size_t len)
{
	char name[16];

	if (len == 0)
		return FR_NSEC_PER_SEC;
	if (len > sizeof(name) - 3)
		return 0;
	snprintf(name, sizeof(name), " %.*s ", (int)len, s);
	for (size_t i = 0; i < FR_ARRAY_SIZE(time_units); i++)
		if (strstr(time_units[i].names, name))
			return time_units[i].ns;
	return 0;
}

int fr_duration_parse(const char *s, uint64_t *ret_ns)
{
	double sum = 0;
	bool any = false;

	for (;;) {
		uint64_t unit;
		size_t len = 0;
		double v;

		skip_blanks(&s);
		if (!*s)
			break;
		if (parse_number(&s, &v) < 0)
			return -EINVAL;
		skip_blanks(&s);
		while (isalpha((unsigned char)s[len]))
			len++;
		unit = find_time_unit(s, len);
		if (!unit)
			return -EINVAL;
		s += len;
		sum += v * (double)unit;
		any = true;
	}
	if (!any)
		return -EINVAL;
	if (sum >= 0x1p63)
		return -ERANGE;
	*ret_ns = (uint64_t)sum;
	return 0;
}

int fr_boolean_parse(const char *s)
{
	static const char *const yes[] = {"yes", "true", "on", "1", "y"};
	static const char *const no[] = {"no", "false", "off", "0", "n"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(yes); i++) {
		if (!strcasecmp(s, yes[i]))
			return 1;
		if (!strcasecmp(s, no[i]))
			return 0;
	}
	return -EINVAL;
}

int fr_cpulist_parse(const char *s, uint8_t *ret_bits, size_t n_bits)
{
	int count = 0;

	memset(ret_bits, 0, (n_bits + 7) / 8);
	for (;;) {
		unsigned long first, last;
		char *end;

		if (!isdigit((unsigned char)*s))
			return -EINVAL;
		first = last = strtoul(s, &end, 10);
		if (*end == '-') {
			if (!isdigit((unsigned char)end[1]))
				return -EINVAL;
			last = strtoul(end + 1, &end, 10);
		}
		if (last < first)
			return -EINVAL;
		if (last >= n_bits)
			return -ERANGE;
		for (unsigned long i = first; i <= last; i++) {
			count += !(ret_bits[i / 8] & (1u << i % 8));
			ret_bits[i / 8] |= (uint8_t)(1u << i % 8);
		}
		if (*end == '\n')
			end++;
		if (!*end)
			return count;
		if (*end != ',')
			return -EINVAL;
		s = end + 1;
	}
}

char *fr_size_format(uint64_t bytes, char ret[static FR_UNIT_SIZE])
{
	static const char suffixes[] = "BKMGT";
	double v = (double)bytes;
	int i = 0;

	while (v >= 1024 && i < 4) {
		v /= 1024;
		i++;
	}
	if (i == 0)
		snprintf(ret, FR_UNIT_SIZE, "%" PRIu64 "B", bytes);
	else
		snprintf(ret, FR_UNIT_SIZE, "%.1f%c", v, suffixes[i]);
	return ret;
}

char *fr_duration_format(uint64_t ns, char ret[static FR_UNIT_SIZE])
{
	const uint64_t s = ns / FR_NSEC_PER_SEC;

	if (ns < FR_NSEC_PER_USEC)
		snprintf(ret, FR_UNIT_SIZE, "%" PRIu64 "ns", ns);
	else if (ns < FR_NSEC_PER_MSEC)
		snprintf(ret, FR_UNIT_SIZE, "%.3gus", (double)ns / 1e3);
	else if (ns < FR_NSEC_PER_SEC)
		snprintf(ret, FR_UNIT_SIZE, "%.3gms", (double)ns / 1e6);
	else if (s < 60)
		snprintf(ret, FR_UNIT_SIZE, "%.1fs", (double)ns / 1e9);
	else if (s < 3600)
		snprintf(ret, FR_UNIT_SIZE, "%" PRIu64 "min %" PRIu64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(ret, FR_UNIT_SIZE, "%" PRIu64 "h %" PRIu64 "min", s / 3600, s / 60 % 60);
	else
		snprintf(ret, FR_UNIT_SIZE, "%" PRIu64 "d %" PRIu64 "h", s / 86400, s / 3600 % 24);
	return ret;
}
