// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/program.h"
#include "flightrec-fleet/get.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REPORT "flightrec-report"

/* Makes all folders of PATH. */
static int make_folders(char *path, struct fr_diag *d)
{
	for (char *slash = path; slash; *slash = '/') {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return fr_fail_errno(d, -errno, "give a folder with -o DIR", "cannot make %s", path);
		if (!slash)
			break;
	}
	return 0;
}

/* Returns the folder for downloads: that of -o, or one in the user's cache. */
static int find_folder(const struct fleet *f, char **ret, struct fr_diag *d)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int r;

	if (f->command->directory) {
		*ret = strdup(f->command->directory);
		return *ret ? 0 : -ENOMEM;
	}
	if ((!cache || *cache != '/') && (!home || *home != '/'))
		return fr_fail(d, -ENOENT, "give a folder with -o DIR", "there is no home directory");
	if (cache && *cache == '/')
		r = asprintf(ret, "%s/flightrec/fleet", cache);
	else
		r = asprintf(ret, "%s/.cache/flightrec/fleet", home);
	if (r < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return make_folders(*ret, d);
}

static int explain(struct fleet *f, const char *path, struct fr_diag *d)
{
	static const char *const modes[] = {[FR_JSON_OFF] = "--json=off",
		[FR_JSON_SHORT] = "--json=short",
		[FR_JSON_PRETTY] = "--json=pretty"};
	const char *argv[6] = {REPORT, "explain", modes[f->command->json], path};
	size_t n = 4;

	if (f->command->no_pager)
		argv[n++] = "--no-pager";
	fflush(stdout);
	return fr_program_exec(REPORT, (char *const *)argv, "install the package flightrec", d);
}

int fleet_explain(struct fleet *f, struct fr_diag *d)
{
	const char *id = f->command->argument;
	_cleanup_free_ char *folder = NULL, *path = NULL;
	int r = find_folder(f, &folder, d);

	if (r == 0)
		r = fleet_open_bus(f, NULL, d);
	if (r == 0)
		r = get_dump(f, id, folder, NULL, d);
	if (r < 0)
		return r;
	f->bus = fr_bus_free(f->bus);
	if (asprintf(&path, "%s/%s", folder, id) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return explain(f, path, d);
}
