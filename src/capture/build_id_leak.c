// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds out whether the kernel changes the MMAP2 records of other recorders when a recording asks for
   build-ids (docs/design/10). The trial opens two listeners (perf events), the newer one with attr.build_id,
   and makes a map. The kernel changes records if the older listener gets a record with the flag for a
   build-id. */
#include "capture/capture.h"
#include "capture/event_internal.h"
#include "capture/perf_open.h"
#include "capture/ring.h"
#include "perfdata/record.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct listener {
	int fd;
	struct fr_ring ring;
};

static void close_listener(struct listener *l)
{
	fr_ring_unmap(&l->ring);
	fr_closep(&l->fd);
}

/* Opens an event that records only the maps of this thread, so that the trial does not disturb other
   recorders. */
static int open_listener(struct listener *l, bool build_id)
{
	struct perf_event_attr a;

	fr_event_attr_init(&a);
	a.type = PERF_TYPE_SOFTWARE;
	a.config = PERF_COUNT_SW_DUMMY;
	a.sample_period = 1;
	a.mmap = a.mmap2 = 1;
	a.build_id = build_id;
	a.disabled = 0;
	a.inherit = 0; /* the kernel refuses to map a ring if its event has inherit and is open on all CPUs */
	l->fd = fr_perf_open(&a, 0, -1, 0);
	return l->fd < 0 ? l->fd : fr_ring_map(&l->ring, l->fd, (size_t)sysconf(_SC_PAGESIZE), false);
}

/* Returns 1 if the first MMAP2 in L has the flag for a build-id; 0 if it does not; -ENODATA if there is no
   MMAP2. */
static int first_has_flag(const struct listener *l)
{
	const uint64_t head = __atomic_load_n(&l->ring.page->data_head, __ATOMIC_ACQUIRE);
	const struct perf_event_header *h;

	for (uint64_t at = 0; at + sizeof(*h) <= head && head <= l->ring.size; at += h->size) {
		h = (const void *)(l->ring.data + at);
		if (h->type == PERF_RECORD_MMAP2)
			return !!(h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID);
		if (h->size < sizeof(*h))
			break;
	}
	return -ENODATA;
}

int fr_capture_build_ids_leak(void)
{
	_cleanup_(close_listener) struct listener older = {.fd = -1}, newer = {.fd = -1};
	/* The trial maps the file of this program, because the file has a build-id, like every program of a
	   distribution. For a file with a build-id, the kernel sets the flag in the MMAP2 record. */
	_cleanup_close_ int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *text;
	int r = open_listener(&older, false);

	if (r == 0)
		r = open_listener(&newer, true);
	if (r < 0)
		return r;
	text = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, 0);
	if (text == MAP_FAILED)
		return -errno;
	munmap(text, page);
	return first_has_flag(&older);
}
