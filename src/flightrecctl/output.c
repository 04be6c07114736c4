// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/terminal.h"
#include "base/timestamp.h"

#include <errno.h>
#include <string.h>

static int colours; /* 1: use colours; -1: use no colours; 0: not decided yet */

void ctl_pager_open(void)
{
	(void)ctl_colour(CTL_NORMAL); /* decides about colours before standard output becomes a pipe */
	if (!ctl.no_pager)
		fr_pager_open();
}

void ctl_pager_close(void)
{
	fr_pager_close();
}

const char *ctl_colour(enum ctl_colour c)
{
	static const char *const sequences[] = {
		[CTL_NORMAL] = "\033[0m",
		[CTL_BOLD] = "\033[1m",
		[CTL_GREEN] = "\033[32m",
		[CTL_YELLOW] = "\033[33m",
		[CTL_RED] = "\033[1;31m",
	};

	if (colours == 0)
		colours = fr_terminal_has_colours() ? 1 : -1;
	return colours > 0 ? sequences[c] : "";
}

void ctl_table_print(struct fr_table *t, bool legend)
{
	const char *bold = ctl_colour(CTL_BOLD), *normal = ctl_colour(CTL_NORMAL);
	const int r = fr_table_print(t, legend, bold, normal);

	if (r < 0)
		exit(ctl_fail(NULL, r));
}

void ctl_print_json(const cJSON *json)
{
	_cleanup_free_ char *text =
		ctl.json == FR_JSON_PRETTY ? cJSON_Print(json) : cJSON_PrintUnformatted(json);

	if (text)
		puts(text);
}

/* Replaces the control characters (C0, DEL and C1) by '?'. Texts like names and reasons can come from any
   program. Without the replacement, a program could send an escape sequence to the terminal in a name. */
void ctl_replace_control_characters(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
		else if ((unsigned char)s[0] == 0xc2 && (unsigned char)s[1] >= 0x80 &&
			 (unsigned char)s[1] < 0xa0)
			s[0] = s[1] = '?';
}

char *ctl_vformat(const char *fmt, va_list ap)
{
	char *ret;

	if (vasprintf(&ret, fmt, ap) < 0)
		exit(ctl_fail(NULL, -ENOMEM));
	return ret;
}

char *ctl_format(const char *fmt, ...)
{
	va_list ap;
	char *ret;

	va_start(ap, fmt);
	ret = ctl_vformat(fmt, ap);
	va_end(ap);
	return ret;
}

void ctl_field(const char *label, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = ctl_vformat(fmt, ap);
	va_end(ap);
	ctl_replace_control_characters(text);
	printf("%12s%s%s\n", label, *label ? ": " : "  ", text);
}

void ctl_text_field(const char *label, const char *text)
{
	if (*text)
		ctl_field(label, "%s", text);
}

const cJSON *ctl_get(const cJSON *json, const char *path)
{
	while (json && *path) {
		size_t len = strcspn(path, ".");
		char name[64];

		if (len >= sizeof(name))
			return NULL;
		memcpy(name, path, len);
		name[len] = '\0';
		json = cJSON_GetObjectItemCaseSensitive(json, name);
		path += len + (path[len] == '.');
	}
	return json;
}

double ctl_number(const cJSON *json, const char *path)
{
	const cJSON *item = ctl_get(json, path);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

const char *ctl_string(const cJSON *json, const char *path)
{
	const cJSON *item = ctl_get(json, path);

	return cJSON_IsString(item) ? item->valuestring : "";
}

bool ctl_is_countable(const cJSON *json, const char *path)
{
	const cJSON *item = ctl_get(json, path);

	return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 0x1p63;
}

const char *ctl_format_size(const cJSON *json, const char *path, char ret[static FR_UNIT_SIZE])
{
	return fr_size_format(ctl_is_countable(json, path) ? (uint64_t)ctl_number(json, path) : 0, ret);
}

const char *ctl_format_duration(
	const cJSON *json, const char *path, double unit_ns, char ret[static FR_UNIT_SIZE])
{
	const double ns = ctl_number(json, path) * unit_ns;

	return fr_duration_format(ns > 0 && ns < 0x1p63 ? (uint64_t)ns : 0, ret);
}

/* The result has a format that the option --from accepts, too. */
const char *ctl_format_time(const char *rfc3339, bool exact, char ret[static FR_UNIT_SIZE])
{
	uint64_t ns;
	time_t seconds;
	struct tm tm;
	size_t n;

	if (fr_timestamp_parse(rfc3339, 0, &ns) < 0)
		return "-";
	seconds = (time_t)(ns / FR_NSEC_PER_SEC);
	if (!(ctl.utc ? gmtime_r(&seconds, &tm) : localtime_r(&seconds, &tm)))
		return "-";
	n = strftime(ret, FR_UNIT_SIZE, "%Y-%m-%d %H:%M:%S", &tm);
	if (exact)
		n += (size_t)snprintf(ret + n, FR_UNIT_SIZE - n, ".%06u",
			(unsigned)(ns % FR_NSEC_PER_SEC / FR_NSEC_PER_USEC));
	if (ctl.utc)
		snprintf(ret + n, FR_UNIT_SIZE - n, "Z");
	return ret;
}
