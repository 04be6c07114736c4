// SPDX-License-Identifier: GPL-2.0-or-later
/* Tracepoints: which there are, their ids and the names of their fields, from tracefs. */
#include "capture/event_internal.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <tracefs/tracefs.h>

#define FORMAT_MAX (1u << 20)

static bool is_tracefs(const char *dir, int *ret_error)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/events", dir);
	/* Not access(): it asks for the real user, without ambient capabilities. */
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return true;
	if (errno == EACCES)
		*ret_error = -EACCES;
	return false;
}

/* Not through tracefs_tracing_dir(): that mounts one where there is none. */
int fr_tracefs_dir(const struct fr_event_env *env, char *ret, size_t size, struct fr_diag *d)
{
	const char *const known[] = {env->tracefs_dir ? env->tracefs_dir : "/sys/kernel/tracing",
		env->tracefs_dir ? env->tracefs_dir : "/sys/kernel/debug/tracing"};
	int error = -ENOENT;

	for (size_t i = 0; i < FR_ARRAY_SIZE(known); i++)
		if (is_tracefs(known[i], &error)) {
			snprintf(ret, size, "%s", known[i]);
			return 0;
		}
	if (error == -EACCES)
		return fr_fail(
			d, error, "run as root or with CAP_DAC_READ_SEARCH", "%s cannot be read", known[0]);
	return fr_fail(d, -ENODEV, "mount -t tracefs nodev /sys/kernel/tracing",
		"no tracefs is mounted at %s", known[0]);
}

static int tracepoint_id(const char *dir, const char *system, const char *name, uint64_t *ret)
{
	char path[PATH_MAX], line[32];
	int r;

	if (snprintf(path, sizeof(path), "%s/events/%s/%s/id", dir, system, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	r = fr_read_line(path, line, sizeof(line));
	return r < 0 ? r : fr_u64_parse(line, ret);
}

static bool is_glob(const char *s)
{
	return strpbrk(s, "*?[") != NULL;
}

/* The ids of SYSTEM's tracepoints that match. ftrace's own have none, or one that perf cannot open. */
static int match_system(
	const char *dir, const char *system, const char *name_glob, fr_tracepoint_fn fn, void *ctx)
{
	char **names = tracefs_system_events(dir, system);
	int r = 0, n = 0;
	uint64_t id;

	for (char **e = names; r >= 0 && e && *e; e++) {
		if (fnmatch(name_glob, *e, 0) || tracepoint_id(dir, system, *e, &id) < 0)
			continue;
		r = fn(ctx, system, *e, id);
		n++;
	}
	tracefs_list_free(names);
	return r < 0 ? r : n;
}

int fr_tracepoint_match(const struct fr_event_env *env, const char *system_glob, const char *name_glob,
	fr_tracepoint_fn fn, void *ctx, struct fr_diag *d)
{
	char dir[PATH_MAX], **systems;
	uint64_t id;
	int r, n = 0;

	r = fr_tracefs_dir(env, dir, sizeof(dir), d);
	if (r < 0)
		return r;
	if (!is_glob(system_glob) && !is_glob(name_glob)) {
		if (!fr_event_name_is_safe(system_glob) || !fr_event_name_is_safe(name_glob))
			return 0;
		r = tracepoint_id(dir, system_glob, name_glob, &id);
		if (r == -EACCES)
			return fr_fail_errno(d, r, "run as root or with CAP_DAC_READ_SEARCH",
				"cannot read the tracepoint %s:%s", system_glob, name_glob);
		if (r < 0)
			return 0;
		r = fn(ctx, system_glob, name_glob, id);
		return r < 0 ? r : 1;
	}
	tracefs_set_loglevel(TEP_LOG_NONE);
	systems = tracefs_event_systems(dir);
	for (char **s = systems; r >= 0 && s && *s; s++) {
		if (fnmatch(system_glob, *s, 0) || (is_glob(system_glob) && !strcmp(*s, "ftrace")))
			continue;
		r = match_system(dir, *s, name_glob, fn, ctx);
		n += r > 0 ? r : 0;
	}
	tracefs_list_free(systems);
	return r < 0 ? r : n;
}

/* "	field:char prev_comm[16];	offset:8; …", "field:__data_loc char[] filename;": the last word
   before the
   ';', up to its '['. */
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

void fr_tracepoint_fields(const struct fr_event_env *env, const char *tracepoint, char *ret, size_t size)
{
	_cleanup_buf_ struct fr_buf format = {0};
	char dir[PATH_MAX], path[PATH_MAX], *save = NULL;
	const char *colon = strchr(tracepoint, ':'), *name;
	size_t len = 0;

	ret[0] = 0;
	if (!colon || fr_tracefs_dir(env, dir, sizeof(dir), NULL) < 0)
		return;
	if (snprintf(path, sizeof(path), "%s/events/%.*s/%s/format", dir, (int)(colon - tracepoint),
		    tracepoint, colon + 1) >= (int)sizeof(path))
		return;
	if (fr_read_file(AT_FDCWD, path, FORMAT_MAX, &format) < 0)
		return;
	for (char *line = strtok_r((char *)format.data, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		name = field_name(line);
		if (name && strncmp(name, "common_", 7) != 0 && len < size)
			len += snprintf(ret + len, size - len, "%s%s", len ? ", " : "", name);
	}
}
