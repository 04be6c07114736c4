// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "live.h"
#include "base/buf.h"
#include "base/clock.h"
#include "sideband/scan.h"
#include "unwind/unwinder_private.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPUS_MAX 64
#define RING_BYTES (32u << 20) /* enough for the time in which a test waits and does not read */
#define RING_ID 7

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
};

struct live {
	struct fr_unwinder *u;
	struct ring rings[CPUS_MAX];
	int n;
};

static int open_event(int cpu, bool build_ids)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = FR_SAMPLE_TYPE,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.mmap = 1,
		.mmap2 = 1,
		.build_id = build_ids,
		.inherit = build_ids,
		.comm = 1,
		.comm_exec = 1,
		.task = 1};

	return (int)syscall(SYS_perf_event_open, &attr, build_ids ? 0 : -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void open_rings(struct live *l, bool build_ids)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (int cpu = 0; cpu < cpus && cpu < CPUS_MAX; cpu++) {
		struct ring *r = &l->rings[cpu];

		r->fd = open_event(cpu, build_ids);
		if (r->fd < 0)
			unit_skip("cannot open side-band events: %s", strerror(errno));
		r->page = mmap(NULL, RING_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
		assert_ptr_not_equal(r->page, MAP_FAILED);
		l->n++;
	}
}

static int collect(void *ctx, const struct perf_event_header *record)
{
	return fr_buf_append(ctx, record, record->size);
}

static void scan(struct live *l)
{
	struct fr_buf records = {0};
	const struct fr_scan_config c = {.time_ns = fr_monotonic_ns(), .id = RING_ID};
	struct fr_diag d = {0};

	assert_true(fr_scan(&c, collect, &records, &d) >= 0);
	fr_unwinder_update(l->u, records.data, records.len);
	fr_buf_deinit(&records);
}

struct live *live_new(struct fr_unwinder *u, bool build_ids)
{
	struct live *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->u = u;
	open_rings(l, build_ids);
	scan(l);
	live_round(l);
	return l;
}

struct live *live_free(struct live *l)
{
	for (int i = 0; l && i < l->n; i++) {
		munmap(l->rings[i].page, RING_BYTES + 4096);
		close(l->rings[i].fd);
	}
	free(l);
	return NULL;
}

static void drain(struct live *l, const struct ring *r)
{
	const uint8_t *data = (const uint8_t *)r->page + r->page->data_offset;
	const uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;

	while (tail < head) {
		uint64_t record[FR_RECORD_MAX / 8];
		struct perf_event_header h;

		/* A header does not cross the end of the ring, because records are multiples of 8 bytes. */
		memcpy(&h, data + tail % RING_BYTES, sizeof(h));
		for (unsigned i = 0; i < h.size / 8; i++)
			memcpy(&record[i], data + (tail + 8 * i) % RING_BYTES, 8);
		assert_int_not_equal(h.type, PERF_RECORD_LOST);
		fr_unwinder_update(l->u, record, h.size);
		tail += h.size;
	}
	__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
}

void live_round(struct live *l)
{
	/* A record gets its time shortly before it is in the ring. */
	const uint64_t since_ns = fr_monotonic_ns(), until_ns = since_ns + 60 * FR_NSEC_PER_SEC;

	usleep(2000);
	for (int i = 0; i < l->n; i++)
		drain(l, &l->rings[i]);
	fr_unwinder_end_round(l->u, since_ns);
	while (__atomic_load_n(&l->u->kernel.shared->synced_ns, __ATOMIC_ACQUIRE) != since_ns) {
		assert_true(fr_monotonic_ns() < until_ns);
		usleep(200);
	}
}
