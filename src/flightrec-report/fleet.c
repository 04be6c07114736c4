// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-report/fleet.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "flightrec-report/write_view.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define CHOOSE "choose one machine: --machine=NAME"

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool fleet_is_meant(const struct report_command *c)
{
	return c->paths || c->machine || is_folder(c->path);
}

/* Refuses a view that needs one machine. */
static int check_view(const struct report_command *c, struct fr_diag *d)
{
	if (c->verb == VERB_BUNDLE)
		return fr_fail(d, -EINVAL, CHOOSE, "a bundle has the dump of one machine");
	if (c->verb == VERB_EXPORT && c->format != EXPORT_PERFETTO)
		return fr_fail(d, -EINVAL, CHOOSE ", or --format=perfetto, which has all machines",
			"--format: this format cannot tell the machines apart");
	if (c->verb == VERB_REPORT && c->flame)
		return fr_fail(d, -EINVAL, CHOOSE, "--flame: a flame graph is of one machine");
	return 0;
}

/* Writes the names of the machines that have a dump into RET. */
static void list_names(const struct fr_fleet_folder *f, char *ret, size_t size)
{
	size_t len = 0;

	*ret = '\0';
	for (size_t i = 0; i < f->n && len + 80 < size; i++)
		if (f->v[i].path)
			len += (size_t)snprintf(
				ret + len, size - len, "%s%s", len ? ", " : "there are: ", f->v[i].name);
	if (len + 80 >= size)
		snprintf(ret + len, size - len, " …");
}

static int choose_machine(struct report_command *c, const struct fr_fleet_folder *f, struct fr_diag *d)
{
	const struct fr_fleet_machine *m = fr_fleet_folder_find(f, c->machine);
	char names[400];

	list_names(f, names, sizeof(names));
	if (!m)
		return fr_fail(
			d, -ENOENT, names, "--machine: there is no machine '%s' in %s", c->machine, c->path);
	if (!m->path)
		return fr_fail(d, -ENOENT, names, "--machine: %s has no dump: %s", m->name, m->why);
	free(c->path);
	c->path = strdup(m->path);
	return c->path ? 0 : -ENOMEM;
}

int fleet_run(
	struct report_command *c, int (*run)(struct report_command *c, struct fr_diag *d), struct fr_diag *d)
{
	struct fr_fleet_folder f;
	int r;

	if (c->paths || !is_folder(c->path))
		r = fr_fleet_folder_read_dumps(
			c->paths ? c->paths : &c->path, c->paths ? c->n_paths : 1, &f, d);
	else
		r = fr_fleet_folder_read(c->path, &f, d);
	if (r == 0)
		r = c->machine ? choose_machine(c, &f, d) : check_view(c, d);
	if (r == 0)
		r = c->machine ? run(c, d) : write_view(c, fleet_show, &f, d);
	fr_fleet_folder_deinit(&f);
	return r;
}
