// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/tracing_data.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/thread.h"
#include "perfdata/tracing_format_private.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <tracefs.h>

#define FORMAT_MAX (1u << 20)
#define PRINTK_MAX (4u << 20)

static const char mount_hint[] = "mount it: mount -t tracefs nodev /sys/kernel/tracing";

/* Returns the id of the tracepoint with the directory TRACEPOINT (".../events/sched/sched_switch"), or 0. */
static uint64_t read_id(const char *tracepoint)
{
	char path[PATH_MAX], text[32];
	int n = snprintf(path, sizeof(path), "%s/id", tracepoint);

	if (n < 0 || (size_t)n >= sizeof(path) || fr_read_line(path, text, sizeof(text)) < 0)
		return 0;
	return strtoull(text, NULL, 10);
}

/* Finds the directory of the tracepoint by the name of the event, which is usually "system:name". */
static bool find_by_name(const char *events, const struct fr_event_desc *e, char ret[static PATH_MAX])
{
	const char *colon = strchr(e->name, ':');
	int n = colon ? snprintf(ret, PATH_MAX, "%s/%.*s/%s", events, (int)(colon - e->name), e->name,
				colon + 1)
		      : -1;

	return n >= 0 && n < PATH_MAX && !strchr(e->name, '/') && read_id(ret) == e->attr.config;
}

/* Finds the directory by the id of the tracepoint. This is needed if the event has another name than its
   tracepoint: the user can give any name (name=). */
static bool find_by_id(const char *events, const struct fr_event_desc *e, char ret[static PATH_MAX])
{
	char pattern[PATH_MAX + 8];
	bool is_found = false;
	glob_t all = {0};

	snprintf(pattern, sizeof(pattern), "%s/*/*", events);
	if (glob(pattern, GLOB_NOSORT | GLOB_ONLYDIR, NULL, &all) == 0)
		for (size_t i = 0; i < all.gl_pathc && !is_found; i++) {
			is_found = read_id(all.gl_pathv[i]) == e->attr.config;
			snprintf(ret, PATH_MAX, "%s", all.gl_pathv[i]);
		}
	globfree(&all);
	return is_found;
}

static int add_event(struct fr_trace_formats *t, const char *events, const struct fr_event_desc *e)
{
	_cleanup_buf_ struct fr_buf format = {0};
	char path[PATH_MAX], *system;
	int r;

	if (!find_by_name(events, e, path) && !find_by_id(events, e, path))
		return -ENOENT;
	if (strlen(path) + sizeof("/format") > sizeof(path))
		return -ENAMETOOLONG;
	strcat(path, "/format");
	r = fr_read_file(AT_FDCWD, path, FORMAT_MAX, &format);
	if (r < 0)
		return r;
	system = path + strlen(events) + 1;
	*strchr(system, '/') = '\0';
	return fr_trace_formats_add(
		t, strcmp(system, "ftrace") == 0 ? NULL : system, format.data, format.len);
}

static int read_headers(struct fr_trace_formats *t, const char *tracing)
{
	const struct {
		const char *name;
		size_t max;
		struct fr_buf *ret;
	} files[] = {{"events/header_page", FORMAT_MAX, &t->header_page},
		{"events/header_event", FORMAT_MAX, &t->header_event},
		{"printk_formats", PRINTK_MAX, &t->printk}};
	int r = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(files) && r == 0; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", tracing, files[i].name);
		r = fr_read_file(AT_FDCWD, path, files[i].max, files[i].ret);
		/* Only trace_printk() needs the printk formats, so they may be missing. */
		if (r < 0 && r != -ENOMEM && files[i].ret == &t->printk)
			r = 0;
	}
	return r;
}

int fr_tracing_data_gather(struct fr_session *s, struct fr_diag *d)
{
	_cleanup_(fr_trace_formats_deinit) struct fr_trace_formats t = {0};
	const char *tracing = NULL;
	char events[PATH_MAX];
	int r;

	fr_thread_assert_not(FR_THREAD_RECORDER);
	for (size_t i = 0; i < s->n_events; i++) {
		const struct fr_event_desc *e = &s->events[i];

		if (e->attr.type != PERF_TYPE_TRACEPOINT || e->attr.config >= FR_TRACEPOINT_OURS)
			continue;
		if (!tracing) {
			tracing = tracefs_tracing_dir();
			if (!tracing)
				return fr_fail(d, -ENOENT, mount_hint, "tracefs is not mounted");
			snprintf(events, sizeof(events), "%s/events", tracing);
			r = read_headers(&t, tracing);
			if (r < 0)
				return fr_fail_errno(
					d, r, mount_hint, "cannot read the event headers of %s", tracing);
		}
		r = add_event(&t, events, e);
		if (r < 0)
			return fr_fail_errno(d, r, NULL,
				"cannot read the format of tracepoint %s (id %llu) in %s", e->name,
				(unsigned long long)e->attr.config, events);
	}
	r = tracing ? fr_trace_formats_write(&t, &s->features[FR_FEATURE_TRACING_DATA]) : 0;
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot join the formats of the tracepoints") : 0;
}
