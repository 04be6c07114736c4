// SPDX-License-Identifier: GPL-2.0-or-later

/* The program flightrec-report. The folder report/ does the work. */

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "flightrec-report/command.h"
#include "flightrec-report/export.h"
#include "flightrec-report/fleet.h"
#include "flightrec-report/pack.h"
#include "flightrec-report/screen.h"
#include "flightrec-report/times.h"
#include "flightrec-report/write_view.h"
#include "merge/input.h"
#include "report/bundle.h"
#include "report/debuginfod.h"
#include "report/explain.h"
#include "report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEBUGINFOD_TIME_NS (30 * FR_NSEC_PER_SEC)
#define DEBUGINFOD_BYTES (512ull << 20)

static int explain(struct report_command *c, struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	cJSON *meta = fr_sidecar_read(c->path), *json;
	struct fr_explanation e;
	char *text = NULL;
	int r = fr_explain(p, meta, c->incident_ns, NULL, &e, d);

	e.path = c->shown_path;
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

static int page(struct report_command *c, struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	cJSON *meta = fr_sidecar_read(c->path);
	const char *slash = strrchr(c->path, '/');
	const int r = fr_output_page(p, meta, slash ? slash + 1 : c->path, out, d);

	cJSON_Delete(meta);
	return r;
}

static int flame(struct report_command *c, struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	export_choose_event(c, p);
	return fr_output_flame(p, out, screen_width(), screen_has_colours(), d);
}

static int show(struct report_command *c, void *profile, FILE *out, struct fr_diag *d)
{
	struct fr_profile *p = profile;

	switch (c->verb) {
	case VERB_EXPLAIN:
		return explain(c, p, out, d);
	case VERB_REPORT:
		if (c->html)
			return page(c, p, out, d);
		return c->flame ? flame(c, p, out, d)
				: fr_output_table(p, out, c->min_percent, screen_has_colours(), d);
	case VERB_EXPORT:
		return export_write(c, p, out, d);
	case VERB_BUNDLE: /* pack() */
		break;
	}
	return 0;
}

/* Shows the dump c->path, or packs it. */
static int run(struct report_command *c, struct fr_diag *d)
{
	struct fr_profile *p;
	int r = report_command_set_places(c);

	if (r < 0)
		return r;
	c->config.path = c->path;
	r = fr_profile_open(&c->config, &p, d);
	if (r < 0)
		return r;
	r = times_set(c, p, d);
	if (r == 0)
		r = c->verb == VERB_BUNDLE ? pack(c, p, d) : write_view(c, show, p, d);
	fr_profile_free(p);
	return r;
}

/* Opens c->path if it is a bundle, and goes on with the dump in it. */
static int run_bundle(struct report_command *c, struct fr_diag *d)
{
	_cleanup_free_ char *path = strdup(c->path);
	struct fr_bundle *b;
	int r = path ? fr_bundle_open(path, &b, d) : -ENOMEM;

	if (r < 0)
		return r;
	c->shown_path = path;
	if (b && c->verb == VERB_BUNDLE) {
		r = fr_fail(d, -EINVAL, "copy it as it is", "%s is a bundle already", path);
	} else if (b) {
		free(c->path);
		c->path = strdup(fr_bundle_dump(b));
		c->config.places.files = fr_bundle_files(b);
		r = c->path ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = run(c, d);
	c->shown_path = NULL;
	if (r < 0 && b)
		fr_diag_prefix(d, "%s", path);
	fr_bundle_free(b);
	return r;
}

/* Warns of what makes names incomplete. */
static void print_warning(void)
{
	const struct fr_diag *problem = fr_debuginfod_problem();

	if (problem)
		fprintf(stderr, REPORT_PROGRAM ": warning: %s\n  %s\n", problem->what, problem->hint);
}

int main(int argc, char *argv[])
{
	struct report_command c = {.min_percent = 0.5, .debuginfod_ns = DEBUGINFOD_TIME_NS};
	struct fr_diag d = {0};
	int r = report_command_parse(&c, argc, argv, &d);

	if (r == 0) {
		fr_file_limit_raise(); /* each object file needs descriptors */
		if (c.debuginfod)
			fr_debuginfod_enable(c.debuginfod_ns, DEBUGINFOD_BYTES);
		else
			fr_debuginfod_disable();
		r = fleet_is_meant(&c) ? fleet_run(&c, run_bundle, &d) : run_bundle(&c, &d);
		print_warning();
	}
	report_command_deinit(&c);
	if (r >= 0)
		return FR_EXIT_OK;
	fr_diag_print(REPORT_PROGRAM, &d, r);
	return r == -EINVAL ? FR_EXIT_USAGE : fr_exit_code(r);
}
