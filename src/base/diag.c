// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/diag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 4, 0))) static void fill(
	struct fr_diag *d, int code, const char *hint, const char *fmt, va_list ap, bool with_errno)
{
	char reason[128];
	int n;

	if (!d || d->code)
		return;

	d->code = code;
	n = vsnprintf(d->what, sizeof(d->what), fmt, ap);
	if (with_errno && n >= 0 && (size_t)n < sizeof(d->what))
		snprintf(d->what + n, sizeof(d->what) - n, ": %s", strerror_r(-code, reason, sizeof(reason)));
	snprintf(d->hint, sizeof(d->hint), "%s", hint ? hint : "");
}

int fr_fail(struct fr_diag *d, int code, const char *hint, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(d, code, hint, fmt, ap, false);
	va_end(ap);
	return code;
}

int fr_fail_errno(struct fr_diag *d, int code, const char *hint, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill(d, code, hint, fmt, ap, true);
	va_end(ap);
	return code;
}

void fr_diag_prefix(struct fr_diag *d, const char *fmt, ...)
{
	char old[sizeof(((struct fr_diag *)0)->what)];
	va_list ap;
	int n;

	if (!d || !d->code)
		return;

	memcpy(old, d->what, sizeof(old));
	va_start(ap, fmt);
	n = vsnprintf(d->what, sizeof(d->what), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n + 2 < sizeof(d->what))
		snprintf(d->what + n, sizeof(d->what) - n, ": %.*s", (int)(sizeof(d->what) - n - 3), old);
}

void fr_diag_print(const char *program, const struct fr_diag *d, int code)
{
	char reason[128];

	if (!d || !d->code) {
		fprintf(stderr, "%s: %s\n", program, strerror_r(-code, reason, sizeof(reason)));
		return;
	}
	fprintf(stderr, "%s: %s\n", program, d->what);
	if (d->hint[0])
		fprintf(stderr, "  %s\n", d->hint);
}

int fr_exit_code(int code)
{
	switch (code) {
	case -EACCES:
	case -EPERM:
		return FR_EXIT_PERMISSION;
	case -ENOSPC:
	case -EDQUOT:
		return FR_EXIT_NO_SPACE;
	default:
		return code < 0 ? FR_EXIT_ERROR : FR_EXIT_OK;
	}
}
