// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * In the file, the section is version 0.6 of trace-cmd's header:
 *
 *   23 8 68 "tracing" │ "0.6\0" │ u8 big-endian │ u8 sizeof(long) │ u32 page size
 *   "header_page\0"  u64 size, bytes │ "header_event\0" u64 size, bytes
 *   u32 n, n × { u64 size, format }                      (system ftrace)
 *   u32 m, m × { name "\0", u32 n, n × { u64 size, format } }
 *   u32 size, kallsyms │ u32 size, printk formats │ u64 size, saved command lines (since 0.6)
 */

#include "perfdata/tracing_data.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/thread.h"
#include "perfdata/bytes.h"

#include <endian.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <tracefs.h>

#define FORMATS_MAX 16384u /* a kernel has about 2,000 tracepoints */
#define SYSTEMS_MAX 1024u
#define FORMAT_MAX (1u << 20)
#define PRINTK_MAX (4u << 20)

static const char magic[10] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
static const char mount_hint[] = "Mount it: mount -t tracefs nodev /sys/kernel/tracing";

struct trace_system {
	char *name; /* NULL: ftrace */
	struct fr_buf *formats;
	uint32_t n;
};

struct trace_formats {
	struct fr_buf header_page, header_event, printk, cmdlines;
	struct trace_system *systems;
	uint32_t n_systems;
	uint32_t n_formats; /* of all systems */
};

static void trace_formats_deinit(struct trace_formats *t)
{
	for (uint32_t i = 0; i < t->n_systems; i++) {
		for (uint32_t k = 0; k < t->systems[i].n; k++)
			fr_buf_deinit(&t->systems[i].formats[k]);
		free(t->systems[i].formats);
		free(t->systems[i].name);
	}
	free(t->systems);
	fr_buf_deinit(&t->header_page);
	fr_buf_deinit(&t->header_event);
	fr_buf_deinit(&t->printk);
	fr_buf_deinit(&t->cmdlines);
	*t = (struct trace_formats){0};
}

/* SIZE bytes into RET, unless an earlier section filled it. */
static int read_once(struct byte_reader *r, uint64_t size, struct fr_buf *ret)
{
	const void *p = read_bytes(r, size);

	if (r->failed)
		return -EBADMSG;
	return ret->len > 0 ? 0 : fr_buf_append(ret, p, size);
}

static struct trace_system *find_system(struct trace_formats *t, const char *name)
{
	for (uint32_t i = 0; i < t->n_systems; i++) {
		const char *have = t->systems[i].name;

		if (have == name || (have && name && strcmp(have, name) == 0))
			return &t->systems[i];
	}
	return NULL;
}

static int add_system(struct trace_formats *t, const char *name, struct trace_system **ret)
{
	struct trace_system *systems, s = {0};

	*ret = find_system(t, name);
	if (*ret)
		return 0;
	if (t->n_systems >= SYSTEMS_MAX)
		return -EBADMSG;
	systems = reallocarray(t->systems, t->n_systems + 1, sizeof(*systems));
	if (!systems)
		return -ENOMEM;
	t->systems = systems;
	s.name = name ? strdup(name) : NULL;
	if (name && !s.name)
		return -ENOMEM;
	*ret = &systems[t->n_systems++];
	**ret = s;
	return 0;
}

/* Adds a format unless the system has it. SYSTEM NULL: ftrace. 0, -ENOMEM, or -EBADMSG (too many). */
static int add_format(struct trace_formats *t, const char *system, const void *format, size_t len)
{
	struct trace_system *s;
	struct fr_buf *formats;
	int r = add_system(t, system, &s);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->formats[i].len == len && (len == 0 || memcmp(s->formats[i].data, format, len) == 0))
			return 0;
	if (t->n_formats >= FORMATS_MAX)
		return -EBADMSG;
	formats = reallocarray(s->formats, s->n + 1, sizeof(*formats));
	if (!formats)
		return -ENOMEM;
	s->formats = formats;
	formats[s->n] = (struct fr_buf){0};
	r = fr_buf_append(&formats[s->n], format, len);
	if (r < 0)
		return r;
	s->n++;
	t->n_formats++;
	return 0;
}

static int parse_system(struct trace_formats *t, struct byte_reader *r, const char *name)
{
	uint32_t n = read_u32(r);
	int x = r->failed || n > FORMATS_MAX ? -EBADMSG : 0;

	for (uint32_t i = 0; i < n && x == 0; i++) {
		uint64_t len = read_u64(r);
		const void *format = read_bytes(r, len);

		x = r->failed ? -EBADMSG : add_format(t, name, format, len);
	}
	return x;
}

static int parse_systems(struct trace_formats *t, struct byte_reader *r)
{
	int x = parse_system(t, r, NULL);
	uint32_t n = read_u32(r);

	if (x == 0 && (r->failed || n > SYSTEMS_MAX))
		x = -EBADMSG;
	for (uint32_t i = 0; i < n && x == 0; i++) {
		const char *name = read_string(r);

		x = name ? parse_system(t, r, name) : -EBADMSG;
	}
	return x;
}

static int parse_header(struct byte_reader *r, const char *name, struct fr_buf *ret)
{
	const char *found = read_string(r);

	return found && strcmp(found, name) == 0 ? read_once(r, read_u64(r), ret) : -EBADMSG;
}

/* Adds the parts of SECTION that T does not have. 0, -EBADMSG or -ENOMEM. */
static int parse_section(struct trace_formats *t, const struct fr_buf *section)
{
	struct byte_reader in = {section->data, section->len, false};
	const char *start = read_bytes(&in, sizeof(magic)), *version = read_string(&in);
	const uint8_t *machine = read_bytes(&in, 2 + sizeof(uint32_t));
	int r;

	if (in.failed || memcmp(start, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	/* A section of another byte order or word size is not of this boot. */
	if (machine[0] != (__BYTE_ORDER == __BIG_ENDIAN) || machine[1] != sizeof(long))
		return -EBADMSG;
	r = parse_header(&in, "header_page", &t->header_page);
	r = r < 0 ? r : parse_header(&in, "header_event", &t->header_event);
	r = r < 0 ? r : parse_systems(t, &in);
	(void)read_bytes(&in, read_u32(&in)); /* kallsyms: perf has its own way to kernel symbols */
	r = r < 0 ? r : read_once(&in, read_u32(&in), &t->printk);
	if (r == 0 && strcmp(version, "0.6") >= 0)
		r = read_once(&in, read_u64(&in), &t->cmdlines);
	return r;
}

static void put_sized(struct builder *b, const struct fr_buf *data)
{
	put_u64(b, data->len);
	put_bytes(b, data->data, data->len);
}

static void put_formats(struct builder *b, const struct trace_system *s)
{
	put_u32(b, s ? s->n : 0);
	for (uint32_t i = 0; s && i < s->n; i++)
		put_sized(b, &s->formats[i]);
}

static void put_systems(struct builder *b, struct trace_formats *t)
{
	const struct trace_system *ftrace = find_system(t, NULL);

	put_formats(b, ftrace);
	put_u32(b, t->n_systems - (ftrace != NULL));
	for (uint32_t i = 0; i < t->n_systems; i++) {
		const struct trace_system *s = &t->systems[i];

		if (s == ftrace)
			continue;
		put_bytes(b, s->name, strlen(s->name) + 1);
		put_formats(b, s);
	}
}

/* Replaces SECTION by T in the form of the file. 0 or -ENOMEM. */
static int write_section(struct trace_formats *t, struct fr_buf *section)
{
	const uint8_t machine[] = {__BYTE_ORDER == __BIG_ENDIAN, sizeof(long)};
	struct builder b = {0};

	put_bytes(&b, magic, sizeof(magic));
	put_bytes(&b, "0.6", sizeof("0.6"));
	put_bytes(&b, machine, sizeof(machine));
	put_u32(&b, (uint32_t)sysconf(_SC_PAGESIZE));
	put_bytes(&b, "header_page", sizeof("header_page"));
	put_sized(&b, &t->header_page);
	put_bytes(&b, "header_event", sizeof("header_event"));
	put_sized(&b, &t->header_event);
	put_systems(&b, t);
	put_u32(&b, 0); /* no kallsyms */
	put_u32(&b, (uint32_t)t->printk.len);
	put_bytes(&b, t->printk.data, t->printk.len);
	put_sized(&b, &t->cmdlines);
	return finish_section(&b, section);
}

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

static int add_event(struct trace_formats *t, const char *events, const struct fr_event_desc *e)
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
	return add_format(t, strcmp(system, "ftrace") == 0 ? NULL : system, format.data, format.len);
}

static int read_headers(struct trace_formats *t, const char *tracing)
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
		/* Only trace_printk() needs the printk formats: all other tracepoints decode without. */
		if (r < 0 && r != -ENOMEM && files[i].ret == &t->printk)
			r = 0;
	}
	return r;
}

int fr_tracing_data_gather(struct fr_session *s, struct fr_diag *d)
{
	_cleanup_(trace_formats_deinit) struct trace_formats t = {0};
	const char *tracing = NULL;
	char events[PATH_MAX];
	int r;

	fr_thread_assert_not(FR_THREAD_RECORDER);
	for (size_t i = 0; i < s->n_events; i++) {
		const struct fr_event_desc *e = &s->events[i];

		if (e->attr.type != PERF_TYPE_TRACEPOINT)
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
	r = tracing ? write_section(&t, &s->features[FR_FEATURE_TRACING_DATA]) : 0;
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot join the formats of the tracepoints") : 0;
}

/* The text of a kernel's events/header_page and header_event. They describe its ring buffer, which no
   perf.data has, but readers take the sizes of words from them. */
static int add_own_headers(struct trace_formats *t)
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
	_cleanup_(trace_formats_deinit) struct trace_formats t = {0};
	int r = section->len ? parse_section(&t, section) : add_own_headers(&t);

	if (r == 0)
		r = add_format(&t, system, format, len);
	return r < 0 ? r : write_section(&t, section);
}

int fr_tracing_data_unite(struct fr_buf *a, const struct fr_buf *b)
{
	_cleanup_(trace_formats_deinit) struct trace_formats t = {0};
	int r;

	if (b->len == 0 || (a->len == b->len && memcmp(a->data, b->data, a->len) == 0))
		return 0;
	r = a->len ? parse_section(&t, a) : 0;
	if (r == 0)
		r = parse_section(&t, b);
	return r < 0 ? r : write_section(&t, a);
}
