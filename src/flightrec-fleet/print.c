// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-fleet/print.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static int colours; /* 1: use colours; -1: use no colours; 0: not decided yet */

const char *print_colour(enum print_colour c)
{
	static const char *const sequences[] = {
		[PRINT_NORMAL] = "\033[0m",
		[PRINT_BOLD] = "\033[1m",
		[PRINT_GREEN] = "\033[32m",
		[PRINT_YELLOW] = "\033[33m",
		[PRINT_RED] = "\033[1;31m",
	};

	if (colours == 0)
		colours = fr_terminal_has_colours() ? 1 : -1;
	return colours > 0 ? sequences[c] : "";
}

void print_begin(const struct fleet_command *c)
{
	(void)print_colour(PRINT_NORMAL); /* decides about colours before standard output becomes a pipe */
	if (!c->no_pager)
		fr_pager_open();
}

void print_end(void)
{
	fr_pager_close();
}

int print_table(const struct fleet_command *c, struct fr_table *t)
{
	return fr_table_print(t, !c->no_legend, print_colour(PRINT_BOLD), print_colour(PRINT_NORMAL));
}

int print_json(const struct fleet_command *c, cJSON *o)
{
	_cleanup_free_ char *text = !o				? NULL
				    : c->json == FR_JSON_PRETTY ? cJSON_Print(o)
								: cJSON_PrintUnformatted(o);

	cJSON_Delete(o);
	if (!text)
		return -ENOMEM;
	puts(text);
	return 0;
}

void print_add_text(cJSON *o, const char *name, const char *text)
{
	if (*text)
		cJSON_AddStringToObject(o, name, text);
}

const char *print_time(const struct fleet_command *c, uint64_t at_ns, char ret[static FR_UNIT_SIZE])
{
	const time_t seconds = (time_t)(at_ns / FR_NSEC_PER_SEC);
	struct tm tm;

	if (at_ns == 0 || !(c->utc ? gmtime_r(&seconds, &tm) : localtime_r(&seconds, &tm)))
		return "-";
	if (strftime(ret, FR_UNIT_SIZE, c->utc ? "%Y-%m-%d %H:%M:%SZ" : "%Y-%m-%d %H:%M:%S", &tm) == 0)
		return "-";
	return ret;
}

const char *print_age(uint64_t at_ns, uint64_t now_ns, char ret[static FR_UNIT_SIZE])
{
	const uint64_t age_ns = now_ns > at_ns ? now_ns - at_ns : 0;

	if (age_ns < FR_NSEC_PER_SEC)
		return "0s";
	/* Whole seconds are exact enough. */
	return fr_duration_format(age_ns - age_ns % FR_NSEC_PER_SEC, ret);
}

void print_ignored(const struct fleet *f)
{
	if (f->ignored)
		fprintf(stderr,
			FLEET_PROGRAM ": warning: %" PRIu64 " messages of the broker cannot be read, and are "
				      "ignored\n  Look which program writes them, and if its version fits.\n",
			f->ignored);
}
