// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-report/export.h"
#include "report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The name of an export is the name of the dump and one of these ends. Other viewers know their files by the
 * end. */
static const char *const suffixes[] = {[EXPORT_FOLDED] = ".folded",
	[EXPORT_PPROF] = ".pb.gz",
	[EXPORT_PERFETTO] = ".perfetto-trace",
	[EXPORT_SPEEDSCOPE] = ".speedscope.json",
	[EXPORT_FIREFOX] = ".firefox.json"};

static void print_other_events(const struct fr_recording *r, size_t chosen)
{
	const char *separator = "";

	fprintf(stderr, REPORT_PROGRAM ": the event is %s; --event chooses another one: ",
		fr_recording_event(r, chosen)->name);
	for (size_t i = 0; i < fr_recording_n_events(r); i++) {
		const struct fr_recording_event *e = fr_recording_event(r, i);

		if (i == chosen || e->is_sideband)
			continue;
		fprintf(stderr, "%s%s", separator, e->name);
		separator = ", ";
	}
	fputc('\n', stderr);
}

void export_choose_event(struct report_command *c, const struct fr_profile *p)
{
	const struct fr_recording *r = fr_profile_recording(p);
	size_t chosen = 0, n_others = 0;
	int best = -1;

	if (c->config.filter.event)
		return;
	for (size_t i = 0; i < fr_recording_n_events(r); i++) {
		const struct fr_recording_event *e = fr_recording_event(r, i);
		const int rank = e->is_sideband ? 0 : fr_recording_event_is_cpu(e) ? 2 : 1;

		n_others += !e->is_sideband;
		if (rank <= best)
			continue;
		best = rank;
		chosen = i;
	}
	if (best < 0) /* a file in pipe format has its events later: all of them are shown */
		return;
	c->config.filter.event = fr_recording_event(r, chosen)->name;
	if (n_others > 1 && !c->quiet)
		print_other_events(r, chosen);
}

int export_choose_file(struct report_command *c, struct fr_diag *d)
{
	const char *slash = strrchr(c->path, '/');

	if (c->output || c->format == EXPORT_FOLDED || !isatty(STDOUT_FILENO))
		return 0;
	if (asprintf(&c->new_file, "%s%s", slash ? slash + 1 : c->path, suffixes[c->format]) < 0) {
		c->new_file = NULL;
		return -ENOMEM;
	}
	if (faccessat(AT_FDCWD, c->new_file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return fr_fail(d, -EEXIST, "remove it, or name a file by -o, which is replaced",
			"there is already a file %s", c->new_file);
	c->output = c->new_file;
	return 1;
}

int export_write(struct report_command *c, struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	switch (c->format) {
	case EXPORT_FOLDED:
		export_choose_event(c, p);
		return fr_output_folded(p, out, c->weight, d);
	case EXPORT_PPROF:
		return fr_output_pprof(p, out, d);
	case EXPORT_PERFETTO:
		return fr_output_perfetto(p, NULL, out, d);
	case EXPORT_SPEEDSCOPE:
		return fr_output_speedscope(p, out, d);
	case EXPORT_FIREFOX:
		break;
	}
	return fr_output_firefox(p, out, d);
}
