// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/fleet_folder.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "report/fleet_folder_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST "fleet.json"
#define LIST_MAX (16u << 20)
#define GET_AGAIN "get the dumps again: flightrecctl fleet get"

/* Copies a text for people, without control characters. */
static void copy_text(char *ret, size_t size, const char *text)
{
	const size_t n = strnlen(text, size - 1);

	memcpy(ret, text, n);
	ret[n] = '\0';
	fr_utf8_sanitize(ret);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct fr_fleet_machine *)a)->name, ((const struct fr_fleet_machine *)b)->name);
}

struct fr_fleet_machine *fr_fleet_folder_find(const struct fr_fleet_folder *f, const char *name)
{
	struct fr_fleet_machine key = {0};

	if (!fr_fleet_name_is_valid(name))
		return NULL;
	strcpy(key.name, name);
	return f->n ? bsearch(&key, f->v, f->n, sizeof(key), compare_names) : NULL;
}

void fr_fleet_folder_drop(struct fr_fleet_folder *f, struct fr_fleet_machine *m, const struct fr_diag *d)
{
	f->n_dumps -= m->path != NULL;
	free(m->path);
	m->path = NULL;
	copy_text(m->why, sizeof(m->why), *d->what ? d->what : "its dump cannot be read");
}

/* Adds the machine NAME. Returns NULL with a message in D if there is no room. */
static struct fr_fleet_machine *add_machine(struct fr_fleet_folder *f, const char *name, struct fr_diag *d)
{
	struct fr_fleet_machine *v;

	if (f->n == FR_FLEET_MACHINES_MAX) {
		fr_fail(d, -E2BIG, "move the folders of some machines away, and remove " LIST,
			"there are more than %u machines", FR_FLEET_MACHINES_MAX);
		return NULL;
	}
	v = reallocarray(f->v, f->n + 1, sizeof(*v));
	if (!v)
		return NULL;
	f->v = v;
	v += f->n++;
	*v = (struct fr_fleet_machine){0};
	strcpy(v->name, name);
	return v;
}

/* --- fleet.json --- */

static int add_listed(struct fr_fleet_folder *f, const cJSON *item, struct fr_diag *d)
{
	const char *name = fr_json_text(item, "machine"), *why = fr_json_text(item, "why");
	struct fr_fleet_machine *m;

	if (!fr_fleet_name_is_valid(name)) {
		char shown[80];

		copy_text(shown, sizeof(shown), name);
		return fr_fail(d, -EBADMSG, GET_AGAIN, LIST ": '%s' cannot be the name of a machine", shown);
	}
	m = add_machine(f, name, d);
	if (!m)
		return d && d->code ? d->code : -ENOMEM;
	copy_text(m->state, sizeof(m->state), fr_json_text(item, "state"));
	copy_text(m->why, sizeof(m->why), *why ? why : *m->state ? m->state : "it has no dump");
	return 0;
}

/* Reads the command, if fleet.json has it. A command that is not valid is only unknown. */
static int read_command(struct fr_fleet_folder *f, const cJSON *command)
{
	_cleanup_free_ char *text = cJSON_IsObject(command) ? cJSON_PrintUnformatted(command) : NULL;
	struct fr_diag ignored = {0};

	if (text && fr_fleet_command_read(text, strlen(text), &f->command, &ignored) < 0)
		f->command = (struct fr_fleet_command){0};
	return cJSON_IsObject(command) && !text ? -ENOMEM : 0;
}

static int apply_list(struct fr_fleet_folder *f, const cJSON *list, struct fr_diag *d)
{
	const cJSON *machines = cJSON_GetObjectItemCaseSensitive(list, "machines"), *item;
	const char *id = fr_json_text(list, "id");
	int r;

	if (!fr_fleet_id_is_valid(id) || !cJSON_IsArray(machines))
		return fr_fail(d, -EBADMSG, GET_AGAIN, LIST " is damaged, or is no list of a fleet dump");
	strcpy(f->id, id);
	r = read_command(f, cJSON_GetObjectItemCaseSensitive(list, "command"));
	cJSON_ArrayForEach (item, machines) {
		if (r == 0)
			r = add_listed(f, item, d);
	}
	return r;
}

/* Returns 1, or 0 if there is no list. */
static int read_list(struct fr_fleet_folder *f, int folder, struct fr_diag *d)
{
	_cleanup_buf_ struct fr_buf b = {0};
	_cleanup_close_ int fd = openat(folder, LIST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cJSON *list;
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && errno == ELOOP)
		return fr_fail(d, -ELOOP, GET_AGAIN, LIST " is a symbolic link");
	r = fd < 0 || fstat(fd, &st) < 0 ? -errno
	    : !S_ISREG(st.st_mode)	 ? -EINVAL
					 : fr_read_fd(fd, LIST_MAX, &b);
	if (r < 0)
		return fr_fail_errno(d, r, GET_AGAIN, "cannot read " LIST);
	list = b.len ? cJSON_ParseWithLength((const char *)b.data, b.len) : NULL;
	r = apply_list(f, list, d);
	cJSON_Delete(list);
	return r < 0 ? r : 1;
}

/* --- the sub-folders --- */

/* Without a list, the name of the folder PATH is the id, if it has its form. */
static void take_id(struct fr_fleet_folder *f, const char *path)
{
	size_t n = strlen(path), begin;
	char id[FR_FLEET_ID_SIZE];

	while (n > 0 && path[n - 1] == '/')
		n--;
	begin = n;
	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	if (n - begin >= sizeof(id))
		return;
	memcpy(id, path + begin, n - begin);
	id[n - begin] = '\0';
	if (fr_fleet_id_is_valid(id))
		strcpy(f->id, id);
}

/* Without a list, each sub-folder whose name is a token is a machine. */
static int add_folders(struct fr_fleet_folder *f, int folder, struct fr_diag *d)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(folder, ".");
	const struct dirent *e;
	char name[FR_FLEET_NAME_SIZE];

	if (!dir)
		return fr_fail_errno(d, -errno, NULL, "cannot list the folder");
	while ((e = readdir(dir))) {
		struct stat st;

		if (e->d_name[0] == '.' || fr_fleet_token_decode(e->d_name, strlen(e->d_name), name) < 0 ||
			fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			continue;
		if (!add_machine(f, name, d))
			return d && d->code ? d->code : -ENOMEM;
	}
	return 0;
}

/* Reads the dump of M, if it has one. An error of one machine does not hide the others. */
static int read_machine(struct fr_fleet_folder *f, struct fr_fleet_machine *m, int folder, const char *path)
{
	char token[FR_FLEET_TOKEN_SIZE];
	struct fr_diag d = {0};
	struct stat st;
	int r;

	fr_fleet_token(m->name, token);
	if (fstatat(folder, token, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (!*m->why)
			snprintf(m->why, sizeof(m->why), "it has no folder");
		return 0;
	}
	r = fr_fleet_machine_read(m, f->id, folder, path, &d);
	if (r == -ENOMEM)
		return r;
	f->n_dumps += m->path != NULL;
	if (r < 0)
		fr_fleet_folder_drop(f, m, &d);
	return 0;
}

static void find_window(struct fr_fleet_folder *f)
{
	f->from_ns = UINT64_MAX;
	f->to_ns = 0;
	for (size_t i = 0; i < f->n; i++) {
		if (!f->v[i].path)
			continue;
		f->from_ns = FR_MIN(f->from_ns, f->v[i].from_ns);
		f->to_ns = FR_MAX(f->to_ns, f->v[i].to_ns);
	}
}

/* Sorts the machines. Returns 0; or -EBADMSG with a message in D if two have one name. */
static int sort_machines(struct fr_fleet_folder *f, struct fr_diag *d)
{
	if (f->n > 1)
		qsort(f->v, f->n, sizeof(*f->v), compare_names);
	for (size_t i = 1; i < f->n; i++)
		if (strcmp(f->v[i].name, f->v[i - 1].name) == 0)
			return fr_fail(d, -EBADMSG,
				"give one dump of each; flightrec-merge joins the dumps of one machine",
				"the machine %s is there twice", f->v[i].name);
	return 0;
}

static int finish(struct fr_fleet_folder *f, struct fr_diag *d)
{
	const char *first = f->n > 0 ? f->v[0].name : "", *why = f->n > 0 ? f->v[0].why : "";

	if (f->n == 0)
		return fr_fail(d, -ENODATA,
			"give a dump, or the folder ID that `flightrecctl fleet get ID` wrote",
			"the folder has no dumps of a fleet");
	if (f->n_dumps == 0)
		return fr_fail(d, -ENODATA, "flightrecctl fleet status ID says what each machine answered",
			"none of its %zu machines has a dump that can be read; %s: %s", f->n, first, why);
	find_window(f);
	return 0;
}

int fr_fleet_folder_read(const char *path, struct fr_fleet_folder *ret, struct fr_diag *d)
{
	_cleanup_close_ int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fr_diag own = {0};
	int r;

	if (!d)
		d = &own;
	*ret = (struct fr_fleet_folder){0};
	r = folder < 0 ? fr_fail_errno(d, -errno, NULL, "cannot open the folder") : read_list(ret, folder, d);
	if (r == 0) {
		take_id(ret, path);
		r = add_folders(ret, folder, d);
	}
	if (r >= 0)
		r = sort_machines(ret, d);
	for (size_t i = 0; i < ret->n && r == 0; i++)
		r = read_machine(ret, &ret->v[i], folder, path);
	if (r == 0)
		r = finish(ret, d);
	if (r < 0)
		fr_diag_prefix(d, "%s", path);
	return r;
}

int fr_fleet_folder_read_dumps(char *const *paths, size_t n, struct fr_fleet_folder *ret, struct fr_diag *d)
{
	struct fr_diag own = {0};
	int r = 0;

	if (!d)
		d = &own;
	*ret = (struct fr_fleet_folder){0};
	for (size_t i = 0; i < n && r == 0; i++) {
		struct fr_fleet_machine m = {0}, *to;

		r = fr_fleet_machine_read_dump(&m, ret->id, paths[i], d);
		to = r == 0 ? add_machine(ret, m.name, d) : NULL;
		if (to) {
			*to = m;
			ret->n_dumps++;
		} else {
			free(m.path);
			r = r < 0 ? r : d->code ? d->code : -ENOMEM;
		}
	}
	if (r == 0)
		r = sort_machines(ret, d);
	return r == 0 ? finish(ret, d) : r;
}

void fr_fleet_folder_deinit(struct fr_fleet_folder *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].path);
	free(f->v);
	*f = (struct fr_fleet_folder){0};
}
