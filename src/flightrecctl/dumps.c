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

static const char see_list[] = "flightrecctl list shows the files there are";

static const char *access_hint(int code)
{
	return code == -EACCES ? "run it as root or as a member of the recorder's group" : NULL;
}

/* "path" and "bytes"; and "time" where nothing else tells of it. */
static int add_file_facts(const char *path, cJSON *dump)
{
	char time[FR_STAMP_SIZE];
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	cJSON_DeleteItemFromObjectCaseSensitive(dump, "path");
	cJSON_DeleteItemFromObjectCaseSensitive(dump, "bytes");
	if (!cJSON_AddStringToObject(dump, "path", path) ||
		!cJSON_AddNumberToObject(dump, "bytes", (double)st.st_size))
		return -ENOMEM;
	fr_rfc3339_format((uint64_t)st.st_mtim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec, time);
	if (!ctl_get(dump, "time") && !cJSON_AddStringToObject(dump, "time", time))
		return -ENOMEM;
	return 0;
}

/* Parsed, or what there is to know without it: *RET may be an empty object. */
static int read_sidecar(const char *path, cJSON **ret, struct fr_diag *d)
{
	_cleanup_free_ char *beside = NULL;
	_cleanup_buf_ struct fr_buf text = {0};
	int r;

	if (asprintf(&beside, "%s.json", path) < 0) {
		beside = NULL;
		return -ENOMEM;
	}
	r = fr_read_file(AT_FDCWD, beside, FR_WIRE_MAX_REPLY, &text);
	if (r == -ENOENT) {
		*ret = cJSON_CreateObject();
		return *ret ? 0 : -ENOMEM;
	}
	if (r < 0)
		return fr_fail_errno(d, r, access_hint(r), "cannot read %s", beside);
	/* JSON that a person may read ends with a newline, which a message does not have. */
	r = fr_wire_parse((const char *)text.data, text.len, ret, d);
	if (r < 0 && d) {
		fr_diag_prefix(d, "%s", beside);
		snprintf(d->hint, sizeof(d->hint), "the file itself may be whole: flightrecctl report %s",
			path);
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
		return fr_fail_errno(d, r, see_list, "cannot look at %s", path);
	}
	*ret = dump;
	return 0;
}

/* What there is in the directory, by the time in its name; of perf.data, by that of the file. */
struct entry {
	char *name;
	uint64_t time_ns;
};

struct entries {
	struct entry *v;
	size_t n;
};

static void entries_deinit(struct entries *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->v[i].name);
	free(e->v);
}

static int add_entry(struct entries *e, int dirfd, const char *name)
{
	struct entry *grown;
	struct stat st;
	uint64_t ns;
	const enum fr_name kind = fr_name_kind(name, &ns);

	if (kind != FR_NAME_DUMP && kind != FR_NAME_MERGED && kind != FR_NAME_MERGED_OLDER)
		return 0;
	if (kind == FR_NAME_MERGED && fstatat(dirfd, name, &st, 0) < 0)
		return 0; /* moved aside meanwhile */
	if (kind == FR_NAME_MERGED)
		ns = (uint64_t)st.st_mtim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	grown = reallocarray(e->v, e->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	e->v = grown;
	e->v[e->n] = (struct entry){strdup(name), ns};
	return e->v[e->n].name ? (e->n++, 0) : -ENOMEM;
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int read_entries(const char *directory, struct entries *ret, struct fr_diag *d)
{
	_cleanup_closedir_ DIR *dir = opendir(directory);
	const struct dirent *e;
	int r = 0;

	if (!dir) {
		r = -errno;
		return fr_fail_errno(d, r,
			r == -ENOENT || r == -ENOTDIR ? "give the recorder's directory with -D"
						      : access_hint(r),
			"cannot read %s", directory);
	}
	while (r == 0 && (e = readdir(dir)))
		r = add_entry(ret, dirfd(dir), e->d_name);
	if (r == 0 && ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_time);
	return r;
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
	_cleanup_(entries_deinit) struct entries entries = {0};
	cJSON *array = cJSON_CreateArray();
	int r = array ? read_entries(directory, &entries, d) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < entries.n; i++)
		r = add_dump(array, directory, entries.v[i].name);
	if (r < 0) {
		cJSON_Delete(array);
		return fr_fail_errno(d, r, NULL, "cannot list %s", directory);
	}
	*ret = array;
	return 0;
}

static int latest(const char *directory, char **ret, struct fr_diag *d)
{
	_cleanup_(entries_deinit) struct entries entries = {0};
	int r = read_entries(directory, &entries, d);

	if (r < 0)
		return r;
	if (entries.n == 0)
		return fr_fail(d, -ENOENT, "flightrecctl dump makes one; -D looks in another directory",
			"there is no dump in %s", directory);
	if (asprintf(ret, "%s/%s", directory, entries.v[entries.n - 1].name) < 0)
		*ret = NULL;
	return *ret ? 0 : -ENOMEM;
}

/* One that is there but no perf.data is told before perf has to. */
static int check_content(const char *path, struct fr_diag *d)
{
	static const char magic[] = "PERFILE2";
	char begin[sizeof(magic) - 1];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n;

	if (fd < 0) {
		const int r = -errno;

		return fr_fail_errno(d, r, r == -ENOENT ? see_list : access_hint(r), "cannot open %s", path);
	}
	n = fr_pread_all(fd, begin, sizeof(begin), 0);
	if (n != sizeof(begin) || memcmp(begin, magic, sizeof(begin)) != 0)
		return fr_fail(d, -EBADMSG, see_list, "%s is no perf.data", path);
	return 0;
}

/* In DIRECTORY (NULL: NAME is a path), or else here. That of its JSON stands for the file itself. */
static char *path_of(const char *directory, const char *name)
{
	const size_t all = strlen(name), len = all > 5 && !strcmp(name + all - 5, ".json") ? all - 5 : all;
	char *there;

	if (!directory)
		return strndup(name, len);
	if (asprintf(&there, "%s/%.*s", directory, (int)len, name) < 0)
		return NULL;
	if (access(there, F_OK) == 0 || errno != ENOENT || access(name, F_OK) < 0)
		return there;
	free(there);
	return strndup(name, len);
}

int ctl_dump_find(const struct ctl *ctl, char **ret, struct fr_diag *d)
{
	const char *arg = ctl->n_args ? ctl->args[0] : "latest";
	const bool is_path = strchr(arg, '/');
	_cleanup_free_ char *directory = is_path ? NULL : ctl_directory(ctl), *path = NULL;
	int r = 0;

	if (!directory && !is_path)
		return -ENOMEM;
	if (directory && !strcmp(arg, "latest"))
		r = latest(directory, &path, d);
	else
		path = path_of(directory, arg);
	if (r < 0)
		return r;
	r = path ? check_content(path, d) : -ENOMEM;
	if (r == 0)
		*ret = TAKE_PTR(path);
	return r;
}

char *ctl_dump_objects(const char *path)
{
	const char *slash = strrchr(path, '/');
	int len = slash ? (int)(slash - path) + 1 : 0;
	_cleanup_free_ char *ids = NULL;

	if (asprintf(&ids, "%.*sdebug/.build-id", len, path) < 0) {
		ids = NULL;
		return NULL;
	}
	return access(ids, R_OK) == 0 ? strndup(ids, strlen(ids) - strlen("/.build-id")) : NULL;
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
	const int more = cJSON_GetArraySize(ctl_get(dump, "causes")) - 1;
	char also[32] = "", *ret;

	if (more > 0)
		snprintf(also, sizeof(also), ", and %d more", more);
	if (asprintf(&ret, "%s%s%s%s%s%s%s",
		    *reason    ? reason
		    : *trigger ? trigger
			       : "-",
		    *reason && *trigger ? " (" : "", *reason ? trigger : "",
		    *reason && *trigger && *comm ? " by " : "", *reason && *trigger ? comm : "",
		    *reason && *trigger ? ")" : "", also) < 0)
		return NULL;
	return ret;
}

bool ctl_dump_is_merged(const cJSON *dump)
{
	const char *path = ctl_string(dump, "path"), *slash = strrchr(path, '/');

	return fr_name_kind(slash ? slash + 1 : path, NULL) != FR_NAME_DUMP;
}
