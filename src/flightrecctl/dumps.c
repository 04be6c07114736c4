// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds dumps and reads their sidecars (the JSON files beside the dumps). Sidecars are not trusted: another
   program can have changed them. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "control/wire.h"
#include "dump/names.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static const char see_list[] = "see `flightrecctl list` for the files";

static const char *access_hint(int code)
{
	return code == -EACCES ? "run this command as root or as a member of the recorder's group" : NULL;
}

/* Sets "path" and "bytes" in DUMP. If DUMP has no "time", sets "time" to the modification time of the file
   PATH. Returns 0 or a negative errno. */
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
	if (!ctl_get(dump, "time") &&
		!fr_json_add_time(dump, "time",
			(uint64_t)st.st_mtim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec))
		return -ENOMEM;
	return 0;
}

/* Sets *RET to the sidecar of PATH, or to an empty object if there is no sidecar. Returns 0; or a negative
   errno, with a message in D. */
static int read_sidecar(const char *path, cJSON **ret, struct fr_diag *d)
{
	_cleanup_free_ char *sidecar = ctl_format("%s.json", path);
	_cleanup_buf_ struct fr_buf text = {0};
	int r = fr_read_file(AT_FDCWD, sidecar, FR_WIRE_MAX_REPLY, &text);

	if (r == -ENOENT) {
		*ret = cJSON_CreateObject();
		return *ret ? 0 : -ENOMEM;
	}
	if (r < 0)
		return fr_fail_errno(d, r, access_hint(r), "cannot read %s", sidecar);
	r = fr_wire_parse((const char *)text.data, text.len, ret, d);
	if (r < 0 && d) {
		fr_diag_prefix(d, "%s", sidecar);
		snprintf(d->hint, sizeof(d->hint),
			"the dump itself may be intact: try `flightrecctl perf %s`", path);
	}
	return r;
}

int ctl_dump_read(const char *path, cJSON **ret, struct fr_diag *d)
{
	cJSON *dump = NULL;
	int r = read_sidecar(path, &dump, d);

	if (r < 0)
		return r;
	r = add_file_facts(path, dump);
	if (r < 0) {
		cJSON_Delete(dump);
		return fr_fail_errno(d, r, see_list, "cannot examine %s", path);
	}
	*ret = dump;
	return 0;
}

/* Lists the dumps, and the files that flightrec-merge has made, in DIRECTORY, oldest first. */
static int list_files(const char *directory, struct fr_named_file **ret, size_t *ret_n, struct fr_diag *d)
{
	_cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno
		       : fr_names_list(fd, FR_NAME_DUMP | FR_NAME_MERGED | FR_NAME_MERGED_OLDER, ret, ret_n);

	if (r == 0)
		return 0;
	return fr_fail_errno(d, r,
		r == -ENOENT || r == -ENOTDIR ? "give the recorder's directory with -D" : access_hint(r),
		"cannot read %s", directory);
}

/* Appends an object for the dump NAME to ARRAY. If its sidecar cannot be read, the object has only the facts
   about the file. */
static int add_dump(cJSON *array, const char *directory, const char *name)
{
	_cleanup_free_ char *path = ctl_format("%s/%s", directory, name);
	cJSON *dump = NULL;
	int r = 0;

	if (ctl_dump_read(path, &dump, NULL) < 0) {
		dump = cJSON_CreateObject();
		r = dump ? add_file_facts(path, dump) : -ENOMEM;
	}
	if (r < 0 || !cJSON_AddItemToArray(array, dump))
		cJSON_Delete(dump);
	return r == -ENOENT ? 0 : r; /* not an error: the file was removed after it was listed */
}

int ctl_dumps_read(const char *directory, cJSON **ret, struct fr_diag *d)
{
	_cleanup_free_ struct fr_named_file *files = NULL;
	cJSON *array = cJSON_CreateArray();
	size_t n = 0;
	int r = list_files(directory, &files, &n, d);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_dump(array, directory, files[i].name);
	if (r < 0) {
		cJSON_Delete(array);
		return fr_fail_errno(d, r, NULL, "cannot list %s", directory);
	}
	*ret = array;
	return 0;
}

static int find_latest(const char *directory, char **ret, struct fr_diag *d)
{
	_cleanup_free_ struct fr_named_file *files = NULL;
	size_t n = 0;
	int r = list_files(directory, &files, &n, d);

	if (r < 0)
		return r;
	if (n == 0)
		return fr_fail(d, -ENOENT,
			"make a dump with `flightrecctl dump`, or name another directory with -D",
			"there is no dump in %s", directory);
	*ret = ctl_format("%s/%s", directory, files[n - 1].name);
	return 0;
}

/* Checks that PATH is a perf.data. perf also checks this, but its message is less clear. */
static int check_content(const char *path, struct fr_diag *d)
{
	static const char magic[] = "PERFILE2";
	char begin[sizeof(magic) - 1];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		const int r = -errno;

		return fr_fail_errno(d, r, r == -ENOENT ? see_list : access_hint(r), "cannot open %s", path);
	}
	if (fr_pread_all(fd, begin, sizeof(begin), 0) != sizeof(begin) ||
		memcmp(begin, magic, sizeof(begin)) != 0)
		return fr_fail(d, -EBADMSG, see_list, "%s is not a perf.data file", path);
	return 0;
}

/* Returns the path of the file NAME in DIRECTORY. If DIRECTORY does not have this file, but the current
   directory has it, returns the path in the current directory. If DIRECTORY is NULL, NAME is a path. If NAME
   ends with ".json", it is a sidecar, and the function returns the path of its dump. */
static char *resolve_name(const char *directory, const char *name)
{
	const size_t all = strlen(name), len = all > 5 && !strcmp(name + all - 5, ".json") ? all - 5 : all;
	char *path;

	if (!directory)
		return ctl_format("%.*s", (int)len, name);
	path = ctl_format("%s/%.*s", directory, (int)len, name);
	if (access(path, F_OK) == 0 || errno != ENOENT || access(name, F_OK) < 0)
		return path;
	free(path);
	return ctl_format("%.*s", (int)len, name);
}

int ctl_dump_find(char **ret, struct fr_diag *d)
{
	const char *name = ctl.n_args ? ctl.args[0] : "latest";
	const bool is_path = strchr(name, '/');
	_cleanup_free_ char *directory = is_path ? NULL : ctl_directory(), *path = NULL;
	int r = 0;

	if (!directory && !is_path)
		return -ENOMEM;
	if (directory && !strcmp(name, "latest"))
		r = find_latest(directory, &path, d);
	else
		path = resolve_name(directory, name);
	if (r == 0)
		r = path ? check_content(path, d) : -ENOMEM;
	if (r == 0)
		*ret = TAKE_PTR(path);
	return r;
}

char *ctl_dump_objects(const char *path)
{
	const int len = (int)(basename(path) - path);
	_cleanup_free_ char *ids = ctl_format("%.*sdebug/.build-id", len, path);

	return access(ids, R_OK) == 0 ? ctl_format("%.*sdebug", len, path) : NULL;
}

char *ctl_dump_symbols(const char *path)
{
	_cleanup_free_ char *symbols = ctl_format("%s" FR_DUMP_KALLSYMS, path);

	return access(symbols, R_OK) == 0 ? TAKE_PTR(symbols) : NULL;
}

/* Formats the time that the name of the file contains. If the name has no time (the name "perf.data"),
   formats the member "time" of DUMP. */
const char *ctl_format_dump_time(const cJSON *dump, char ret[static FR_UNIT_SIZE])
{
	char rfc3339[FR_STAMP_SIZE];
	uint64_t ns;

	(void)fr_name_kind(basename(ctl_string(dump, "path")), &ns);
	if (!ns)
		return ctl_format_time(ctl_string(dump, "time"), false, ret);
	fr_rfc3339_format(ns, rfc3339);
	return ctl_format_time(rfc3339, false, ret);
}

const char *ctl_format_dump_window(const cJSON *dump, char ret[static FR_UNIT_SIZE])
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
	const int more = cJSON_GetArraySize(ctl_get(dump, "causes")) - 1;
	const bool both = *reason && *trigger;
	char also[32] = "";

	if (more > 0)
		snprintf(also, sizeof(also), ", and %d more", more);
	if (!both)
		return ctl_format("%s%s", *reason ? reason : *trigger ? trigger : "-", also);
	return ctl_format("%s (%s%s%s)%s", reason, trigger, *comm ? " by " : "", comm, also);
}

bool ctl_dump_is_merged(const cJSON *dump)
{
	return fr_name_kind(basename(ctl_string(dump, "path")), NULL) != FR_NAME_DUMP;
}
