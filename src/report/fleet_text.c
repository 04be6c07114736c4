// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "report/fleet_explain.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* At most 30 lines: 9 above the findings (4, and 5 of machines without a dump), 10 of the first finding, 3 of
   each other one, and 5 below. */
#define FINDINGS_SHOWN 3
#define EVIDENCE_FIRST 6
#define NAMES_SHOWN 8	/* in one line */
#define MISSING_SHOWN 4 /* a line for each */
#define CLOCKS_SHOWN 4
/* A clock is worth a word if it can be wrong by more than this. */
#define NOTABLE_NS (10 * FR_NSEC_PER_MSEC)

static void print_time(uint64_t ns, FILE *out)
{
	char text[FR_STAMP_SIZE];

	fr_rfc3339_format(ns, text);
	fprintf(out, "%.10s %.12s", text, text + 11);
}

static void print_header(const struct fr_fleet_folder *f, FILE *out)
{
	const struct fr_fleet_command *c = &f->command;

	fprintf(out, "Fleet dump %s", *f->id ? f->id : "without an id");
	if (*c->reason)
		fprintf(out, ": %s", c->reason);
	if (*c->trigger)
		fprintf(out, ", by the trigger %s of %s", c->trigger, c->by);
	else if (*c->by)
		fprintf(out, ", by %s", c->by);
	fprintf(out, "\nWindow: ");
	print_time(f->from_ns, out);
	fprintf(out, " to ");
	print_time(f->to_ns, out);
	fprintf(out, " UTC, %.1f s of fleet time\n", (double)(f->to_ns - f->from_ns) / FR_NSEC_PER_SEC);
}

/* Prints the names of the machines for which IS_ONE holds, and then how many more there are. */
static void print_names(const struct fr_fleet_explanation *x,
	bool (*is_one)(const struct fr_fleet_explanation *x, size_t machine), FILE *out)
{
	size_t n = 0;

	for (size_t i = 0; i < x->folder->n; i++)
		if (is_one(x, i) && ++n <= NAMES_SHOWN)
			fprintf(out, "%s%s", n > 1 ? ", " : "", x->folder->v[i].name);
	if (n > NAMES_SHOWN)
		fprintf(out, " and %zu more", n - NAMES_SHOWN);
}

static bool has_dump(const struct fr_fleet_explanation *x, size_t machine)
{
	return x->folder->v[machine].path;
}

static bool is_quiet(const struct fr_fleet_explanation *x, size_t machine)
{
	return x->loads[machine].is_known && x->loads[machine].n_findings == 0;
}

static bool has_lost(const struct fr_fleet_explanation *x, size_t machine)
{
	return x->loads[machine].lost > 0;
}

static bool has_poor_clock(const struct fr_fleet_explanation *x, size_t machine)
{
	const struct fr_fleet_machine *m = &x->folder->v[machine];

	return m->path && m->clock.error_ns > NOTABLE_NS;
}

static size_t count(const struct fr_fleet_explanation *x,
	bool (*is_one)(const struct fr_fleet_explanation *x, size_t machine))
{
	size_t n = 0;

	for (size_t i = 0; i < x->folder->n; i++)
		n += is_one(x, i);
	return n;
}

static void print_machines(const struct fr_fleet_explanation *x, FILE *out)
{
	const struct fr_fleet_folder *f = x->folder;
	const size_t missing = f->n - f->n_dumps;
	size_t n = 0;

	fprintf(out, "Machines: %zu with a dump (", f->n_dumps);
	print_names(x, has_dump, out);
	fprintf(out, "), %zu without\n", missing);
	for (size_t i = 0; i < f->n && n < MISSING_SHOWN; i++)
		if (!f->v[i].path) {
			fprintf(out, "   missing: %s, %s\n", f->v[i].name, f->v[i].why);
			n++;
		}
	if (missing > n)
		fprintf(out, "   missing: %zu more, see --json\n", missing - n);
}

/* Says how wrong the clocks can be, if one is poor. */
static void print_clocks(const struct fr_fleet_explanation *x, FILE *out)
{
	const size_t n = count(x, has_poor_clock);
	size_t shown = 0;

	if (n == 0)
		return;
	fprintf(out, "Clocks: ");
	for (size_t i = 0; i < x->folder->n && shown < CLOCKS_SHOWN; i++) {
		const struct fr_fleet_machine *m = &x->folder->v[i];

		if (!has_poor_clock(x, i))
			continue;
		fprintf(out, "%s%s ", shown++ ? ", " : "", m->name);
		if (m->clock.error_ns == UINT64_MAX)
			fprintf(out, "was not measured, so its wall clock counts");
		else
			fprintf(out, "can be wrong by %.0f ms", (double)m->clock.error_ns / FR_NSEC_PER_MSEC);
	}
	if (n > shown)
		fprintf(out, " and %zu more", n - shown);
	fputc('\n', out);
}

static void print_group(
	const struct fr_fleet_explanation *x, size_t number, const struct fr_fleet_group *g, FILE *out)
{
	const struct fr_finding *f = &g->first->f;
	const struct fr_fleet_machine *v = x->folder->v;

	fprintf(out, "%zu. %s on %s: %s\n", number, f->rule, v[g->machines[0]].name, f->headline);
	for (size_t k = 0; k < FR_MIN(f->n_evidence, (size_t)(number == 1 ? EVIDENCE_FIRST : 1)); k++)
		fprintf(out, "   %s\n", f->evidence[k]);
	if (number == 1)
		fputs(g->first->stack, out);
	fprintf(out, "   how sure: %s, %s", fr_certainty_name(f->certainty), f->why);
	for (size_t i = 1; i < FR_MIN(g->n, (size_t)NAMES_SHOWN); i++)
		fprintf(out, "%s%s", i == 1 ? "; also on " : ", ", v[g->machines[i]].name);
	if (g->n > NAMES_SHOWN)
		fprintf(out, " and %zu more", g->n - NAMES_SHOWN);
	fputc('\n', out);
}

static int print_findings(struct fr_fleet_explanation *x, FILE *out)
{
	struct fr_fleet_group *v = NULL;
	size_t n = 0;
	const int r = fr_fleet_groups(x, &v, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < FR_MIN(n, (size_t)FINDINGS_SHOWN); i++)
		print_group(x, i + 1, &v[i], out);
	if (n > FINDINGS_SHOWN)
		fprintf(out, "%zu more findings, of less weight: see --json\n", n - FINDINGS_SHOWN);
	if (n == 0)
		fprintf(out, "Nothing unusual was found on any machine.\n");
	fr_fleet_groups_free(v, n);
	return 0;
}

static void print_difference(const struct fr_fleet_explanation *x, FILE *out)
{
	struct fr_fleet_difference d;

	if (fr_fleet_difference(x, &d))
		fprintf(out,
			"Differs most: %s, %.2f CPUs busy (median of the others: %.2f), %.2f threads wait "
			"(%.2f)\n",
			x->folder->v[d.machine].name, d.cpus, d.others_cpus, d.waiting, d.others_waiting);
	if (x->n > 0 && count(x, is_quiet) > 0) {
		fprintf(out, "Nothing unusual on ");
		print_names(x, is_quiet, out);
		fputc('\n', out);
	}
}

static void print_lost(const struct fr_fleet_explanation *x, FILE *out)
{
	if (count(x, has_lost) == 0) {
		fprintf(out, "Lost: nothing\n");
		return;
	}
	fprintf(out, "Lost: records on ");
	print_names(x, has_lost, out);
	fprintf(out, ". Causes can be missing.\n");
}

int fr_fleet_explanation_print(struct fr_fleet_explanation *x, FILE *out)
{
	int r;

	print_header(x->folder, out);
	print_machines(x, out);
	print_clocks(x, out);
	r = print_findings(x, out);
	if (r < 0)
		return r;
	print_difference(x, out);
	print_lost(x, out);
	if (x->path && x->n > 0)
		fprintf(out, "Next: flightrec-report explain --machine=%s %s\n",
			x->folder->v[x->v[0].machine].name, x->path);
	else if (x->path)
		fprintf(out, "Next: flightrec-report report --html -o page.html %s\n", x->path);
	return 0;
}
