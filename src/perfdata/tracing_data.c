// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/tracing_data.h"
#include "perfdata/tracing_format.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <tracefs.h>

#define FORMAT_MAX (1u << 20)
#define PRINTK_MAX (4u << 20)

static const char mount_hint[] = "mount it: mount -t tracefs nodev /sys/kernel/tracing";

/* The id of a tracepoint, 0 where there is none of that name. */
static uint64_t read_id(const char *events, const char *system, const char *name)
{
	char path[PATH_MAX], text[32];
	int n = snprintf(path, sizeof(path), "%s/%s/%s/id", events, system, name);

	if (n < 0 || (size_t)n >= sizeof(path) || fr_read_line(path, text, sizeof(text)) < 0)
		return 0;
	return strtoull(text, NULL, 10);
}

static int add_format(struct fr_trace_formats *t, const char *events, const char *system, const char *name)
{
	_cleanup_buf_ struct fr_buf b = {0};
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s/%s/format", events, system, name), r;

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	r = fr_read_file(AT_FDCWD, path, FORMAT_MAX, &b);
	if (r < 0)
		return r;
	return fr_trace_formats_add(t, strcmp(system, "ftrace") == 0 ? NULL : system, b.data, b.len);
}

/* "system:name", where that is still the tracepoint with this id. 1: added, 0: not so, negative errno. */
static int add_by_name(struct fr_trace_formats *t, const char *events, const struct fr_event_desc *e)
{
	char system[256];
	const char *colon = strchr(e->name, ':');
	int r;

	if (!colon || (size_t)(colon - e->name) >= sizeof(system) || strchr(e->name, '/'))
		return 0;
	memcpy(system, e->name, (size_t)(colon - e->name));
	system[colon - e->name] = '\0';
	if (read_id(events, system, colon + 1) != e->attr.config)
		return 0;
	r = add_format(t, events, system, colon + 1);
	return r < 0 ? r : 1;
}

static int add_from_system(
	struct fr_trace_formats *t, const char *events, const char *system, const struct fr_event_desc *e)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", events, system);
	_cleanup_closedir_ DIR *dir = n > 0 && (size_t)n < sizeof(path) ? opendir(path) : NULL;
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
			read_id(events, system, entry->d_name) == e->attr.config) {
			int r = add_format(t, events, system, entry->d_name);

			return r < 0 ? r : 1;
		}
	return 0;
}

/* The name may be the user's own (name=): then only the id tells. */
static int add_by_id(struct fr_trace_formats *t, const char *events, const struct fr_event_desc *e)
{
	_cleanup_closedir_ DIR *dir = opendir(events);
	const struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		int r;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		r = add_from_system(t, events, entry->d_name, e);
		if (r != 0)
			return r;
	}
	return 0;
}

static int read_headers(struct fr_trace_formats *t, const char *tracing)
{
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/events/header_page", tracing);
	r = fr_read_file(AT_FDCWD, path, FORMAT_MAX, &t->header_page);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/events/header_event", tracing);
	r = fr_read_file(AT_FDCWD, path, FORMAT_MAX, &t->header_event);
	if (r < 0)
		return r;
	/* Only trace_printk() needs these: without them everything else still decodes. */
	snprintf(path, sizeof(path), "%s/printk_formats", tracing);
	r = fr_read_file(AT_FDCWD, path, PRINTK_MAX, &t->printk);
	return r == -ENOMEM ? r : 0;
}

static int gather(struct fr_session *s, const char *tracing, struct fr_diag *d)
{
	_cleanup_trace_formats_ struct fr_trace_formats t = {0};
	_cleanup_buf_ struct fr_buf b = {0};
	char events[PATH_MAX];
	int r = read_headers(&t, tracing);

	if (r < 0)
		return fr_fail_errno(d, r, mount_hint, "cannot read the event headers of %s", tracing);
	snprintf(events, sizeof(events), "%s/events", tracing);
	for (size_t i = 0; i < s->n_events; i++) {
		const struct fr_event_desc *e = &s->events[i];

		if (e->attr.type != PERF_TYPE_TRACEPOINT)
			continue;
		r = add_by_name(&t, events, e);
		if (r == 0)
			r = add_by_id(&t, events, e);
		if (r <= 0)
			return fr_fail_errno(d, r < 0 ? r : -ENOENT, NULL,
				"cannot read the format of tracepoint %s (id %llu) in %s", e->name,
				(unsigned long long)e->attr.config, events);
	}
	r = fr_trace_formats_serialise(&t, &b);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot put the formats of the tracepoints together");
	fr_buf_deinit(&s->features[FR_FEATURE_TRACING_DATA]);
	s->features[FR_FEATURE_TRACING_DATA] = b;
	b = (struct fr_buf){0};
	return 0;
}

int fr_tracing_data_gather(struct fr_session *s, struct fr_diag *d)
{
	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].attr.type == PERF_TYPE_TRACEPOINT) {
			const char *tracing = tracefs_tracing_dir();

			if (!tracing)
				return fr_fail(d, -ENOENT, mount_hint, "tracefs is not mounted");
			return gather(s, tracing, d);
		}
	return 0;
}

/* As a kernel's events/header_page and header_event read: of its ring buffer, which is not in a perf.data,
   but readers take its word sizes from here. */
static int add_headers(struct fr_trace_formats *t)
{
	static const char event[] = "# compressed entry header\n"
				    "\ttype_len    :    5 bits\n"
				    "\ttime_delta  :   27 bits\n"
				    "\tarray       :   32 bits\n"
				    "\n"
				    "\tpadding     : type == 29\n"
				    "\ttime_extend : type == 30\n"
				    "\ttime_stamp : type == 31\n"
				    "\tdata max type_len  == 28\n";
	char page[512];
	int n = snprintf(page, sizeof(page),
		"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		"\tfield: local_t commit;\toffset:8;\tsize:%zu;\tsigned:1;\n"
		"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		"\tfield: char data;\toffset:%zu;\tsize:%ld;\tsigned:0;\n",
		sizeof(long), 8 + sizeof(long), sysconf(_SC_PAGESIZE) - 8 - (long)sizeof(long));
	int r = fr_buf_append(&t->header_page, page, (size_t)n);

	return r < 0 ? r : fr_buf_append(&t->header_event, event, sizeof(event) - 1);
}

int fr_tracing_data_add_format(struct fr_buf *section, const char *system, const char *format, size_t len)
{
	_cleanup_trace_formats_ struct fr_trace_formats t = {0};
	_cleanup_buf_ struct fr_buf b = {0};
	int r = section->len ? fr_trace_formats_parse(&t, section) : add_headers(&t);

	if (r == 0)
		r = fr_trace_formats_add(&t, system, format, len);
	if (r == 0)
		r = fr_trace_formats_serialise(&t, &b);
	if (r < 0)
		return r;
	fr_buf_deinit(section);
	*section = b;
	b = (struct fr_buf){0};
	return 0;
}

int fr_tracing_data_unite(struct fr_buf *a, const struct fr_buf *b)
{
	_cleanup_trace_formats_ struct fr_trace_formats t = {0};
	_cleanup_buf_ struct fr_buf united = {0};
	int r;

	if (b->len == 0 || (a->len == b->len && memcmp(a->data, b->data, a->len) == 0))
		return 0;
	r = a->len ? fr_trace_formats_parse(&t, a) : 0;
	if (r == 0)
		r = fr_trace_formats_parse(&t, b);
	if (r == 0)
		r = fr_trace_formats_serialise(&t, &united);
	if (r < 0)
		return r;
	fr_buf_deinit(a);
	*a = united;
	united = (struct fr_buf){0};
	return 0;
}
