// SPDX-License-Identifier: GPL-2.0-or-later

/* Writes the seeds of fuzz-image into a directory: seed-image DIRECTORY. The build runs this program, so the
   seeds have the current layout of the image. fuzz-image.c describes the format of the seeds. */

#include "history/internal.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "perfdata/record.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HEADER(field) ((uint32_t)offsetof(struct fr_image_header, field))
#define COMMIT(member) ((uint32_t)(sizeof(struct fr_image_header) + offsetof(struct fr_image_commit, member)))

static int write_seed(const char *name, const struct fr_buf *b)
{
	_cleanup_fclose_ FILE *f = fopen(name, "we");

	if (!f || fwrite(b->data, 1, b->len, f) != b->len || fflush(f) != 0) {
		perror(name);
		return -1;
	}
	return 0;
}

static int put_patch(struct fr_buf *b, uint32_t offset, const void *bytes, uint8_t len)
{
	int r = fr_buf_append(b, &offset, sizeof(offset));

	r = r < 0 ? r : fr_buf_append(b, &len, 1);
	return r < 0 ? r : fr_buf_append(b, bytes, len);
}

/* Writes a seed with the first byte MODE and one patch of eight bytes. If OFFSET is UINT32_MAX, the seed has
   no patch. */
static int write_patch(const char *name, uint8_t mode, uint32_t offset, uint64_t value)
{
	_cleanup_buf_ struct fr_buf b = {0};
	int r = fr_buf_append(&b, &mode, 1);

	if (r == 0 && offset != UINT32_MAX)
		r = put_patch(&b, offset, &value, sizeof(value));
	return r < 0 ? r : write_seed(name, &b);
}

static int write_patches(void)
{
	uint32_t log, frame;
	struct fr_image_header i = {0};

	fr_image_lay_out(&i, 1 << 20);
	log = (uint32_t)i.log_offset;
	frame = log + (uint32_t)offsetof(struct fr_frame_header, entry.bytes);
	return write_patch("whole", 1, UINT32_MAX, 0) | write_patch("other-size", 5, UINT32_MAX, 0) |
	       write_patch("version", 1, HEADER(version), FR_IMAGE_VERSION + 1) |
	       write_patch("areas", 3, HEADER(log_offset), 1ULL << 40) |
	       write_patch("copied", 1, HEADER(log_bytes), 0) |
	       write_patch("open-seq", 1, HEADER(open_seq), 1ULL << 63) |
	       write_patch("fill", 1, HEADER(samples_fill), UINT64_MAX) |
	       write_patch("low_watermark", 5, HEADER(open_low_watermark_ns), UINT64_MAX) |
	       write_patch("record", 1, (uint32_t)i.samples_offset, UINT64_MAX) |
	       write_patch("crashed", 9, UINT32_MAX, 0) |
	       write_patch("crashed-open-seq", 11, COMMIT(open_seq), 1ULL << 63) |
	       write_patch("crashed-fill", 11, COMMIT(sideband_fill), UINT64_MAX) |
	       write_patch("crashed-record", 9, (uint32_t)i.samples_offset, UINT64_MAX) |
	       write_patch("frame-torn", 1, log, 0) | write_patch("frame-size", 3, frame, UINT64_MAX) |
	       write_patch("frame-seq", 3, log + (uint32_t)offsetof(struct fr_entry, seq), UINT64_MAX);
}

/* Writes a seed that is the log of a ring with two frames. */
static int write_image(void)
{
	const struct fr_history_config config = {.size_bytes = 1 << 20, .level = 1};
	const struct perf_event_header round = {.type = FR_RECORD_FINISHED_ROUND, .size = sizeof(round)};
	_cleanup_buf_ struct fr_buf b = {0};
	const uint8_t mode = 0;
	struct fr_history *h;
	int r;

	if (fr_history_new(&config, &h, NULL) < 0)
		return -1;
	fr_history_append(h, &round, sizeof(round), 1, 1, 2);
	fr_history_seal(h);
	fr_history_append_sideband(h, &round, sizeof(round), 1, 3, 4);
	fr_history_seal(h);
	r = fr_buf_append(&b, &mode, 1);
	r = r < 0 ? r : fr_buf_append(&b, h->map + h->image->log_offset, h->arena.head);
	fr_history_free(h);
	return r < 0 ? r : write_seed("frames", &b);
}

/* Writes a seed that is encoded samples, and a FINISHED_ROUND between them. */
static int write_columns(void)
{
	struct records {
		struct fr_sample samples[2];
		struct perf_event_header round;
		struct fr_sample sample;
		uint64_t rest[3];
	} records = {0};
	struct fr_columns *c;
	_cleanup_buf_ struct fr_buf b = {0};
	const uint8_t mode = 16;
	const void *encoded;
	size_t len, at;
	int r;

	for (unsigned i = 0; i < 2; i++)
		records.samples[i] = (struct fr_sample){
			.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(struct fr_sample)},
			.time = 1000 + 300 * i};
	records.round = (struct perf_event_header){.type = FR_RECORD_FINISHED_ROUND, .size = 8};
	records.sample.header =
		(struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = sizeof(struct fr_sample) + 24};
	if (fr_columns_new(sizeof(records), &c) < 0)
		return -1;
	len = fr_columns_encode(c, &records, sizeof(records), &encoded, &at);
	r = fr_buf_append(&b, &mode, 1);
	r = r < 0 ? r : fr_buf_append(&b, encoded, len);
	fr_columns_free(c);
	return r < 0 || len == 0 ? -1 : write_seed("columns", &b);
}

int main(int argc, char *argv[])
{
	if (argc != 2) {
		fprintf(stderr, "Usage: seed-image DIRECTORY\n");
		return 2;
	}
	(void)mkdir(argv[1], 0777);
	if (chdir(argv[1]) < 0) {
		perror(argv[1]);
		return 1;
	}
	return write_patches() || write_image() || write_columns();
}
