// SPDX-License-Identifier: GPL-2.0-or-later

/* The reader on files of known content, whole and broken at known places. */

#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/reader.h"
#include "perfdata/writer.h"
#include "synth.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#define N 3000
#define ID 700

static char dir[] = "/tmp/fr-reader-XXXXXX";
static char path[64];

struct seen {
	uint64_t samples, others, rounds, bytes;
	bool in_order;
	struct fr_damage damage;
};

/* N samples with times 1 … N, a comm and a round after each hundred. RET_AT: where each record begins. */
static void make_records(struct fr_buf *b)
{
	for (uint64_t i = 1; i <= N; i++) {
		synth_sample(b, ID + i % 2, i, 100 + (uint32_t)(i % 7), 0x400000 + i * 16);
		if (i % 100 == 0) {
			synth_comm(b, ID + 2, i, 100, "worker");
			synth_round(b);
		}
	}
}

static struct fr_reader *open_ok(void)
{
	struct fr_diag d = {0};
	struct fr_reader *r = NULL;
	int x = fr_reader_open(path, &r, &d);

	if (x != 0)
		fail_msg("%s", d.what);
	return r;
}

static struct seen read_all(void)
{
	struct fr_reader *r = open_ok();
	struct seen s = {.in_order = true};
	const struct perf_event_header *h;
	uint64_t last = 0, done, all;
	int x;

	while ((x = fr_reader_next(r, &h, NULL)) == 1) {
		assert_int_equal((uintptr_t)h & 7, 0);
		s.bytes += h->size;
		if (h->type == FR_RECORD_FINISHED_ROUND) {
			s.rounds++;
			continue;
		}
		s.samples += h->type == PERF_RECORD_SAMPLE;
		s.others += h->type != PERF_RECORD_SAMPLE;
		s.in_order &= fr_reader_time(r, h) >= last;
		last = fr_reader_time(r, h);
		assert_in_range(fr_record_id(h), ID, ID + 3);
	}
	assert_int_equal(x, 0);
	fr_reader_progress(r, &done, &all);
	assert_int_equal(done, all);
	s.damage = *fr_reader_damage(r);
	fr_reader_free(r);
	return s;
}

static void write_kind(int kind)
{
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf b = {0};

	synth_session(&s, ID, "host", 0);
	make_records(&b);
	if (kind == 0)
		synth_write_file(path, &s, &b, 0, 0);
	else if (kind == 1)
		synth_write_file(path, &s, &b, 4800, 20000);
	else
		synth_write_pipe(path, &s, &b);
}

static void test_whole(void **state)
{
	for (int kind = 0; kind < 3; kind++) {
		struct fr_reader *r;
		struct seen s;

		write_kind(kind);
		s = read_all();
		assert_int_equal(s.samples, N);
		assert_int_equal(s.others, N / 100);
		assert_int_equal(s.rounds, N / 100);
		assert_true(s.in_order);
		assert_false(s.damage.damaged);
		r = open_ok();
		assert_int_equal(fr_reader_is_pipe(r), kind == 2);
		if (kind < 2) {
			const struct fr_session *head = fr_reader_session(r);

			assert_int_equal(head->n_events, 2);
			assert_string_equal(head->events[0].name, "cpu-clock");
			assert_string_equal(head->events[1].name, "dummy:HG");
			assert_int_equal(head->events[1].n_ids, 2);
			assert_int_equal(head->events[1].ids[1], ID + 3);
		}
		fr_reader_free(r);
	}
}

/* Eight bytes that compress to nothing, millions of times: what follows the second of a row tells nothing.
   The test counts what the caller is given, as that is what costs. */
static void test_rounds_in_a_row(void **state)
{
	enum { MANY = 1 << 20 };
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf b = {0};
	struct seen seen;
	struct stat st;

	synth_session(&s, ID, "host", 0);
	make_records(&b);
	for (int i = 0; i < MANY; i++)
		synth_round(&b);
	make_records(&b);
	synth_write_file(path, &s, &b, 0, SIZE_MAX / 4);
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_size, 0, 200000);
	seen = read_all();
	assert_false(seen.damage.damaged);
	assert_int_equal(seen.samples, 2 * N);
	/* Two of each buffer that came out of the frame. */
	assert_in_range(seen.rounds, 2 * N / 100 + 1, 2 * N / 100 + 200);
}

/* The file as bytes, changed by the caller. */
static void load(struct fr_buf *b)
{
	b->len = 0;
	assert_int_equal(fr_read_file(AT_FDCWD, path, 64 << 20, b), 0);
}

/* A file cut anywhere gives every record that is whole. */
static void test_cut(void **state)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct perf_event_header h;
	uint64_t data;

	write_kind(0);
	load(&b);
	memcpy(&data, b.data + 40, sizeof(data));
	for (size_t cut = 1; cut < 400; cut += 7) {
		size_t end = data + 20000 + cut, at = data;
		uint64_t whole = 0;
		struct seen s;

		while (memcpy(&h, b.data + at, sizeof(h)), at + h.size <= end) {
			whole += h.type == PERF_RECORD_SAMPLE;
			at += h.size;
		}
		synth_write(path, b.data, end);
		s = read_all();
		assert_int_equal(s.samples, whole);
		assert_true(s.damage.damaged);
	}
}

/* Every single header that is overwritten costs its own record and no other. */
static void test_middle(void **state)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct perf_event_header h;
	uint64_t data;
	size_t at;

	write_kind(0);
	load(&b);
	memcpy(&data, b.data + 40, sizeof(data));
	at = data;
	for (int i = 0; i < 40; i++) {
		uint8_t saved[8];
		struct seen s;

		memcpy(&h, b.data + at, sizeof(h));
		memcpy(saved, b.data + at, 8);
		memset(b.data + at, i % 2 ? 0xff : 0, 8);
		synth_write(path, b.data, b.len);
		s = read_all();
		assert_int_equal(s.samples + s.others + s.rounds, N + 2 * (N / 100) - 1);
		assert_true(s.damage.damaged);
		assert_int_equal(s.damage.offset, at);
		assert_int_equal(s.damage.lost_bytes, h.size);
		memcpy(b.data + at, saved, 8);
		at += h.size;
	}
}

/* Damage inside a compressed frame costs that frame, and the next one is read. */
static void test_frame(void **state)
{
	static const uint8_t magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
	_cleanup_buf_ struct fr_buf b = {0};
	uint8_t *first, *second;
	struct seen s;

	write_kind(1);
	load(&b);
	first = memmem(b.data, b.len, magic, 4);
	assert_non_null(first);
	second = memmem(first + 4, (size_t)(b.data + b.len - first - 4), magic, 4);
	assert_non_null(second);
	memset(first + (second - first) / 2, 0x55, 40);
	synth_write(path, b.data, b.len);
	s = read_all();
	assert_true(s.damage.damaged);
	assert_true(s.samples < N);
	assert_true(s.samples > N - 20000 / 48 - 20);
	assert_true(s.in_order);
}

static void patch_and_read(const struct fr_buf *b, size_t at, uint64_t v, struct seen *ret)
{
	_cleanup_buf_ struct fr_buf copy = {0};

	assert_int_equal(fr_buf_append(&copy, b->data, b->len), 0);
	memcpy(copy.data + at, &v, sizeof(v));
	synth_write(path, copy.data, copy.len);
	*ret = read_all();
}

static void test_header(void **state)
{
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t attrs, attr_size, end, data;
	struct seen s;

	write_kind(0);
	load(&b);
	memcpy(&attr_size, b.data + 16, 8);
	memcpy(&attrs, b.data + 24, 8);
	memcpy(&data, b.data + 40, 8);
	memcpy(&end, b.data + 48, 8);
	end += data;
	patch_and_read(&b, 48, 0, &s); /* data.size 0 with features set: the table is at data.offset then */
	assert_true(s.damage.damaged || s.samples == 0);
	{ /* data.size 0 and no features: the writer died */
		memset(b.data + 72, 0, 32);
		patch_and_read(&b, 48, 0, &s);
		assert_int_equal(s.samples, N);
		assert_true(s.damage.damaged);
		load(&b);
		write_kind(0);
		load(&b);
	}
	patch_and_read(&b, 48, UINT64_MAX - 4, &s); /* size past the end of the file */
	assert_int_equal(s.samples, N);
	assert_true(s.damage.damaged);
	patch_and_read(&b, end, UINT64_MAX / 2, &s); /* the first feature is out of reach */
	assert_int_equal(s.samples, N);
	assert_true(s.damage.damaged);
	patch_and_read(&b, attrs + attr_size - 16, UINT64_MAX - 8, &s); /* ids out of reach */
	assert_int_equal(s.samples, N);
	assert_true(s.damage.damaged);
}

static void refuse(const void *data, size_t len, const char *word)
{
	struct fr_diag d = {0};
	struct fr_reader *r = NULL;

	synth_write(path, data, len);
	assert_int_equal(fr_reader_open(path, &r, &d), -EBADMSG);
	assert_null(r);
	assert_non_null(strstr(d.what, word));
	assert_non_null(strstr(d.what, path));
}

static void test_refused(void **state)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_reader *r = NULL;

	refuse("", 0, "too short");
	refuse("hello, this is no such file at all", 34, "no perf.data");
	refuse("PERFILE2\x68\0\0\0\0\0\0\0", 16, "ends inside its header");
	write_kind(0);
	load(&b);
	memcpy(b.data, "2ELIFREP", 8);
	refuse(b.data, b.len, "other byte order");
	memcpy(b.data, "PERFILE2", 8);
	memset(b.data + 16, 0xff, 8); /* attr_size */
	refuse(b.data, b.len, "list of events");
	assert_int_equal(fr_reader_open("/nonexistent/file", &r, NULL), -ENOENT);
	assert_null(fr_reader_free(NULL));
}

/* The file shrinks while it is read: an early end, no SIGBUS. */
static void test_shrinks(void **state)
{
	const struct perf_event_header *h;
	struct fr_reader *r;
	uint64_t n = 0;
	int x;

	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf b = {0};

	synth_session(&s, ID, "host", 0);
	for (int i = 0; i < 20; i++)
		make_records(&b);
	synth_write_file(path, &s, &b, 0, 0);
	r = open_ok();
	for (int i = 0; i < 100; i++)
		assert_int_equal(fr_reader_next(r, &h, NULL), 1);
	assert_int_equal(truncate(path, 1000000), 0);
	while ((x = fr_reader_next(r, &h, NULL)) == 1)
		n++;
	assert_int_equal(x, 0);
	assert_true(n > 10000);
	assert_true(fr_reader_damage(r)->damaged);
	fr_reader_free(r);
}

/* What the kernel's documentation says of the order of fields. */
static void test_layout(void **state)
{
	struct perf_event_attr a = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						   PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
		.sample_id_all = 1};
	struct fr_layout l;

	fr_layout_from_attr(&a, &l);
	assert_int_equal(l.sample_time, 8 + 16);
	assert_int_equal(l.sample_id, 8 + 24);
	assert_int_equal(l.tail_size, 32); /* tid, time, id, cpu */
	assert_int_equal(l.tail_time, 24);
	assert_int_equal(l.tail_id, 16);
	a.sample_type = FR_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN;
	fr_layout_from_attr(&a, &l);
	assert_int_equal(l.sample_id, offsetof(struct fr_sample, id));
	assert_int_equal(l.sample_time, offsetof(struct fr_sample, time));
	assert_int_equal(l.tail_size, sizeof(struct fr_sample_id));
	assert_int_equal(l.tail_time, 24);
	assert_int_equal(l.tail_id, 8);
	a.sample_id_all = 0;
	fr_layout_from_attr(&a, &l);
	assert_int_equal(l.tail_size, 0);
}

static int setup(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/f", dir);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_rounds_in_a_row),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_middle),
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_shrinks),
		cmocka_unit_test(test_layout),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
