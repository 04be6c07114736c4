// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/tracing_data.h"
#include "perfdata/tracing_format.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <tracefs.h>

#define FORMAT_MAX (1u << 20)
#define PRINTK_MAX (4u << 20)

static const char mount_hint[] = "Mount it: mount -t tracefs nodev /sys/kernel/tracing";

/* The id of the tracepoint with the directory TRACEPOINT, such as ".../events/sched/sched_switch"; or 0. */
static uint64_t read_id(const char *tracepoint)
{
	char path[PATH_MAX], text[32];
	int n = snprintf(path, sizeof(path), "%s/id", tracepoint);

	if (n < 0 || (size_t)n >= sizeof(path) || fr_read_line(path, text, sizeof(text)) < 0)
		return 0;
	return strtoull(text, NULL, 10);
}

/* The event's name is mostly "system:name" of its tracepoint. */
static bool find_by_name(const char *events, const struct fr_event_desc *e, char ret[static PATH_MAX])
{
	const char *colon = strchr(e->name, ':');
	int n = colon ? snprintf(ret, PATH_MAX, "%s/%.*s/%s", events, (int)(colon - e->name), e->name,
				colon + 1)
		      : -1;

	return n >= 0 && n < PATH_MAX && !strchr(e->name, '/') && read_id(ret) == e->attr.config;
}

/* A name that the user gave (name=) does not lead to the tracepoint, but its id does. */
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
	/* Only trace_printk() needs the printk formats: without them, all other tracepoints still decode. */
	snprintf(path, sizeof(path), "%s/printk_formats", tracing);
	r = fr_read_file(AT_FDCWD, path, PRINTK_MAX, &t->printk);
	return r == -ENOMEM ? r : 0;
}

static int gather_from(struct fr_session *s, const char *tracing, struct fr_diag *d)
{
	_cleanup_trace_formats_ struct fr_trace_formats t = {0};
	char events[PATH_MAX];
	int r = read_headers(&t, tracing);

	if (r < 0)
		return fr_fail_errno(d, r, mount_hint, "cannot read the event headers of %s", tracing);
	snprintf(events, sizeof(events), "%s/events", tracing);
	for (size_t i = 0; i < s->n_events; i++) {
		const struct fr_event_desc *e = &s->events[i];

		r = e->attr.type == PERF_TYPE_TRACEPOINT ? add_event(&t, events, e) : 0;
		if (r < 0)
			return fr_fail_errno(d, r, NULL,
				"cannot read the format of tracepoint %s (id %llu) in %s", e->name,
				(unsigned long long)e->attr.config, events);
	}
	r = fr_trace_formats_serialise(&t, &s->features[FR_FEATURE_TRACING_DATA]);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot join the formats of the tracepoints") : 0;
}

int fr_tracing_data_gather(struct fr_session *s, struct fr_diag *d)
{
	fr_thread_assert_not(FR_THREAD_RECORDER);
	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].attr.type == PERF_TYPE_TRACEPOINT) {
			const char *tracing = tracefs_tracing_dir();

			if (!tracing)
				return fr_fail(d, -ENOENT, mount_hint, "tracefs is not mounted");
			return gather_from(s, tracing, d);
		}
	return 0;
}

/* The text of a kernel's events/header_page and header_event. They describe its ring buffer, which no
   perf.data has, but readers take the sizes of words from them. */
static int add_own_headers(struct fr_trace_formats *t)
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
	int r = section->len ? fr_trace_formats_parse(&t, section) : add_own_headers(&t);

	if (r == 0)
		r = fr_trace_formats_add(&t, system, format, len);
	return r < 0 ? r : fr_trace_formats_serialise(&t, section);
}

int fr_tracing_data_unite(struct fr_buf *a, const struct fr_buf *b)
{
	_cleanup_trace_formats_ struct fr_trace_formats t = {0};
	int r;

	if (b->len == 0 || (a->len == b->len && memcmp(a->data, b->data, a->len) == 0))
		return 0;
	r = a->len ? fr_trace_formats_parse(&t, a) : 0;
	if (r == 0)
		r = fr_trace_formats_parse(&t, b);
	return r < 0 ? r : fr_trace_formats_serialise(&t, a);
}
