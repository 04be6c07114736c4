// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * What to record, to choose from: files NAME.conf of the package, whose first line says what each is for. One
 * is set by a link to it among the drop-ins, which all that reads the configuration follows.
 */

#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/nearest.h"
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DROP_INS "/etc/flightrec/flightrecd.conf.d"
#define LINK "50-profile.conf"
#define NEW_LINK ".50-profile.conf.new"
#define NO_PROFILE "default"
#define PROFILES_MAX 64u
#define PROFILE_BYTES_MAX (1u << 16)

struct profiles {
	char *names[PROFILES_MAX];
	size_t n;
};

static void profiles_deinit(struct profiles *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->names[i]);
}

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static int profiles_read(struct profiles *ret, struct fr_diag *d)
{
	DIR *dir = opendir(FR_PROFILE_DIR);
	struct dirent *e;

	if (!dir)
		return fr_fail(d, -errno, "install the package again", "no profiles in %s", FR_PROFILE_DIR);
	while ((e = readdir(dir)) && ret->n < PROFILES_MAX) {
		size_t len = strlen(e->d_name);

		if (e->d_name[0] == '.' || len < 6 || strcmp(e->d_name + len - 5, ".conf") != 0)
			continue;
		ret->names[ret->n] = strndup(e->d_name, len - 5);
		ret->n += ret->names[ret->n] != NULL;
	}
	closedir(dir);
	qsort(ret->names, ret->n, sizeof(ret->names[0]), by_name);
	return 0;
}

/* The first line, without its "# ". */
static void describe(const char *name, char *ret, size_t size)
{
	char path[PATH_MAX], line[256] = "";

	snprintf(path, sizeof(path), "%s/%s.conf", FR_PROFILE_DIR, name);
	if (fr_read_line(path, line, sizeof(line)) < 0)
		line[0] = '\0';
	snprintf(ret, size, "%s", line + strspn(line, "# "));
	ctl_clean(ret);
}

/* The name of the profile that is set; "" where the link is somebody else's, or a file. */
static void current(char *ret, size_t size)
{
	char target[PATH_MAX], *name;
	ssize_t n = readlink(DROP_INS "/" LINK, target, sizeof(target) - 1);
	struct stat st;

	snprintf(ret, size, "%s", n < 0 && lstat(DROP_INS "/" LINK, &st) < 0 ? NO_PROFILE : "");
	if (n < 0)
		return;
	target[n] = '\0';
	name = strrchr(target, '/');
	if (!name || (size_t)(name - target) != strlen(FR_PROFILE_DIR) ||
		strncmp(target, FR_PROFILE_DIR, (size_t)(name - target)) != 0)
		return;
	n = (ssize_t)strlen(++name) - 5;
	if (n > 0)
		snprintf(ret, size, "%.*s", (int)n, name);
}

static int list(const struct ctl *ctl, const struct profiles *p)
{
	struct ctl_table *t = ctl->json == FR_JSON_OFF ? ctl_table_new("PROFILE|SET|WHAT IT RECORDS") : NULL;
	cJSON *o = cJSON_CreateObject(), *array = cJSON_AddArrayToObject(o, "profiles");
	char set[NAME_MAX + 1], what[256];

	current(set, sizeof(set));
	for (size_t i = 0; i < p->n; i++) {
		cJSON *one = cJSON_CreateObject();
		bool is_set = strcmp(p->names[i], set) == 0;

		describe(p->names[i], what, sizeof(what));
		cJSON_AddStringToObject(one, "name", p->names[i]);
		cJSON_AddStringToObject(one, "description", what);
		cJSON_AddBoolToObject(one, "set", is_set);
		cJSON_AddItemToArray(array, one);
		if (t) {
			ctl_table_cell(t, "%s", p->names[i]);
			ctl_table_cell(t, "%s", is_set ? "*" : "");
			ctl_table_cell(t, "%s", what);
		}
	}
	if (t)
		ctl_table_print(t, !ctl->no_legend);
	else
		ctl_print_json(ctl, o);
	cJSON_Delete(o);
	return FR_EXIT_OK;
}

/* A link to TARGET in place of whatever LINK was; TARGET "": none. */
static int put_link(int dirfd, const char *target, struct fr_diag *d)
{
	static const char hint[] = "ask as root, as in: sudo flightrecctl profile NAME";

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

/* What has been set stays set where nobody can be asked to read it; what the recorder refuses is taken back.
 */
static int take_effect(const struct ctl *ctl, int dirfd, const char *before)
{
	struct fr_diag diag = {0};
	bool reachable = false;
	int code = ctl_reachable(ctl, &reachable);

	if (code == FR_EXIT_OK && !reachable) {
		fputs("flightrecctl: no recorder runs: it is for the next start\n", stderr);
		return FR_EXIT_OK;
	}
	if (code == FR_EXIT_OK)
		code = ctl_cmd_reload(ctl);
	if (code == FR_EXIT_OK || code == FR_EXIT_PARTLY)
		return code;
	if (put_link(dirfd, before, &diag) < 0)
		ctl_fail(&diag, -EIO);
	else
		fputs("flightrecctl: the profile is the one of before\n", stderr);
	return code;
}

static int set(const struct ctl *ctl, const char *name)
{
	char target[PATH_MAX], before[PATH_MAX] = "";
	struct fr_diag diag = {0};
	struct stat st;
	ssize_t n;
	int code, fd = open(DROP_INS, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = fd < 0 ? -errno : 0;

	if (r < 0) {
		fr_fail(&diag, r, "install the package again", "cannot open %s", DROP_INS);
		return ctl_fail(&diag, r);
	}
	n = readlinkat(fd, LINK, before, sizeof(before) - 1);
	before[n > 0 ? n : 0] = '\0';
	if (n < 0 && fstatat(fd, LINK, &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = fr_fail(&diag, -EEXIST, "rename it, then set the profile again",
			"%s/%s is a file of your own, and no profile", DROP_INS, LINK);
	snprintf(target, sizeof(target), "%s/%s.conf", FR_PROFILE_DIR, name);
	if (r == 0)
		r = put_link(fd, strcmp(name, NO_PROFILE) == 0 ? "" : target, &diag);
	if (r < 0)
		code = ctl_fail(&diag, r);
	else
		code = ctl->no_reload ? FR_EXIT_OK : take_effect(ctl, fd, before);
	close(fd);
	return code;
}

static const char *name_at(const void *ctx, size_t i)
{
	const struct profiles *p = ctx;

	return p->names[i];
}

static int check_name(const struct profiles *p, const char *name, struct fr_diag *d)
{
	const char *near = fr_nearest_name(name, name_at, p, p->n);
	char hint[128];

	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->names[i], name) == 0)
			return 0;
	snprintf(hint, sizeof(hint), "%s%s%s`flightrecctl profile` lists them", near ? "did you mean " : "",
		near ? near : "", near ? "? " : "");
	return fr_fail(d, -EINVAL, hint, "no profile '%.64s'", name);
}

int ctl_cmd_profile(const struct ctl *ctl)
{
	struct profiles p = {0};
	struct fr_diag diag = {0};
	const char *name = ctl->n_args ? ctl->args[0] : NULL;
	int code, r = profiles_read(&p, &diag);

	if (r == 0 && name)
		r = check_name(&p, name, &diag);
	if (r < 0)
		code = ctl_fail(&diag, r);
	else
		code = name ? set(ctl, name) : list(ctl, &p);
	profiles_deinit(&p);
	return code;
}
