// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A profile is a file NAME.conf in FR_PROFILE_DIR that says what to record. The package installs the
 * profiles. The first line of the file describes the profile. `flightrecctl profile NAME` sets a profile: it
 * creates a symbolic link to the profile in the drop-in directory of the configuration. For NO_PROFILE, it
 * removes the link. So all programs that read the configuration read the profile, too.
 */

#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/nearest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DROP_INS "/etc/flightrec/flightrecd.conf.d"
#define LINK "50-profile.conf"
#define NEW_LINK ".50-profile.conf.new"
#define NO_PROFILE "default"

static bool no_reload;

/* All profiles. The names in `files` are without ".conf". */
struct profiles {
	struct dirent **files;
	int n;
};

static void profiles_deinit(struct profiles *p)
{
	for (int i = 0; i < p->n; i++)
		free(p->files[i]);
	free(p->files);
}

static int is_profile(const struct dirent *e)
{
	const size_t len = strlen(e->d_name);

	return e->d_name[0] != '.' && len > 5 && strcmp(e->d_name + len - 5, ".conf") == 0;
}

static int profiles_init(struct profiles *ret, struct fr_diag *d)
{
	const int n = scandir(FR_PROFILE_DIR, &ret->files, is_profile, alphasort);

	if (n < 0)
		return fr_fail(d, -errno, "install the package again", "there are no profiles in %s",
			FR_PROFILE_DIR);
	for (ret->n = 0; ret->n < n; ret->n++)
		*strrchr(ret->files[ret->n]->d_name, '.') = '\0';
	return 0;
}

/* Reads the first line of the profile NAME into RET, without the "# " at the start of the line. */
static void describe_profile(const char *name, char *ret, size_t size)
{
	char path[PATH_MAX], line[256] = "";

	snprintf(path, sizeof(path), "%s/%s.conf", FR_PROFILE_DIR, name);
	if (fr_read_line(path, line, sizeof(line)) < 0)
		line[0] = '\0';
	snprintf(ret, size, "%s", line + strspn(line, "# "));
	ctl_replace_control_characters(ret);
}

/* Returns whether the profile NAME is set: LINK points to this profile, or NAME is NO_PROFILE and there is no
   LINK. */
static bool is_set(const char *name)
{
	char target[PATH_MAX], path[PATH_MAX];
	ssize_t n = readlink(DROP_INS "/" LINK, target, sizeof(target) - 1);

	if (n < 0)
		return errno != EINVAL && strcmp(name, NO_PROFILE) == 0; /* EINVAL: LINK is a file */
	target[n] = '\0';
	snprintf(path, sizeof(path), "%s/%s.conf", FR_PROFILE_DIR, name);
	return strcmp(target, path) == 0;
}

static int list_profiles(const struct profiles *p)
{
	struct fr_table *t = ctl.json == FR_JSON_OFF ? fr_table_new("PROFILE|SET|WHAT IT RECORDS") : NULL;
	cJSON *o = cJSON_CreateObject(), *array = cJSON_AddArrayToObject(o, "profiles");
	char description[256];

	for (int i = 0; i < p->n; i++) {
		const char *name = p->files[i]->d_name;
		cJSON *one = cJSON_CreateObject();

		describe_profile(name, description, sizeof(description));
		cJSON_AddStringToObject(one, "name", name);
		cJSON_AddStringToObject(one, "description", description);
		cJSON_AddBoolToObject(one, "set", is_set(name));
		cJSON_AddItemToArray(array, one);
		if (t)
			fr_table_texts(t, name, is_set(name) ? "*" : "", description, NULL);
	}
	if (t)
		ctl_table_print(t, !ctl.no_legend);
	else
		ctl_print_json(o);
	cJSON_Delete(o);
	return FR_EXIT_OK;
}

/* Replaces LINK by a link to TARGET. If TARGET is "", removes LINK. Returns 0 or a negative errno. If LINK
   could not be replaced or removed, there is also a message in D. */
static int replace_link(int dirfd, const char *target, struct fr_diag *d)
{
	static const char hint[] = "run this command as root: sudo flightrecctl profile NAME";

	if (!target[0]) {
		if (unlinkat(dirfd, LINK, 0) < 0 && errno != ENOENT)
			return fr_fail(d, -errno, hint, "cannot remove %s/%s", DROP_INS, LINK);
	} else {
		(void)unlinkat(dirfd, NEW_LINK, 0);
		if (symlinkat(target, dirfd, NEW_LINK) < 0 || renameat(dirfd, NEW_LINK, dirfd, LINK) < 0)
			return fr_fail(d, -errno, hint, "cannot write %s/%s", DROP_INS, LINK);
	}
	return fsync(dirfd) < 0 && errno != EINVAL ? -errno : 0;
}

/* Makes the recorder read the new profile. If the reload fails, sets the previous profile again. The
   parameter `previous` is the previous target of the link, or "" if there was no link. If no recorder runs,
   the new profile stays set for the next start. Returns an exit code. */
static int reload_or_undo(int dirfd, const char *previous)
{
	struct fr_diag diag = {0};
	bool reachable = false;
	int code = ctl_reachable(&reachable);

	if (code == FR_EXIT_OK && !reachable) {
		fputs("flightrecctl: no recorder runs: the next start uses this profile\n", stderr);
		return FR_EXIT_OK;
	}
	if (code == FR_EXIT_OK)
		code = ctl_reload();
	if (code == FR_EXIT_OK || code == FR_EXIT_PARTLY)
		return code;
	if (replace_link(dirfd, previous, &diag) < 0)
		(void)ctl_fail(&diag, -EIO);
	else
		fputs("flightrecctl: the previous profile is set again\n", stderr);
	return code;
}

static int set_profile(const char *name)
{
	char target[PATH_MAX], previous[PATH_MAX] = "";
	struct fr_diag diag = {0};
	ssize_t n;
	int code, fd = open(DROP_INS, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = fd < 0 ? -errno : 0;

	if (r < 0) {
		fr_fail(&diag, r, "install the package again", "cannot open %s", DROP_INS);
		return ctl_fail(&diag, r);
	}
	n = readlinkat(fd, LINK, previous, sizeof(previous) - 1);
	if (n < 0 && errno == EINVAL)
		r = fr_fail(&diag, -EEXIST, "rename this file, then set the profile again",
			"%s/%s is a file, not a link to a profile", DROP_INS, LINK);
	previous[n > 0 ? n : 0] = '\0';
	snprintf(target, sizeof(target), "%s/%s.conf", FR_PROFILE_DIR, name);
	if (r == 0)
		r = replace_link(fd, strcmp(name, NO_PROFILE) == 0 ? "" : target, &diag);
	if (r < 0)
		code = ctl_fail(&diag, r);
	else
		code = no_reload ? FR_EXIT_OK : reload_or_undo(fd, previous);
	close(fd);
	return code;
}

static const char *name_at(const void *ctx, size_t i)
{
	const struct profiles *p = ctx;

	return p->files[i]->d_name;
}

static int check_name(const struct profiles *p, const char *name, struct fr_diag *d)
{
	const char *near = fr_nearest_name(name, name_at, p, (size_t)p->n);
	char hint[128];

	for (int i = 0; i < p->n; i++)
		if (strcmp(p->files[i]->d_name, name) == 0)
			return 0;
	snprintf(hint, sizeof(hint), "%s%s%see `flightrecctl profile` for the names",
		near ? "did you mean " : "", near ? near : "", near ? "? " : "");
	return fr_fail(d, -EINVAL, hint, "there is no profile '%.64s'", name);
}

static int run(void)
{
	struct profiles p = {0};
	struct fr_diag diag = {0};
	const char *name = ctl.n_args ? ctl.args[0] : NULL;
	int code, r = profiles_init(&p, &diag);

	if (r == 0 && name)
		r = check_name(&p, name, &diag);
	if (r < 0)
		code = ctl_fail(&diag, r);
	else
		code = name ? set_profile(name) : list_profiles(&p);
	profiles_deinit(&p);
	return code;
}

static const struct ctl_option options[] = {
	{"no-reload", 0, NULL, "do not reload: the profile takes effect at the next start or reload",
		CTL_FLAG, &no_reload, 0, 0},
	{0},
};

CTL_VERB(profile, CTL_RECORDER, "profile", "[NAME]",
	"list the profiles and show which is set; with NAME, set this profile and reload", .most_args = 1,
	.options = options, .run = run);
