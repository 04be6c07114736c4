// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the exit codes of flightrecctl, with a real server. */
#include "harness.h"
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

/* Does what main() does. */
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

/* Runs COMMANDS, which end with NULL and whose words are separated by blanks. Each must end with the exit
   code CODE. */
static void expect_exit(int code, const char *const *commands)
{
	for (; *commands; commands++) {
		char *text = strdup(*commands), *rest = text;
		const char *words[8] = {NULL};

		for (size_t i = 0; i < 7 && (words[i] = strsep(&rest, " ")); i++)
			;
		if (run(words) != code)
			fail_msg("not %d: flightrecctl %s", code, *commands);
		free(text);
	}
}
#define EXPECT_EXIT(code, ...) expect_exit(code, (const char *const[]){__VA_ARGS__, NULL})

FIXTURE(harness_setup, harness_teardown)

TEST(wrong_usage_is_2)
{
	assert_int_equal(run((const char *[]){NULL}), FR_EXIT_USAGE);
	EXPECT_EXIT(FR_EXIT_USAGE, "dmup", "dump extra", "dump --last", "dump --last soon",
		"status --last=3s", "dump --merge", "status --json=loud", "--nope status", "test-trigger",
		"test-trigger a b", "enable", "why -n 0", "why --lines=257", "watch -n 3", "triggers x");
	EXPECT_EXIT(FR_EXIT_OK, "--version");
}

TEST(missing_daemon_is_3_and_missing_file_is_1)
{
#define SOCKET " --socket=/tmp/no/such/socket"
	EXPECT_EXIT(FR_EXIT_UNREACHABLE, "status" SOCKET, "dump" SOCKET, "triggers" SOCKET,
		"test-trigger a" SOCKET, "enable a b" SOCKET, "disable a" SOCKET, "why" SOCKET,
		"watch" SOCKET);
	EXPECT_EXIT(FR_EXIT_ERROR, "list -D /tmp/no/such/directory", "info -D /proc",
		"verify-config /tmp/no/such.conf");
	EXPECT_EXIT(FR_EXIT_OK, "verify-config /dev/null");
}

TEST(exit_code_is_that_of_the_error_reply)
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
		/* The exit code is the code of the first failure. flightrecctl also tries the other
		   triggers. */
		h->handled = 0;
		assert_int_equal(RUN("disable", "0", reason, "0", "--socket", h->path), cases[i].want);
		assert_int_equal(h->handled, 3);
	}
	/* The server has no such method. */
	assert_int_equal(RUN("reload", "--socket", h->path), FR_EXIT_ERROR);
	harness_unserve(h);
}
