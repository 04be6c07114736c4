// SPDX-License-Identifier: GPL-2.0-or-later
#include "synth.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/features.h"
#include "perfdata/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static void check(bool ok)
{
	if (!ok)
		abort();
}

void synth_session(struct fr_session *s, uint64_t first_id, const char *host, uint64_t wall_offset_ns)
{
	const struct {
		uint32_t version, clockid;
		uint64_t wall_ns, clock_ns;
	} clock = {1, CLOCK_MONOTONIC, wall_offset_ns + 1000, 1000};
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = FR_SAMPLE_TYPE,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	const uint64_t ids[] = {first_id, first_id + 1, first_id + 2, first_id + 3};

	*s = (struct fr_session){0};
	check(fr_session_add_event(s, &a, "cpu-clock", ids, 2, NULL) == 0);
	a.config = PERF_COUNT_SW_DUMMY;
	a.comm = a.task = a.mmap2 = a.mmap = 1;
	check(fr_session_add_event(s, &a, "dummy:HG", ids + 2, 2, NULL) == 0);
	check(fr_feature_set_string(s, FR_FEATURE_HOSTNAME, host) == 0);
	check(fr_feature_set_string(s, FR_FEATURE_OSRELEASE, "6.1.0-test") == 0);
	check(fr_feature_set_string(s, FR_FEATURE_VERSION, "6.1") == 0);
	check(fr_feature_set_string(s, FR_FEATURE_ARCH, "x86_64") == 0);
	check(fr_feature_set_event_desc(s) == 0);
	check(fr_buf_append(&s->features[FR_FEATURE_CLOCK_DATA], &clock, sizeof(clock)) == 0);
}

void synth_sample(struct fr_buf *b, uint64_t id, uint64_t time, uint32_t tid, uint64_t ip)
{
	struct {
		struct fr_sample s;
		uint32_t cpu, res;
	} r = {.s = {.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof(r)},
		       .id = id,
		       .ip = ip,
		       .pid = tid,
		       .tid = tid,
		       .time = time}};

	check(fr_buf_append(b, &r, sizeof(r)) == 0);
}

void synth_comm(struct fr_buf *b, uint64_t id, uint64_t time, uint32_t tid, const char *comm)
{
	struct {
		struct fr_record_comm c;
		char name[16];
		struct fr_sample_id id;
	} r = {.c = {.header = {PERF_RECORD_COMM, 0, sizeof(r)}, .pid = tid, .tid = tid},
		.id = {.pid = tid, .tid = tid, .time = time, .id = id}};

	snprintf(r.name, sizeof(r.name), "%s", comm);
	check(fr_buf_append(b, &r, sizeof(r)) == 0);
}

void synth_round(struct fr_buf *b)
{
	check(fr_buf_append(b, &fr_finished_round, sizeof(fr_finished_round)) == 0);
}

static int append(void *ctx, const void *data, size_t len)
{
	return fr_buf_append(ctx, data, len);
}

void synth_aux(struct fr_buf *b, const struct fr_auxtrace *t)
{
	struct fr_file_writer w = {.sink = {append, b}};

	check(fr_file_write_auxtrace(&w, t) == 0);
	fr_buf_deinit(&w.aux_index);
}

/* Writes zstd frames that have whole records and a checksum. */
static void write_frames(struct fr_file_writer *w, const uint8_t *p, size_t left, size_t frame_bytes)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	check(zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1)));
	while (left > 0) {
		size_t n = 0, size = ZSTD_compressBound(FR_MIN(frame_bytes, left) + FR_RECORD_MAX);
		_cleanup_free_ void *z = malloc(size);

		while (n < left && n < frame_bytes) {
			const struct perf_event_header *h = (const void *)(p + n);

			check(h->size >= sizeof(*h) && h->size <= left - n);
			n += h->size;
		}
		check(z);
		size = ZSTD_compress2(zstd, z, size, p, n);
		check(!ZSTD_isError(size));
		check(fr_file_write_frame(w, z, size) == 0);
		p += n;
		left -= n;
	}
	ZSTD_freeCCtx(zstd);
}

void synth_write(const char *path, const void *data, size_t len)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	check(fd >= 0);
	check(fr_write_all(fd, data, len) == 0);
}

void synth_write_file(const char *path, const struct fr_session *s, const struct fr_buf *records,
	size_t plain, size_t frame_bytes)
{
	_cleanup_session_ struct fr_session head = {0};
	_cleanup_buf_ struct fr_buf file = {0};
	const struct fr_sink sink = {append, &file};
	struct fr_file_writer w = {0};
	uint8_t header[FR_FILE_HEADER_SIZE];

	check(fr_session_copy(s, &head) == 0);
	check(fr_file_begin(&w, &head, &sink) == 0);
	check(fr_file_write_records(&w, records->data, frame_bytes ? plain : records->len) == 0);
	if (frame_bytes) {
		write_frames(&w, records->data + plain, records->len - plain, frame_bytes);
		check(fr_feature_set_compressed(&head, 1, 3, 1u << 20) == 0);
	}
	check(fr_file_end(&w, &head, header) == 0);
	memcpy(file.data, header, sizeof(header));
	synth_write(path, file.data, file.len);
}

void synth_write_pipe(const char *path, const struct fr_session *s, const struct fr_buf *records)
{
	_cleanup_buf_ struct fr_buf file = {0};

	check(fr_pipe_append_head(s, &file) == 0);
	check(fr_buf_append(&file, records->data, records->len) == 0);
	synth_write(path, file.data, file.len);
}
