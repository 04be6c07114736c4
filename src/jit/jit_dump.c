// SPDX-License-Identifier: GPL-2.0-or-later
#include "jit/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x4A695444u /* "JiTD" as a number */
#define FLAG_ARCH_TIMESTAMP 1u

struct file_header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};

enum record_id {
	CODE_LOAD = 0,
	CODE_MOVE = 1,
	CODE_CLOSE = 3,
};

struct record_header {
	uint32_t id, total_size;
	uint64_t timestamp;
};

struct code_load { /* the name with its NUL and the code come after it */
	struct record_header h;
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

struct code_move {
	struct record_header h;
	uint32_t pid, tid;
	uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
};

/* Adds the function of the CODE_LOAD record P. A malformed record is skipped. Returns 0 if the record was
   skipped, else the same values as jit_code_add(). */
static int add_load(struct jit_code *c, const uint8_t *p, size_t len)
{
	struct code_load l;
	const uint8_t *name, *end;
	struct jit_symbol s;

	if (len < sizeof(l))
		return 0;
	memcpy(&l, p, sizeof(l));
	name = p + sizeof(l);
	end = memchr(name, '\0', len - sizeof(l));
	if (!end || !jit_is_range(l.code_addr, l.code_size) || l.code_size > (size_t)(p + len - (end + 1)))
		return 0;
	s = (struct jit_symbol){
		l.code_addr, l.code_size, l.h.timestamp, .code = (uint32_t)(end + 1 - c->file.data)};
	return jit_code_add(c, &s, (const char *)name, (size_t)(end - name));
}

/* Searches the last 4096 functions for the newest function that has the old address of the CODE_MOVE record
   P, and adds this function once more, with the new address. Returns the same values as add_load(). */
static int add_move(struct jit_code *c, const uint8_t *p, size_t len)
{
	struct code_move m;

	if (len < sizeof(m))
		return 0;
	memcpy(&m, p, sizeof(m));
	if (!jit_is_range(m.new_code_addr, m.code_size))
		return 0;
	for (size_t i = c->n; i > 0 && i + 4096 > c->n; i--) {
		struct jit_symbol s = c->v[i - 1];
		char name[JIT_NAME_MAX + 1];

		if (s.addr != m.old_code_addr || s.size != m.code_size)
			continue;
		strcpy(name, (const char *)c->names.data + s.name);
		s.addr = m.new_code_addr;
		s.time_ns = m.h.timestamp;
		return jit_code_add(c, &s, name, strlen(name));
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct jit_symbol *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int parse_records(struct jit_code *c, size_t at)
{
	int r = 0;

	while (r == 0 && c->file.len - at >= sizeof(struct record_header)) {
		const uint8_t *p = c->file.data + at;
		struct record_header h;

		memcpy(&h, p, sizeof(h));
		if (h.total_size < sizeof(h) || h.total_size > c->file.len - at) {
			c->truncated = h.total_size != 0; /* 0: the process has not written that part yet */
			break;
		}
		if (h.id == CODE_LOAD)
			r = add_load(c, p, h.total_size);
		else if (h.id == CODE_MOVE)
			r = add_move(c, p, h.total_size);
		at += h.total_size;
		if (h.id == CODE_CLOSE)
			break;
	}
	return r < 0 ? r : 0;
}

int jit_dump_parse(struct fr_buf *file, struct jit_code *ret)
{
	struct jit_code c = {.is_timed = true};
	struct file_header h;
	int r;

	if (file->len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, file->data, sizeof(h));
	if (h.magic != MAGIC || h.total_size < sizeof(h) || h.total_size > file->len)
		return -EBADMSG;
	c.file = *file;
	*file = (struct fr_buf){0};
	r = parse_records(&c, h.total_size);
	if (r < 0) {
		jit_code_deinit(&c);
		return r;
	}
	/* With FLAG_ARCH_TIMESTAMP, the times are values of a processor counter and not of our clock, so they
	   cannot be used. The functions stay in the order of the file. */
	for (size_t i = 0; i < c.n && h.flags & FLAG_ARCH_TIMESTAMP; i++)
		c.v[i].time_ns = 0;
	if (c.n > 0)
		qsort(c.v, c.n, sizeof(*c.v), by_time);
	*ret = c;
	return 0;
}
