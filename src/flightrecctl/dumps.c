// SPDX-License-Identifier: GPL-2.0-or-later
/* What stands beside the dumps: NAME.json. Written by the recorder, yet a file that anyone may have damaged.
 */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "control/wire.h"
#include "dump/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int add_file_facts(const char *path, cJSON *dump)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	cJSON_DeleteItemFromObjectCaseSensitive(dump, "path");
	cJSON_DeleteItemFromObjectCaseSensitive(dump, "bytes");
	if (!cJSON_AddStringToObject(dump, "path", path) ||
		!cJSON_AddNumberToObject(dump, "bytes", (double)st.st_size))
		return -ENOMEM;
	return 0;
}

int ctl_dump_read(const char *path, cJSON **ret, struct fr_diag *d)
{
	_cleanup_free_ char *beside = NULL;
	_cleanup_buf_ struct fr_buf text = {0};
	cJSON *dump = NULL;
	int r;

	if (asprintf(&beside, "%s.json", path) < 0) {
		beside = NULL;
		return -ENOMEM;
	}
	r = fr_read_file(AT_FDCWD, beside, FR_WIRE_MAX_REPLY, &text);
	if (r < 0)
		return fr_fail_errno(d, r,
			r == -ENOENT ? "flightrecctl list shows the dumps there are" : NULL, "cannot read %s",
			beside);
	/* JSON that a person may read ends with a newline, which a message does not have. */
	r = fr_wire_parse((const char *)text.data, text.len, &dump, d);
	if (r < 0) {
		fr_diag_prefix(d, "%s", beside);
		return r;
	}
	r = add_file_facts(path, dump);
	if (r < 0) {
		cJSON_Delete(dump);
		return fr_fail_errno(d, r, NULL, "cannot look at %s", path);
	}
	*ret = dump;
	return 0;
}

static int is_dump(const struct dirent *e)
{
	return fr_name_kind(e->d_name, NULL) == FR_NAME_DUMP;
}

static int plain_order(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* A dump whose JSON is missing or damaged is a dump still: it is shown with what the file itself tells. */
static int add_dump(cJSON *array, const char *directory, const char *name)
{
	_cleanup_free_ char *path = NULL;
	cJSON *dump = NULL;
	int r = 0;

	if (asprintf(&path, "%s/%s", directory, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (ctl_dump_read(path, &dump, NULL) < 0) {
		dump = cJSON_CreateObject();
		r = dump ? add_file_facts(path, dump) : -ENOMEM;
	}
	if (r < 0 || !cJSON_AddItemToArray(array, dump))
		cJSON_Delete(dump);
	return r == -ENOENT ? 0 : r; /* removed meanwhile, by retention or a merge */
}

int ctl_dumps_read(const char *directory, cJSON **ret, struct fr_diag *d)
{
	struct dirent **entries;
	int n = scandir(directory, &entries, is_dump, plain_order), r;
	cJSON *array;

	if (n < 0) {
		r = -errno;
		return fr_fail_errno(d, r,
			r == -ENOENT   ? "give the recorder's directory with -D"
			: r == -EACCES ? "run it as root or as a member of the recorder's group"
				       : NULL,
			"cannot read %s", directory);
	}
	array = cJSON_CreateArray();
	r = array ? 0 : -ENOMEM;
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = add_dump(array, directory, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	if (r < 0) {
		cJSON_Delete(array);
		return fr_fail_errno(d, r, NULL, "cannot list %s", directory);
	}
	*ret = array;
	return 0;
}

/* As its name says; that of a merged file is no time. */
const char *ctl_dump_time(const struct ctl *ctl, const cJSON *dump, char *ret)
{
	const char *path = ctl_string(dump, "path"), *slash = strrchr(path, '/');
	char rfc3339[FR_STAMP_SIZE];
	uint64_t ns;

	(void)fr_name_kind(slash ? slash + 1 : path, &ns);
	if (!ns)
		return ctl_time(ctl, ctl_string(dump, "time"), false, ret);
	fr_rfc3339_format(ns, rfc3339);
	return ctl_time(ctl, rfc3339, false, ret);
}

const char *ctl_dump_window(const cJSON *dump, char *ret)
{
	double from = ctl_number(dump, "window.from_ns"), to = ctl_number(dump, "window.to_ns");

	if (!(from > 0 && to >= from && to < 0x1p63))
		return "-";
	return fr_duration_format((uint64_t)(to - from), ret);
}

char *ctl_dump_cause(const cJSON *dump)
{
	const char *reason = ctl_string(dump, "cause.reason"), *trigger = ctl_string(dump, "cause.trigger");
	const char *comm = ctl_string(dump, "cause.comm");
	char *ret;

	if (asprintf(&ret, "%s%s%s%s%s%s",
		    *reason    ? reason
		    : *trigger ? trigger
			       : "-",
		    *reason && *trigger ? " (" : "", *reason ? trigger : "",
		    *reason && *trigger && *comm ? " by " : "", *reason && *trigger ? comm : "",
		    *reason && *trigger ? ")" : "") < 0)
		return NULL;
	return ret;
}
