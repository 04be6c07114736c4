/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What went wrong, in words for the person who can mend it.
 *
 * Libraries do not log. A function that can fail for a reason that a person caused or can mend takes a
 * `struct fr_diag *` (NULL: not wanted), fills it once, where the cause is known, and returns the negative
 * errno. Callers forward the code and leave the text alone; the program prints or logs it once.
 */

#include <stdbool.h>

struct fr_diag {
	int code;	/* negative errno, 0: nothing was said */
	char what[512]; /* what happened, and to what: "cannot open /x/y: Permission denied" */
	char hint[512]; /* what to do next, or empty */
};

/* Fill D (may be NULL) unless it was filled already; always returns CODE. HINT may be NULL. No newline in
 * either. */
int fr_fail(struct fr_diag *d, int code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The same, with ": strerror(-code)" added to the text. */
int fr_fail_errno(struct fr_diag *d, int code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Put "CONTEXT: " before what D says. */
void fr_diag_prefix(struct fr_diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Print "PROGRAM: what\n  hint\n" on standard error, for CODE alone where D is empty. */
void fr_diag_print(const char *program, const struct fr_diag *d, int code);

/* Exit codes of all programs (flightrecctl(1)). */
enum fr_exit {
	FR_EXIT_OK = 0,
	FR_EXIT_ERROR = 1,
	FR_EXIT_USAGE = 2,
	FR_EXIT_UNREACHABLE = 3, /* flightrecctl: no daemon */
	FR_EXIT_SALVAGED = 3,	 /* flightrec-merge: the output is whole, an input was damaged */
	FR_EXIT_SUPPRESSED = 4,
	FR_EXIT_PERMISSION = 5,
	FR_EXIT_NO_SPACE = 6,
	FR_EXIT_PARTLY = 7, /* flightrecctl: done, but a trigger could not be armed */
	FR_EXIT_AGAIN = 7,  /* flightrecd: a start failed that had a history to go on with */
};

/* The exit code that fits a negative errno: EACCES/EPERM 5, ENOSPC/EDQUOT 6, ECONNREFUSED/ENOENT stay 1. */
int fr_exit_code(int code);
