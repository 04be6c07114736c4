// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-report/write_view.h"
#include "flightrec-report/export.h"
#include "flightrec-report/output_file.h"
#include "flightrec-report/screen.h"

#include <signal.h>
#include <string.h>

int write_view(struct report_command *c,
	int (*show)(struct report_command *c, void *ctx, FILE *out, struct fr_diag *d), void *ctx,
	struct fr_diag *d)
{
	FILE *out;
	int r = c->verb == VERB_EXPORT ? export_choose_file(c, d) : 0;

	if (r < 0)
		return r;
	/* Who reads an export from a pipe must know that it is not whole. */
	if (c->verb == VERB_EXPORT)
		signal(SIGPIPE, SIG_IGN);
	if (c->output && !strcmp(c->output, "-"))
		c->output = NULL;
	r = output_file_open(c, &out, d);
	if (r < 0)
		return r;
	screen_begin(c, out);
	r = output_file_close(c, out, show(c, ctx, out, d), d);
	screen_end();
	if (r == 0 && c->new_file)
		printf("%s\n", c->new_file);
	return r;
}
