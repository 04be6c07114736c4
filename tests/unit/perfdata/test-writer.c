// SPDX-License-Identifier: GPL-2.0-or-later

/* Files of the writers, as stock perf reads them. */

#include "synthetic.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/writer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <zstd.h>
#include <cmocka.h>

#define SAMPLES 4000u
#define PATH_SIZE 64

enum kind { PLAIN, COMPRESSED, PIPE };

static int to_buf(void *ctx, const void *data, size_t len)
{
	return fr_buf_append(ctx, data, len);
}

static void write_compressed(struct fr_file_writer *w, const struct fr_buf *records)
{
	size_t cap = ZSTD_compressBound(records->len);
	_cleanup_free_ void *p = malloc(cap);
	size_t n = ZSTD_compress(p, cap, records->data, records->len, 1);

	assert_false(ZSTD_isError(n));
	assert_int_equal(fr_file_write_frame(w, p, n), 0);
}

/* STATE and RECORDS as a file of KIND. */
static void make_file(struct fr_session *s, enum kind kind, const struct fr_buf *state,
	const struct fr_buf *records, size_t n_records, char path[static PATH_SIZE])
{
	_cleanup_buf_ struct fr_buf b = {0};
	const struct fr_sink sink = {to_buf, &b};
	uint8_t header[FR_FILE_HEADER_SIZE];
	struct fr_file_writer w;
	_cleanup_close_ int fd = -1;

	if (kind == PIPE) {
		assert_int_equal(fr_pipe_append_head(s, &b), 0);
		w = (struct fr_file_writer){.sink = sink};
	} else {
		assert_int_equal(fr_feature_set_compressed(s, 1, 10, 16u << 20), 0);
		assert_int_equal(fr_file_begin(&w, s, &sink), 0);
	}
	assert_int_equal(fr_file_write_records(&w, state->data, state->len), 0);
	assert_int_equal(fr_file_write_records(&w, &fr_finished_round, sizeof(fr_finished_round)), 0);
	for (size_t i = 0; i < n_records; i++) {
		if (kind == COMPRESSED)
			write_compressed(&w, &records[i]);
		else
			assert_int_equal(fr_file_write_records(&w, records[i].data, records[i].len), 0);
	}
	if (kind != PIPE) {
		assert_int_equal(b.len % 8, 0);
		assert_int_equal(fr_file_end(&w, s, header), 0);
		memcpy(b.data, header, sizeof(header));
	}
	strcpy(path, "/tmp/flightrec-writer.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(fr_write_all(fd, b.data, b.len), 0);
}

/* What perf script prints; it must have nothing to complain of. */
static void script(const char *path, const char *fields, struct fr_buf *ret)
{
	_cleanup_buf_ struct fr_buf err = {0};
	char command[256];
	int status;

	snprintf(command, sizeof(command), "perf script -i %s -F %s", path, fields);
	status = synthetic_run(command, ret, &err);
	if (err.len)
		print_message("%s", (char *)err.data);
	assert_int_equal(status, 0);
	assert_int_equal(err.len, 0);
}

static unsigned count_lines(const struct fr_buf *b)
{
	unsigned n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

static void same(enum kind kind, unsigned fill, bool noise)
{
	static const char fields[] = "comm,pid,tid,cpu,time,event,ip,period";
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf state = {0}, expected = {0}, got = {0};
	struct fr_buf records[3] = {0};
	char plain[PATH_SIZE], other[PATH_SIZE];

	assert_true(synthetic_session(&s, false));
	synthetic_state(&state, SYNTHETIC_START_NS - 1);
	for (unsigned i = 0; i < 3; i++)
		synthetic_samples(
			&records[i], SYNTHETIC_START_NS + i * SAMPLES * 1000ULL, SAMPLES, fill, noise);
	make_file(&s, PLAIN, &state, records, 3, plain);
	make_file(&s, kind, &state, records, 3, other);
	script(plain, fields, &expected);
	script(other, fields, &got);
	assert_int_equal(count_lines(&expected), 3 * SAMPLES);
	assert_non_null(strstr((char *)expected.data, "synthetic  4711"));
	assert_int_equal(expected.len, got.len);
	assert_memory_equal(expected.data, got.data, got.len);
	for (unsigned i = 0; i < 3; i++)
		fr_buf_deinit(&records[i]);
	unlink(plain);
	unlink(other);
}

static void test_compressed_prints_the_same(void **state)
{
	same(COMPRESSED, 16, false);
	same(COMPRESSED, 40, true);
}

/* Blocks larger than a record: cuts without the end of a block. */
static void test_incompressible_prints_the_same(void **state)
{
	same(COMPRESSED, 1000, true);
}

static void test_pipe_prints_the_same(void **state)
{
	same(PIPE, 16, true);
}

/* Every size modulo 8, and sizes around the cut, give records that are multiples of 8 and open again. */
static void test_cuts(void **state)
{
	for (unsigned n = 1; n < 400; n += 3) {
		_cleanup_buf_ struct fr_buf records = {0}, b = {0}, zstd = {0};
		const struct fr_sink sink = {to_buf, &b};
		struct fr_file_writer w = {.sink = sink};
		_cleanup_free_ uint8_t *raw = NULL;
		size_t got;

		synthetic_samples(&records, SYNTHETIC_START_NS, n * 8, n, true);
		write_compressed(&w, &records);
		assert_int_equal(w.offset, b.len);
		for (size_t at = 0; at < b.len;) {
			struct perf_event_header h;

			memcpy(&h, b.data + at, sizeof(h));
			assert_true(fr_record_is_whole(b.data + at, b.len - at));
			assert_int_equal(h.size % 8, 0);
			if (h.type == FR_RECORD_COMPRESSED)
				assert_int_equal(
					fr_buf_append(&zstd, b.data + at + sizeof(h), h.size - sizeof(h)), 0);
			at += h.size;
		}
		if (zstd.len == 0) {
			assert_int_equal(b.len, records.len);
			assert_memory_equal(b.data, records.data, b.len);
			continue;
		}
		raw = malloc(records.len);
		got = ZSTD_decompress(raw, records.len, zstd.data, zstd.len);
		assert_int_equal(got, records.len);
		assert_memory_equal(raw, records.data, got);
	}
}

static void test_compressed_refuses_what_is_no_frame(void **state)
{
	static const uint8_t junk[64] = "this is not zstd";
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_file_writer w = {.sink = {to_buf, &b}};

	assert_int_equal(fr_file_write_frame(&w, junk, sizeof(junk)), -EBADMSG);
	assert_int_equal(b.len, 0);
}

static void test_header(void **state)
{
	static const char *const wanted[] = {"# hostname : ", "# os release : ",
		"# perf version : 6.1.flightrec-", "# arch : ", "# nrcpus online : ", "# nrcpus avail : ",
		"# total memory : ", "# cmdline : flightrecd -e cpu-clock", "# event : name = cpu-clock, ",
		"# event : name = bpf-output, ", "id = { 100, 101 }",
		"# clockid frequency: ", "# clockid: monotonic (1)",
		"# reference time: ", "# pmu mappings: ", "# compressed : Zstd, level = 1, ratio = 10",
		"# sibling sockets", "# time of first sample : 5.000000", "# sample duration :   "};
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf nothing = {0}, out = {0}, err = {0};
	char path[PATH_SIZE], command[128];

	assert_true(synthetic_session(&s, false));
	assert_int_equal(fr_feature_set_sample_time(&s, SYNTHETIC_START_NS, 2 * SYNTHETIC_START_NS), 0);
	make_file(&s, PLAIN, &nothing, &nothing, 0, path);
	snprintf(command, sizeof(command), "perf report --header-only -I -i %s", path);
	assert_int_equal(synthetic_run(command, &out, &err), 0);
	if (err.len)
		print_message("%s", (char *)err.data);
	assert_int_equal(err.len, 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(wanted); i++)
		if (!strstr((char *)out.data, wanted[i]))
			fail_msg("no \"%s\" in:\n%s", wanted[i], (char *)out.data);
	unlink(path);
}

static void test_time_of_day(void **state)
{
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf st = {0}, records = {0}, out = {0};
	char path[PATH_SIZE];

	assert_true(synthetic_session(&s, false));
	synthetic_state(&st, SYNTHETIC_START_NS - 1);
	synthetic_samples(&records, SYNTHETIC_START_NS + 1500000000, 1, 0, false);
	make_file(&s, PLAIN, &st, &records, 1, path);
	setenv("TZ", "UTC", 1);
	script(path, "tod,comm", &out);
	/* 1700000001.5 */
	assert_non_null(strstr((char *)out.data, "2023-11-14 22:13:21.500000"));
	unlink(path);
}

static void test_build_ids(void **state)
{
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf nothing = {0}, out = {0}, err = {0};
	uint8_t id[20];
	char path[PATH_SIZE], command[128];

	memset(id, 0xcd, sizeof(id));
	assert_true(synthetic_session(&s, false));
	assert_int_equal(
		fr_feature_add_build_id(&s, PERF_RECORD_MISC_USER, -1, id, 20, "/usr/lib/some/file"), 0);
	assert_int_equal(
		fr_feature_add_build_id(&s, PERF_RECORD_MISC_KERNEL, -1, id, 20, "[kernel.kallsyms]"), 0);
	make_file(&s, PLAIN, &nothing, &nothing, 0, path);
	snprintf(command, sizeof(command), "perf buildid-list -i %s", path);
	assert_int_equal(synthetic_run(command, &out, &err), 0);
	assert_non_null(
		strstr((char *)out.data, "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd /usr/lib/some/file\n"));
	assert_non_null(
		strstr((char *)out.data, "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd [kernel.kallsyms]\n"));
	unlink(path);
}

static void tracepoint(enum kind kind)
{
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf st = {0}, records = {0}, out = {0};
	char path[PATH_SIZE];

	if (!synthetic_session(&s, true)) {
		print_message("tracefs is not mounted: skipped\n");
		fr_session_deinit(&s); /* skip() does not return */
		skip();
	}
	synthetic_state(&st, SYNTHETIC_START_NS - 1);
	synthetic_switch(&records, SYNTHETIC_START_NS);
	make_file(&s, kind, &st, &records, 1, path);
	script(path, "trace:event,trace", &out);
	assert_non_null(strstr((char *)out.data, "sched:sched_switch: "));
	assert_non_null(strstr((char *)out.data, "prev_comm=before prev_pid=7"));
	assert_non_null(strstr((char *)out.data, "next_comm=after next_pid=9"));
	unlink(path);
}

static void test_tracepoints_decode(void **state)
{
	tracepoint(PLAIN);
	tracepoint(PIPE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_compressed_refuses_what_is_no_frame),
		cmocka_unit_test(test_compressed_prints_the_same),
		cmocka_unit_test(test_incompressible_prints_the_same),
		cmocka_unit_test(test_pipe_prints_the_same),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_time_of_day),
		cmocka_unit_test(test_build_ids),
		cmocka_unit_test(test_tracepoints_decode),
	};

	if (!synthetic_have_perf()) {
		print_message("perf is not installed: skipped\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
