// SPDX-License-Identifier: GPL-2.0-or-later
/* flightrecctl's exit codes, from its command line to a real server and back. */
#include "harness.h"
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* As main() does it. */
static int run(const char *const *words)
{
	const struct ctl_verb *verb;
	char *argv[16] = {(char *)"flightrecctl"};
	int argc = 1, r;

	for (; *words; words++)
		argv[argc++] = (char *)*words;
	r = ctl_parse(argc, argv, &verb, NULL);
	if (r != 0)
		return r < 0 ? FR_EXIT_USAGE : FR_EXIT_OK;
	return verb->run();
}
#define RUN(...) run((const char *[]){__VA_ARGS__, NULL})

static void test_usage(void **state)
{
	assert_int_equal(run((const char *[]){NULL}), FR_EXIT_USAGE);
	assert_int_equal(RUN("dmup"), FR_EXIT_USAGE);
	assert_int_equal(RUN("dump", "extra"), FR_EXIT_USAGE);
	assert_int_equal(RUN("dump", "--last"), FR_EXIT_USAGE);
	assert_int_equal(RUN("dump", "--last", "soon"), FR_EXIT_USAGE);
	assert_int_equal(RUN("status", "--last=3s"), FR_EXIT_USAGE);
	assert_int_equal(RUN("dump", "--merge"), FR_EXIT_USAGE);
	assert_int_equal(RUN("status", "--json=loud"), FR_EXIT_USAGE);
	assert_int_equal(RUN("--nope", "status"), FR_EXIT_USAGE);
	assert_int_equal(RUN("test-trigger"), FR_EXIT_USAGE);
	assert_int_equal(RUN("test-trigger", "a", "b"), FR_EXIT_USAGE);
	assert_int_equal(RUN("enable"), FR_EXIT_USAGE);
	assert_int_equal(RUN("why", "-n", "0"), FR_EXIT_USAGE);
	assert_int_equal(RUN("why", "--lines=257"), FR_EXIT_USAGE);
	assert_int_equal(RUN("watch", "-n", "3"), FR_EXIT_USAGE);
	assert_int_equal(RUN("triggers", "x"), FR_EXIT_USAGE);
	assert_int_equal(RUN("--version"), FR_EXIT_OK);
}

static void test_unreachable(void **state)
{
	assert_int_equal(RUN("status", "--socket=/tmp/no/such/socket"), FR_EXIT_UNREACHABLE);
	assert_int_equal(RUN("dump", "--socket=/tmp/no/such/socket"), FR_EXIT_UNREACHABLE);
	assert_int_equal(RUN("triggers", "--socket=/tmp/no/such/socket"), FR_EXIT_UNREACHABLE);
	assert_int_equal(RUN("test-trigger", "a", "--socket=/tmp/no/such/socket"), FR_EXIT_UNREACHABLE);
	assert_int_equal(RUN("enable", "a", "b", "--socket=/tmp/no/such/socket"), FR_EXIT_UNREACHABLE);
	assert_int_equal(RUN("disable", "a", "--socket=/tmp/no/such/socket"), FR_EXIT_UNREACHABLE);
	assert_int_equal(RUN("why", "--socket=/tmp/no/such/socket"), FR_EXIT_UNREACHABLE);
	assert_int_equal(RUN("watch", "--socket=/tmp/no/such/socket"), FR_EXIT_UNREACHABLE);
	assert_int_equal(RUN("list", "-D", "/tmp/no/such/directory"), FR_EXIT_ERROR);
	assert_int_equal(RUN("info", "-D", "/proc"), FR_EXIT_ERROR); /* nobody's dumps are there */
	assert_int_equal(RUN("verify-config", "/tmp/no/such.conf"), FR_EXIT_ERROR);
	assert_int_equal(RUN("verify-config", "/dev/null"), FR_EXIT_OK);
}

static void test_answers(void **state)
{
	static const struct {
		int code, want;
	} cases[] = {
		{0, FR_EXIT_OK},
		{EIO, FR_EXIT_ERROR},
		{EAGAIN, FR_EXIT_SUPPRESSED},
		{EPERM, FR_EXIT_PERMISSION},
		{EACCES, FR_EXIT_PERMISSION},
		{ENOSPC, FR_EXIT_NO_SPACE},
	};
	struct harness *h = *state;

	harness_serve(h);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		char reason[16];

		snprintf(reason, sizeof(reason), "%d", cases[i].code);
		assert_int_equal(RUN("dump", "--reason", reason, "--socket", h->path), cases[i].want);
		assert_int_equal(RUN("test-trigger", reason, "--socket", h->path), cases[i].want);
		assert_int_equal(RUN("enable", reason, "--socket", h->path), cases[i].want);
		/* the first failure tells, and the others are tried still */
		h->handled = 0;
		assert_int_equal(RUN("disable", "0", reason, "0", "--socket", h->path), cases[i].want);
		assert_int_equal(h->handled, 3);
	}
	/* A method that this server lacks. */
	assert_int_equal(RUN("reload", "--socket", h->path), FR_EXIT_ERROR);
	harness_unserve(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test_setup_teardown(test_answers, harness_setup, harness_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
