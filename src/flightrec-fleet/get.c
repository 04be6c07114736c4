// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-fleet/get.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/utf8.h"
#include "flightrec-fleet/download.h"
#include "flightrec-fleet/machines.h"
#include "flightrec-fleet/print.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static bool is_wanted(const struct machine *m, const char *only)
{
	return machine_takes_part(m) && (!only || strcmp(m->name, only) == 0);
}

static bool is_stored(const struct machine *m)
{
	return m->manifest && *m->manifest->object;
}

/* Reads all that the broker knows about the id. */
static int read_machines(
	struct fleet *f, struct machines *all, const char *id, struct fr_fleet_command *c, struct fr_diag *d)
{
	uint64_t stored_ns;
	int r = machines_read_index(f, all, id, d);

	if (r == 0)
		r = machines_read_answers(f, all, id, d);
	if (r == 0)
		r = machines_read_command(f, id, c, &stored_ns, d);
	if (r >= 0 && *c->id)
		r = machines_read_presence(f, all, c->selector, false, d);
	if (r < 0)
		return r;
	if (all->n == 0)
		return fr_fail(d, -ENOENT, "flightrecctl fleet list shows the ids",
			"the broker knows no fleet dump %s", id);
	machines_sort(all);
	return 0;
}

static void warn(const struct machine *m, const char *what, const char *why)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s: %s%s%s", m->name, what, *what && *why ? ": " : "", why);
	fr_utf8_sanitize(text);
	fprintf(stderr, FLEET_PROGRAM ": %s\n", text);
}

static int get_machine(struct fleet *f, struct machine *m, int dirfd, struct fr_diag *d)
{
	_cleanup_close_ int folder = fr_directory_make(dirfd, m->token, (gid_t)-1);
	int r;

	if (folder < 0)
		return fr_fail_errno(d, folder, NULL, "cannot make the folder %s", m->token);
	r = download_machine(f, m->manifest, folder, d);
	if (r == 0)
		m->folder = m->token;
	return r;
}

/* Returns whether the error is one of the machine's own files, so that those of other machines can be had. */
static bool is_of_machine(int r)
{
	return r == -EBADMSG || r == -ENOENT || r == -EFBIG || r == -EEXIST;
}

/* Handles the failure of one machine. Returns 0 if the others can go on; or ERROR. */
static int take_problem(struct machine *m, int error, struct fr_diag *own, struct fr_diag *d)
{
	if (!is_of_machine(error)) {
		if (d)
			*d = *own;
		fr_diag_prefix(d, "%s", m->name);
		return error;
	}
	fr_progress_end();
	warn(m, "", own->what);
	fr_utf8_sanitize(own->what);
	m->problem = strdup(own->what);
	return m->problem ? 0 : -ENOMEM;
}

static int get_machines(struct fleet *f, struct machines *all, const char *only, int dirfd, struct fr_diag *d)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < all->n; i++) {
		struct fr_diag own = {0};

		if (!is_wanted(all->v[i], only) || !is_stored(all->v[i]))
			continue;
		r = get_machine(f, all->v[i], dirfd, &own);
		if (r < 0)
			r = take_problem(all->v[i], r, &own, d);
	}
	fr_progress_end();
	return r;
}

/* Names the machines whose dumps are missing. Returns their number. */
static size_t name_missing(const struct machines *all, const char *only, uint64_t now_ns)
{
	char why[640];
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct machine *m = all->v[i];

		if (!is_wanted(m, only) || m->folder)
			continue;
		n++;
		if (!m->problem)
			warn(m, machine_state(m), machine_where(m, now_ns, why, sizeof(why)));
	}
	return n;
}

static int write_fleet_json(const struct machines *all, const struct fr_fleet_command *c, const char *id,
	uint64_t now_ns, int dirfd, struct fr_diag *d)
{
	_cleanup_free_ char *command = *c->id ? fr_fleet_command_json(c) : NULL, *text = NULL;
	cJSON *o = cJSON_CreateObject(), *list;
	int r;

	cJSON_AddStringToObject(o, "id", id);
	if (command)
		cJSON_AddRawToObject(o, "command", command);
	list = cJSON_AddArrayToObject(o, "machines");
	for (size_t i = 0; list && i < all->n; i++)
		if (machine_takes_part(all->v[i]))
			cJSON_AddItemToArray(list, machine_json(all->v[i], now_ns));
	text = list ? cJSON_Print(o) : NULL;
	cJSON_Delete(o);
	if (!text)
		return -ENOMEM;
	r = fr_file_replace(dirfd, "fleet.json", 0640, (gid_t)-1, text, strlen(text));
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot write fleet.json") : 0;
}

static int open_folder(const char *directory, const char *id, struct fr_diag *d)
{
	_cleanup_close_ int parent = -1;
	int fd;

	if (mkdir(directory, 0777) < 0 && errno != EEXIST)
		return fr_fail_errno(d, -errno, "give another folder with -o", "cannot make %s", directory);
	parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return fr_fail_errno(d, -errno, "give another folder with -o", "cannot open %s", directory);
	fd = fr_directory_make(parent, id, (gid_t)-1);
	return fd < 0 ? fr_fail_errno(d, fd, NULL, "cannot make the folder %s/%s", directory, id) : fd;
}

/* Sets the number of bytes for the progress on a terminal. */
static void set_total(struct fleet *f, const struct machines *all, const char *only)
{
	f->done_bytes = f->total_bytes = 0;
	if (f->command->quiet || !isatty(STDERR_FILENO))
		return;
	for (size_t i = 0; i < all->n; i++)
		if (is_wanted(all->v[i], only) && is_stored(all->v[i]))
			f->total_bytes += all->v[i]->manifest->bytes;
}

static size_t count_stored(const struct machines *all, const char *only)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += is_wanted(all->v[i], only) && is_stored(all->v[i]);
	return n;
}

static int get_all(struct fleet *f, struct machines *all, const struct fr_fleet_command *c, const char *id,
	const char *directory, const char *only, struct fr_diag *d)
{
	_cleanup_close_ int dirfd = open_folder(directory, id, d);
	const uint64_t now_ns = fleet_now(f, machines_newest(all));
	int r = dirfd;

	if (r >= 0)
		r = count_stored(all, only) ? fleet_open_store(f, d) : 0;
	if (r < 0)
		return r;
	set_total(f, all, only);
	r = get_machines(f, all, only, dirfd, d);
	if (r == 0)
		r = write_fleet_json(all, c, id, now_ns, dirfd, d);
	if (r < 0)
		return r;
	return name_missing(all, only, now_ns) ? FR_EXIT_PARTLY : FR_EXIT_OK;
}

int get_dump(struct fleet *f, const char *id, const char *directory, const char *only, struct fr_diag *d)
{
	struct machines all = {0};
	struct fr_fleet_command c = {0};
	int r = read_machines(f, &all, id, &c, d);

	if (r == 0 && only) {
		size_t i = 0;

		while (i < all.n && !is_wanted(all.v[i], only))
			i++;
		if (i == all.n)
			r = fr_fail(d, -ENOENT, "flightrecctl fleet status ID shows the machines",
				"%s has no machine %s", id, only);
	}
	if (r == 0)
		r = get_all(f, &all, &c, id, directory, only, d);
	machines_deinit(&all);
	return r;
}

int fleet_get(struct fleet *f, struct fr_diag *d)
{
	const struct fleet_command *c = f->command;
	const char *directory = c->directory ? c->directory : ".";
	int r = fleet_open_bus(f, NULL, d);

	if (r == 0)
		r = get_dump(f, c->argument, directory, c->machine, d);
	/* The path is the result, so that $(flightrecctl fleet get ID) works. */
	if (r >= 0)
		printf("%s/%s\n", directory, c->argument);
	return r;
}
