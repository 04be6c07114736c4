// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks that the manual pages, the completions and the default configuration file describe the options,
   verbs, keys and probes of the programs. */
#include "../unit.h"
#include "flightrec-agent/command.h"
#include "flightrec-fleet/command.h"
#include "flightrec-merge/command.h"
#include "flightrec-report/command.h"
#include "flightrecctl/ctl.h"
#include "config/config_private.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"
#include "source/probes.h"

#include <fcntl.h>
#include <string.h>

/* Returns the text of the file PATH of the sources. The caller frees it. */
static char *read_source(const char *path)
{
	struct fr_buf b = {0};
	char full[512];

	snprintf(full, sizeof(full), "%s/%s", FR_SOURCE_DIR, path);
	if (fr_read_file(AT_FDCWD, full, 1 << 20, &b) < 0)
		fail_msg("cannot read %s", full);
	return (char *)b.data;
}

/* Returns LEN bytes of TEXT with the escapes of a manual page. If VERBATIM is true, the escapes are those of
   a command, otherwise those of prose. The result is valid until the next call. */
static const char *escape(const char *text, size_t len, bool verbatim)
{
	static char ret[1024];
	char *to = ret;

	for (const char *end = text + len; text < end && to < ret + sizeof(ret) - 8; text++)
		if (*text == '\'' && verbatim)
			to = stpcpy(to, "\\(aq");
		else if (*text == '\\')
			to = stpcpy(to, "\\e");
		else if (*text == '-')
			to = stpcpy(to, "\\-");
		else
			*to++ = *text;
	*to = '\0';
	return ret;
}

/* Returns whether TEXT has WORD, and not only as a part of a longer word. */
static bool has_word(const char *text, const char *word)
{
	const size_t len = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += len)
		if ((p == text || !strchr("abcdefghijklmnopqrstuvwxyz-", p[-1])) &&
			!strchr("abcdefghijklmnopqrstuvwxyz-\\", p[len]))
			return true;
	return false;
}

static void expect_options(const struct fr_command_line *line, const char *path, bool is_troff)
{
	_cleanup_free_ char *text = read_source(path);

	for (size_t i = 0; i < line->n; i++) {
		char option[64];

		snprintf(option, sizeof(option), "--%s", line->options[i].name);
		if (*line->options[i].name &&
			!has_word(text, is_troff ? escape(option, strlen(option), false) : option))
			fail_msg("%s does not mention %s", path, option);
	}
}

/* The completions of flightrecctl are not checked: they read its --help when they run (test_ctl.py). */
TEST(every_option_is_described)
{
	expect_options(&fr_flightrecd_command_line, "docs/man/flightrecd.8", true);
	expect_options(&fr_flightrecd_command_line, "conf/completion/bash/flightrecd", false);
	expect_options(&fr_flightrecd_command_line, "conf/completion/zsh/_flightrecd", false);
	expect_options(&merge_command_line, "docs/man/flightrec-merge.1", true);
	expect_options(&merge_command_line, "conf/completion/bash/flightrec-merge", false);
	expect_options(&merge_command_line, "conf/completion/zsh/_flightrec-merge", false);
	expect_options(&report_command_line, "docs/man/flightrec-report.1", true);
	expect_options(&report_command_line, "conf/completion/bash/flightrec-report", false);
	expect_options(&report_command_line, "conf/completion/zsh/_flightrec-report", false);
	expect_options(ctl_command_line(), "docs/man/flightrecctl.1", true);
	expect_options(&agent_command_line, "docs/man/flightrec-agent.8", true);
	expect_options(&agent_command_line, "conf/completion/bash/flightrec-agent", false);
	expect_options(&agent_command_line, "conf/completion/zsh/_flightrec-agent", false);
	expect_options(&fleet_command_line, "docs/man/flightrec-fleet.1", true);
	expect_options(&fleet_command_line, "conf/completion/bash/flightrec-fleet", false);
	expect_options(&fleet_command_line, "conf/completion/zsh/_flightrec-fleet", false);
}

TEST(every_verb_is_described)
{
	_cleanup_free_ char *man = read_source("docs/man/flightrecctl.1");
	size_t n;
	const struct ctl_verb *const *verbs = ctl_verbs(&n);

	for (size_t i = 0; i < n; i++)
		if (!has_word(man, escape(verbs[i]->name, strlen(verbs[i]->name), false)))
			fail_msg("flightrecctl(1) does not mention %s", verbs[i]->name);
}

TEST(every_verb_of_the_fleet_is_described)
{
	static const char *const paths[] = {"docs/man/flightrec-fleet.1",
		"conf/completion/bash/flightrec-fleet", "conf/completion/zsh/_flightrec-fleet"};

	for (size_t p = 0; p < FR_ARRAY_SIZE(paths); p++) {
		_cleanup_free_ char *text = read_source(paths[p]);

		for (size_t i = 0; i < FLEET_VERBS; i++)
			if (!has_word(text, fleet_verb_names[i]))
				fail_msg("%s does not mention %s", paths[p], fleet_verb_names[i]);
	}
}

/* Several sections can have a key with the same name. */
TEST(every_key_is_in_the_part_of_the_manual_page_about_its_section)
{
	_cleanup_free_ char *man = read_source("docs/man/flightrecd.conf.5");

	for (const struct fr_config_key *k = fr_config_keys; k->name; k++) {
		char heading[64], word[64];
		const char *from, *to, *at;

		snprintf(heading, sizeof(heading), ".SH [%s]\n", k->section);
		snprintf(word, sizeof(word), "%s=", k->name);
		from = strstr(man, heading);
		to = from ? strstr(from + 1, "\n.SH ") : NULL;
		at = to ? strstr(from, word) : NULL;
		if (!at || at > to)
			fail_msg("flightrecd.conf(5) does not mention %s in [%s]", word, k->section);
	}
}

/* Checks that LINE of the default file is about KEY, and has its default or a valid example. */
static void expect_key(const struct fr_config_key *key, const char *section, char *line)
{
	char *value = strchr(line, '=');
	struct fr_diag d = {0};
	_cleanup_(fr_config_deinit) struct fr_config c = {0};

	*value++ = '\0';
	assert_string_equal(line, key->name);
	assert_string_equal(section, key->section);
	if (!strcmp(section, FR_TRIGGER_SECTION))
		section = "Trigger t";
	if (!strcmp(section, FR_RING_SECTION))
		section = "Ring r";
	if (key->default_value)
		assert_string_equal(value, key->default_value);
	fr_config_init(&c);
	assert_int_equal(fr_config_set(&c, !strcmp(section, "Ring r") ? section : "Recorder", "Events", "x",
				 "t", NULL),
		0); /* Filter= needs an event */
	if (fr_config_set(&c, section, line, value, "t", &d) < 0)
		fail_msg("%s", d.what);
}

TEST(the_default_file_has_every_key)
{
	_cleanup_free_ char *file = read_source("conf/flightrecd.conf");
	char *rest = NULL, section[64] = "";
	const struct fr_config_key *key = fr_config_keys;

	for (char *line = strtok_r(file, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "[%63[^]]]", section) == 1 || sscanf(line, "#[%63[^]]]", section) == 1 ||
			!strncmp(line, "# ", 2))
			continue;
		assert_non_null(key->name);
		expect_key(key++, section, line + 1);
	}
	assert_null(key->name);
}

/* Print what the manual page must say about PROBE, except its description. */
static void print_probe(FILE *f, const struct fr_probe *probe)
{
	char interval[FR_UNIT_SIZE];

	fprintf(f, ".TP\n.B %s\n", escape(probe->name, strlen(probe->name), false));
	if (probe->threshold)
		fprintf(f, "Threshold: %s%s%s.\n", probe->threshold, probe->interval_ns ? " in " : "",
			probe->interval_ns ? fr_duration_format(probe->interval_ns, interval) : "");
	if (probe->armed)
		fprintf(f, "Armed by default.\n");
}

/* Copy to F those lines of the manual page that are of the same kinds as the lines of print_probe(). */
static void copy_probe_lines(FILE *f, const char *from, const char *end)
{
	static const char *const begins[] = {".TP\n", ".B ", "Threshold: ", "Armed by default.\n"};

	while (from < end) {
		const char *next = strchr(from, '\n') + 1;

		for (size_t i = 0; i < FR_ARRAY_SIZE(begins); i++)
			if (strncmp(from, begins[i], strlen(begins[i])) == 0)
				fprintf(f, "%.*s", (int)(next - from), from);
		from = next;
	}
}

TEST(the_manual_page_lists_the_table_of_probes)
{
	static const char begin[] = "\n.\\\" The probes, ";
	_cleanup_free_ char *man = read_source("docs/man/flightrecd.conf.5"), *expected = NULL,
			    *listed = NULL;
	const char *from = strstr(man, begin), *to = strstr(man, ".\\\" The probes end here.\n");
	size_t n, len;
	const struct fr_probe *probes = fr_probes(&n);
	FILE *f = open_memstream(&expected, &len);

	assert_non_null(from);
	assert_non_null(to);
	for (size_t i = 0; i < n; i++)
		print_probe(f, &probes[i]);
	fclose(f);
	f = open_memstream(&listed, &len);
	copy_probe_lines(f, from + strlen(begin), to);
	fclose(f);
	assert_string_equal(listed, expected);
}

/* Returns the examples of the manual page MAN as the text of a configuration file. The caller frees it. */
static char *read_examples(const char *man)
{
	const char *from = strstr(man, "\n.SH EXAMPLES\n");
	char *ret = calloc(1, strlen(man) + 1), *to = ret;

	assert_non_null(from);
	assert_non_null(ret);
	while ((from = strstr(from, "\n.EX\n"))) {
		const char *end = strstr(from, "\n.EE\n");

		assert_non_null(end);
		for (from += strlen("\n.EX\n"); from < end; from++)
			if (*from != '\\')
				*to++ = *from;
		*to++ = '\n';
	}
	return ret;
}

TEST(the_examples_are_valid_and_show_each_kind_of_source)
{
	_cleanup_free_ char *man = read_source("docs/man/flightrecd.conf.5");
	_cleanup_free_ char *text = read_examples(man);
	FILE *f = fmemopen(text, strlen(text), "r");
	unsigned kinds = 0;
	_cleanup_(fr_config_deinit) struct fr_config c = {0};
	struct fr_diag d = {0};

	fr_config_init(&c);
	if (fr_config_read(&c, f, "example", &d) < 0 || fr_config_check(&c, &d) < 0)
		fail_msg("%s", d.what);
	fclose(f);
	for (size_t i = 0; i < c.n_trigger; i++)
		kinds |= 1u << c.trigger[i].kind;
	assert_int_equal(kinds, 1u << FR_TRIGGER_PROBE | 1u << FR_TRIGGER_PROGRAM |
					1u << FR_TRIGGER_FUNCTION | 1u << FR_TRIGGER_PRESSURE |
					1u << FR_TRIGGER_EVENT | 1u << FR_TRIGGER_TIMER |
					1u << FR_TRIGGER_APPLICATION | 1u << FR_TRIGGER_FLEET);
}

TEST(the_catalog_explains_every_message)
{
	_cleanup_free_ char *catalog = read_source("conf/flightrec.catalog");
	_cleanup_free_ char *header = read_source("src/base/log.h");
	char name[64], id[64], line[80];
	size_t n = 0;

	for (const char *p = header; (p = strstr(p, "#define FR_MSG_")); p++, n++) {
		assert_int_equal(sscanf(p, "#define %63s \"%63[0-9a-f]\"", name, id), 2);
		snprintf(line, sizeof(line), "-- %s\n", id);
		if (!strstr(catalog, line))
			fail_msg("the catalog does not explain %s", name);
	}
	assert_true(n > 10);
}

static size_t count_commands(const char *text)
{
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, "\n$ ")); p++)
		n++;
	return n;
}

TEST(the_tutorial_and_its_manual_page_have_the_same_commands)
{
	_cleanup_free_ char *md = read_source("docs/tutorial.md");
	_cleanup_free_ char *man = read_source("docs/man/flightrec-tutorial.7");

	assert_true(count_commands(md) > 5);
	assert_int_equal(count_commands(md), count_commands(man));
	for (const char *p = md; (p = strstr(p, "\n$ ")); p += 3) {
		const char *command = escape(p + 1, strcspn(p + 1, "\n"), true);

		if (!strstr(man, command))
			fail_msg("flightrec-tutorial(7) does not have: %s", command);
	}
}
