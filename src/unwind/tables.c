// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/tables.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "unwind/object_file.h"
#include "unwind/offsets.h"

#include <errno.h>

/* A file that could not be opened is tried again when a process maps it after this time. */
#define RETRY_OPEN_NS (10 * FR_NSEC_PER_SEC)
#define RETRY_ROOM_NS FR_NSEC_PER_SEC
/* If the tables that are needed all the time do not fit into memory, tables are evicted and made again for
   ever. This bounds the CPU time to about a tenth. */
#define REST 9
/* Any user can map his files all the time, and so let us search. This bounds the CPU time to a hundredth. */
#define SEARCH_REST 99
#define SEARCH_PERIOD_NS FR_NSEC_PER_SEC /* of an object */

static size_t bytes_of(const struct fr_unwind_table *t)
{
	size_t bytes = t->n_rules * sizeof(*t->rules) + t->n_pages * sizeof(struct fr_unwind_page);

	for (uint32_t i = 0; i < t->n_pages; i++)
		bytes += FR_ALIGN_UP((size_t)t->pages[i].n_rows * sizeof(*t->rows), FR_UNWIND_AT_UNIT);
	return bytes;
}

/* A user can let each open() of his file fail with this error, by a lease. It must not look like a search
   that goes on. */
static int not_again(int r)
{
	return r == -EAGAIN ? -EBUSY : r;
}

/* Opens a trusted file of K, or if there is none, any file. Returns a descriptor; -EAGAIN if the search goes
   on; or another negative errno. */
static int open_file(struct fr_unwind_tables *t, struct fr_unwind_known *k)
{
	int fd = fr_unwind_object_file_search(k, t->processes);

	k->is_suspect = fd == -ENOENT;
	if (k->is_suspect)
		fd = not_again(fr_unwind_object_file_open(k, t->processes));
	return fd == -ENOEXEC ? -ENOENT : fd; /* not a regular file */
}

/* Returns the values of fr_unwind_table_read(), or -EAGAIN. */
static int read_table(struct fr_unwind_tables *t, struct fr_unwind_known *k, struct fr_unwind_table *ret)
{
	_cleanup_close_ int fd = -1, debug = -1;
	const void *vdso;
	size_t size;
	int r;

	if (k->key.is_vdso) {
		r = fr_unwind_vdso_find(&vdso, &size);
		return r < 0 ? r : fr_unwind_table_read_image(vdso, size, ret);
	}
	fd = open_file(t, k);
	if (fd < 0)
		return fd;
	debug = fr_unwind_object_file_open_debug(fd);
	r = not_again(fr_unwind_table_read(fd, debug, ret));
	if (r != 0)
		return r;
	r = not_again(fr_unwind_offsets_apply(ret, fd));
	if (r < 0)
		fr_unwind_table_deinit(ret);
	return r;
}

/* Evicts tables that were not needed as recently as K, until there are BYTES bytes. Returns false if there
   are no more such tables, or it is too early. */
static bool make_room(
	struct fr_unwind_tables *t, const struct fr_unwind_known *k, size_t bytes, uint64_t now_ns)
{
	bool any = false;

	if (now_ns < t->evict_ns)
		return false;
	do {
		if (!fr_unwind_objects_evict(t->objects, k->hit_ns))
			break;
		any = true;
	} while (fr_unwind_memory_room(t->memory) + fr_unwind_memory_waiting(t->memory) < bytes);
	return any;
}

/* Returns 0 or -ENOSPC. */
static int install(struct fr_unwind_tables *t, struct fr_unwind_known *k, const struct fr_unwind_table *table,
	uint64_t now_ns)
{
	int r = fr_unwind_objects_install(t->objects, k, table);

	while (r == -ENOSPC) {
		if (!fr_unwind_memory_waiting(t->memory) && !make_room(t, k, k->table_bytes, now_ns))
			break;
		fr_unwind_processes_reclaim(t->processes, now_ns);
		r = fr_unwind_objects_install(t->objects, k, table);
		if (r == -ENOSPC && fr_unwind_memory_wait(t->memory) == 0 &&
			!make_room(t, k, k->table_bytes, now_ns))
			break;
	}
	return r;
}

/* Returns whether K has room, or can get it. */
static bool can_have_room(struct fr_unwind_tables *t, struct fr_unwind_known *k, uint64_t now_ns)
{
	while (fr_unwind_memory_room(t->memory) + fr_unwind_memory_waiting(t->memory) < k->table_bytes)
		if (!make_room(t, k, k->table_bytes, now_ns))
			return false;
	return true;
}

static void finish(struct fr_unwind_tables *t, struct fr_unwind_known *k, int r, uint64_t end_ns, uint64_t ns)
{
	if (r == -EAGAIN)
		return;
	k->search_at = 0;
	k->search_ns = end_ns;
	if (r == 0) {
		t->made++;
		k->retry_ns = 0;
	} else if (r == 1 || r == -ENOEXEC) {
		fr_unwind_objects_set_state(t->objects, k, FR_UNWIND_BARE);
	} else if (r == -ENOSPC) {
		k->retry_ns = end_ns + FR_MAX(RETRY_ROOM_NS, REST * ns);
	} else {
		k->retry_ns = end_ns + RETRY_OPEN_NS;
		t->failed++;
		fr_unwind_objects_set_state(t->objects, k, FR_UNWIND_FAILED);
	}
}

/* Makes the table of K, or does a step of the search for its file. */
static void make(struct fr_unwind_tables *t, struct fr_unwind_known *k, uint64_t now_ns)
{
	const uint64_t begin_ns = fr_monotonic_ns(), evicted = t->objects->n_evicted;
	struct fr_unwind_table table;
	uint64_t end_ns;
	int r = can_have_room(t, k, now_ns) ? read_table(t, k, &table) : -ENOSPC;

	if (r == 0) {
		k->table_bytes = bytes_of(&table);
		r = install(t, k, &table, now_ns);
		fr_unwind_table_deinit(&table);
	}
	end_ns = fr_monotonic_ns();
	t->made_ns += end_ns - begin_ns;
	if (t->objects->n_evicted != evicted)
		t->evict_ns = end_ns + REST * (end_ns - begin_ns);
	finish(t, k, r, end_ns, end_ns - begin_ns);
}

/* Does a step of the search for a trusted file of K, a suspect. */
static void search(struct fr_unwind_tables *t, struct fr_unwind_known *k)
{
	const uint64_t begin_ns = fr_monotonic_ns();
	const int fd = fr_unwind_object_file_search(k, t->processes);
	const uint64_t end_ns = fr_monotonic_ns();

	t->search_ns = end_ns + SEARCH_REST * (end_ns - begin_ns);
	if (fd == -EAGAIN)
		return;
	k->search_ns = end_ns;
	if (fd < 0)
		return;
	close(fd);
	/* The process that has the file can end before the table is made. */
	k->has_new_map = true;
	fr_unwind_objects_withdraw(t->objects, k);
}

bool fr_unwind_tables_make_one(struct fr_unwind_tables *t, uint64_t now_ns)
{
	struct fr_unwind_known *k = fr_unwind_objects_most_wanted(t->objects, now_ns);

	if (k) {
		make(t, k, now_ns);
		return true;
	}
	k = now_ns < t->search_ns ? NULL : fr_unwind_objects_next_suspect(t->objects);
	if (!k || (!k->search_at && now_ns < k->search_ns + SEARCH_PERIOD_NS))
		return false;
	search(t, k);
	return true;
}
