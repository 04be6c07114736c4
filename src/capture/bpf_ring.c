// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The layout of the ring is in Documentation/bpf/ringbuf.rst: one page with the consumer's position, one with
 * the producer's, and the data. Each record begins with a header of 8 bytes, whose first u32 is the record's
 * length and two flags.
 */
#include "capture/bpf_ring.h"
#include "base/cleanup.h"
#include "perfdata/record.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define HEADER_BYTES 8u

static int map(struct fr_bpf_ring *r)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *consumer, *producer;

	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (consumer == MAP_FAILED)
		return -errno;
	r->consumer_page = consumer;
	/* The kernel would also map the data a second time behind the end, but that counts twice as memory of
	   this process. */
	producer = mmap(NULL, page + r->size, PROT_READ, MAP_SHARED, r->fd, (off_t)page);
	if (producer == MAP_FAILED)
		return -errno;
	r->producer_page = producer;
	return 0;
}

int fr_bpf_ring_new(struct fr_bpf_ring *r, size_t bytes)
{
	*r = (struct fr_bpf_ring){.fd = -1, .size = bytes};
	r->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "fr_ring", 0, 0, (__u32)bytes, NULL);
	return r->fd < 0 ? -errno : map(r);
}

int fr_bpf_ring_adopt(struct fr_bpf_ring *r, int fd)
{
	struct bpf_map_info info = {0};
	__u32 len = sizeof(info);
	int code;

	*r = (struct fr_bpf_ring){.fd = -1};
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || info.type != BPF_MAP_TYPE_RINGBUF)
		return -EBADMSG;
	r->size = info.max_entries;
	r->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	code = r->fd < 0 ? -errno : map(r);
	if (code < 0)
		fr_bpf_ring_free(r);
	return code;
}

uint64_t fr_bpf_ring_consumed(const struct fr_bpf_ring *r)
{
	return *(const uint64_t *)r->consumer_page;
}

void fr_bpf_ring_free(struct fr_bpf_ring *r)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (r->consumer_page)
		munmap(r->consumer_page, page);
	if (r->producer_page)
		munmap(r->producer_page, page + r->size);
	fr_closep(&r->fd);
	*r = (struct fr_bpf_ring){.fd = -1};
}

static bool is_wanted(const struct fr_bpf_ring *r, uint64_t at, const uint8_t *record, size_t len)
{
	return !r->wants || len < sizeof(struct fr_sample) ||
	       r->wants(r, at, (const struct perf_event_header *)record);
}

/* Copies the LEN bytes from position AT on, which can go over the end of the memory. */
static void copy_bytes(const struct fr_bpf_ring *r, const uint8_t *data, uint64_t at, uint8_t *to, size_t len)
{
	const size_t offset = at & (r->size - 1), first = FR_MIN(len, r->size - offset);

	memcpy(to, data + offset, first);
	memcpy(to + first, data, len - first);
}

/* Copies whole records from position *AT up to END to BOUNCE, at most MAX bytes, and moves *AT. Returns the
   number of bytes in BOUNCE. At a record that a program is still writing, sets *END to its position. */
static size_t copy_records(
	const struct fr_bpf_ring *r, uint64_t *at, uint64_t *end, uint8_t *bounce, size_t max)
{
	const uint8_t *data = (const uint8_t *)r->producer_page + sysconf(_SC_PAGESIZE);
	size_t n = 0;

	while (*at < *end) {
		const uint8_t *p = data + (*at & (r->size - 1));
		const uint32_t head = __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE),
			       len = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (head & BPF_RINGBUF_BUSY_BIT) {
			*end = *at;
			break;
		}
		if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
			if (len > max - n)
				break;
			copy_bytes(r, data, *at + HEADER_BYTES, bounce + n, len);
			if (is_wanted(r, *at, bounce + n, len))
				n += len;
		}
		*at += FR_ALIGN_UP(len + HEADER_BYTES, HEADER_BYTES);
	}
	return n;
}

size_t fr_bpf_ring_drain(struct fr_bpf_ring *r, struct fr_tally *t, struct fr_counter_cell *owner,
	uint8_t *bounce, fr_run_fn sink, void *ctx)
{
	uint64_t *consumed = r->consumer_page, at = *consumed, begin = at,
		 end = __atomic_load_n((uint64_t *)r->producer_page, __ATOMIC_ACQUIRE);
	const size_t max = t->run_max ? FR_MIN(t->run_max, (size_t)FR_RUN_MAX) : FR_RUN_MAX;

	while (at < end) {
		size_t n = copy_records(r, &at, &end, bounce, max);

		/* The programs are our own, so only a fault of ours can make a record that is not valid. */
		if (fr_walk_all(bounce, bounce + n, t, sink, ctx) != FR_WALK_DONE)
			fr_cell_add_lost(owner, FR_LOSS_TORN, 1);
		__atomic_store_n(consumed, at, __ATOMIC_RELEASE);
	}
	fr_tally_flush(t);
	return at - begin;
}
