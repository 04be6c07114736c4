// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/object.h"
#include "unwind/table.h"
#include "unwind/table_build.h"

#include <errno.h>

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

/* The section of the debug file has the addresses of O. A debug file that is not an object is the same as
   none. */
static int read_debug_file(const struct unwind_object *o, int fd, struct fr_unwind_table *ret)
{
	struct unwind_object debug;
	struct cfi_section s;
	int r = unwind_object_open(fd, &debug);

	if (r < 0)
		return r == -ENOEXEC ? 1 : r;
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
