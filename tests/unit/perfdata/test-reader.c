// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the reader of perf.data, with files of known content (undamaged and damaged) and with files that
   perf makes. */

#include "../files.h"
#include "base/file.h"
#include "perfdata/reader.h"
#include "perfdata/writer.h"
#include "synth.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define N 3000
#define ID 700

static char path[80];

static int setup(void **state)
{
	if (make_root(state) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/f", root);
	return 0;
}

GROUP_FIXTURE(setup, remove_root)

enum kind { PLAIN, COMPRESSED, PIPE };

struct seen {
	uint64_t samples, others, maps, rounds, no_time;
	bool in_order;
	struct fr_damage damage;
};

/* Put N samples with the times 1 … N into B, and after each hundred samples a COMM and a FINISHED_ROUND
   (called a round). */
static void put_records(struct fr_buf *b)
{
	for (uint64_t i = 1; i <= N; i++) {
		synth_sample(b, ID + i % 2, i, 100 + (uint32_t)(i % 7), 0x400000 + i * 16);
		if (i % 100 == 0) {
			synth_comm(b, ID + 2, i, 100, "worker");
			synth_round(b);
		}
	}
}

static void write_kind(enum kind kind)
{
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf b = {0};

	synth_session(&s, ID, "host", 0);
	put_records(&b);
	if (kind == PIPE)
		synth_write_pipe(path, &s, &b);
	else
		synth_write_file(path, &s, &b, 4800, kind == COMPRESSED ? 20000 : 0);
}

/* Makes a file of KIND. Returns its bytes. HEADER gets the numbers of its header. */
static struct fr_buf load_file(enum kind kind, uint64_t header[static 7])
{
	struct fr_buf b = {0};

	write_kind(kind);
	assert_int_equal(fr_read_file(AT_FDCWD, path, 64 << 20, &b), 0);
	memcpy(header, b.data, 7 * sizeof(*header));
	return b;
}

/* Indices into the header. */
enum { ATTR_SIZE = 2, ATTRS, ATTRS_SIZE, DATA, DATA_SIZE };

static struct fr_reader *open_file(void)
{
	struct fr_diag d = {0};
	struct fr_reader *r = NULL;

	if (fr_reader_open(path, &r, &d) != 0)
		fail_msg("%s", d.what);
	return r;
}

/* Reads all records that are left, and frees R. Returns their counts. */
static struct seen read_all(struct fr_reader *r)
{
	struct seen s = {.in_order = true};
	const struct perf_event_header *h;
	uint64_t last = 0, done, all;
	int x;

	while ((x = fr_reader_next(r, &h, NULL)) == 1) {
		bool is_sample = h->type == PERF_RECORD_SAMPLE;

		assert_int_equal((uintptr_t)h & 7, 0);
		s.rounds += h->type == FR_RECORD_FINISHED_ROUND;
		s.maps += h->type == PERF_RECORD_MMAP2;
		s.samples += is_sample;
		s.others += !is_sample && h->type != FR_RECORD_FINISHED_ROUND;
		s.no_time += is_sample && fr_reader_time(r, h) == 0;
		s.in_order &= h->type == FR_RECORD_FINISHED_ROUND || fr_reader_time(r, h) >= last;
		last = FR_MAX(last, fr_reader_time(r, h));
	}
	assert_int_equal(x, 0);
	fr_reader_progress(r, &done, &all);
	assert_int_equal(done, all);
	s.damage = *fr_reader_damage(r);
	fr_reader_free(r);
	return s;
}

static struct seen write_and_read(const struct fr_buf *b, size_t len)
{
	synth_write(path, b->data, len);
	return read_all(open_file());
}

TEST(whole_files_give_all_records_and_the_head)
{
	for (enum kind kind = PLAIN; kind <= PIPE; kind++) {
		const struct fr_session *head;
		struct fr_reader *r;
		struct seen s;

		write_kind(kind);
		s = read_all(open_file());
		assert_int_equal(s.samples, N);
		assert_int_equal(s.others, N / 100);
		assert_int_equal(s.rounds, N / 100);
		assert_true(s.in_order);
		assert_false(s.damage.damaged);
		r = open_file();
		assert_int_equal(fr_reader_is_pipe(r), kind == PIPE);
		head = fr_reader_session(r);
		if (kind != PIPE) {
			assert_int_equal(head->n_events, 2);
			assert_string_equal(head->events[0].name, "cpu-clock");
			assert_string_equal(head->events[1].name, "dummy:HG");
			assert_int_equal(head->events[1].n_ids, 2);
			assert_int_equal(head->events[1].ids[1], ID + 3);
		}
		fr_reader_free(r);
	}
}

/* In the record, the name ends with a NUL, also if it is the longest that fits, or longer. */
TEST(long_names_are_truncated_in_pipe_format)
{
	char name[5000];

	for (size_t len = 4080; len < 4120; len++) {
		_cleanup_session_ struct fr_session s = {0};
		_cleanup_buf_ struct fr_buf head = {0};
		const struct perf_event_attr attr = {0};
		const struct perf_event_header *attr_record, *update;

		memset(name, 'x', len);
		name[len] = '\0';
		assert_int_equal(fr_session_add_event(&s, &attr, name, &(uint64_t){ID}, 1, NULL), 0);
		assert_int_equal(fr_pipe_append_event(&s.events[0], &head), 0);
		attr_record = (const void *)head.data;
		update = (const void *)(head.data + attr_record->size);
		assert_int_equal(attr_record->size + update->size, head.len);
		assert_int_equal(update->type, FR_RECORD_EVENT_UPDATE);
		assert_int_equal(head.data[head.len - 1], '\0');
		assert_int_equal(strlen((const char *)(update + 1) + 16), FR_MIN(len, (size_t)4095));
	}
}

/* A million equal rounds are compressed to almost nothing, but each round that the caller gets costs time. */
TEST(rounds_in_a_row_are_skipped)
{
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf b = {0};
	struct seen seen;
	struct stat st;

	synth_session(&s, ID, "host", 0);
	put_records(&b);
	for (int i = 0; i < 1 << 20; i++)
		synth_round(&b);
	put_records(&b);
	synth_write_file(path, &s, &b, 0, SIZE_MAX / 4);
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_size, 0, 200000);
	seen = read_all(open_file());
	assert_false(seen.damage.damaged);
	assert_int_equal(seen.samples, 2 * N);
	/* If several rounds follow each other, the reader returns at most two of them for each buffer of
	   decompressed bytes. */
	assert_in_range(seen.rounds, 2 * N / 100 + 1, 2 * N / 100 + 200);
}

TEST(truncated_file_gives_every_whole_record)
{
	uint64_t header[7];
	_cleanup_buf_ struct fr_buf b = load_file(PLAIN, header);

	for (size_t n = 1; n < 400; n += 7) {
		size_t end = header[DATA] + 20000 + n, at = header[DATA];
		struct perf_event_header h;
		uint64_t whole = 0;
		struct seen s;

		while (memcpy(&h, b.data + at, sizeof(h)), at + h.size <= end) {
			whole += h.type == PERF_RECORD_SAMPLE;
			at += h.size;
		}
		s = write_and_read(&b, end);
		assert_int_equal(s.samples, whole);
		assert_true(s.damage.damaged);
	}
}

TEST(overwritten_header_costs_only_its_record)
{
	uint64_t header[7];
	_cleanup_buf_ struct fr_buf b = load_file(PLAIN, header);
	struct perf_event_header h;
	size_t at = header[DATA];

	for (int i = 0; i < 40; i++, at += h.size) {
		struct seen s;

		memcpy(&h, b.data + at, sizeof(h));
		memset(b.data + at, i % 2 ? 0xff : 0, sizeof(h));
		s = write_and_read(&b, b.len);
		assert_int_equal(s.samples + s.others + s.rounds, N + 2 * (N / 100) - 1);
		assert_true(s.damage.damaged);
		assert_int_equal(s.damage.offset, at);
		assert_int_equal(s.damage.lost_bytes, h.size);
		memcpy(b.data + at, &h, sizeof(h));
	}
}

TEST(damage_in_a_frame_costs_that_frame)
{
	static const uint8_t magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
	uint64_t header[7];
	_cleanup_buf_ struct fr_buf b = load_file(COMPRESSED, header);
	uint8_t *first = memmem(b.data, b.len, magic, 4), *second;
	struct seen s;

	assert_non_null(first);
	second = memmem(first + 4, (size_t)(b.data + b.len - first - 4), magic, 4);
	assert_non_null(second);
	memset(first + (second - first) / 2, 0x55, 40);
	s = write_and_read(&b, b.len);
	assert_true(s.damage.damaged);
	assert_true(s.samples < N);
	assert_true(s.samples > N - 20000 / 48 - 20);
	assert_true(s.in_order);
}

TEST(data_is_read_despite_a_damaged_head)
{
	uint64_t header[7];
	_cleanup_buf_ struct fr_buf b = load_file(PLAIN, header);
	const struct {
		size_t at;
		uint64_t value;
		bool is_unfinished; /* the writer was killed, so there are no features */
	} patches[] = {
		{DATA_SIZE * 8, 0, true}, {DATA_SIZE * 8, UINT64_MAX - 4, false}, /* behind the end */
		{header[DATA] + header[DATA_SIZE], UINT64_MAX / 2, false}, /* the first feature section */
		{header[ATTRS] + header[ATTR_SIZE] - 16, UINT64_MAX - 8, false}, /* offset of the ids */
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(patches); i++) {
		_cleanup_buf_ struct fr_buf copy = {0};
		struct seen s;

		assert_int_equal(fr_buf_append(&copy, b.data, b.len), 0);
		memcpy(copy.data + patches[i].at, &patches[i].value, 8);
		if (patches[i].is_unfinished)
			memset(copy.data + 72, 0, 32);
		s = write_and_read(&copy, copy.len);
		assert_int_equal(s.samples, N);
		assert_true(s.damage.damaged);
	}
	memset(b.data + 48, 0,
		8); /* no data, but features: the reader looks for their table at the place of the data */
	assert_true(write_and_read(&b, b.len).damage.damaged);
}

TEST(other_files_are_refused_with_a_reason)
{
	uint64_t header[7];
	_cleanup_buf_ struct fr_buf swapped = load_file(PLAIN, header), attrs = load_file(PLAIN, header);
	const struct {
		const void *data;
		size_t len;
		const char *reason;
	} files[] = {
		{"", 0, "too short"},
		{"hello, this is not such a file at all", 37, "not a perf.data"},
		{"PERFILE2\x68\0\0\0\0\0\0\0", 16, "ends inside its header"},
		{swapped.data, swapped.len, "other byte order"},
		{attrs.data, attrs.len, "list of events"},
	};
	struct fr_reader *r = NULL;

	memcpy(swapped.data, "2ELIFREP", 8);
	memset(attrs.data + ATTR_SIZE * 8, 0xff, 8);
	for (size_t i = 0; i < FR_ARRAY_SIZE(files); i++) {
		struct fr_diag d = {0};

		synth_write(path, files[i].data, files[i].len);
		assert_int_equal(fr_reader_open(path, &r, &d), -EBADMSG);
		assert_non_null(strstr(d.what, files[i].reason));
		assert_non_null(strstr(d.what, path));
	}
	assert_int_equal(fr_reader_open("/nonexistent/file", &r, NULL), -ENOENT);
	assert_null(r);
	assert_null(fr_reader_free(NULL));
}

TEST(file_that_is_truncated_meanwhile_ends_early)
{
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf b = {0};
	const struct perf_event_header *h;
	struct fr_reader *r;
	struct seen seen;

	synth_session(&s, ID, "host", 0);
	for (int i = 0; i < 20; i++)
		put_records(&b);
	synth_write_file(path, &s, &b, 0, 0);
	r = open_file();
	fr_reader_set_read_ahead(r, 1 << 20);
	for (int i = 0; i < 100; i++)
		assert_int_equal(fr_reader_next(r, &h, NULL), 1);
	assert_int_equal(truncate(path, 1000000), 0);
	seen = read_all(r);
	assert_true(seen.samples > 10000);
	assert_true(seen.damage.damaged);
}

TEST(layout_follows_the_attr)
{
	const uint64_t of_perf = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
	const struct {
		uint64_t sample_type;
		bool sample_id_all;
		uint16_t sample_id, sample_time, tail_size, tail_time, tail_id;
	} layouts[] = {
		{of_perf, true, 32, 24, 32, 24, 16}, /* the sample id has tid, time, id, cpu */
		{FR_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN, true, offsetof(struct fr_sample, id),
			offsetof(struct fr_sample, time), sizeof(struct fr_sample_id), 24, 8},
		{FR_SAMPLE_TYPE, false, offsetof(struct fr_sample, id), offsetof(struct fr_sample, time), 0,
			0, 0},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(layouts); i++) {
		const struct perf_event_attr a = {
			.sample_type = layouts[i].sample_type, .sample_id_all = layouts[i].sample_id_all};
		struct fr_layout l;

		fr_layout_from_attr(&a, &l);
		assert_int_equal(l.sample_id, layouts[i].sample_id);
		assert_int_equal(l.sample_time, layouts[i].sample_time);
		assert_int_equal(l.tail_size, layouts[i].tail_size);
		assert_int_equal(l.tail_time, layouts[i].tail_time);
		assert_int_equal(l.tail_id, layouts[i].tail_id);
	}
}

/* Returns the number of samples by perf. It does not use perf report -D, which reads build-ids, and could
   abort if another recorder of the machine asks for build-ids (docs/design/10). */
static uint64_t count_samples_by_perf(void)
{
	unsigned long long n = 0;
	char command[256];
	FILE *p;

	snprintf(command, sizeof(command), "perf report --stats -i %s 2>/dev/null", path);
	p = popen(command, "r");
	assert_non_null(p);
	while (fscanf(p, " SAMPLE events: %llu", &n) == 0)
		(void)!fscanf(p, "%*[^\n]");
	pclose(p);
	return n;
}

TEST(files_of_perf_have_as_many_samples_as_perf_counts)
{
	/* Only clock events are used: on Linux 6.18, samples of other software events may get the id of an
	 * event of another recorder. */
	static const char *const options[] = {
		"-e cpu-clock", "-e cpu-clock,task-clock", "-z -e cpu-clock -g", "-e cpu-clock -o -"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(options); i++) {
		char command[256];
		struct fr_reader *r;
		struct seen s;

		snprintf(command, sizeof(command),
			"perf record -q -B -o %s -a %s -- sh -c 'ls / >/dev/null; sleep 0.3' >%s", path,
			options[i], strstr(options[i], "-o -") ? path : "/dev/null");
		if (system(command) != 0)
			unit_skip("perf is not installed, or this does not work here: %s", command);
		r = open_file();
		for (size_t e = 0; e < fr_reader_session(r)->n_events; e++)
			assert_true(fr_reader_session(r)->events[e].name[0] || fr_reader_is_pipe(r));
		assert_true(fr_reader_session(r)->n_events >= (i == 1 ? 2 : !fr_reader_is_pipe(r)));
		s = read_all(r);
		if (s.damage.damaged)
			fail_msg("%s", s.damage.text);
		assert_true(s.samples > 0);
		assert_true(s.maps > 0);
		assert_int_equal(s.no_time, 0);
		assert_int_equal(s.samples, count_samples_by_perf());
	}
}
