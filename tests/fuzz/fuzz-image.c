// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Uses the input as the damaged ring of an earlier instance. The first byte of the input says what the other
 * bytes are:
 *
 *     bit 0 clear   the log of a ring, for a recovery: any bytes, any length
 *     bit 0 set     patches of the image of an undamaged ring. An instance then adopts the patched image:
 *                   { u32 offset; u8 len; u8 bytes[len] } …
 *     bit 1         the crcs of all headers are corrected, so that the headers are accepted
 *     bit 2         the ring is adopted in another size
 *     bit 3         the image is in memory that has survived a crash of the machine
 *     bit 4         nothing of the above: samples that are encoded in columns (history/columns.h)
 *
 * The target checks that the frames are in order and within the image, and that an instance can record into
 * an adopted ring and another instance can adopt it again. If encoded samples can be decoded, and are whole
 * records, they must survive another encoding.
 */

#include "fuzz.h"
#include "base/crc32c.h"
#include "history/internal.h"
#include "history/recover.h"
#include "history/unpack.h"
#include "perfdata/record.h"

#include <fcntl.h>

#define SIZE (1u << 20)

static void append(struct fr_history *h, uint64_t n, bool is_sideband)
{
	struct record {
		struct fr_sample head;
		uint64_t filling[2];
		struct fr_sample_id id;
	} records[256];
	uint64_t noise = n * 2 + 1;

	for (uint64_t i = 0; i < 256; i++) {
		noise = noise * 6364136223846793005ULL + 1442695040888963407ULL;
		records[i] = (struct record){
			.head.header = {.type = is_sideband ? PERF_RECORD_COMM : PERF_RECORD_SAMPLE,
				.size = sizeof(records[i])},
			.head.time = n + i,
			.filling = {noise, noise >> 9},
			.id.time = n + i,
		};
	}
	check((is_sideband ? fr_history_append_sideband : fr_history_append)(
		      h, records, sizeof(records), 256, n, n + 255) >= 0);
}

/* Appends RUNS runs (records that are appended by one call). 400 runs make more frames than the log (the
   area of the frames) has room for, and an open chunk. */
static void fill(struct fr_history *h, unsigned runs)
{
	for (unsigned i = 0; i < runs; i++) {
		fr_history_begin_round(h, 256 * (uint64_t)i + 1);
		append(h, 256 * (uint64_t)i + 1, i % 8 == 0);
		if (i % 4 == 3 && i + 1 < runs)
			fr_history_seal(h);
		fr_history_end_round(h);
	}
}

static void write_back(const void *p, size_t len)
{
}

static const uint8_t *get_whole_ring(void)
{
	static uint8_t image[SIZE];
	const struct fr_history_config config = {.memory = {image, SIZE, write_back}, .level = 1};
	struct fr_history *h;

	if (((struct fr_image_header *)image)->magic)
		return image;
	check(fr_history_new(&config, &h, NULL) == 0);
	fill(h, 400);
	fr_history_free(h);
	return image;
}

static void apply_patches(uint8_t *image, const uint8_t *data, size_t size)
{
	while (size > 5) {
		uint32_t at;
		size_t len = data[4] < size - 5 ? data[4] : size - 5;

		memcpy(&at, data, 4);
		at %= SIZE;
		len = len < SIZE - at ? len : SIZE - at;
		memcpy(image + at, data + 5, len);
		data += 5 + len;
		size -= 5 + len;
	}
}

static void correct_crcs(uint8_t *image)
{
	struct fr_image_header *i = (struct fr_image_header *)image;

	i->constant_crc = fr_crc32c(0, &i->image_bytes,
		offsetof(struct fr_image_header, open_seq) - offsetof(struct fr_image_header, image_bytes));
	for (unsigned n = 0; n < FR_IMAGE_COMMITS; n++) {
		struct fr_image_commit *c = &fr_image_commits(i)[n];

		c->crc = fr_crc32c(0, c, offsetof(struct fr_image_commit, crc));
	}
	for (size_t at = 0; at + sizeof(struct fr_frame_header) <= SIZE; at += FR_FRAME_ALIGN) {
		struct fr_frame_header *f = (struct fr_frame_header *)(image + at);
		uint64_t len = (uint64_t)f->sideband_len + f->samples_len;

		if (f->entry.magic != FR_FRAME_MAGIC)
			continue;
		f->entry.header_crc =
			fr_crc32c(0, (const uint8_t *)f + FR_CRC_FROM, sizeof(*f) - FR_CRC_FROM);
		if (len <= SIZE - at - sizeof(*f))
			f->entry.payload_crc = fr_crc32c(0, f + 1, len);
	}
}

static void open_section(enum fr_encoding encoding, const void *zstd, size_t len)
{
	static _Alignas(8) uint8_t buffer[FR_CHUNK_MAX];
	static struct fr_unpack *u;
	struct fr_section_kept kept;
	ssize_t n;

	check(u || fr_unpack_new(&u) == 0);
	n = fr_section_decompress(u, encoding, zstd, len, buffer, sizeof(buffer));
	if (n > 0)
		(void)fr_section_filter(buffer, (size_t)n, 0, UINT64_MAX, &kept);
}

static void recover(const uint8_t *image, size_t len)
{
	struct fr_recovered_open open;
	struct fr_recovery *r;
	uint64_t seq = 0;
	struct fr_frame f;

	check(fr_recovery_new(image, len, &r) == 0);
	for (bool first = true; fr_recovery_next(r, &f); first = false) {
		check(first || f.seq > seq);
		seq = f.seq;
		check((const uint8_t *)f.sideband >= image &&
			(const uint8_t *)f.samples + f.samples_len <= image + len);
		open_section(FR_ENCODING_RECORDS, f.sideband, f.sideband_len);
		open_section(f.samples_encoding, f.samples, f.samples_len);
	}
	fr_recovery_open_chunk(r, &open);
	check(!open.samples || (const uint8_t *)open.samples + open.samples_len <= image + len);
	check(!open.sideband || (const uint8_t *)open.sideband + open.sideband_len <= image + len);
	fr_recovery_free(r);
}

static void read_ring(struct fr_history *h, uint64_t frames)
{
	struct fr_snapshot *s;
	uint64_t seq = 0;
	struct fr_frame f;

	check(fr_arena_used(&h->arena) <= h->arena.bytes);
	check(fr_history_snapshot(h, &s) == 0);
	for (; fr_snapshot_next(s, &f); frames--) {
		check(frames > 0 && (seq == 0 || f.seq == seq + 1));
		seq = f.seq;
		check((const uint8_t *)f.sideband >= h->arena.log &&
			(const uint8_t *)f.samples + f.samples_len <= h->map + h->size);
		check(f.samples_raw <= fr_history_section_max(h) &&
			f.sideband_raw <= fr_history_section_max(h));
		open_section(FR_ENCODING_RECORDS, f.sideband, f.sideband_len);
		open_section(f.samples_encoding, f.samples, f.samples_len);
	}
	check(frames == 0 && (seq == 0 || h->seq == seq + 1));
	fr_snapshot_free(s);
}

static void adopt(const uint8_t *image, uint64_t size)
{
	const struct fr_history_config config = {.size_bytes = size, .level = 1};
	struct fr_history_adopted what, again;
	struct fr_history *h, *next;
	struct fr_diag d = {0};
	int fd = make_memfd(image, SIZE), kept;

	check(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0);
	if (fr_history_adopt(&config, fd, &h, &what, &d) < 0) {
		check(d.what[0]);
		close(fd);
		return;
	}
	read_ring(h, what.frames);
	fill(h, 20);
	kept = fcntl(fr_history_fd(h), F_DUPFD_CLOEXEC, 0);
	fr_history_free(h);
	check(fr_history_adopt(&config, kept, &next, &again, NULL) == 0);
	read_ring(next, again.frames);
	check(again.in_place && again.frames > 0);
	fr_history_free(next);
}

static void adopt_crashed(uint8_t *image)
{
	const struct fr_history_config config = {
		.memory = {image, SIZE, write_back}, .level = 1, .crashed = true};
	struct fr_history_adopted what, again;
	struct fr_history *h, *next;
	struct fr_diag d = {0};

	if (fr_history_adopt(&config, -1, &h, &what, &d) < 0) {
		check(d.what[0]);
		return;
	}
	read_ring(h, what.frames);
	fill(h, 20);
	fr_history_free(h);
	check(fr_history_adopt(&config, -1, &next, &again, NULL) == 0);
	read_ring(next, again.frames);
	check(again.frames > 0);
	fr_history_free(next);
}

static void decode(const uint8_t *encoded, size_t len)
{
	static _Alignas(8) uint8_t records[FR_CHUNK_MAX], again[FR_CHUNK_MAX];
	static struct fr_columns *c;
	ssize_t n = fr_columns_decode(encoded, len, records, sizeof(records));
	const void *other;
	size_t other_len, at;

	check(c || fr_columns_new(FR_CHUNK_MAX, &c) == 0);
	if (n <= 0)
		return;
	other_len = fr_columns_encode(c, records, (size_t)n, &other, &at);
	if (other_len == 0)
		return;
	check(fr_columns_decode(other, other_len, again, sizeof(again)) == n);
	check(memcmp(again, records, (size_t)n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *image;

	if (size == 0)
		return 0;
	image = malloc(data[0] & 1 ? SIZE : size);
	check(image);
	if (data[0] & 1) {
		memcpy(image, get_whole_ring(), SIZE);
		apply_patches(image, data + 1, size - 1);
		if (data[0] & 2)
			correct_crcs(image);
		if (data[0] & 8)
			adopt_crashed(image);
		else
			adopt(image, data[0] & 4 ? 3 * SIZE : SIZE);
	} else {
		memcpy(image, data + 1, size - 1);
		if (data[0] & 16)
			decode(image, size - 1);
		else
			recover(image, size - 1);
	}
	free(image);
	return 0;
}
