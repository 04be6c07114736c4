/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A ring that goes on after its process.
 *
 *     image of a killed instance ── fr_recovery ──▶ frames, oldest first │ open chunk ──▶ a ring
 *
 * What is taken is the newest run of frames without a gap: side-band that is missing in the middle would give
 * the samples behind it wrong names. A gap is damage, or a retained snapshot's frames behind which the ring
 * has moved on.
 *
 * In place nothing moves. The tail is put at the oldest frame of the run and the head behind the newest; what
 * lies between two frames becomes a pad. Frames that are left out lose their magic first, oldest first, so
 * that a kill in the midst of this leaves an image of which the same can be taken again. The reserve is kept
 * free: what it wants had been evicted, or would be by the next seal.
 *
 * Into another size frames are copied as they are. The open chunk may be larger than the new ring's: it is
 * appended anew, in runs, side-band first, as it would stand in its frame.
 */
#include "history/internal.h"
#include "history/recover.h"
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
#define HOLE_MIN (1L << 20) /* each is a mapping */
#define HINT "recording starts with an empty ring"

/* The memory of an instance that is gone. */
struct image {
	const uint8_t *map;
	size_t len;
};

static void unmap_image(struct image *i)
{
	if (i->map)
		munmap((void *)(uintptr_t)i->map, i->len);
}

/* What is not there reads as zeros without being taken from the machine. */
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

static int map_image(int fd, struct image *ret, struct fr_diag *d)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *map;
	int r;

	/* What could shrink under us would be a SIGBUS. */
	if (seals < 0 || (seals & SEALS) != SEALS)
		return fr_fail(d, -EBADMSG, HINT, "the old ring is no memory of a sealed size");
	if (fstat(fd, &st) < 0)
		return fr_fail_errno(d, -errno, HINT, "cannot look at the old ring");
	if (st.st_size < (off_t)FR_IMAGE_HEADER_BYTES || (uint64_t)st.st_size > FR_HISTORY_SIZE_MAX)
		return fr_fail(d, -EBADMSG, HINT, "the old ring has an impossible size");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return fr_fail_errno(d, -errno, HINT, "cannot map the old ring");
	*ret = (struct image){map, (size_t)st.st_size};
	r = cover_holes(fd, map, st.st_size);
	return r < 0 ? fr_fail_errno(d, r, HINT, "cannot map the old ring") : 0;
}

/* What a ring can go on with. */
struct source {
	struct fr_frame *frames; /* oldest first; views */
	size_t n, run;		 /* frames; from `run` on without a gap */
	struct fr_open_chunk open;
	bool open_left_out;
};

static void source_done(struct source *s)
{
	free(s->frames);
}

static bool seq_holds(uint64_t seq)
{
	return seq > 0 && seq < UINT64_MAX / 2;
}

/* Whether any ring of ours could have made it: readers have buffers of these sizes. */
static bool frame_holds(const struct fr_frame *f)
{
	return seq_holds(f->seq) && f->samples_raw <= FR_CHUNK_MAX &&
	       f->sideband_raw <= FR_CHUNK_SIDEBAND_MAX && f->samples_len <= fr_codec_bound(FR_CHUNK_MAX) &&
	       f->sideband_len <= fr_codec_bound(FR_CHUNK_SIDEBAND_MAX);
}

static void find_run(struct source *s)
{
	s->run = s->n;
	while (s->run > 0 && (s->run == s->n || s->frames[s->run - 1].seq + 1 == s->frames[s->run].seq))
		s->run--;
}

/* The marks have no crc: what is not possible was damaged. The header itself holds. */
static void take_open_chunk(struct source *s, const struct fr_image_header *i, const struct fr_recovery *r)
{
	const struct fr_frame *newest = s->n ? &s->frames[s->n - 1] : NULL;
	uint64_t now_ns = fr_monotonic_ns(), low_watermark_ns = i->open_low_watermark_ns;

	s->open.drained_ns = i->drained_ns <= now_ns ? i->drained_ns : 0;
	fr_recovery_open_chunk(r, &s->open.records);
	if (newest ? i->open_seq != s->open.seq : !seq_holds(i->open_seq)) {
		/* It is the newest frame already, or not what comes next. */
		s->open_left_out = s->open.records.sideband_len || s->open.records.samples_len;
		s->open.records = (struct fr_recovered_open){0};
		return;
	}
	s->open.seq = i->open_seq;
	if (low_watermark_ns >= s->open.low_watermark_ns && low_watermark_ns <= now_ns)
		s->open.low_watermark_ns = low_watermark_ns;
}

static int take_source(struct source *s, const struct image *image, struct fr_recovery *r)
{
	const struct fr_image_header *header = (const struct fr_image_header *)image->map;
	struct fr_recovery_stats stats;
	uint64_t moved = 0;
	struct fr_frame f;

	if (!header)
		return -EBADMSG;
	fr_recovery_stats(r, &stats);
	if (stats.header_ok && header->moved_seq <= header->open_seq)
		moved = header->moved_seq;
	s->frames = calloc(stats.frames + 1, sizeof(*s->frames));
	if (!s->frames)
		return -ENOMEM;
	while (fr_recovery_next(r, &f))
		if (frame_holds(&f) && f.seq >= moved)
			s->frames[s->n++] = f;
	find_run(s);
	s->open.seq = s->n ? s->frames[s->n - 1].seq + 1 : 1;
	s->open.low_watermark_ns = s->n ? s->frames[s->n - 1].low_watermark_ns : 0;
	if (stats.header_ok)
		take_open_chunk(s, header, r);
	return 0;
}

/* A walk through raw records in runs of at most MAX bytes. */
struct run {
	const uint8_t *records;
	size_t len;
	uint32_t n; /* FINISHED_ROUND not counted */
	uint64_t first_ns, last_ns;
};

static void count_record(struct run *run, const struct perf_event_header *record)
{
	uint64_t t = fr_record_time(record);

	run->len += record->size;
	if (record->type == FR_RECORD_FINISHED_ROUND)
		return;
	run->first_ns = run->n ? FR_MIN(run->first_ns, t) : t;
	run->last_ns = FR_MAX(run->last_ns, t);
	run->n++;
}

static bool next_run(struct fr_section_iter *it, size_t max, struct run *ret)
{
	const struct perf_event_header *record;
	struct fr_section_iter ahead = *it;

	*ret = (struct run){.records = it->at};
	while ((record = fr_section_next(&ahead)) && ret->len + record->size <= max) {
		count_record(ret, record);
		*it = ahead;
	}
	return ret->len > 0;
}

/* The open chunk that the next record goes to. */
static void go_on_with(struct fr_history *h, const struct fr_open_chunk *o)
{
	h->seq = o->seq - 1;
	h->low_watermark_ns = o->low_watermark_ns;
	fr_history_open_chunk(h);
	atomic_store_explicit(&h->image->drained_ns, o->drained_ns, memory_order_release);
}

void fr_history_note_frame(struct fr_history *h, const struct fr_frame *f)
{
	h->last_ns = FR_MAX(h->last_ns, f->last_ns);
	h->section_max = FR_MAX(h->section_max, (size_t)FR_MAX(f->samples_raw, f->sideband_raw));
}

/* In place. */

static uint64_t offset_of(const struct image *image, const struct fr_arena *a, const struct fr_frame *f)
{
	const uint8_t *header = (const uint8_t *)f->sideband - sizeof(struct fr_frame_header);
	size_t log = image->len - a->bytes; /* it is the last area */

	return (uint64_t)(header - image->map) - log;
}

/* The first frame of the run from which on, around the log, all fit beside the reserve. Frames do not
   overlap: so they are in order where they fit. */
static size_t first_in_place(const struct source *s, const struct image *image, const struct fr_arena *a)
{
	uint64_t span = 0, behind = 0;
	size_t from = s->n;

	for (; from > s->run; from--) {
		const struct fr_frame *f = &s->frames[from - 1];
		uint64_t offset = offset_of(image, a, f), end = offset + fr_frame_need(f);
		uint64_t between = from == s->n ? 0 : (behind + a->bytes - end) % a->bytes;

		if (span + between + fr_frame_need(f) + a->reserve > a->bytes)
			break;
		span += between + fr_frame_need(f);
		behind = offset;
	}
	return from;
}

static void forget_frame(struct fr_arena *a, uint64_t offset)
{
	struct fr_entry *e = (struct fr_entry *)(a->log + offset);

	atomic_store_explicit(&e->magic, 0, memory_order_release);
}

static void set_section(struct fr_open_section *s, size_t len)
{
	struct fr_section_iter it = fr_section_iter(s->data, len);
	struct run all;

	(void)next_run(&it, len, &all);
	s->fill = all.len;
	s->n = all.n;
	s->first_ns = all.first_ns;
	s->last_ns = all.last_ns;
	atomic_store_explicit(s->mark, s->fill, memory_order_release);
}

/* The image is H's memory. Returns the index of the first frame that was taken. */
static size_t take_in_place(struct fr_history *h, const struct source *s, const struct image *image)
{
	struct fr_arena *a = &h->arena;
	size_t from = first_in_place(s, image, a);

	for (size_t i = 0; i < from; i++)
		forget_frame(a, offset_of(image, a, &s->frames[i]));
	for (size_t i = from; i < s->n; i++)
		fr_arena_take(a, offset_of(image, a, &s->frames[i]));
	set_section(&h->sideband, s->open.records.sideband_len);
	set_section(&h->samples, s->open.records.samples_len);
	h->last_ns = h->samples.last_ns;
	go_on_with(h, &s->open);
	return from;
}

static bool is_laid_out_for(const struct image *image, uint64_t size)
{
	const struct fr_image_header *is = (const struct fr_image_header *)image->map;
	struct fr_image_header wanted = {0};

	fr_image_lay_out(&wanted, size);
	return is && image->len == size &&
	       memcmp(is, &wanted, offsetof(struct fr_image_header, open_seq)) == 0;
}

/* By copy. */

/* The first frame of the run from which on all fit beside the reserve of an empty log. */
static size_t first_that_fits(const struct source *s, const struct fr_arena *a)
{
	uint64_t bytes = 0;
	size_t from = s->n;

	while (from > s->run && bytes + fr_frame_need(&s->frames[from - 1]) + a->reserve <= a->bytes)
		bytes += fr_frame_need(&s->frames[--from]);
	return from;
}

/* Nothing is pinned, so nothing is dropped. A run of a FINISHED_ROUND alone says nothing of time, and may be
   missing. */
static void append_section(struct fr_history *h, const void *records, size_t len,
	int (*append)(struct fr_history *, const void *, size_t, uint32_t, uint64_t, uint64_t))
{
	struct fr_section_iter it;
	struct run run;

	if (len == 0)
		return;
	it = fr_section_iter(records, len);
	while (next_run(&it, FR_HISTORY_RUN_MAX, &run))
		if (run.n)
			(void)append(h, run.records, run.len, run.n, run.first_ns, run.last_ns);
}

void fr_history_take_open_chunk(struct fr_history *h, const struct fr_open_chunk *o)
{
	go_on_with(h, o);
	append_section(h, o->records.sideband, o->records.sideband_len, fr_history_append_sideband);
	append_section(h, o->records.samples, o->records.samples_len, fr_history_append);
}

/* H is empty. FROM: as first_that_fits() said. */
static void take_by_copy(struct fr_history *h, const struct source *s, size_t from)
{
	for (size_t i = from; i < s->n; i++)
		if (fr_arena_make_room(&h->arena, fr_frame_need(&s->frames[i]), h->hold_back))
			fr_arena_put(&h->arena, &s->frames[i]);
	fr_history_take_open_chunk(h, &s->open);
}

/* Both ways. */

void fr_history_tell(struct fr_history *h, uint64_t left_out, bool in_place, struct fr_history_adopted *ret)
{
	struct fr_history_stats stats;

	fr_history_stats(h, &stats);
	*ret = (struct fr_history_adopted){
		.frames = stats.frames,
		.samples = stats.samples,
		.sideband = stats.sideband,
		.first_ns = stats.samples ? stats.first_ns : 0,
		.last_ns = stats.samples ? stats.last_ns : 0,
		.low_watermark_ns = fr_history_oldest_low_watermark(h),
		.drained_ns = atomic_load_explicit(&h->image->drained_ns, memory_order_relaxed),
		.in_place = in_place,
		.frames_left_out = left_out,
	};
}

/* What FINISHED_ROUNDs promised before holds: see history.c. */
void fr_history_begin_rounds_anew(struct fr_history *h)
{
	h->flush_seq = h->seq;
	h->round_seq = 0;
}

static int go_on(const struct fr_history_config *config, int fd, const struct image *image,
	const struct source *s, struct fr_history **ret, struct fr_history_adopted *what, struct fr_diag *d)
{
	const bool keep = config->keep_size && is_laid_out_for(image, image->len);
	struct fr_history_config own = *config;
	bool in_place = keep || is_laid_out_for(image, fr_history_whole_pages(config->size_bytes));
	struct fr_history *h;
	uint64_t left_out;
	size_t from;
	int r;

	if (keep)
		own.size_bytes = image->len;
	r = fr_history_make(&own, in_place ? fd : -1, &h, d);
	if (r < 0)
		return r;
	h->arena.evicted = NULL;
	if (in_place) {
		from = take_in_place(h, s, image);
	} else {
		from = first_that_fits(s, &h->arena);
		take_by_copy(h, s, from);
		close(fd);
	}
	for (size_t i = from; i < s->n; i++)
		fr_history_note_frame(h, &s->frames[i]);
	fr_history_begin_rounds_anew(h);
	/* The reserve's, in place: those had been evicted, or as good as. */
	left_out = (in_place ? s->run : from) + h->arena.frames_evicted + s->open_left_out;
	h->arena.frames_evicted = h->arena.samples_evicted = 0;
	h->arena.evicted = config->evicted;
	fr_history_tell(h, left_out, in_place, what);
	*ret = h;
	return 0;
}

/* The version is asked first: another one's frames may be anything. */
static int check_version(const struct image *image, struct fr_diag *d)
{
	const struct fr_image_header *i = (const struct fr_image_header *)image->map;

	if (i && i->magic == FR_IMAGE_MAGIC && i->version != FR_IMAGE_VERSION)
		return fr_fail(d, -EBADMSG, HINT, "the old ring has version %u, not %u", i->version,
			FR_IMAGE_VERSION);
	return 0;
}

int fr_history_adopt(const struct fr_history_config *config, int fd, struct fr_history **ret,
	struct fr_history_adopted *what, struct fr_diag *d)
{
	_cleanup_(unmap_image) struct image image = {0};
	_cleanup_recovery_ struct fr_recovery *recovery = NULL;
	_cleanup_(source_done) struct source source = {0};
	struct fr_recovery_stats stats;
	int r;

	r = map_image(fd, &image, d);
	if (r == 0)
		r = check_version(&image, d);
	if (r == 0)
		r = fr_recovery_new(image.map, image.len, &recovery);
	if (r == 0)
		r = take_source(&source, &image, recovery);
	if (r < 0)
		return r;
	fr_recovery_stats(recovery, &stats);
	if (!stats.header_ok && source.n == 0)
		return fr_fail(d, -EBADMSG, HINT, "the old ring is not a ring, or nothing of it is whole");
	return go_on(config, fd, &image, &source, ret, what, d);
}
