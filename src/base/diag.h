/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The description of an error, for the person who can correct it.
 *
 * Libraries do not log. A function whose error a person can cause or correct has a parameter struct fr_diag *
 * (may be NULL). The function that knows the cause of the error fills the fr_diag, and returns the negative
 * errno. Its callers pass the errno on. The callers do not change the text, but can put a text before it with
 * fr_diag_prefix(). The program prints or logs the text once.
 */

#include <stdbool.h>

struct fr_diag {
	int code;	/* negative errno; 0: empty */
	char what[512]; /* what happened, and where: "cannot open /x/y: Permission denied" */
	char hint[512]; /* what to do next, or empty */
};

/* Fills D, unless D is NULL or already filled. HINT may be NULL. The texts have no newline. Returns CODE. */
int fr_fail(struct fr_diag *d, int code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Does the same as fr_fail(), and appends ": strerror(-CODE)" to the text. */
int fr_fail_errno(struct fr_diag *d, int code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Puts a text and ": " before the text of D. */
void fr_diag_prefix(struct fr_diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints "PROGRAM: what\n  hint\n" on standard error. If D is empty, prints strerror(-CODE). */
void fr_diag_print(const char *program, const struct fr_diag *d, int code);

/* Exit codes of all programs (flightrecctl(1)). */
enum fr_exit {
	FR_EXIT_OK = 0,
	FR_EXIT_ERROR = 1,
	FR_EXIT_USAGE = 2,
	FR_EXIT_UNREACHABLE = 3, /* flightrecctl: cannot reach a daemon */
	FR_EXIT_SALVAGED = 3,	 /* flightrec-merge: the output is whole, but an input was damaged */
	FR_EXIT_SUPPRESSED = 4,
	FR_EXIT_PERMISSION = 5,
	FR_EXIT_NO_SPACE = 6,
	FR_EXIT_PARTLY = 7, /* flightrecctl: done, but a trigger could not be armed */
	FR_EXIT_AGAIN = 7,  /* flightrecd: the start failed, but the next start can adopt a ring */
};

/* Returns the exit code for a negative errno: 5 for -EACCES and -EPERM, 6 for -ENOSPC and -EDQUOT, else 1;
   and 0 for 0. */
int fr_exit_code(int code);
