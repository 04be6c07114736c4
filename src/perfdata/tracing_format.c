// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/tracing_format.h"
#include "base/cleanup.h"
#include "perfdata/take.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define FORMATS_MAX 16384u /* a kernel has about 2,000 tracepoints */
#define SYSTEMS_MAX 1024u

static const char magic[10] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};

static const char *take_string(struct cursor *c)
{
	const uint8_t *end = memchr(c->p, '\0', c->left);

	return end ? take(c, (size_t)(end - c->p) + 1) : NULL;
}

static bool take_number(struct cursor *c, void *ret, size_t size)
{
	const void *p = take(c, size);

	if (p)
		memcpy(ret, p, size);
	return p;
}

/* A size of WIDTH bytes, and that many bytes, into RET. */
static int take_sized(struct cursor *c, size_t width, const void **ret, size_t *ret_len)
{
	uint64_t size = 0;
	uint32_t size32;
	const void *p;

	if (width == sizeof(size32) ? !take_number(c, &size32, width) : !take_number(c, &size, width))
		return -EBADMSG;
	if (width == sizeof(size32))
		size = size32;
	p = take(c, size);
	if (!p)
		return -EBADMSG;
	*ret = p;
	*ret_len = size;
	return 0;
}

/* The same into a buffer, where that has none yet. */
static int take_once(struct cursor *c, size_t width, struct fr_buf *ret)
{
	const void *p;
	size_t len;
	int r = take_sized(c, width, &p, &len);

	if (r < 0 || ret->len > 0)
		return r;
	return fr_buf_append(ret, p, len);
}

static struct fr_trace_system *find_system(struct fr_trace_formats *t, const char *name)
{
	for (uint32_t i = 0; i < t->n_systems; i++) {
		const char *have = t->systems[i].name;

		if (have == name || (have && name && strcmp(have, name) == 0))
			return &t->systems[i];
	}
	return NULL;
}

static int add_system(struct fr_trace_formats *t, const char *name, struct fr_trace_system **ret)
{
	struct fr_trace_system *systems, *s = find_system(t, name);

	if (!s) {
		if (t->n_systems >= SYSTEMS_MAX)
			return -EBADMSG;
		systems = reallocarray(t->systems, t->n_systems + 1, sizeof(*systems));
		if (!systems)
			return -ENOMEM;
		t->systems = systems;
		s = &systems[t->n_systems];
		*s = (struct fr_trace_system){.name = name ? strdup(name) : NULL};
		if (name && !s->name)
			return -ENOMEM;
		t->n_systems++;
	}
	*ret = s;
	return 0;
}

int fr_trace_formats_add(struct fr_trace_formats *t, const char *system, const void *format, size_t len)
{
	struct fr_trace_system *s;
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

static int parse_system(struct fr_trace_formats *t, struct cursor *c, const char *name)
{
	uint32_t n;

	if (!take_number(c, &n, sizeof(n)) || n > FORMATS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		const void *p;
		size_t len;
		int r = take_sized(c, sizeof(uint64_t), &p, &len);

		if (r == 0)
			r = fr_trace_formats_add(t, name, p, len);
		if (r < 0)
			return r;
	}
	return 0;
}

static int parse_systems(struct fr_trace_formats *t, struct cursor *c)
{
	uint32_t n;
	int r = parse_system(t, c, NULL);

	if (r < 0)
		return r;
	if (!take_number(c, &n, sizeof(n)) || n > SYSTEMS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < n && r == 0; i++) {
		const char *name = take_string(c);

		r = name ? parse_system(t, c, name) : -EBADMSG;
	}
	return r;
}

static int parse_head(struct cursor *c, bool *ret_cmdlines)
{
	const char *start = take(c, sizeof(magic)), *version;
	const uint8_t *machine;

	if (!start || memcmp(start, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	version = take_string(c);
	machine = take(c, 2 + sizeof(uint32_t));
	/* Another byte order or word size is not of the same boot. */
	if (!version || !machine || machine[0] != (__BYTE_ORDER == __BIG_ENDIAN) ||
		machine[1] != sizeof(long))
		return -EBADMSG;
	*ret_cmdlines = strcmp(version, "0.6") >= 0;
	return 0;
}

static int parse_named(struct cursor *c, const char *name, struct fr_buf *ret)
{
	const char *found = take_string(c);

	return found && strcmp(found, name) == 0 ? take_once(c, sizeof(uint64_t), ret) : -EBADMSG;
}

int fr_trace_formats_parse(struct fr_trace_formats *t, const struct fr_buf *b)
{
	struct cursor c = {b->data, b->len};
	const void *kallsyms;
	size_t kallsyms_len;
	bool cmdlines;
	int r = parse_head(&c, &cmdlines);

	if (r == 0)
		r = parse_named(&c, "header_page", &t->header_page);
	if (r == 0)
		r = parse_named(&c, "header_event", &t->header_event);
	if (r == 0)
		r = parse_systems(t, &c);
	if (r == 0)
		r = take_sized(&c, sizeof(uint32_t), &kallsyms, &kallsyms_len);
	if (r == 0)
		r = take_once(&c, sizeof(uint32_t), &t->printk);
	if (r == 0 && cmdlines)
		r = take_once(&c, sizeof(uint64_t), &t->cmdlines);
	return r;
}

static int append_sized(struct fr_buf *b, const struct fr_buf *data)
{
	int r = fr_buf_append_u64(b, data->len);

	return r < 0 ? r : fr_buf_append(b, data->data, data->len);
}

static int append_head(struct fr_buf *b)
{
	const uint8_t machine[] = {__BYTE_ORDER == __BIG_ENDIAN, sizeof(long)};
	int r = fr_buf_append(b, magic, sizeof(magic));

	if (r == 0)
		r = fr_buf_append(b, "0.6", 4);
	if (r == 0)
		r = fr_buf_append(b, machine, sizeof(machine));
	return r < 0 ? r : fr_buf_append_u32(b, (uint32_t)sysconf(_SC_PAGESIZE));
}

static int append_system(struct fr_buf *b, const struct fr_trace_system *s)
{
	int r = s->name ? fr_buf_append(b, s->name, strlen(s->name) + 1) : 0;

	if (r == 0)
		r = fr_buf_append_u32(b, s->n);
	for (uint32_t i = 0; i < s->n && r == 0; i++)
		r = append_sized(b, &s->formats[i]);
	return r;
}

static int append_systems(struct fr_buf *b, const struct fr_trace_formats *t)
{
	static const struct fr_trace_system nothing = {0};
	const struct fr_trace_system *ftrace = &nothing;
	uint32_t named = 0;
	int r;

	for (uint32_t i = 0; i < t->n_systems; i++) {
		if (t->systems[i].name)
			named++;
		else
			ftrace = &t->systems[i];
	}
	r = append_system(b, ftrace);
	if (r == 0)
		r = fr_buf_append_u32(b, named);
	for (uint32_t i = 0; i < t->n_systems && r == 0; i++)
		if (t->systems[i].name)
			r = append_system(b, &t->systems[i]);
	return r;
}

int fr_trace_formats_serialise(const struct fr_trace_formats *t, struct fr_buf *ret)
{
	int r = append_head(ret);

	if (r == 0)
		r = fr_buf_append(ret, "header_page", 12);
	if (r == 0)
		r = append_sized(ret, &t->header_page);
	if (r == 0)
		r = fr_buf_append(ret, "header_event", 13);
	if (r == 0)
		r = append_sized(ret, &t->header_event);
	if (r == 0)
		r = append_systems(ret, t);
	/* No kallsyms: perf has its own way to kernel symbols. */
	if (r == 0)
		r = fr_buf_append_u32(ret, 0);
	if (r == 0)
		r = fr_buf_append_u32(ret, (uint32_t)t->printk.len);
	if (r == 0)
		r = fr_buf_append(ret, t->printk.data, t->printk.len);
	return r < 0 ? r : append_sized(ret, &t->cmdlines);
}

void fr_trace_formats_deinit(struct fr_trace_formats *t)
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
	*t = (struct fr_trace_formats){0};
}
