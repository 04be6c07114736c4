// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/fleet_explain.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FINDINGS_MAX 8 /* of one machine */
/* So many more CPUs and waiting threads together than the others have are more than chance. */
#define DIFFERENCE_MIN 0.25

int fr_fleet_explanation_init(struct fr_fleet_explanation *x, const struct fr_fleet_folder *folder,
	const char *path, bool wants_json)
{
	*x = (struct fr_fleet_explanation){.folder = folder, .path = path};
	x->loads = calloc(folder->n, sizeof(*x->loads));
	x->json = wants_json ? cJSON_CreateObject() : NULL;
	return x->loads && (x->json || !wants_json) ? 0 : -ENOMEM;
}

/* --- one machine --- */

static int print_stack(const struct fr_explanation *e, const struct fr_finding *f, char **ret)
{
	size_t size;
	FILE *memory = open_memstream(ret, &size);

	if (!memory)
		return -ENOMEM;
	fr_explanation_print_stack(e->profile, f->stack, memory);
	return fclose(memory) == 0 && *ret ? 0 : -ENOMEM;
}

static int add_finding(struct fr_fleet_explanation *x, size_t machine, const struct fr_explanation *e,
	const struct fr_finding *f)
{
	struct fr_fleet_finding *v = reallocarray(x->v, x->n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	x->v = v;
	v += x->n++;
	*v = (struct fr_fleet_finding){.f = *f, .machine = machine};
	snprintf(v->comm, sizeof(v->comm), "%s", f->comm ? f->comm : "");
	v->f.comm = NULL;
	v->f.stack = FR_STACK_NONE;
	return print_stack(e, f, &v->stack);
}

static void add_load(struct fr_fleet_load *l, const struct fr_explanation *e)
{
	const struct fr_sums *now = &e->facts.all[FR_INCIDENT];
	const double s = fr_facts_seconds(&e->facts, FR_INCIDENT) * FR_NSEC_PER_SEC;

	l->is_known = s > 0;
	l->lost = e->facts.lost + e->facts.left_out;
	l->n_findings = e->findings.n;
	l->cpus = s > 0 ? (double)now->cpu_ns / s : 0;
	for (int i = 0; i < FR_WAIT_SLEEP; i++)
		l->waiting += s > 0 ? (double)now->wait_ns[i] / s : 0;
}

int fr_fleet_explanation_add(struct fr_fleet_explanation *x, size_t machine, const struct fr_explanation *e)
{
	int r = 0;

	add_load(&x->loads[machine], e);
	for (size_t i = 0; i < FR_MIN(e->findings.n, (size_t)FINDINGS_MAX) && r == 0; i++)
		r = add_finding(x, machine, e, &e->findings.v[i]);
	if (r == 0 && x->json) {
		cJSON *json = fr_explanation_json(e);

		if (!json || !cJSON_AddItemToObject(x->json, x->folder->v[machine].name, json)) {
			cJSON_Delete(json);
			r = -ENOMEM;
		}
	}
	return r;
}

void fr_fleet_explanation_deinit(struct fr_fleet_explanation *x)
{
	for (size_t i = 0; i < x->n; i++)
		free(x->v[i].stack);
	free(x->v);
	free(x->loads);
	cJSON_Delete(x->json);
	*x = (struct fr_fleet_explanation){0};
}

/* --- all machines --- */

/* The highest score first; then by machine, so that the order is always the same. */
static int compare_findings(const void *a, const void *b)
{
	const struct fr_fleet_finding *x = a, *y = b;

	if (x->f.score != y->f.score)
		return x->f.score > y->f.score ? -1 : 1;
	return x->machine < y->machine ? -1 : x->machine > y->machine;
}

static struct fr_fleet_group *find_group(struct fr_fleet_group *v, size_t n, const struct fr_fleet_finding *f)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].first->f.rule, f->f.rule) == 0 && strcmp(v[i].first->comm, f->comm) == 0)
			return &v[i];
	return NULL;
}

static int add_to_group(struct fr_fleet_group *g, size_t machine)
{
	size_t *v;

	for (size_t i = 0; i < g->n; i++)
		if (g->machines[i] == machine)
			return 0;
	v = reallocarray(g->machines, g->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	g->machines = v;
	v[g->n++] = machine;
	return 0;
}

int fr_fleet_groups(struct fr_fleet_explanation *x, struct fr_fleet_group **ret, size_t *ret_n)
{
	struct fr_fleet_group *v = calloc(x->n + 1, sizeof(*v));
	size_t n = 0;
	int r = 0;

	if (!v)
		return -ENOMEM;
	if (x->n > 1)
		qsort(x->v, x->n, sizeof(*x->v), compare_findings);
	for (size_t i = 0; i < x->n && r == 0; i++) {
		struct fr_fleet_group *g = find_group(v, n, &x->v[i]);

		if (!g) {
			g = &v[n++];
			g->first = &x->v[i];
		}
		r = add_to_group(g, x->v[i].machine);
	}
	if (r < 0) {
		fr_fleet_groups_free(v, n);
		return r;
	}
	*ret = v;
	*ret_n = n;
	return 0;
}

void fr_fleet_groups_free(struct fr_fleet_group *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].machines);
	free(v);
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Returns the median of the N sorted values V without one that is VALUE; N is at least 2. */
static double median_of_others(const double *v, size_t n, double value)
{
	const size_t middle = (n - 2) / 2;

	return v[v[middle] >= value ? middle + 1 : middle];
}

bool fr_fleet_difference(const struct fr_fleet_explanation *x, struct fr_fleet_difference *ret)
{
	_cleanup_free_ double *cpus = calloc(2 * x->folder->n + 1, sizeof(*cpus));
	double *waiting = cpus ? cpus + x->folder->n : NULL, most = DIFFERENCE_MIN;
	bool found = false;
	size_t n = 0;

	for (size_t i = 0; i < x->folder->n && cpus; i++) {
		if (!x->loads[i].is_known)
			continue;
		cpus[n] = x->loads[i].cpus;
		waiting[n++] = x->loads[i].waiting;
	}
	if (n < 2)
		return false;
	qsort(cpus, n, sizeof(*cpus), compare_doubles);
	qsort(waiting, n, sizeof(*waiting), compare_doubles);
	for (size_t i = 0; i < x->folder->n; i++) {
		const struct fr_fleet_load *l = &x->loads[i];
		struct fr_fleet_difference d = {.machine = i, .cpus = l->cpus, .waiting = l->waiting};
		double sum;

		if (!l->is_known)
			continue;
		d.others_cpus = median_of_others(cpus, n, d.cpus);
		d.others_waiting = median_of_others(waiting, n, d.waiting);
		sum = fmax(d.cpus - d.others_cpus, 0) + fmax(d.waiting - d.others_waiting, 0);
		if (sum < most)
			continue;
		most = sum;
		*ret = d;
		found = true;
	}
	return found;
}
