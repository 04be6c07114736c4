// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds tracepoints in tracefs: DIR/events/SYSTEM/NAME/{id, format} (Documentation/trace/events.rst). */
#include "capture/event_internal.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define FORMAT_MAX (1u << 20)
#define HINT_PERMISSION "run as root or with CAP_DAC_READ_SEARCH"

/* Returns 0 if this process can open the events of the tracefs at DIR; or a negative errno. access() cannot
   be used for this, because it ignores ambient capabilities. */
static int try_tracefs(const char *dir)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/events", dir);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

/* We do not use tracefs_tracing_dir() of libtracefs, because tracefs_tracing_dir() mounts a tracefs if none
   is mounted. */
static int find_tracefs(const struct fr_event_env *env, const char **ret, struct fr_diag *d)
{
	const char *const known[] = {env->tracefs_dir ? env->tracefs_dir : "/sys/kernel/tracing",
		env->tracefs_dir ? env->tracefs_dir : "/sys/kernel/debug/tracing"};
	bool is_forbidden = false;

	for (size_t i = 0; i < FR_ARRAY_SIZE(known); i++) {
		int r = try_tracefs(known[i]);

		is_forbidden |= r == -EACCES;
		*ret = known[i];
		if (r == 0)
			return 0;
	}
	if (is_forbidden)
		return fr_fail(d, -EACCES, HINT_PERMISSION, "%s cannot be read", known[0]);
	return fr_fail(d, -ENODEV, "mount it: `mount -t tracefs nodev /sys/kernel/tracing`",
		"no tracefs is mounted at %s", known[0]);
}

static bool is_glob(const char *s)
{
	return strpbrk(s, "*?[") != NULL;
}

/* Returns whether S is a pattern for one name in a directory: a match of S is never outside of the
   directory. */
static bool is_name_glob(const char *s)
{
	return *s && *s != '.' && !strchr(s, '/');
}

/* Calls FN for the tracepoint that has the file PATH, which is DIR/events/SYSTEM/NAME/id. Changes the string
   PATH. Returns 1 if FN was called; 0 if perf cannot open the tracepoint, because it has no id (some
   tracepoints of ftrace); -EACCES if the file cannot be read; or the negative errno of FN. */
static int report_tracepoint(char *path, fr_tracepoint_fn fn, void *ctx)
{
	char line[32], *name, *system;
	uint64_t id;
	int r = fr_read_line(path, line, sizeof(line));

	if (r < 0 || fr_u64_parse(line, &id) < 0)
		return r == -EACCES ? r : 0;
	*strrchr(path, '/') = 0;
	name = strrchr(path, '/');
	*name++ = 0;
	system = strrchr(path, '/') + 1;
	r = fn(ctx, system, name, id);
	return r < 0 ? r : 1;
}

static int report_matches(const char *pattern, bool skip_ftrace, fr_tracepoint_fn fn, void *ctx)
{
	glob_t found = {0};
	int r = glob(pattern, 0, NULL, &found), n = 0;

	if (r == GLOB_NOSPACE)
		return -ENOMEM;
	r = 0;
	for (size_t i = 0; r >= 0 && i < found.gl_pathc; i++) {
		if (skip_ftrace && strstr(found.gl_pathv[i], "/events/ftrace/"))
			continue;
		r = report_tracepoint(found.gl_pathv[i], fn, ctx);
		r = r == -EACCES ? 0 : r;
		n += r > 0;
	}
	globfree(&found);
	return r < 0 ? r : n;
}

int fr_tracepoint_match(const struct fr_event_env *env, const char *system_glob, const char *name_glob,
	fr_tracepoint_fn fn, void *ctx, struct fr_diag *d)
{
	char pattern[PATH_MAX];
	const char *dir;
	int r;

	r = find_tracefs(env, &dir, d);
	if (r < 0)
		return r;
	if (!is_name_glob(system_glob) || !is_name_glob(name_glob) ||
		snprintf(pattern, sizeof(pattern), "%s/events/%s/%s/id", dir, system_glob, name_glob) >=
			(int)sizeof(pattern))
		return 0;
	if (!is_glob(system_glob) && !is_glob(name_glob)) {
		r = fr_event_name_is_safe(system_glob) && fr_event_name_is_safe(name_glob)
			    ? report_tracepoint(pattern, fn, ctx)
			    : 0;
		return r == -EACCES ? fr_fail_errno(d, r, HINT_PERMISSION, "cannot read the tracepoint %s:%s",
					      system_glob, name_glob)
				    : r;
	}
	return report_matches(pattern, is_glob(system_glob), fn, ctx);
}

/* Returns the name of the field in a line like "	field:char prev_comm[16];	offset:8; …" or
   "field:__data_loc char[] filename;": the last word before the ';', up to its '['. */
static const char *field_name(char *line)
{
	char *name, *end;

	line = strstr(line, "field:");
	end = line ? strchr(line, ';') : NULL;
	if (!end)
		return NULL;
	*end = 0;
	name = strrchr(line, ' ');
	if (!name)
		return NULL;
	name[1 + strcspn(name + 1, "[")] = 0;
	return name + 1;
}

int fr_tracepoint_read_format(const struct fr_event_env *env, const char *tracepoint, struct fr_buf *ret)
{
	const char *colon = strchr(tracepoint, ':'), *dir;
	char path[PATH_MAX];
	int r = colon ? find_tracefs(env, &dir, NULL) : -EINVAL;

	if (r < 0)
		return r;
	if (snprintf(path, sizeof(path), "%s/events/%.*s/%s/format", dir, (int)(colon - tracepoint),
		    tracepoint, colon + 1) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return fr_read_file(AT_FDCWD, path, FORMAT_MAX, ret);
}

void fr_tracepoint_fields(const struct fr_event_env *env, const char *tracepoint, char *ret, size_t size)
{
	_cleanup_buf_ struct fr_buf format = {0};
	char *save = NULL;
	const char *name;
	size_t len = 0;

	ret[0] = 0;
	if (fr_tracepoint_read_format(env, tracepoint, &format) < 0)
		return;
	for (char *line = strtok_r((char *)format.data, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		name = field_name(line);
		if (name && strncmp(name, "common_", 7) != 0 && len < size)
			len += snprintf(ret + len, size - len, "%s%s", len ? ", " : "", name);
	}
}
