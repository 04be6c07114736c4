// SPDX-License-Identifier: GPL-2.0-or-later
/* Makes a ring, appends to its open chunk, and counts rounds. */
#include "history/internal.h"
#include "base/crc32c.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE FR_HISTORY_PAGE
#define CHUNK_MIN (128u << 10)
/* A run of records with this many bytes or more is compressed as a chunk of its own, without a copy. The copy
   would take more time than zstd loses when it begins a new section. */
#define SEAL_IN_PLACE_MIN (256u << 10)
#define SIDEBAND_MIN FR_HISTORY_RUN_MAX
#define RESERVE_MAX (16ULL << 20)

static_assert(CHUNK_MIN >= FR_HISTORY_RUN_MAX && SIDEBAND_MIN >= FR_HISTORY_RUN_MAX, "a run fits");

static uint64_t clamp(uint64_t x, uint64_t low, uint64_t high)
{
	return x < low ? low : x > high ? high : x;
}

void fr_image_lay_out(struct fr_image_header *i, uint64_t size)
{
	uint64_t chunk = clamp(size / 8 / PAGE * PAGE, CHUNK_MIN, FR_CHUNK_MAX);

	i->magic = FR_IMAGE_MAGIC;
	i->version = FR_IMAGE_VERSION;
	i->image_bytes = size;
	i->sideband_offset = FR_IMAGE_HEADER_BYTES;
	i->sideband_bytes = FR_MAX(chunk / 4 / PAGE * PAGE, (uint64_t)SIDEBAND_MIN);
	i->samples_offset = i->sideband_offset + i->sideband_bytes;
	i->samples_bytes = chunk;
	i->log_offset = i->samples_offset + i->samples_bytes;
	i->log_bytes = size - i->log_offset;
	i->constant_crc = fr_crc32c(0, &i->image_bytes,
		offsetof(struct fr_image_header, open_seq) - offsetof(struct fr_image_header, image_bytes));
}

int fr_history_populate(struct fr_history *h, uint64_t offset, uint64_t len)
{
	int r = madvise(h->map + offset, len, MADV_POPULATE_WRITE) < 0 ? -errno : 0;

	if (r == -EINVAL) /* before Linux 5.14: allocate the pages now, and map each at its first use */
		r = fallocate(h->fd, 0, (off_t)offset, (off_t)len) < 0 ? -errno : 0;
	return r;
}

static int make_memfd(struct fr_history *h, struct fr_diag *d)
{
	h->fd = memfd_create("flightrec-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (h->fd < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot create the ring's memory");
	/* Seal the size, so that a process that maps the memfd later gets no SIGBUS. */
	if (ftruncate(h->fd, (off_t)h->size) < 0 ||
		fcntl(h->fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot set the size of the ring's memory");
	return 0;
}

static int map_memfd(struct fr_history *h, struct fr_diag *d)
{
	char size[FR_UNIT_SIZE];
	void *map = mmap(NULL, h->size, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd, 0);
	int r = 0;

	if (map == MAP_FAILED)
		return fr_fail_errno(d, -errno, "choose a smaller ring", "cannot map a ring of %s",
			fr_size_format(h->size, size));
	madvise(map, h->size, MADV_DONTDUMP); /* a core file must not contain the ring */
	h->map = map;
	h->image = map;
	if (h->config.populate)
		r = fr_history_populate(h, 0, h->size);
	return r < 0 ? fr_fail_errno(d, r, "choose a smaller ring",
			       "cannot allocate %s of memory for the ring", fr_size_format(h->size, size))
		     : 0;
}

/* Gives the open chunk, which is empty, the newest low watermark. */
static void raise_low_watermark(struct fr_history *h)
{
	uint64_t low_watermark_ns = h->since_ns[1];

	if (h->frozen_ns)
		low_watermark_ns = FR_MIN(low_watermark_ns, h->frozen_ns);
	h->low_watermark_ns = FR_MAX(h->low_watermark_ns, low_watermark_ns);
	atomic_store_explicit(&h->image->open_low_watermark_ns, h->low_watermark_ns, memory_order_release);
}

void fr_history_open_chunk(struct fr_history *h)
{
	raise_low_watermark(h);
	h->seq++;
	atomic_store_explicit(&h->image->open_seq, h->seq, memory_order_release);
}

static void init_areas(struct fr_history *h)
{
	struct fr_image_header *i = h->image;
	uint64_t frame_max, sideband_max;

	h->sideband = (struct fr_open_section){.data = h->map + i->sideband_offset,
		.cap = i->sideband_bytes,
		.image_fill = &i->sideband_fill};
	h->samples = (struct fr_open_section){
		.data = h->map + i->samples_offset, .cap = i->samples_bytes, .image_fill = &i->samples_fill};
	sideband_max = fr_codec_bound(i->sideband_bytes);
	frame_max = fr_arena_need(sideband_max + fr_codec_bound(i->samples_bytes));
	h->sideband_reserve = fr_arena_need(sideband_max);
	h->arena = (struct fr_arena){
		.log = h->map + i->log_offset,
		.bytes = i->log_bytes,
		.reserve = clamp(i->log_bytes / 16, frame_max + h->sideband_reserve, RESERVE_MAX),
		.pinned_from = UINT64_MAX,
		.evicted = h->config.evicted,
		.ctx = h->config.ctx,
	};
	h->section_max = FR_MAX(h->samples.cap, h->sideband.cap);
}

static int init_codec(struct fr_history *h, struct fr_diag *d)
{
	const int level = h->config.level;
	int r = fr_codec_new(level, h->samples.cap, &h->codec);

	if (r < 0)
		return fr_fail_errno(d, r,
			r == -EINVAL ? "give a level from -131072 to 22; 1 is usual" : NULL,
			"cannot compress at level %d", level);
	r = fr_columns_new(h->samples.cap, &h->columns);
	if (r == 0)
		r = fr_regroup_new(h->samples.cap, &h->samples.runs);
	if (r < 0)
		return r;
	h->sideband.zstd_bytes = fr_codec_bound(h->sideband.cap);
	h->sideband.zstd = malloc(h->sideband.zstd_bytes);
	h->samples.zstd_bytes = fr_codec_bound(h->samples.cap);
	h->samples.zstd = malloc(h->samples.zstd_bytes);
	return h->sideband.zstd && h->samples.zstd ? 0 : -ENOMEM;
}

static int check_size(uint64_t size, struct fr_diag *d)
{
	char low[FR_UNIT_SIZE], high[FR_UNIT_SIZE], is[FR_UNIT_SIZE];

	if (size >= FR_HISTORY_SIZE_MIN && size <= FR_HISTORY_SIZE_MAX)
		return 0;
	return fr_fail(d, -EINVAL, "choose another size of the ring", "a ring of %s is not within %s … %s",
		fr_size_format(size, is), fr_size_format(FR_HISTORY_SIZE_MIN, low),
		fr_size_format(FR_HISTORY_SIZE_MAX, high));
}

/* Gives H its memory: CONFIG->memory, the memfd FD, or a new memfd. */
static int take_memory(struct fr_history *h, int fd, struct fr_diag *d)
{
	int r = 0;

	if (h->config.memory.at) {
		h->map = h->config.memory.at;
		h->image = (struct fr_image_header *)h->map;
		return 0;
	}
	if (fd < 0)
		r = make_memfd(h, d);
	else
		h->fd = fd;
	return r == 0 ? map_memfd(h, d) : r;
}

static int init(struct fr_history *h, int fd, bool keep, struct fr_diag *d)
{
	int r = take_memory(h, fd, d);

	if (r < 0)
		return r;
	if (!keep)
		fr_image_lay_out(h->image, h->size);
	init_areas(h);
	r = init_codec(h, d);
	if (r == 0 && !keep) {
		fr_open_section_clear(&h->sideband);
		fr_open_section_clear(&h->samples);
		fr_history_open_chunk(h);
		fr_history_write_back(h, h->map, FR_IMAGE_HEADER_BYTES);
		fr_history_commit(h);
	}
	return r;
}

int fr_history_make(
	const struct fr_history_config *config, int fd, bool keep, struct fr_history **ret, struct fr_diag *d)
{
	const uint64_t bytes = config->memory.at ? config->memory.bytes : config->size_bytes;
	struct fr_history *h;
	int r;

	r = check_size(bytes, d);
	if (r < 0)
		return r;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	fr_lock_init(&h->lock);
	fr_cond_init(&h->sealed);
	h->config = *config;
	h->size = fr_history_whole_pages(bytes);
	h->fd = -1;
	r = init(h, fd, keep, d);
	if (r < 0) {
		if (fd >= 0)
			h->fd = -1; /* FD still belongs to the caller */
		fr_history_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

int fr_history_new(const struct fr_history_config *config, struct fr_history **ret, struct fr_diag *d)
{
	return fr_history_make(config, -1, false, ret, d);
}

struct fr_history *fr_history_free(struct fr_history *h)
{
	bool is_last;

	if (!h)
		return NULL;
	fr_history_lock(h);
	is_last = !h->snapshots;
	h->is_free = true;
	fr_unlock(&h->lock);
	if (is_last)
		fr_history_destroy(h);
	return NULL;
}

void fr_history_destroy(struct fr_history *h)
{
	fr_codec_free(h->codec);
	fr_columns_free(h->columns);
	fr_regroup_free(h->samples.runs);
	free(h->sideband.zstd);
	free(h->samples.zstd);
	if (h->map && !h->config.memory.at)
		munmap(h->map, h->size);
	fr_closep(&h->fd);
	fr_cond_deinit(&h->sealed);
	fr_lock_deinit(&h->lock);
	free(h);
}

size_t fr_history_section_max(const struct fr_history *h)
{
	return h->section_max;
}

uint64_t fr_history_whole_pages(uint64_t size)
{
	return size / FR_HISTORY_PAGE * FR_HISTORY_PAGE;
}

int fr_history_level(const struct fr_history *h)
{
	return h->config.level;
}

uint64_t fr_history_size(const struct fr_history *h)
{
	return h->size;
}

int fr_history_fd(const struct fr_history *h)
{
	return h->fd;
}

void fr_history_lock(struct fr_history *h)
{
	fr_lock(&h->lock);
	while (h->sealing)
		fr_cond_wait(&h->sealed, &h->lock);
}

static bool has_room(const struct fr_open_section *s, size_t len)
{
	return s->fill + len <= s->cap;
}

static void put_bytes(struct fr_open_section *s, const void *data, size_t len)
{
	memcpy(s->data + s->fill, data, len);
	s->fill += len;
	/* A process that maps the image relies on this order: first the records are written, then their
	   number of bytes. */
	atomic_store_explicit(s->image_fill, s->fill, memory_order_release);
}

static void put_run(struct fr_open_section *s, const void *records, size_t len, uint32_t n, uint64_t first_ns,
	uint64_t last_ns)
{
	if (s->n == 0 || first_ns < s->first_ns)
		s->first_ns = first_ns;
	if (last_ns > s->last_ns)
		s->last_ns = last_ns;
	s->n += n;
	put_bytes(s, records, len);
}

size_t fr_history_append_max(const struct fr_history *h)
{
	return h->samples.cap;
}

/* Seals the caller's records without a copy: S->data points to them during the seal. Until the frame is in
   the log, these records are not in the image. A crash before that loses them, like the records that are
   still in the kernel rings. */
static int seal_in_place(struct fr_history *h, const void *records, size_t len, uint32_t n, uint64_t first_ns,
	uint64_t last_ns) FR_REQUIRES(h->lock)
{
	struct fr_open_section *s = &h->samples;
	uint8_t *own = s->data;
	int dropped = fr_history_seal_locked(h), r;

	s->data = (uint8_t *)records; /* zstd only reads it */
	s->fill = len;
	s->n = n;
	s->first_ns = first_ns;
	s->last_ns = last_ns;
	r = fr_history_seal_locked(h);
	s->data = own;
	return FR_MAX(dropped, r);
}

int fr_history_append(struct fr_history *h, const void *records, size_t len, uint32_t n, uint64_t first_ns,
	uint64_t last_ns)
{
	return fr_history_append_from(h, 0, records, len, n, first_ns, last_ns);
}

int fr_history_append_from(struct fr_history *h, unsigned cpu_index, const void *records, size_t len,
	uint32_t n, uint64_t first_ns, uint64_t last_ns)
{
	int r = 0;

	if (len > h->samples.cap)
		return -EMSGSIZE;
	if (len == 0)
		return 0;
	fr_history_lock(h);
	if (len >= SEAL_IN_PLACE_MIN) {
		r = seal_in_place(h, records, len, n, first_ns, last_ns);
	} else {
		if (!has_room(&h->samples, len))
			r = fr_history_seal_locked(h);
		put_run(&h->samples, records, len, n, first_ns, last_ns);
		fr_regroup_add(h->samples.runs, cpu_index, len);
	}
	h->last_ns = FR_MAX(h->last_ns, last_ns);
	fr_unlock(&h->lock);
	return r;
}

int fr_history_append_sideband(struct fr_history *h, const void *records, size_t len, uint32_t n,
	uint64_t first_ns, uint64_t last_ns)
{
	int r = 0;

	if (len > FR_HISTORY_RUN_MAX)
		return -EMSGSIZE;
	if (len == 0)
		return 0;
	fr_history_lock(h);
	if (!has_room(&h->sideband, len))
		fr_history_seal_locked(h);
	if (has_room(&h->sideband, len)) {
		put_run(&h->sideband, records, len, n, first_ns, last_ns);
	} else {
		h->sideband_dropped += n;
		r = 1;
	}
	fr_unlock(&h->lock);
	return r;
}

int fr_history_seal(struct fr_history *h)
{
	int r;

	fr_history_lock(h);
	r = fr_history_seal_locked(h);
	fr_unlock(&h->lock);
	return r;
}

void fr_history_begin_round(struct fr_history *h, uint64_t since_ns)
{
	fr_thread_assert(FR_THREAD_RECORDER);
	fr_history_lock(h);
	h->since_ns[1] = h->since_ns[0];
	h->since_ns[0] = since_ns;
	fr_unlock(&h->lock);
}

void fr_history_follow_rounds(struct fr_history *h)
{
	fr_history_lock(h);
	if (!h->samples.n && !h->sideband.n)
		raise_low_watermark(h);
	fr_unlock(&h->lock);
}

void fr_history_set_since(struct fr_history *h, uint64_t since_ns)
{
	fr_history_lock(h);
	h->since_ns[0] = h->since_ns[1] = since_ns;
	fr_unlock(&h->lock);
}

void fr_history_begin_at(struct fr_history *h, uint64_t low_watermark_ns)
{
	fr_history_set_since(h, low_watermark_ns);
	fr_history_follow_rounds(h);
}

uint64_t fr_history_freeze(struct fr_history *h)
{
	uint64_t now;

	fr_history_lock(h);
	now = h->frozen_ns = fr_monotonic_ns();
	fr_unlock(&h->lock);
	return now;
}

void fr_history_unfreeze(struct fr_history *h)
{
	fr_history_lock(h);
	h->frozen_ns = 0;
	fr_unlock(&h->lock);
}

void fr_history_end_round(struct fr_history *h)
{
	fr_history_lock(h);
	/* The round has drained all records that were in the kernel rings at its start. So the image has all
	   records up to SINCE_NS of this round. */
	atomic_store_explicit(&h->image->drained_ns, h->since_ns[0], memory_order_release);
	fr_history_commit(h);
	fr_unlock(&h->lock);
}

void fr_history_stats(struct fr_history *h, struct fr_history_stats *ret)
{
	fr_lock(&h->lock);
	*ret = (struct fr_history_stats){
		.size_bytes = h->size,
		.used_bytes =
			fr_arena_used(&h->arena) + h->samples.fill + h->sideband.fill + FR_IMAGE_HEADER_BYTES,
		.raw_bytes = h->arena.raw_bytes + h->samples.fill + h->sideband.fill,
		.first_ns = fr_arena_oldest_sample(&h->arena),
		.last_ns = h->last_ns,
		.low_watermark_ns = fr_history_oldest_low_watermark(h),
		.frames = h->arena.frames,
		.samples = h->arena.samples + h->samples.n,
		.sideband = h->arena.sideband + h->sideband.n,
		.frames_evicted = h->arena.frames_evicted,
		.samples_evicted = h->arena.samples_evicted,
		.chunks_dropped = h->chunks_dropped,
		.samples_dropped = h->samples_dropped,
		.sideband_dropped = h->sideband_dropped,
		.pinned_bytes = fr_snapshots_pinned_bytes(h),
		.compress_ns = h->compress_ns,
	};
	if (!ret->first_ns)
		ret->first_ns = h->samples.n ? h->samples.first_ns : h->last_ns;
	fr_unlock(&h->lock);
}
