// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/units.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* A decimal number without sign, exponent, hex or "inf", all of which strtod() would take. */
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

int fr_size_parse(const char *s, uint64_t *ret_bytes)
{
	static const char suffixes[] = "bkmgt";
	const char *p;
	double v;

	while (isspace((unsigned char)*s))
		s++;
	if (parse_number(&s, &v) < 0)
		return -EINVAL;
	while (isspace((unsigned char)*s))
		s++;
	if (*s) {
		p = strchr(suffixes, tolower((unsigned char)*s));
		if (!p)
			return -EINVAL;
		v = ldexp(v, 10 * (int)(p - suffixes));
		s++;
		if (p != suffixes && *s == 'i')
			s++;
		if (p != suffixes && (*s == 'B' || *s == 'b'))
			s++;
		while (isspace((unsigned char)*s))
			s++;
		if (*s)
			return -EINVAL;
	}
	if (v >= 0x1p63)
		return -ERANGE;
	*ret_bytes = (uint64_t)v;
	return 0;
}

static const struct {
	const char *name;
	uint64_t ns;
} time_units[] = {
	{"ns", 1},
	{"us", FR_NSEC_PER_USEC},
	{"usec", FR_NSEC_PER_USEC},
	{"ms", FR_NSEC_PER_MSEC},
	{"msec", FR_NSEC_PER_MSEC},
	{"s", FR_NSEC_PER_SEC},
	{"sec", FR_NSEC_PER_SEC},
	{"second", FR_NSEC_PER_SEC},
	{"seconds", FR_NSEC_PER_SEC},
	{"m", 60 * FR_NSEC_PER_SEC},
	{"min", 60 * FR_NSEC_PER_SEC},
	{"minute", 60 * FR_NSEC_PER_SEC},
	{"minutes", 60 * FR_NSEC_PER_SEC},
	{"h", 3600 * FR_NSEC_PER_SEC},
	{"hr", 3600 * FR_NSEC_PER_SEC},
	{"hour", 3600 * FR_NSEC_PER_SEC},
	{"hours", 3600 * FR_NSEC_PER_SEC},
	{"d", 86400 * FR_NSEC_PER_SEC},
	{"day", 86400 * FR_NSEC_PER_SEC},
	{"days", 86400 * FR_NSEC_PER_SEC},
	{"w", 7 * 86400 * FR_NSEC_PER_SEC},
	{"week", 7 * 86400 * FR_NSEC_PER_SEC},
	{"weeks", 7 * 86400 * FR_NSEC_PER_SEC},
};

static uint64_t time_unit(const char *s, size_t len)
{
	if (len == 0)
		return FR_NSEC_PER_SEC;
	for (size_t i = 0; i < FR_ARRAY_SIZE(time_units); i++)
		if (strlen(time_units[i].name) == len && !strncmp(time_units[i].name, s, len))
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

		while (isspace((unsigned char)*s))
			s++;
		if (!*s)
			break;
		if (parse_number(&s, &v) < 0)
			return -EINVAL;
		while (isspace((unsigned char)*s))
			s++;
		while (isalpha((unsigned char)s[len]))
			len++;
		unit = time_unit(s, len);
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
		snprintf(ret, FR_UNIT_SIZE, "%lluB", (unsigned long long)bytes);
	else
		snprintf(ret, FR_UNIT_SIZE, "%.1f%c", v, suffixes[i]);
	return ret;
}

char *fr_duration_format(uint64_t ns, char ret[static FR_UNIT_SIZE])
{
	uint64_t s = ns / FR_NSEC_PER_SEC;

	if (ns < FR_NSEC_PER_USEC)
		snprintf(ret, FR_UNIT_SIZE, "%lluns", (unsigned long long)ns);
	else if (ns < FR_NSEC_PER_MSEC)
		snprintf(ret, FR_UNIT_SIZE, "%.3gus", (double)ns / 1e3);
	else if (ns < FR_NSEC_PER_SEC)
		snprintf(ret, FR_UNIT_SIZE, "%.3gms", (double)ns / 1e6);
	else if (s < 60)
		snprintf(ret, FR_UNIT_SIZE, "%.1fs", (double)ns / 1e9);
	else if (s < 3600)
		snprintf(ret, FR_UNIT_SIZE, "%llumin %llus", (unsigned long long)(s / 60),
			(unsigned long long)(s % 60));
	else if (s < 86400)
		snprintf(ret, FR_UNIT_SIZE, "%lluh %llumin", (unsigned long long)(s / 3600),
			(unsigned long long)(s / 60 % 60));
	else
		snprintf(ret, FR_UNIT_SIZE, "%llud %lluh", (unsigned long long)(s / 86400),
			(unsigned long long)(s / 3600 % 24));
	return ret;
}
