// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/memory.h"
#include "base/cleanup.h"
#include "unwind/bisect.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define UNITS (FR_UNWIND_CHUNK_BYTES / FR_UNWIND_AT_UNIT)

struct extent {
	uint32_t start, n; /* in units */
};

struct chunk {
	void *address;
	struct extent *extents; /* what is free; sorted, and no two are neighbours */
	size_t n, cap;
	uint32_t largest; /* no extent is larger */
	uint32_t n_free;
};

struct given {
	fr_unwind_at at;
	uint32_t bytes;
};

struct fr_unwind_memory {
	int chunks_fd, first_fd;
	uint32_t n_chunks, max_chunks;
	struct chunk chunks[FR_UNWIND_CHUNKS_MAX];
	struct fr_buf given; /* struct given: memory that becomes free later */
	size_t given_bytes;
};

static uint32_t units_for(size_t bytes)
{
	return (uint32_t)((bytes + FR_UNWIND_AT_UNIT - 1) / FR_UNWIND_AT_UNIT);
}

static uint32_t chunks_for(uint64_t bytes)
{
	const uint64_t n = bytes / FR_UNWIND_CHUNK_BYTES;

	return (uint32_t)FR_MIN(FR_MAX(n, 1ULL), (uint64_t)FR_UNWIND_CHUNKS_MAX);
}

static int insert_extent(struct chunk *c, size_t at, struct extent e)
{
	if (!c->extents || c->n == c->cap) {
		const size_t cap = FR_MAX(c->cap * 2, (size_t)16);
		struct extent *more = realloc(c->extents, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		c->extents = more;
		c->cap = cap;
	}
	memmove(&c->extents[at + 1], &c->extents[at], (c->n - at) * sizeof(e));
	c->extents[at] = e;
	c->n++;
	return 0;
}

static void remove_extent(struct chunk *c, size_t at)
{
	c->n--;
	memmove(&c->extents[at], &c->extents[at + 1], (c->n - at) * sizeof(c->extents[0]));
}

/* Makes the inner map number I, and maps it. Keeps its descriptor in *RET_FD if RET_FD is not NULL. */
static int map_chunk(struct fr_unwind_memory *m, uint32_t i, int *ret_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	_cleanup_close_ int fd = bpf_map_create(
		BPF_MAP_TYPE_ARRAY, "fr_unwind_chunk", sizeof(uint32_t), FR_UNWIND_CHUNK_BYTES, 1, &opts);
	void *address;

	if (fd < 0)
		return -errno;
	address = mmap(NULL, FR_UNWIND_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (address == MAP_FAILED)
		return -errno;
	if (bpf_map_update_elem(m->chunks_fd, &i, &fd, BPF_ANY) < 0) {
		const int r = -errno;

		munmap(address, FR_UNWIND_CHUNK_BYTES);
		return r;
	}
	m->chunks[i].address = address;
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

static int make_chunk(struct fr_unwind_memory *m, int *ret_fd)
{
	const uint32_t i = m->n_chunks, unused = i == 0; /* position 0 means nothing */
	struct chunk *c = &m->chunks[i];
	int r = insert_extent(c, 0, (struct extent){unused, UNITS - unused});

	if (r == 0)
		r = map_chunk(m, i, ret_fd);
	if (r < 0) {
		free(c->extents);
		*c = (struct chunk){0};
		return r;
	}
	c->largest = c->n_free = UNITS - unused;
	m->n_chunks++;
	return 0;
}

int fr_unwind_memory_new(int chunks_fd, uint64_t bytes_max, struct fr_unwind_memory **ret)
{
	struct fr_unwind_memory *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->chunks_fd = chunks_fd;
	m->first_fd = -1;
	m->max_chunks = chunks_for(bytes_max);
	r = make_chunk(m, &m->first_fd);
	if (r < 0) {
		fr_unwind_memory_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

static void unmap_last_chunk(struct fr_unwind_memory *m)
{
	struct chunk *c = &m->chunks[m->n_chunks - 1];

	munmap(c->address, FR_UNWIND_CHUNK_BYTES);
	free(c->extents);
	*c = (struct chunk){0};
	m->n_chunks--;
}

static void remove_last_chunk(struct fr_unwind_memory *m)
{
	const uint32_t i = m->n_chunks - 1;

	bpf_map_delete_elem(m->chunks_fd, &i);
	unmap_last_chunk(m);
}

struct fr_unwind_memory *fr_unwind_memory_free(struct fr_unwind_memory *m)
{
	if (!m)
		return NULL;
	while (m->n_chunks)
		unmap_last_chunk(m);
	fr_closep(&m->first_fd);
	fr_buf_deinit(&m->given);
	free(m);
	return NULL;
}

/* Returns the offset of the first N free units in units; UNITS if there is no such place. */
static uint32_t take_units(struct chunk *c, uint32_t n)
{
	uint32_t largest = 0, at;

	for (size_t i = 0; i < c->n; i++) {
		struct extent *e = &c->extents[i];

		largest = FR_MAX(largest, e->n);
		if (e->n < n)
			continue;
		at = e->start;
		e->start += n;
		e->n -= n;
		if (!e->n)
			remove_extent(c, i);
		c->n_free -= n;
		return at;
	}
	c->largest = largest;
	return UNITS;
}

fr_unwind_at fr_unwind_memory_take(struct fr_unwind_memory *m, size_t bytes)
{
	const uint32_t n = units_for(bytes);

	if (n == 0 || bytes > FR_UNWIND_CHUNK_BYTES)
		return 0;
	for (uint32_t i = 0; i < m->max_chunks; i++) {
		uint32_t at;

		if (i == m->n_chunks && make_chunk(m, NULL) < 0)
			return 0;
		if (m->chunks[i].largest < n)
			continue;
		at = take_units(&m->chunks[i], n);
		if (at < UNITS)
			return i << FR_UNWIND_AT_BITS | at;
	}
	return 0;
}

void *fr_unwind_memory_address(const struct fr_unwind_memory *m, fr_unwind_at at)
{
	const size_t offset = (at & (UNITS - 1)) * FR_UNWIND_AT_UNIT;

	return (char *)m->chunks[at >> FR_UNWIND_AT_BITS].address + offset;
}

/* Returns the index of the first extent behind START. */
static size_t find_extent(const struct chunk *c, uint32_t start)
{
	return UNWIND_BISECT(i, c->n, c->extents[i].start > start);
}

void fr_unwind_memory_give(struct fr_unwind_memory *m, fr_unwind_at at, size_t bytes)
{
	struct chunk *c = &m->chunks[at >> FR_UNWIND_AT_BITS];
	const struct extent e = {at & (UNITS - 1), units_for(bytes)};
	const size_t i = find_extent(c, e.start);
	struct extent *before = i ? &c->extents[i - 1] : NULL, *behind = i < c->n ? &c->extents[i] : NULL;

	if (!at)
		return;
	if (before && before->start + before->n == e.start) {
		before->n += e.n;
		if (behind && e.start + e.n == behind->start) {
			before->n += behind->n;
			remove_extent(c, i);
		}
	} else if (behind && e.start + e.n == behind->start) {
		behind->start = e.start;
		behind->n += e.n;
		before = behind;
	} else if (insert_extent(c, i, e) < 0) {
		return; /* without memory for the extent, the units stay taken for ever */
	} else {
		before = &c->extents[i];
	}
	c->n_free += e.n;
	c->largest = FR_MAX(c->largest, before->n);
}

void fr_unwind_memory_give_later(struct fr_unwind_memory *m, fr_unwind_at at, size_t bytes)
{
	const struct given g = {at, (uint32_t)bytes};

	if (!at)
		return;
	if (fr_buf_append(&m->given, &g, sizeof(g)) == 0)
		m->given_bytes += bytes;
	else if (fr_unwind_memory_wait(m) == 0)
		fr_unwind_memory_give(m, at, bytes);
}

/* When a program has changed an element of a map of maps, the kernel waits for all BPF programs that can
   still use the old element (maybe_wait_bpf_programs() in kernel/bpf/syscall.c). So an update that changes
   nothing is a barrier. */
int fr_unwind_memory_wait(struct fr_unwind_memory *m)
{
	const uint32_t zero = 0;
	const struct given *g = (const void *)m->given.data;

	if (bpf_map_update_elem(m->chunks_fd, &zero, &m->first_fd, BPF_ANY) < 0)
		return -errno;
	for (size_t i = 0; i < m->given.len / sizeof(*g); i++)
		fr_unwind_memory_give(m, g[i].at, g[i].bytes);
	m->given.len = 0;
	m->given_bytes = 0;
	return 0;
}

size_t fr_unwind_memory_waiting(const struct fr_unwind_memory *m)
{
	return m->given_bytes;
}

void fr_unwind_memory_set_max(struct fr_unwind_memory *m, uint64_t bytes_max)
{
	m->max_chunks = chunks_for(bytes_max);
}

uint64_t fr_unwind_memory_round(uint64_t bytes_max)
{
	return (uint64_t)chunks_for(bytes_max) * FR_UNWIND_CHUNK_BYTES;
}

bool fr_unwind_memory_is_excess(const struct fr_unwind_memory *m, fr_unwind_at at)
{
	return at >> FR_UNWIND_AT_BITS >= m->max_chunks;
}

bool fr_unwind_memory_has_excess(const struct fr_unwind_memory *m)
{
	return m->n_chunks > m->max_chunks;
}

void fr_unwind_memory_trim(struct fr_unwind_memory *m)
{
	while (fr_unwind_memory_has_excess(m) && m->chunks[m->n_chunks - 1].n_free == UNITS)
		remove_last_chunk(m);
}

uint64_t fr_unwind_memory_bytes(const struct fr_unwind_memory *m)
{
	return (uint64_t)m->n_chunks * FR_UNWIND_CHUNK_BYTES;
}

uint64_t fr_unwind_memory_max(const struct fr_unwind_memory *m)
{
	return (uint64_t)m->max_chunks * FR_UNWIND_CHUNK_BYTES;
}

uint64_t fr_unwind_memory_room(const struct fr_unwind_memory *m)
{
	uint64_t units = m->max_chunks > m->n_chunks ? (uint64_t)(m->max_chunks - m->n_chunks) * UNITS : 0;

	for (uint32_t i = 0; i < FR_MIN(m->n_chunks, m->max_chunks); i++)
		units += m->chunks[i].n_free;
	return units * FR_UNWIND_AT_UNIT;
}
