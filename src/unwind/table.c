// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/table.h"
#include "unwind/object.h"
#include "unwind/table_build.h"
#include "base/cleanup.h"

#include <stdlib.h>

/* Returns the same values as unwind_table_build(). */
static int build(const struct unwind_object *o, const struct cfi_section *s, struct fr_unwind_table *ret)
{
	struct cfi_entries e;
	int r = cfi_scan(s, o->ranges, o->n_ranges, &e);

	if (r < 0)
		return r;
	r = unwind_table_build(&e, ret);
	cfi_entries_deinit(&e);
	return r;
}

static int read_object(const struct unwind_object *o, struct fr_unwind_table *ret)
{
	struct cfi_section s;
	int r = unwind_object_eh_frame(o, &s);

	if (r == 0)
		r = build(o, &s, ret);
	if (r != 1)
		return r;
	r = unwind_object_debug_frame(o, &s);
	return r == 0 ? build(o, &s, ret) : r;
}

/* The section of the debug file has the addresses of O. */
static int read_debug_file(const struct unwind_object *o, int fd, struct fr_unwind_table *ret)
{
	struct unwind_object debug;
	struct cfi_section s;
	int r = unwind_object_open(fd, &debug);

	if (r < 0)
		return r;
	r = unwind_object_debug_frame(&debug, &s);
	if (r == 0)
		r = build(o, &s, ret);
	unwind_object_close(&debug);
	return r;
}

int fr_unwind_table_read(int fd, int debug_fd, struct fr_unwind_table *ret)
{
	struct unwind_object o;
	int r = unwind_object_open(fd, &o);

	if (r < 0)
		return r;
	r = read_object(&o, ret);
	if (r == 1 && debug_fd >= 0)
		r = read_debug_file(&o, debug_fd, ret);
	unwind_object_close(&o);
	return r;
}

int fr_unwind_table_read_image(const void *image, size_t len, struct fr_unwind_table *ret)
{
	struct unwind_object o;
	int r = unwind_object_open_image(image, len, &o);

	if (r < 0)
		return r;
	r = read_object(&o, ret);
	unwind_object_close(&o);
	return r;
}

void fr_unwind_table_deinit(struct fr_unwind_table *t)
{
	free(t->pages);
	free(t->rows);
	free(t->rules);
	*t = (struct fr_unwind_table){0};
}

const struct fr_unwind_rule *fr_unwind_table_find(const struct fr_unwind_table *t, uint64_t pc)
{
	uint64_t page = pc >> FR_UNWIND_PAGE_BITS;
	const struct fr_unwind_row *rows;
	uint32_t low = 0, high;

	if (page < t->first_page || page - t->first_page >= t->n_pages)
		return t->rules;
	rows = t->rows + t->pages[page - t->first_page].first_row;
	high = t->pages[page - t->first_page].n_rows;
	if (high == 0)
		return t->rules;
	/* rows[low].pc <= pc < rows[high].pc */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (rows[middle].pc <= (pc & ((1u << FR_UNWIND_PAGE_BITS) - 1)))
			low = middle;
		else
			high = middle;
	}
	return &t->rules[rows[low].rule];
}
