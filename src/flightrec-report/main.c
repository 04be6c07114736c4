// SPDX-License-Identifier: GPL-2.0-or-later

/* The program flightrec-report. The folder report/ does the work. */

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/timestamp.h"
#include "flightrec-report/command.h"
#include "merge/input.h"
#include "report/debuginfod.h"
#include "report/explain.h"
#include "report/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEBUGINFOD_TIME (30 * FR_NSEC_PER_SEC)
#define DEBUGINFOD_BYTES (512ull << 20)

static int explain(struct command *c, struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	cJSON *meta = fr_sidecar_read(c->path), *json;
	struct fr_explanation e;
	char *text = NULL;
	int r = fr_explain(p, meta, c->incident_ns, NULL, &e, d);

	if (r == 0 && c->json == FR_JSON_OFF) {
		fr_explanation_print(&e, out);
	} else if (r == 0) {
		json = fr_explanation_json(&e);
		text = c->json == FR_JSON_PRETTY ? cJSON_Print(json) : cJSON_PrintUnformatted(json);
		r = text ? 0 : -ENOMEM;
		fprintf(out, "%s\n", text ? text : "");
		cJSON_Delete(json);
		free(text);
	}
	fr_explanation_deinit(&e);
	cJSON_Delete(meta);
	return r;
}

static int page(struct command *c, struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	cJSON *meta = fr_sidecar_read(c->path);
	const char *slash = strrchr(c->path, '/');
	const int r = fr_output_page(p, meta, slash ? slash + 1 : c->path, out, d);

	cJSON_Delete(meta);
	return r;
}

/* A graph shows one event: that of the option, or the first one, which is the one of CPU time. */
static int flame(struct command *c, struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	const bool is_terminal = isatty(fileno(out));
	struct winsize size;

	if (!c->config.filter.event)
		c->config.filter.event = fr_recording_event(fr_profile_recording(p), 0)->name;
	if (ioctl(fileno(out), TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		size.ws_col = 120;
	return fr_output_flame(p, out, size.ws_col, is_terminal && !getenv("NO_COLOR"), d);
}

/* Reads a time as systemd does. A relative one is relative to the end of the recording. */
static int parse_time(const struct fr_profile *p, const char *option, const char *text, uint64_t *ret, struct fr_diag *d)
{
	const struct fr_recording *recording = fr_profile_recording(p);
	uint64_t from, to, wall;
	int64_t offset;
	int r = fr_recording_window(recording, &from, &to, d);

	if (r < 0)
		return r;
	offset = fr_recording_wall_offset(recording);
	r = fr_timestamp_parse(text, to + (uint64_t)offset, &wall);
	if (r < 0)
		return fr_fail(d, -EINVAL, "write it as -5s, 23:11:37 or \"2026-11-20 23:11:37\"", "%s: '%s' is not a time", option, text);
	*ret = wall - (uint64_t)offset;
	return 0;
}

static int set_times(struct command *c, const struct fr_profile *p, struct fr_diag *d)
{
	int r = c->from ? parse_time(p, "--from", c->from, &c->config.filter.from_ns, d) : 0;

	return r == 0 && c->to ? parse_time(p, "--to", c->to, &c->config.filter.to_ns, d) : r;
}

static int show(struct command *c, struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	static int (*const exports[])(struct fr_profile *, FILE *, struct fr_diag *) = {[EXPORT_FOLDED] = fr_output_folded,
		[EXPORT_PPROF] = fr_output_pprof,
		[EXPORT_PERFETTO] = fr_output_perfetto,
		[EXPORT_SPEEDSCOPE] = fr_output_speedscope,
		[EXPORT_FIREFOX] = fr_output_gecko};

	switch (c->verb) {
	case VERB_EXPLAIN:
		return explain(c, p, out, d);
	case VERB_REPORT:
		if (c->html)
			return page(c, p, out, d);
		return c->flame ? flame(c, p, out, d) : fr_output_table(p, out, c->min_percent, d);
	case VERB_EXPORT:
		return exports[c->format](p, out, d);
	}
	return 0;
}

static int run(struct command *c, struct fr_diag *d)
{
	FILE *out = stdout;
	struct fr_profile *p;
	int r;

	if (c->debuginfod)
		fr_debuginfod_enable(DEBUGINFOD_TIME, DEBUGINFOD_BYTES);
	else
		fr_debuginfod_disable();
	r = fr_profile_open(&c->config, &p, d);
	if (r < 0)
		return r;
	r = set_times(c, p, d);
	if (r < 0) {
		fr_profile_free(p);
		return r;
	}
	if (c->output)
		out = fopen(c->output, "we");
	r = out ? show(c, p, out, d) : fr_fail_errno(d, -errno, NULL, "cannot create %s", c->output);
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = fr_fail_errno(d, -errno, NULL, "cannot write %s", c->output ? c->output : "standard output");
	if (c->output && out)
		fclose(out);
	fr_profile_free(p);
	return r;
}

int main(int argc, char *argv[])
{
	struct command c = {.min_percent = 0.5};
	struct fr_diag d = {0};
	int r = command_parse(&c, argc, argv, &d);

	if (r == 0)
		r = run(&c, &d);
	command_deinit(&c);
	if (r >= 0)
		return FR_EXIT_OK;
	fr_diag_print(PROGRAM, &d, r);
	return r == -EINVAL ? FR_EXIT_USAGE : fr_exit_code(r);
}
