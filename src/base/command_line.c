// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/command_line.h"
#include "base/cleanup.h"
#include "base/nearest.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int argument_kind(const struct fr_option *o)
{
	if (!o->argument)
		return no_argument;
	return *o->argument == '[' ? optional_argument : required_argument;
}

static bool has_letter(const struct fr_option *o)
{
	return o->value < 256;
}

void fr_command_line_begin(void)
{
	optind = 0; /* glibc: start again */
	opterr = 0;
}

static const char *option_name(const void *options, size_t i)
{
	const struct fr_option *o = options;

	return o[i].name;
}

/* Returns the long option that is similar to the unknown word `given`; or NULL if no option is similar. */
static const char *find_similar(const struct fr_command_line *c, const char *given)
{
	char word[64];

	if (strncmp(given, "--", 2))
		return NULL;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(given + 2, "="), given + 2);
	return fr_nearest_name(word, option_name, c->options, c->n);
}

static int explain_bad_option(const struct fr_command_line *c, int option, char *argv[], struct fr_diag *d)
{
	const char *given = argv[optind - 1], *similar = find_similar(c, given);
	char hint[128];

	snprintf(hint, sizeof(hint), "%s --help lists the options", c->program);
	if (option == '?' && !optopt && similar)
		snprintf(hint, sizeof(hint), "did you mean --%s? %s --help lists all", similar, c->program);
	if (option == ':')
		return fr_fail(d, -EINVAL, hint, "option '%s' needs a value", given);
	if (optopt && !strncmp(given, "--", 2))
		return fr_fail(d, -EINVAL, hint, "option '%s' takes no value", given);
	if (optopt)
		return fr_fail(d, -EINVAL, hint, "unknown option '-%c'", optopt);
	return fr_fail(d, -EINVAL, hint, "unknown or ambiguous option '%s'", given);
}

int fr_command_line_next(const struct fr_command_line *c, int argc, char *argv[], struct fr_diag *d)
{
	struct option words[FR_OPTIONS_MAX + 1] = {0}, *word = words;
	char letters[3 * FR_OPTIONS_MAX + sizeof("+:")] = "", *letter = letters;
	int option;

	if (c->is_command)
		*letter++ = '+';
	*letter++ = ':';
	for (const struct fr_option *o = c->options; o < c->options + c->n; o++) {
		int kind = argument_kind(o);

		if (*o->name)
			*word++ = (struct option){o->name, kind, NULL, o->value};
		if (!has_letter(o))
			continue;
		*letter++ = (char)o->value;
		for (int i = 0; i < kind; i++) /* "x", "x:" or "x::" */
			*letter++ = ':';
	}
	option = getopt_long(argc, argv, letters, words, NULL);
	if (option == '?' || option == ':')
		return explain_bad_option(c, option, argv, d);
	return FR_MAX(option, 0);
}

const struct fr_option *fr_command_line_find(const struct fr_command_line *c, int value)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->options[i].value == value)
			return &c->options[i];
	return NULL;
}

/* Writes an option in the form of --help: "-o, --output=FILE". Returns the length. */
static int format_option(const struct fr_option *o, char *ret, size_t size)
{
	int kind = argument_kind(o);
	char letter[8] = "    ";

	if (has_letter(o))
		snprintf(letter, sizeof(letter), "-%c%s", o->value, *o->name ? ", " : "");
	/* "[LEVEL]" becomes "[=LEVEL]". */
	return snprintf(ret, size, "%s%s%s%s%s", letter, *o->name ? "--" : "", o->name,
		kind == no_argument	    ? ""
		: kind == optional_argument ? "[="
		: *o->name		    ? "="
					    : " ",
		!o->argument ? "" : o->argument + (kind == optional_argument));
}

void fr_command_line_print(const struct fr_command_line *c)
{
	size_t group = 0;
	char text[80];
	int width = 0;

	for (size_t i = 0; i < c->n; i++)
		width = FR_MAX(width, format_option(&c->options[i], text, sizeof(text)));
	for (size_t i = 0; i < c->n; i++) {
		const struct fr_option *o = &c->options[i];

		if (group < c->n_groups && c->groups[group].first == o->value)
			printf("\n%s\n", c->groups[group++].heading);
		format_option(o, text, sizeof(text));
		printf("  %-*s  %s\n", width, text, o->help);
	}
}

int fr_json_mode_parse(const char *how, enum fr_json_mode *ret, struct fr_diag *d)
{
	static const char *const names[] = {
		[FR_JSON_OFF] = "off", [FR_JSON_SHORT] = "short", [FR_JSON_PRETTY] = "pretty"};

	if (!how) {
		*ret = isatty(STDOUT_FILENO) ? FR_JSON_PRETTY : FR_JSON_SHORT;
		return 0;
	}
	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++)
		if (!strcmp(how, names[i])) {
			*ret = (enum fr_json_mode)i;
			return 0;
		}
	return fr_fail(d, -EINVAL, "give pretty, short or off", "--json: unknown form '%s'", how);
}
