// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "flightrec-report/fleet.h"
#include "flightrec-report/screen.h"
#include "flightrec-report/times.h"
#include "merge/input.h"
#include "report/fleet_page.h"

#include <errno.h>
#include <string.h>

/* A view of all machines. */
struct show {
	struct fr_fleet_folder *folder;
	struct fr_fleet_explanation explanation;
	struct fr_fleet_page page;
	struct fr_perfetto_machine trace;
	FILE *out;
};

/* Shows the machine with this number, whose profile is P. */
typedef int (*show_machine)(struct show *s, const struct report_command *c, size_t machine,
	struct fr_profile *p, struct fr_diag *d);

static int explain(struct show *s, const struct report_command *c, size_t machine, struct fr_profile *p,
	struct fr_diag *d)
{
	const struct fr_view view = fr_fleet_page_view(&s->page, machine);
	cJSON *meta = fr_sidecar_read(s->folder->v[machine].path);
	struct fr_explanation e;
	int r = fr_explain(p, meta, c->incident_ns, c->html ? &view : NULL, &e, d);

	if (r == 0)
		r = fr_fleet_explanation_add(&s->explanation, machine, &e);
	if (r == 0 && c->html)
		r = fr_fleet_page_add(&s->page, machine, &e);
	fr_explanation_deinit(&e);
	cJSON_Delete(meta);
	return r;
}

static int table(struct show *s, const struct report_command *c, size_t machine, struct fr_profile *p,
	struct fr_diag *d)
{
	fprintf(s->out, "# Machine %s\n#\n", s->folder->v[machine].name);
	return fr_output_table(p, s->out, c->min_percent, screen_has_colours(), d);
}

static int trace(struct show *s, const struct report_command *c, size_t machine, struct fr_profile *p,
	struct fr_diag *d)
{
	const uint32_t cpus = fr_recording_n_cpus(fr_profile_recording(p));
	int r;

	s->trace.name = s->folder->v[machine].name;
	s->trace.offset_ns = s->folder->v[machine].clock.offset_ns;
	r = fr_output_perfetto(p, &s->trace, s->out, d);
	s->trace.number++;
	s->trace.cpus += FR_MIN(FR_MAX(cpus, 1u), 4096u);
	return r;
}

/* Opens the dump of the machine, and shows it. */
static int open_machine(
	struct show *s, const struct report_command *c, size_t machine, show_machine show, struct fr_diag *d)
{
	const struct fr_fleet_machine *m = &s->folder->v[machine];
	struct report_command own = *c;
	struct fr_profile *p = NULL;
	int r;

	own.path = m->path;
	own.beside = own.objects = own.cache = own.kallsyms = NULL;
	own.config.path = m->path;
	own.config.progress = NULL; /* the progress is that of all machines */
	r = report_command_set_places(&own);
	if (r == 0)
		r = fr_profile_open(&own.config, &p, d);
	if (r == 0)
		r = show(s, &own, machine, p, d);
	fr_profile_free(p);
	free(own.beside);
	free(own.objects);
	free(own.cache);
	free(own.kallsyms);
	return r;
}

/* A damaged dump does not hide the others: its machine is left out, with a warning. */
static int show_one(struct show *s, const struct report_command *c, size_t machine, show_machine show,
	struct fr_diag *ret_why, struct fr_diag *d)
{
	struct fr_fleet_machine *m = &s->folder->v[machine];
	struct report_command own = *c;
	int r = times_set_fleet(&own, s->folder->to_ns, m->clock.offset_ns, d);

	if (r < 0)
		return r;
	*ret_why = (struct fr_diag){0};
	r = open_machine(s, &own, machine, show, ret_why);
	if (r == -ENOMEM && !*ret_why->what)
		return r;
	if (r < 0) {
		fr_fleet_folder_drop(s->folder, m, ret_why);
		fprintf(stderr, REPORT_PROGRAM ": warning: %s is left out: %s\n", m->name, m->why);
	}
	return 0;
}

static int show_all(struct show *s, const struct report_command *c, show_machine show, struct fr_diag *d)
{
	const struct fr_fleet_folder *f = s->folder;
	struct fr_diag why = {0};
	int r = 0;

	for (size_t i = 0; i < f->n && r == 0; i++) {
		if (f->v[i].path)
			r = show_one(s, c, i, show, &why, d);
		if (r == 0 && c->config.progress && i + 1 < f->n)
			c->config.progress(c->config.ctx, i + 1, f->n);
	}
	if (r < 0)
		return r;
	if (f->n_dumps == 0)
		return fr_fail(d, -ENODATA, why.hint, "no dump can be read; the last one: %s", why.what);
	if (c->config.progress)
		c->config.progress(c->config.ctx, f->n, f->n);
	return 0;
}

static int print_json(const struct report_command *c, struct fr_fleet_explanation *x, FILE *out)
{
	cJSON *json = fr_fleet_explanation_json(x);
	char *text = c->json == FR_JSON_PRETTY ? cJSON_Print(json) : cJSON_PrintUnformatted(json);

	cJSON_Delete(json);
	if (!text)
		return -ENOMEM;
	fprintf(out, "%s\n", text);
	free(text);
	return 0;
}

static int show_explanation(struct show *s, const struct report_command *c, struct fr_diag *d)
{
	const bool wants_json = c->verb == VERB_EXPLAIN && c->json != FR_JSON_OFF;
	int r = fr_fleet_explanation_init(&s->explanation, s->folder, c->path, wants_json);

	if (r == 0)
		r = fr_fleet_page_init(&s->page, s->folder);
	if (r == 0)
		r = show_all(s, c, explain, d);
	if (r == 0)
		r = wants_json		      ? print_json(c, &s->explanation, s->out)
		    : c->verb == VERB_EXPLAIN ? fr_fleet_explanation_print(&s->explanation, s->out)
					      : fr_fleet_page_write(&s->page, &s->explanation, s->out);
	fr_fleet_page_deinit(&s->page);
	fr_fleet_explanation_deinit(&s->explanation);
	return r;
}

int fleet_show(struct report_command *c, void *folder, FILE *out, struct fr_diag *d)
{
	struct fr_fleet_folder *f = folder;
	struct show s = {.folder = f, .out = out};

	if (c->verb == VERB_EXPLAIN || c->html)
		return show_explanation(&s, c, d);
	if (c->verb == VERB_EXPORT && f->n_dumps > FR_PERFETTO_MACHINES_MAX)
		return fr_fail(d, -E2BIG, "choose one machine: --machine=NAME",
			"a trace can have at most %u machines", FR_PERFETTO_MACHINES_MAX);
	/* The tables are written while the dumps are read, so a pager must be there before. */
	if (c->config.progress && c->verb == VERB_REPORT)
		c->config.progress(c->config.ctx, 1, 1);
	if (c->verb == VERB_REPORT)
		c->config.progress = NULL;
	return show_all(&s, c, c->verb == VERB_EXPORT ? trace : table, d);
}
