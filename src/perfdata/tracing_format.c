// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/tracing_format_private.h"
#include "base/cleanup.h"

#include <endian.h>

#define FORMATS_MAX 16384u /* a kernel has about 2,000 tracepoints */
#define SYSTEMS_MAX 1024u

static const char magic[10] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};

void fr_trace_formats_deinit(struct fr_trace_formats *t)
{
	for (uint32_t i = 0; i < t->n_systems; i++) {
		byte_set_deinit(&t->systems[i].formats);
		free(t->systems[i].name);
	}
	free(t->systems);
	fr_buf_deinit(&t->header_page);
	fr_buf_deinit(&t->header_event);
	fr_buf_deinit(&t->printk);
	fr_buf_deinit(&t->cmdlines);
	*t = (struct fr_trace_formats){0};
}

/* Reads SIZE bytes into RET. If an earlier section has filled RET, skips the SIZE bytes. */
static int read_once(struct byte_reader *r, uint64_t size, struct fr_buf *ret)
{
	const void *p = read_bytes(r, size);

	if (r->failed)
		return -EBADMSG;
	return ret->len > 0 ? 0 : fr_buf_append(ret, p, size);
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
	struct fr_trace_system *systems, s = {0};

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

int fr_trace_formats_add(struct fr_trace_formats *t, const char *system, const void *format, size_t len)
{
	struct fr_trace_system *s;
	int r = add_system(t, system, &s);

	if (r < 0)
		return r;
	t->n_formats -= s->formats.n;
	r = byte_set_add(&s->formats, format, len);
	t->n_formats += s->formats.n;
	return r == 0 && t->n_formats > FORMATS_MAX ? -EBADMSG : r;
}

static int parse_system(struct fr_trace_formats *t, struct byte_reader *r, const char *name)
{
	uint32_t n = read_u32(r);
	int x = r->failed || n > FORMATS_MAX ? -EBADMSG : 0;

	for (uint32_t i = 0; i < n && x == 0; i++) {
		uint64_t len = read_u64(r);
		const void *format = read_bytes(r, len);

		x = r->failed ? -EBADMSG : fr_trace_formats_add(t, name, format, len);
	}
	return x;
}

static int parse_systems(struct fr_trace_formats *t, struct byte_reader *r)
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

/* Adds the parts of SECTION that T does not have. Returns 0, -EBADMSG or -ENOMEM. */
static int parse_section(struct fr_trace_formats *t, const struct fr_buf *section)
{
	struct byte_reader in = {section->data, section->len, false};
	const char *start = read_bytes(&in, sizeof(magic)), *version = read_string(&in);
	const uint8_t *machine = read_bytes(&in, 2 + sizeof(uint32_t));
	int r;

	if (in.failed || memcmp(start, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	/* A section with another byte order or word size does not come from this boot. */
	if (machine[0] != (__BYTE_ORDER == __BIG_ENDIAN) || machine[1] != sizeof(long))
		return -EBADMSG;
	r = parse_header(&in, "header_page", &t->header_page);
	r = r < 0 ? r : parse_header(&in, "header_event", &t->header_event);
	r = r < 0 ? r : parse_systems(t, &in);
	(void)read_bytes(&in, read_u32(&in)); /* kallsyms, which perf does not need */
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

static void put_formats(struct builder *b, const struct fr_trace_system *s)
{
	put_u32(b, s ? s->formats.n : 0);
	for (uint32_t i = 0; s && i < s->formats.n; i++)
		put_sized(b, &s->formats.items[i]);
}

static void put_systems(struct builder *b, struct fr_trace_formats *t)
{
	const struct fr_trace_system *ftrace = find_system(t, NULL);

	put_formats(b, ftrace);
	put_u32(b, t->n_systems - (ftrace != NULL));
	for (uint32_t i = 0; i < t->n_systems; i++) {
		const struct fr_trace_system *s = &t->systems[i];

		if (s == ftrace)
			continue;
		put_bytes(b, s->name, strlen(s->name) + 1);
		put_formats(b, s);
	}
}

int fr_trace_formats_write(struct fr_trace_formats *t, struct fr_buf *section)
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

/* Adds the texts of a kernel's events/header_page and events/header_event. They describe the kernel's ring
   buffer of traces. A perf.data has no data of this buffer, but readers take the sizes of words from these
   texts. */
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
	_cleanup_(fr_trace_formats_deinit) struct fr_trace_formats t = {0};
	int r = section->len ? parse_section(&t, section) : add_own_headers(&t);

	if (r == 0)
		r = fr_trace_formats_add(&t, system, format, len);
	return r < 0 ? r : fr_trace_formats_write(&t, section);
}

int fr_tracing_data_unite(struct fr_buf *a, const struct fr_buf *b)
{
	_cleanup_(fr_trace_formats_deinit) struct fr_trace_formats t = {0};
	int r;

	if (b->len == 0 || (a->len == b->len && memcmp(a->data, b->data, a->len) == 0))
		return 0;
	r = a->len ? parse_section(&t, a) : 0;
	if (r == 0)
		r = parse_section(&t, b);
	return r < 0 ? r : fr_trace_formats_write(&t, a);
}

int fr_tracing_data_for_each(const struct fr_buf *section,
	void (*each)(void *ctx, const char *system, const char *format, size_t len), void *ctx)
{
	_cleanup_(fr_trace_formats_deinit) struct fr_trace_formats t = {0};
	int r = parse_section(&t, section);

	for (uint32_t i = 0; i < t.n_systems && r == 0; i++)
		for (uint32_t k = 0; k < t.systems[i].formats.n; k++) {
			const struct fr_buf *format = &t.systems[i].formats.items[k];

			each(ctx, t.systems[i].name, (const char *)format->data, format->len);
		}
	return r;
}
