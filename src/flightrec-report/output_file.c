// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-report/output_file.h"
#include "base/file.h"
#include "flightrec-report/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_binary(const struct report_command *c)
{
	return c->html ||
	       (c->verb == VERB_EXPORT && (c->format == EXPORT_PPROF || c->format == EXPORT_PERFETTO));
}

int output_file_open(const struct report_command *c, FILE **ret, struct fr_diag *d)
{
	struct stat in, out;

	*ret = stdout;
	if (!c->output && is_binary(c) && isatty(STDOUT_FILENO))
		return fr_fail(d, -EINVAL, "write it to a file with -o FILE, or to a pipe",
			"this format is not for a terminal");
	if (!c->output)
		return 0;
	if (stat(c->output, &out) == 0 && stat(c->path, &in) == 0 && in.st_dev == out.st_dev &&
		in.st_ino == out.st_ino)
		return fr_fail(d, -EINVAL, "give another name", "-o: %s is the file to read", c->output);
	*ret = fopen(c->output, c->new_file ? "wxe" : "we");
	return *ret ? 0 : fr_fail_errno(d, -errno, NULL, "cannot create %s", c->output);
}

int output_file_close(const struct report_command *c, FILE *out, int r, struct fr_diag *d)
{
	struct stat st;

	if ((fflush(out) != 0 || ferror(out)) && r == 0 && !screen_has_pager())
		r = fr_fail_errno(d, errno ? -errno : -EIO, NULL, "cannot write %s",
			c->output ? c->output : "standard output");
	if (!c->output)
		return r;
	if (r < 0 && fstat(fileno(out), &st) == 0 && S_ISREG(st.st_mode) &&
		fr_file_is_at(fileno(out), AT_FDCWD, c->output))
		unlink(c->output);
	if (fclose(out) != 0 && r == 0)
		r = fr_fail_errno(d, -errno, NULL, "cannot write %s", c->output);
	return r;
}
