// SPDX-License-Identifier: GPL-2.0-or-later
/* What the programs take, what the manual pages say and what the completions offer are the same. */
#include "flightrec-merge/command.h"
#include "flightrecctl/ctl.h"
#include "config/config_private.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"
#include "base/log.h"
#include "trigger/probes.h"

#include <ctype.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct fr_buf source(const char *path)
{
	struct fr_buf b = {0};
	char full[512];

	snprintf(full, sizeof(full), "%s/%s", FR_SOURCE_DIR, path);
	if (fr_read_file(AT_FDCWD, full, 1 << 20, &b) < 0)
		fail_msg("cannot read %s", full);
	return b;
}

/* A word of its own, so that --config is not found in --config-file. troff writes \- for a hyphen. */
static bool mentions(const struct fr_buf *b, const char *word)
{
	const char *text = (const char *)b->data;
	size_t len = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += len)
		if ((p == text || !strchr("abcdefghijklmnopqrstuvwxyz-", p[-1])) &&
			!strchr("abcdefghijklmnopqrstuvwxyz-\\", p[len]))
			return true;
	return false;
}

static void troff_hyphens(const char *word, char *ret)
{
	for (; *word; word++) {
		if (*word == '-')
			*ret++ = '\\';
		*ret++ = *word;
	}
	*ret = '\0';
}

static void expect(const struct fr_buf *b, const char *file, const char *word, bool troff)
{
	char escaped[128];

	troff_hyphens(word, escaped);
	if (!mentions(b, troff ? escaped : word))
		fail_msg("%s does not mention %s", file, word);
}

static void expect_option(
	const struct fr_buf *man, const struct fr_buf *bash, const struct fr_buf *zsh, const char *long_name)
{
	char option[64];

	snprintf(option, sizeof(option), "--%s", long_name);
	expect(man, "the manual page", option, true);
	expect(bash, "bash's completion", option, false);
	expect(zsh, "zsh's completion", option, false);
}

/* All options of C, in MANUAL of the section after its dot and in both completions. */
static void expect_command_line(const struct fr_command_line *c, const char *manual)
{
	char path[64];
	struct fr_buf man, bash, zsh;

	snprintf(path, sizeof(path), "docs/man/%s", manual);
	man = source(path);
	snprintf(path, sizeof(path), "conf/completion/bash/%s", c->program);
	bash = source(path);
	snprintf(path, sizeof(path), "conf/completion/zsh/_%s", c->program);
	zsh = source(path);
	for (size_t i = 0; i < c->n; i++)
		if (*c->options[i].name)
			expect_option(&man, &bash, &zsh, c->options[i].name);
	fr_buf_deinit(&man);
	fr_buf_deinit(&bash);
	fr_buf_deinit(&zsh);
}

static void test_options(void **state)
{
	expect_command_line(&fr_flightrecd_command_line, "flightrecd.8");
	expect_command_line(&ctl_command_line, "flightrecctl.1");
	expect_command_line(&merge_command_line, "flightrec-merge.1");
}

static void test_verbs(void **state)
{
	_cleanup_buf_ struct fr_buf man = source("docs/man/flightrecctl.1");
	_cleanup_buf_ struct fr_buf bash = source("conf/completion/bash/flightrecctl");
	_cleanup_buf_ struct fr_buf zsh = source("conf/completion/zsh/_flightrecctl");
	size_t n;
	const struct ctl_verb *verbs = ctl_verbs(&n);

	for (size_t i = 0; i < n; i++) {
		expect(&man, "flightrecctl(1)", verbs[i].name, true);
		expect(&bash, "bash's completion", verbs[i].name, false);
		expect(&zsh, "zsh's completion", verbs[i].name, false);
	}
}

/* KEY= in the part of MAN that is about its section: some sections have keys of one name. */
static void expect_key(const char *man, const char *section, const char *key)
{
	char heading[64], word[64];
	const char *from, *to, *at;

	snprintf(heading, sizeof(heading), ".SH [%s]\n", section);
	snprintf(word, sizeof(word), "%s=", key);
	from = strstr(man, heading);
	if (!from)
		fail_msg("flightrecd.conf(5) has no part on [%s]", section);
	to = strstr(from + 1, "\n.SH ");
	at = strstr(from, word);
	if (!at || !to || at > to)
		fail_msg("flightrecd.conf(5) does not mention %s of [%s]", word, section);
}

static void test_configuration(void **state)
{
	_cleanup_buf_ struct fr_buf man = source("docs/man/flightrecd.conf.5");
	_cleanup_buf_ struct fr_buf file = source("conf/flightrecd.conf");
	char *text = NULL;
	size_t n, len;
	const struct fr_config_key *keys = fr_config_keys(&n);
	FILE *f = open_memstream(&text, &len);

	for (size_t i = 0; i < n; i++)
		expect_key((char *)man.data, keys[i].section, keys[i].name);
	/* The file that is installed is what --help-config prints. */
	fr_config_print_default(f);
	fclose(f);
	assert_string_equal((char *)file.data, text);
	free(text);
}

static void print_troff(FILE *f, const char *text)
{
	for (; *text; text++)
		fprintf(f, *text == '-' ? "\\-" : "%c", *text);
}

/* TEXT as a sentence. */
static void print_sentence(FILE *f, const char *before, const char *text)
{
	fputs(before, f);
	fputc(toupper((unsigned char)*text), f);
	print_troff(f, text + 1);
	fputs(".\n", f);
}

/* What the manual page says of PROBE. */
static void describe(FILE *f, const struct fr_probe *probe)
{
	char interval[FR_UNIT_SIZE];

	fprintf(f, ".TP\n.B ");
	print_troff(f, probe->name);
	fputc('\n', f);
	print_sentence(f, "", probe->description);
	if (probe->threshold)
		fprintf(f, "Threshold: %s%s%s.\n", probe->threshold, probe->counts ? " in " : "",
			probe->counts ? fr_duration_format(probe->interval_ns, interval) : "");
	if (probe->armed)
		fprintf(f, "Armed by default.\n");
	if (probe->costs)
		print_sentence(f, "Cost: ", probe->costs);
}

/* The list of the probes in flightrecd.conf(5) is the table. */
static void test_probes(void **state)
{
	static const char begin[] = ".\\\" The probes, as test-docs.c prints the table:\n";
	static const char end[] = ".\\\" The probes end here.\n";
	_cleanup_buf_ struct fr_buf man = source("docs/man/flightrecd.conf.5");
	char *there = strstr((char *)man.data, begin), *after = strstr((char *)man.data, end), *text = NULL;
	size_t n, len;
	const struct fr_probe *probes = fr_probes(&n);
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_non_null(there);
	assert_non_null(after);
	for (size_t i = 0; i < n; i++)
		describe(f, &probes[i]);
	fclose(f);
	there += strlen(begin);
	if ((size_t)(after - there) != len || memcmp(there, text, len) != 0) {
		fprintf(stderr, "flightrecd.conf(5) lists other probes than there are; let it say:\n%s\n",
			text);
		fail();
	}
	free(text);
}

/* The text of the examples in MAN, as a file would have it; to be freed. */
static char *examples(const char *man)
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

/* What a person copies from the page is taken, with a trigger for each kind of source. */
static void test_examples(void **state)
{
	_cleanup_buf_ struct fr_buf man = source("docs/man/flightrecd.conf.5");
	_cleanup_free_ char *text = examples((char *)man.data);
	FILE *f = fmemopen(text, strlen(text), "r");
	unsigned kinds = 0;
	struct fr_config c;
	struct fr_diag d = {0};

	fr_config_init(&c);
	if (fr_config_read(&c, f, "example", &d) < 0 || fr_config_check(&c, &d) < 0)
		fail_msg("%s", d.what);
	fclose(f);
	for (size_t i = 0; i < c.n_trigger; i++)
		kinds |= 1u << c.trigger[i].kind;
	fr_config_deinit(&c);
	assert_int_equal(kinds, 1u << FR_TRIGGER_PROBE | 1u << FR_TRIGGER_PROGRAM |
					1u << FR_TRIGGER_FUNCTION | 1u << FR_TRIGGER_PRESSURE |
					1u << FR_TRIGGER_EVENT | 1u << FR_TRIGGER_TIMER |
					1u << FR_TRIGGER_APPLICATION);
}

static void test_catalog(void **state)
{
	static const char *const ids[] = {FR_MSG_STARTED, FR_MSG_STOPPED, FR_MSG_DUMPED, FR_MSG_DUMP_FAILED,
		FR_MSG_LOSS, FR_MSG_RELOADED, FR_MSG_MERGED, FR_MSG_DEGRADED, FR_MSG_SUPPRESSED,
		FR_MSG_NOT_ARMED, FR_MSG_FREQUENCY, FR_MSG_OVER_BUDGET};
	_cleanup_buf_ struct fr_buf catalog = source("conf/flightrec.catalog");

	for (size_t i = 0; i < FR_ARRAY_SIZE(ids); i++) {
		char line[64];

		snprintf(line, sizeof(line), "-- %s\n", ids[i]);
		if (!strstr((char *)catalog.data, line))
			fail_msg("the catalog does not explain %s", ids[i]);
	}
}

/* TEXT as it stands in a manual page. */
static void troff_verbatim(const char *text, size_t len, char *ret)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] == '\'')
			ret = stpcpy(ret, "\\(aq");
		else if (text[i] == '\\')
			ret = stpcpy(ret, "\\e");
		else if (text[i] == '-')
			ret = stpcpy(ret, "\\-");
		else
			*ret++ = text[i];
	*ret = '\0';
}

static size_t count_lines(const struct fr_buf *b, const char *begin)
{
	size_t n = 0;

	for (const char *p = (const char *)b->data; (p = strstr(p, begin)); p++)
		n += p == (const char *)b->data || p[-1] == '\n';
	return n;
}

/* The tutorial and its manual page have the same commands. */
static void test_tutorial(void **state)
{
	struct fr_buf md = source("docs/tutorial.md"), man = source("docs/man/flightrec-tutorial.7");
	char wanted[1024];

	assert_true(count_lines(&md, "$ ") > 5);
	assert_int_equal(count_lines(&md, "$ "), count_lines(&man, "$ "));
	for (const char *p = (const char *)md.data; (p = strstr(p, "\n$ ")); p += 3) {
		size_t len = strcspn(p + 1, "\n");

		assert_true(len < sizeof(wanted) / 4);
		troff_verbatim(p + 1, len, wanted);
		if (!strstr((const char *)man.data, wanted))
			fail_msg("flightrec-tutorial(7) has no: %s", wanted);
	}
	fr_buf_deinit(&md);
	fr_buf_deinit(&man);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_verbs),
		cmocka_unit_test(test_configuration),
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_catalog),
		cmocka_unit_test(test_tutorial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
