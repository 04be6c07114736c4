// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the writers of perf.data: stock perf reads their files. */

#include "../unit.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/writer.h"
#include "synth.h"
#include "synthetic.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

#define SAMPLES 12000u
#define FRAME_BYTES (300u << 10)

enum kind { PLAIN, COMPRESSED, PIPE };

static char path[] = "/tmp/flightrec-writer.XXXXXX";

static int setup(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	return unlink(path);
}

GROUP_FIXTURE(setup, teardown)

/* Writes a file of KIND: COMM and MMAP2 of the process, a round, then RECORDS. */
static void write_file(const struct fr_session *s, enum kind kind, const struct fr_buf *records)
{
	_cleanup_buf_ struct fr_buf b = {0};
	size_t plain;

	synthetic_state(&b, SYNTHETIC_START_NS - 1);
	synth_round(&b);
	plain = b.len;
	assert_int_equal(fr_buf_append(&b, records->data, records->len), 0);
	if (kind == PIPE)
		synth_write_pipe(path, s, &b);
	else
		synth_write_file(path, s, &b, plain, kind == COMPRESSED ? FRAME_BYTES : 0);
}

/* Runs perf with ARGUMENTS on the file. perf must print no warning. RET gets its output. */
static void run_perf(const char *arguments, struct fr_buf *ret)
{
	_cleanup_buf_ struct fr_buf err = {0};
	char command[256];
	int status;

	ret->len = 0;
	snprintf(command, sizeof(command), "perf %s -i %s", arguments, path);
	status = synthetic_run(command, ret, &err);
	if (WEXITSTATUS(status) == 127)
		unit_skip("perf is not installed");
	if (err.len)
		print_message("%s", (char *)err.data);
	assert_int_equal(status, 0);
	assert_int_equal(err.len, 0);
}

static void expect_text(const struct fr_buf *out, const char *text)
{
	if (!strstr((char *)out->data, text))
		fail_msg("no \"%s\" in:\n%s", text, (char *)out->data);
}

TEST(perf_prints_the_same_for_each_kind_of_file)
{
	static const struct {
		enum kind kind;
		unsigned fill;
		bool noise;
	} files[] = {
		{COMPRESSED, 16, false},
		{COMPRESSED, 40, true},
		{COMPRESSED, 1000, true}, /* some pieces of a frame end within a zstd block */
		{PIPE, 16, true},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(files); i++) {
		static const char script[] = "script -F comm,pid,tid,cpu,time,event,ip,period";
		_cleanup_session_ struct fr_session s = {0};
		_cleanup_buf_ struct fr_buf records = {0}, expected = {0}, got = {0};
		unsigned lines = 0;

		assert_true(synthetic_session(&s, false));
		synthetic_samples(&records, SYNTHETIC_START_NS, SAMPLES, files[i].fill, files[i].noise);
		write_file(&s, PLAIN, &records);
		run_perf(script, &expected);
		write_file(&s, files[i].kind, &records);
		run_perf(script, &got);
		for (const char *p = (char *)expected.data; (p = strchr(p, '\n')); p++)
			lines++;
		assert_int_equal(lines, SAMPLES);
		expect_text(&expected, "synthetic  4711");
		assert_int_equal(expected.len, got.len);
		assert_memory_equal(expected.data, got.data, got.len);
	}
}

static int append(void *ctx, const void *data, size_t len)
{
	return fr_buf_append(ctx, data, len);
}

/* A zstd frame is written as one or more records, its pieces. The frames have all sizes modulo 8, and sizes
   near the largest size of a piece. Bytes that are not a zstd frame are refused. */
TEST(pieces_are_whole_records_and_join_to_the_frame)
{
	struct fr_file_writer none = {.sink = {append, NULL}};

	assert_int_equal(fr_file_write_frame(&none, "this is not zstd: a frame would begin with a magic", 50),
		-EBADMSG);
	for (unsigned n = 1; n < 400; n += 3) {
		_cleanup_buf_ struct fr_buf records = {0}, b = {0}, zstd = {0};
		struct fr_file_writer w = {.sink = {append, &b}};
		_cleanup_free_ uint8_t *raw = NULL, *frame = NULL;
		size_t len;

		synthetic_samples(&records, SYNTHETIC_START_NS, n * 8, n, true);
		raw = malloc(records.len);
		frame = malloc(ZSTD_compressBound(records.len));
		len = ZSTD_compress(frame, ZSTD_compressBound(records.len), records.data, records.len, 1);
		assert_int_equal(fr_file_write_frame(&w, frame, len), 0);
		assert_int_equal(w.offset, b.len);
		for (size_t at = 0; at < b.len;) {
			const struct perf_event_header *h = (const void *)(b.data + at);

			assert_true(fr_record_is_whole(h, b.len - at));
			assert_int_equal(h->size % 8, 0);
			if (h->type == FR_RECORD_COMPRESSED)
				assert_int_equal(fr_buf_append(&zstd, h + 1, h->size - sizeof(*h)), 0);
			at += h->size;
		}
		if (zstd.len == 0) { /* the writer has written the frame decompressed */
			assert_int_equal(b.len, records.len);
			assert_memory_equal(b.data, records.data, b.len);
			continue;
		}
		assert_int_equal(ZSTD_decompress(raw, records.len, zstd.data, zstd.len), records.len);
		assert_memory_equal(raw, records.data, records.len);
	}
}

TEST(perf_prints_the_head)
{
	static const char *const wanted[] = {"# hostname : ", "# os release : ",
		"# perf version : 6.1.flightrec-", "# arch : ", "# nrcpus online : ", "# nrcpus avail : ",
		"# total memory : ", "# cmdline : flightrecd -e cpu-clock", "# event : name = cpu-clock, ",
		"# event : name = bpf-output, ", "id = { 100, 101 }",
		"# clockid frequency: ", "# clockid: monotonic (1)",
		"# reference time: ", "# pmu mappings: ", "# compressed : Zstd, level = 1, ratio = 3",
		"# sibling sockets", "# time of first sample : 5.000000", "# sample duration :   "};
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf records = {0}, out = {0};
	uint8_t id[20];

	memset(id, 0xcd, sizeof(id));
	assert_true(synthetic_session(&s, false));
	assert_int_equal(fr_feature_set_sample_time(&s, SYNTHETIC_START_NS, 2 * SYNTHETIC_START_NS), 0);
	assert_int_equal(
		fr_feature_add_build_id(&s, PERF_RECORD_MISC_USER, -1, id, 20, "/usr/lib/some/file"), 0);
	assert_int_equal(
		fr_feature_add_build_id(&s, PERF_RECORD_MISC_KERNEL, -1, id, 20, "[kernel.kallsyms]"), 0);
	synthetic_samples(&records, SYNTHETIC_START_NS + 1500000000, 1, 0, false);
	write_file(&s, COMPRESSED, &records);
	run_perf("report --header-only -I", &out);
	for (size_t i = 0; i < FR_ARRAY_SIZE(wanted); i++)
		expect_text(&out, wanted[i]);
	run_perf("buildid-list", &out);
	expect_text(&out, "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd /usr/lib/some/file\n");
	expect_text(&out, "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd [kernel.kallsyms]\n");
	setenv("TZ", "UTC", 1);
	run_perf("script -F tod,comm", &out);
	expect_text(&out, "2023-11-14 22:13:21.500000"); /* the time 1700000001.5 */
}

TEST(perf_decodes_tracepoints)
{
	for (enum kind kind = PLAIN; kind <= PIPE; kind++) {
		_cleanup_session_ struct fr_session s = {0};
		_cleanup_buf_ struct fr_buf records = {0}, out = {0};

		if (!synthetic_session(&s, true)) {
			fr_session_deinit(&s); /* freed here, because unit_skip() does not return */
			unit_skip("tracefs is not mounted");
		}
		synthetic_switch(&records, SYNTHETIC_START_NS);
		write_file(&s, kind, &records);
		run_perf("script -F trace:event,trace", &out);
		expect_text(&out, "sched:sched_switch: ");
		expect_text(&out, "prev_comm=before prev_pid=7");
		expect_text(&out, "next_comm=after next_pid=9");
	}
}
