// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Adopts the ring of a process that has ended, in place or into a new memory (docs/design/22).
 *
 *     image of a killed process ── fr_recovery ──▶ frames, oldest first │ open chunk ──▶ a ring
 */
#include "history/internal.h"
#include "history/unpack.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "perfdata/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEALS (F_SEAL_GROW | F_SEAL_SHRINK)
#define HOLE_MIN (1L << 20) /* cover_holes() leaves out smaller holes, to limit the number of mappings */
#define HINT "recording starts with an empty ring"

struct image {
	const uint8_t *map;
	size_t len;
	bool is_memory; /* the image is in fr_history_config.memory, and not in a memfd */
};

static void unmap_image(struct image *i)
{
	if (i->map && !i->is_memory)
		munmap((void *)(uintptr_t)i->map, i->len);
}

/* Covers the holes of the file (ranges without pages) by mappings of zeros. Otherwise a read of a hole would
   allocate pages. */
static int cover_holes(int fd, uint8_t *map, off_t len)
{
	for (off_t hole, data = 0; (hole = lseek(fd, data, SEEK_HOLE)) >= 0 && hole < len;) {
		const void *zeros = map + hole;

		data = lseek(fd, hole, SEEK_DATA);
		data = data < 0 ? len : data;
		if (data - hole >= HOLE_MIN)
			zeros = mmap(map + hole, (size_t)(data - hole), PROT_READ,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		if (zeros == MAP_FAILED)
			return -errno;
	}
	return 0;
}

static int map_memfd(int fd, struct image *ret, struct fr_diag *d)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *map;
	int r;

	/* Without the seals, the file could shrink while it is read, and the read would cause a SIGBUS. */
	if (seals < 0 || (seals & SEALS) != SEALS)
		return fr_fail(d, -EBADMSG, HINT, "the size of the old ring is not sealed");
	if (fstat(fd, &st) < 0)
		return fr_fail_errno(d, -errno, HINT, "cannot read the size of the old ring");
	if (st.st_size < (off_t)FR_IMAGE_HEADER_BYTES || (uint64_t)st.st_size > FR_HISTORY_SIZE_MAX)
		return fr_fail(d, -EBADMSG, HINT, "the old ring has an impossible size");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return fr_fail_errno(d, -errno, HINT, "cannot map the old ring");
	*ret = (struct image){map, (size_t)st.st_size, false};
	r = cover_holes(fd, map, st.st_size);
	return r < 0 ? fr_fail_errno(d, r, HINT, "cannot map the old ring") : 0;
}

static int find_image(const struct fr_history_config *config, int fd, struct image *ret, struct fr_diag *d)
{
	const struct fr_history_memory *m = &config->memory;

	if (fd >= 0)
		return map_memfd(fd, ret, d);
	if (!m->at || m->bytes < FR_IMAGE_HEADER_BYTES)
		return fr_fail(d, -EBADMSG, HINT, "there is no old ring");
	*ret = (struct image){m->at, m->bytes, true};
	return 0;
}

/* The content of the image that the next ring may take over. */
struct source {
	struct fr_frame *frames; /* all valid frames, oldest first */
	size_t n, run;		 /* n: number of frames; run: there is no gap from frames[run] on */
	struct fr_open_chunk open;
	bool open_left_out;
};

static void source_deinit(struct source *s)
{
	free(s->frames);
}

static bool is_valid_seq(uint64_t seq)
{
	return seq > 0 && seq < UINT64_MAX / 2;
}

/* Returns whether F has a valid sequence number, a known encoding, and sizes that are possible in some ring.
   Readers have buffers for these sizes only. */
static bool is_valid_frame(const struct fr_frame *f)
{
	return is_valid_seq(f->seq) && f->samples_encoding < _FR_ENCODING_MAX &&
	       f->samples_dump_len <= fr_codec_bound(FR_CHUNK_MAX) && f->samples_raw <= FR_CHUNK_MAX &&
	       f->sideband_raw <= FR_CHUNK_SIDEBAND_MAX && f->samples_len <= fr_codec_bound(FR_CHUNK_MAX) &&
	       f->sideband_len <= fr_codec_bound(FR_CHUNK_SIDEBAND_MAX);
}

/* Finds the newest frames whose sequence numbers have no gap. Frames before a gap cannot be used: because of
   the missing side-band, samples after the gap would get wrong names. */
static void find_run(struct source *s)
{
	s->run = s->n;
	while (s->run > 0 && (s->run == s->n || s->frames[s->run - 1].seq + 1 == s->frames[s->run].seq))
		s->run--;
}

/* Reads the open chunk. The changing part of the header has no crc, so an impossible value in this part
   counts as unknown or missing. */
static void read_open_chunk(struct source *s, const struct fr_image_header *i, const struct fr_recovery *r)
{
	const struct fr_frame *newest = s->n ? &s->frames[s->n - 1] : NULL;
	uint64_t now_ns = fr_monotonic_ns(), low_watermark_ns = i->open_low_watermark_ns;

	s->open.drained_ns = i->drained_ns <= now_ns ? i->drained_ns : 0;
	fr_recovery_open_chunk(r, &s->open.records);
	if (newest ? i->open_seq != s->open.seq : !is_valid_seq(i->open_seq)) {
		/* The newest frame has the records of the open chunk already; or there is a gap between the
		   newest frame and the open chunk; or there is no frame, and open_seq is not possible. */
		s->open_left_out = s->open.records.sideband_len || s->open.records.samples_len;
		s->open.records = (struct fr_recovered_open){0};
		return;
	}
	s->open.seq = i->open_seq;
	if (low_watermark_ns >= s->open.low_watermark_ns && low_watermark_ns <= now_ns)
		s->open.low_watermark_ns = low_watermark_ns;
}

/* The same after a crash of the machine: only the commits are right. */
static void read_committed_chunk(struct source *s, const struct fr_recovery *r)
{
	struct fr_image_commit c;

	if (!fr_recovery_committed_chunk(r, &s->open.records, &c))
		return;
	s->open.drained_ns = c.drained_ns;
	if (s->n ? c.open_seq != s->open.seq : !is_valid_seq(c.open_seq)) {
		s->open_left_out = s->open.records.sideband_len || s->open.records.samples_len;
		s->open.records = (struct fr_recovered_open){0};
		return;
	}
	s->open.seq = c.open_seq;
	s->open.low_watermark_ns = FR_MAX(s->open.low_watermark_ns, c.low_watermark_ns);
}

static int read_source(const struct fr_history_config *config, struct source *s, const struct image *image,
	struct fr_recovery *r)
{
	const struct fr_image_header *header = (const struct fr_image_header *)image->map;
	struct fr_recovery_stats stats;
	uint64_t min_seq = config->min_seq;
	struct fr_frame f;

	if (!header)
		return -EBADMSG;
	fr_recovery_stats(r, &stats);
	if (stats.header_ok && !config->crashed && header->moved_seq <= header->open_seq)
		min_seq = FR_MAX(min_seq, (uint64_t)header->moved_seq);
	s->frames = calloc(stats.frames + 1, sizeof(*s->frames));
	if (!s->frames)
		return -ENOMEM;
	while (fr_recovery_next(r, &f))
		if (is_valid_frame(&f) && f.seq >= min_seq)
			s->frames[s->n++] = f;
	find_run(s);
	s->open.seq = s->n ? s->frames[s->n - 1].seq + 1 : 1;
	s->open.low_watermark_ns = s->n ? s->frames[s->n - 1].low_watermark_ns : 0;
	if (config->crashed)
		read_committed_chunk(s, r);
	else if (stats.header_ok)
		read_open_chunk(s, header, r);
	return 0;
}

/* Moves IT over the next whole records that have at most MAX bytes in total, and counts these records.
   Returns the number of their bytes. */
static size_t next_run(struct fr_record_iter *it, size_t max, struct fr_section_kept *ret)
{
	const struct perf_event_header *record;
	struct fr_record_iter ahead = *it;
	const uint8_t *begin = it->at;

	*ret = (struct fr_section_kept){0};
	while ((record = fr_record_next(&ahead)) && (size_t)(ahead.at - begin) <= max) {
		fr_section_count(ret, record);
		*it = ahead;
	}
	return (size_t)(it->at - begin);
}

/* Gives the open chunk of H the sequence number, the low watermark and drained_ns of O, but not its
   records. */
static void continue_chunk(struct fr_history *h, const struct fr_open_chunk *o)
{
	h->seq = o->seq - 1;
	h->low_watermark_ns = o->low_watermark_ns;
	fr_history_open_chunk(h);
	atomic_store_explicit(&h->image->drained_ns, o->drained_ns, memory_order_release);
}

void fr_history_count_frame(struct fr_history *h, const struct fr_frame *f)
{
	h->last_ns = FR_MAX(h->last_ns, f->last_ns);
	h->section_max = FR_MAX(h->section_max, (size_t)FR_MAX(f->samples_raw, f->sideband_raw));
}

/* Functions for the adoption in place */

static uint64_t offset_of(const struct image *image, const struct fr_arena *a, const struct fr_frame *f)
{
	const uint8_t *header = (const uint8_t *)f->sideband - sizeof(struct fr_frame_header);
	size_t log = image->len - a->bytes; /* the log is the last area of the image */

	return (uint64_t)(header - image->map) - log;
}

/* Returns the index of the oldest frame that can be adopted: this frame, all newer frames, and the reserve
   fit into the log. IMAGE is NULL if the frames are copied. If the frames are adopted in place, the bytes
   between two frames count as used, too. So all adopted frames are within one lap of the log, in the order of
   their sequence numbers. */
static size_t find_first(const struct source *s, const struct fr_arena *a, const struct image *image)
{
	uint64_t used = 0, behind = 0;
	size_t from = s->n;

	for (; from > s->run; from--) {
		const struct fr_frame *f = &s->frames[from - 1];
		uint64_t need = fr_frame_need(f), offset = image ? offset_of(image, a, f) : 0;

		if (image && from < s->n)
			need += (behind + a->bytes - (offset + need)) % a->bytes;
		if (used + need + a->reserve > a->bytes)
			break;
		used += need;
		behind = offset;
	}
	return from;
}

/* Adopts the records in the first LEN bytes of S.data as the content of S. */
static void adopt_section(struct fr_open_section *s, size_t len)
{
	struct fr_record_iter it = fr_record_iter(s->data, len);
	struct fr_section_kept all;

	s->fill = next_run(&it, len, &all);
	s->n = all.records;
	s->first_ns = all.first_ns;
	s->last_ns = all.last_ns;
	atomic_store_explicit(s->image_fill, s->fill, memory_order_release);
}

/* Adopts the frames and the open chunk of IMAGE, which is the memory of H. Returns the index of the first
   frame that is adopted. */
static size_t adopt_in_place(struct fr_history *h, const struct source *s, const struct image *image)
{
	struct fr_arena *a = &h->arena;
	size_t from;

	if (h->config.rescue)
		a->reserve = 0;
	from = find_first(s, a, image);

	for (size_t i = 0; i < from; i++)
		fr_entry_wipe((struct fr_entry *)(a->log + offset_of(image, a, &s->frames[i])));
	for (size_t i = from; i < s->n; i++)
		fr_arena_adopt(a, offset_of(image, a, &s->frames[i]));
	adopt_section(&h->sideband, s->open.records.sideband_len);
	adopt_section(&h->samples, s->open.records.samples_len);
	h->last_ns = h->samples.last_ns;
	continue_chunk(h, &s->open);
	return from;
}

static bool has_layout_of(const struct image *image, uint64_t size)
{
	const struct fr_image_header *is = (const struct fr_image_header *)image->map;
	struct fr_image_header wanted = {0};

	fr_image_lay_out(&wanted, size);
	return is && image->len == size &&
	       memcmp(is, &wanted, offsetof(struct fr_image_header, open_seq)) == 0;
}

/* Functions for the adoption by copy */

/* Appends RECORDS in several runs. H has no pinned frame, so no record is dropped. */
static void append_section(struct fr_history *h, const void *records, size_t len,
	int (*append)(struct fr_history *, const void *, size_t, uint32_t, uint64_t, uint64_t))
{
	struct fr_record_iter it;
	struct fr_section_kept run;
	size_t n;

	if (len == 0)
		return;
	it = fr_record_iter(records, len);
	while ((n = next_run(&it, FR_HISTORY_RUN_MAX, &run)) > 0)
		(void)append(h, it.at - n, n, run.records, run.first_ns, run.last_ns);
}

void fr_history_take_open_chunk(struct fr_history *h, const struct fr_open_chunk *o)
{
	continue_chunk(h, o);
	append_section(h, o->records.sideband, o->records.sideband_len, fr_history_append_sideband);
	append_section(h, o->records.samples, o->records.samples_len, fr_history_append);
}

/* Copies the frames from index FROM on, and the open chunk, to H, which is empty. FROM is the result of
   find_first(). */
static void adopt_by_copy(struct fr_history *h, const struct source *s, size_t from)
{
	for (size_t i = from; i < s->n; i++)
		if (fr_arena_make_room(&h->arena, fr_frame_need(&s->frames[i]), h->sideband_reserve))
			fr_arena_put(&h->arena, &s->frames[i]);
	fr_history_take_open_chunk(h, &s->open);
}

/* Functions for both kinds of adoption */

uint64_t fr_history_oldest_seq(const struct fr_history *h)
{
	uint64_t position = h->arena.tail;
	struct fr_frame f;

	return fr_arena_next(&h->arena, &position, h->arena.head, &f) ? f.seq : h->seq;
}

void fr_history_describe(
	struct fr_history *h, uint64_t left_out, bool in_place, struct fr_history_adopted *ret)
{
	struct fr_history_stats stats;

	fr_history_stats(h, &stats);
	*ret = (struct fr_history_adopted){
		.frames = stats.frames,
		.samples = stats.samples,
		.sideband = stats.sideband,
		.first_ns = stats.samples ? stats.first_ns : 0,
		.last_ns = stats.samples ? stats.last_ns : 0,
		.low_watermark_ns = stats.low_watermark_ns,
		.drained_ns = atomic_load_explicit(&h->image->drained_ns, memory_order_relaxed),
		.in_place = in_place,
		.frames_left_out = left_out,
	};
}

/* Returns whether the ring can use the memory of the image. */
static bool can_stay(const struct fr_history_config *config, const struct image *image)
{
	if (image->is_memory)
		return true;
	if (config->memory.at)
		return false;
	return has_layout_of(
		image, config->keep_size ? image->len : fr_history_whole_pages(config->size_bytes));
}

static int adopt_image(const struct fr_history_config *config, int fd, const struct image *image,
	const struct source *s, struct fr_history **ret, struct fr_history_adopted *ret_adopted,
	struct fr_diag *d)
{
	struct fr_history_config own = *config;
	const bool in_place = can_stay(config, image);
	struct fr_history *h;
	uint64_t left_out;
	size_t from;
	int r;

	if (in_place)
		own.size_bytes = image->len;
	r = fr_history_make(&own, in_place ? fd : -1, in_place, &h, d);
	if (r < 0)
		return r;
	if (in_place)
		fr_history_continue_commits(h);
	h->arena.evicted = NULL;
	if (in_place) {
		from = adopt_in_place(h, s, image);
	} else {
		from = find_first(s, &h->arena, NULL);
		adopt_by_copy(h, s, from);
		close(fd);
	}
	for (size_t i = from; i < s->n; i++)
		fr_history_count_frame(h, &s->frames[i]);
	/* In place, frames that were not adopted because the reserve has to be free do not count as left out:
	   the old ring had evicted them, or the next seal would evict them. */
	left_out = (in_place ? s->run : from) + h->arena.frames_evicted + s->open_left_out;
	h->arena.frames_evicted = h->arena.samples_evicted = 0;
	h->arena.evicted = config->evicted;
	fr_history_write_back(h, h->map, h->size);
	fr_history_commit(h);
	fr_history_describe(h, left_out, in_place, ret_adopted);
	*ret = h;
	return 0;
}

/* Returns -EBADMSG if the image has another version: this code cannot read its frames. */
static int check_version(const struct image *image, struct fr_diag *d)
{
	const struct fr_image_header *i = (const struct fr_image_header *)image->map;

	if (i && i->magic == FR_IMAGE_MAGIC && i->version != FR_IMAGE_VERSION)
		return fr_fail(d, -EBADMSG, HINT, "the old ring has version %u, not %u", i->version,
			FR_IMAGE_VERSION);
	return 0;
}

int fr_history_adopt(const struct fr_history_config *config, int fd, struct fr_history **ret,
	struct fr_history_adopted *ret_adopted, struct fr_diag *d)
{
	_cleanup_(unmap_image) struct image image = {0};
	_cleanup_recovery_ struct fr_recovery *recovery = NULL;
	_cleanup_(source_deinit) struct source source = {0};
	struct fr_recovery_stats stats;
	int r;

	r = find_image(config, fd, &image, d);
	if (r == 0)
		r = check_version(&image, d);
	if (r == 0 && image.is_memory && !has_layout_of(&image, fr_history_whole_pages(image.len)))
		r = fr_fail(d, -EBADMSG, HINT, "the old ring is damaged, or is not a ring");
	if (r == 0)
		r = fr_recovery_new(image.map, image.len, &recovery);
	if (r == 0)
		r = read_source(config, &source, &image, recovery);
	if (r < 0)
		return r;
	fr_recovery_stats(recovery, &stats);
	if (!stats.header_ok && source.n == 0)
		return fr_fail(d, -EBADMSG, HINT, "the old ring is damaged as a whole, or is not a ring");
	return adopt_image(config, fd, &image, &source, ret, ret_adopted, d);
}
