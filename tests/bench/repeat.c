/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Writes the records of a perf.data file several times, each time later, so that a short recording becomes a
 * large file with real stacks and names. All events of the file must have the same sample_type. Usage:
 * bench-repeat FILE TIMES OUTPUT
 */
#include "base/cleanup.h"
#include "fileio/writer.h"
#include "perfdata/reader.h"
#include "perfdata/record.h"
#include "perfdata/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITE_AT (1u << 20)

struct repeater {
	const char *path;
	struct fr_layout layout;
	struct fr_file_writer out;
	struct fr_buf records;
	uint64_t first_ns, last_ns; /* of the file */
};

static int flush(struct repeater *x)
{
	const int r = fr_file_write_records(&x->out, x->records.data, x->records.len);

	x->records.len = 0;
	return r;
}

/* Adds ADD_NS to the time of the record at P. */
static void shift(const struct repeater *x, uint8_t *p, uint64_t add_ns)
{
	struct perf_event_header h;
	uint64_t time;

	memcpy(&h, p, sizeof(h));
	p += h.type == PERF_RECORD_SAMPLE ? x->layout.sample_time : h.size - x->layout.tail_time;
	memcpy(&time, p, sizeof(time));
	time += time ? add_ns : 0;
	memcpy(p, &time, sizeof(time));
}

/* Writes the records of the file once. The first pass also finds the times. */
static int copy(struct repeater *x, struct fr_reader *reader, uint64_t add_ns)
{
	const struct perf_event_header *h;
	uint64_t time;
	int r;

	while ((r = fr_reader_next(reader, &h, NULL)) == 1) {
		r = fr_buf_append(&x->records, h, h->size);
		if (r < 0)
			return r;
		time = h->type < FR_RECORD_USER_START ? fr_reader_time(reader, h) : 0;
		if (time)
			shift(x, x->records.data + x->records.len - h->size, add_ns);
		if (h->type == PERF_RECORD_SAMPLE && add_ns == 0) {
			x->first_ns = x->first_ns ? FR_MIN(x->first_ns, time) : time;
			x->last_ns = FR_MAX(x->last_ns, time);
		}
		if (x->records.len >= WRITE_AT)
			r = flush(x);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : flush(x);
}

static int repeat(struct repeater *x, struct fr_reader *first, unsigned times, struct fr_writer *writer)
{
	const struct fr_session *s = fr_reader_session(first);
	const struct fr_sink sink = {fr_writer_append, writer};
	const struct fr_buf *section = &s->features[FR_FEATURE_SAMPLE_TIME];
	uint8_t header[FR_FILE_HEADER_SIZE];
	int r;

	fr_layout_from_attr(&s->events[0].attr, &x->layout);
	r = fr_file_begin(&x->out, s, &sink);
	if (r == 0)
		r = copy(x, first, 0);
	for (unsigned i = 1; i < times && r == 0; i++) {
		struct fr_reader *again;

		r = fr_reader_open(x->path, &again, NULL);
		if (r == 0)
			r = copy(x, again, i * (x->last_ns - x->first_ns + 1));
		if (r == 0)
			fr_reader_free(again);
	}
	x->last_ns += (times - 1) * (x->last_ns - x->first_ns + 1);
	if (section->len == 2 * sizeof(x->last_ns))
		memcpy(section->data + sizeof(x->last_ns), &x->last_ns, sizeof(x->last_ns));
	if (r == 0)
		r = fr_file_end(&x->out, s, header);
	return r < 0 ? r : fr_writer_finish(writer, header, sizeof(header));
}

int main(int argc, char *argv[])
{
	struct repeater x = {.path = argc == 4 ? argv[1] : NULL};
	struct fr_writer *writer = NULL;
	struct fr_reader *reader = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	if (argc != 4 || atoi(argv[2]) < 1) {
		fprintf(stderr, "usage: %s FILE TIMES OUTPUT\n", argv[0]);
		return 2;
	}
	r = fr_reader_open(x.path, &reader, NULL);
	if (r == 0) {
		fd = open(argv[3], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
		r = fd < 0 ? -errno : fr_writer_new(fd, &(struct fr_file_writer_config){0}, &writer, NULL);
	}
	if (r == 0)
		r = repeat(&x, reader, (unsigned)atoi(argv[2]), writer);
	fr_writer_free(writer);
	fr_reader_free(reader);
	fr_buf_deinit(&x.records);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[3], strerror(-r));
	return r < 0;
}
