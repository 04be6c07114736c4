// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Marks: what stock perf prints of them, that they stand where a streaming reader wants them, and that a
 * merge has each once.
 */

#include "dumping.h"
#include "synthetic.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "merge/merge.h"
#include "perfdata/features.h"
#include "perfdata/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* So many that the ring has some ten frames: each chunk is 1 MiB. */
#define RUN 500u
#define RUNS 200u
#define END_NS (SYNTHETIC_START_NS + (uint64_t)RUN * RUNS * 1000)

/* In and out of the window, on samples and between them, two at one time; not in the order of time. */
static const struct fr_trigger_sample marks[] = {
	{.time_ns = END_NS + 1234567, .pid = 99, .tid = 99, .cpu = -1, .trigger = "late"},
	{.time_ns = SYNTHETIC_START_NS + 50000500,
		.pid = SYNTHETIC_PID,
		.tid = SYNTHETIC_PID,
		.cpu = 0,
		.trigger = "run-queue-latency",
		.reason = "run-queue latency",
		.detail = "cpu 3",
		.unit = "ns",
		.value = 12300000,
		.threshold = 5000000,
		.value_text = "12.3ms",
		.threshold_text = "5ms"},
	{.time_ns = SYNTHETIC_START_NS - 1000000, .pid = SYNTHETIC_PID, .cpu = 0, .trigger = "early"},
	{.time_ns = SYNTHETIC_START_NS + 99999000, .trigger = "second", .reason = "two\n\tlines %s \x7f"},
	{.time_ns = SYNTHETIC_START_NS + 99999000, .pid = SYNTHETIC_PID, .cpu = 70000, .trigger = "third"},
	{.time_ns = SYNTHETIC_START_NS, .pid = SYNTHETIC_PID, .trigger = "first"},
};

/* As perf prints them, but for the comm, which is what the file has of that time. */
static const char *const expected[] = {
	"4711/4711 [000] 4.999000000: flightrec:trigger: early:",
	"4711/4711 [000] 5.000000000: flightrec:trigger: first:",
	("4711/4711 [000] 5.050000500: flightrec:trigger: run-queue-latency: run-queue latency (cpu 3) "
	 "value=12.3ms threshold=5ms"),
	"-1/-1 [000] 5.099999000: flightrec:trigger: second: two lines %s",
	"4711/4711 [000] 5.099999000: flightrec:trigger: third:",
	"99/99 [000] 5.101234567: flightrec:trigger: late:",
};

static int setup(void **state)
{
	struct dumping *f;

	if (dumping_setup(state, "/var/tmp", RUNS, RUN) < 0)
		return -1;
	f = *state;
	f->params.trigger_samples = marks;
	f->params.n_trigger_samples = FR_ARRAY_SIZE(marks);
	return 0;
}

static int setup_without(void **state)
{
	return dumping_setup(state, "/var/tmp", RUNS, RUN);
}

/* The file's own lines as perf script prints them; it has nothing to complain about. */
static void perf(
	const struct dumping *f, const char *verb, const char *name, const char *args, struct fr_buf *ret)
{
	_cleanup_buf_ struct fr_buf err = {0};
	char command[512];

	snprintf(command, sizeof(command), "TZ=UTC LC_ALL=C PERF_CONFIG=/dev/null perf %s -i %s/%s %s", verb,
		f->dir, name, args);
	assert_int_equal(synthetic_run(command, ret, &err), 0);
	if (err.len)
		fail_msg("%s: %.*s", command, (int)err.len, (char *)err.data);
	assert_int_equal(fr_buf_append(ret, "", 1), 0);
}

/* The next line of AT that tells of a mark, with single blanks, into LINE; false at the end. */
static bool next_mark(const char **at, char *line, size_t size)
{
	while (**at) {
		const char *from = *at, *end = from + strcspn(from, "\n");
		size_t n = 0;

		*at = *end ? end + 1 : end;
		for (const char *p = from; p < end && n < size - 1; p++)
			if (*p != ' ' || (n > 0 && line[n - 1] != ' '))
				line[n++] = *p;
		while (n > 0 && line[n - 1] == ' ')
			n--;
		line[n] = '\0';
		if (strstr(line, " flightrec:trigger: "))
			return true;
	}
	return false;
}

static void check_marks(const struct dumping *f, const char *name)
{
	_cleanup_buf_ struct fr_buf out = {0};
	const char *at;
	char line[4096];

	perf(f, "script", name, "--ns -F trace:pid,tid,cpu,time,event,trace", &out);
	at = (char *)out.data;
	for (size_t i = 0; i < FR_ARRAY_SIZE(expected); i++) {
		assert_true(next_mark(&at, line, sizeof(line)));
		assert_string_equal(line, expected[i]);
	}
	assert_false(next_mark(&at, line, sizeof(line)));
}

/* The samples of all events, in the order in which perf hands them out, are in the order of time: a reader
   that lets go at each round shows none too late. */
static void check_order(const struct dumping *f, const char *name, uint64_t samples)
{
	_cleanup_buf_ struct fr_buf out = {0};
	double last = 0, now;
	uint64_t n = 0;
	char *line, *end;

	perf(f, "script", name, "--ns -F time", &out);
	for (line = (char *)out.data; *line; line = strchr(end, '\n') + 1, n++) {
		now = strtod(line, &end);
		assert_true(now >= last);
		last = now;
	}
	assert_int_equal(n, samples);
}

/* The same by the rule itself: at a round, everything up to the newest time at the round before is let go of,
   and nothing that comes then may be older. RET_ROUNDS: in the data. */
static void check_rounds(const struct dumping *f, const char *name, unsigned *ret_rounds)
{
	uint64_t newest = 0, newest_before = 0, limit = 0, t;
	const struct perf_event_header *h;
	struct fr_reader *r;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(fr_reader_open(path, &r, NULL), 0);
	for (*ret_rounds = 0; fr_reader_next(r, &h, NULL) == 1;) {
		if (h->type == FR_RECORD_FINISHED_ROUND) {
			limit = newest_before;
			newest_before = newest;
			++*ret_rounds;
			continue;
		}
		t = fr_reader_time(r, h);
		if (t && t < limit)
			fail_msg("%s: a record of %" PRIu64 " comes after all up to %" PRIu64 " went", name,
				t, limit);
		newest = FR_MAX(newest, t);
	}
	assert_false(fr_reader_damage(r)->damaged);
	fr_reader_free(r);
}

static void check(struct dumping *f, uint64_t samples, struct fr_dump_result *ret)
{
	unsigned rounds;

	assert_int_equal(dumping_dump(f, ret), 0);
	assert_int_equal(ret->samples, samples);
	assert_int_equal(ret->trigger_samples, FR_ARRAY_SIZE(marks));
	check_marks(f, ret->name);
	check_order(f, ret->name, samples + FR_ARRAY_SIZE(marks));
	check_rounds(f, ret->name, &rounds);
	assert_true(f->params.strip_rounds ? rounds == 1 : rounds > 5);
}

/* Plain and compressed, with rounds and without. */
static void each_way(struct dumping *f, uint64_t samples)
{
	struct fr_dump_result r;

	for (int way = 0; way < 4; way++) {
		f->params.compress = way & 1;
		f->params.strip_rounds = way & 2;
		check(f, samples, &r);
		if (samples) {
			assert_true(r.from_ns >= f->params.from_ns && r.from_ns >= SYNTHETIC_START_NS);
			assert_true(r.to_ns <= f->params.to_ns && r.to_ns < END_NS);
		}
	}
}

static void test_whole(void **state)
{
	struct dumping *f = *state;

	_cleanup_buf_ struct fr_buf out = {0};
	struct fr_dump_result r;

	each_way(f, RUN * RUNS);
	assert_int_equal(dumping_dump(f, &r), 0);
	perf(f, "script", r.name, "--ns -F comm,time,event", &out);
	assert_non_null(strstr((char *)out.data, "synthetic     5.050000500: flightrec:trigger:"));
}

/* A window takes nothing of the marks. */
static void test_windows(void **state)
{
	struct dumping *f = *state;

	f->params.from_ns = SYNTHETIC_START_NS + 30000 * 1000;
	f->params.to_ns = SYNTHETIC_START_NS + 77777 * 1000;
	each_way(f, 77777 - 30000 + 1);
	f->params.from_ns = SYNTHETIC_START_NS + 1;
	f->params.to_ns = SYNTHETIC_START_NS + 2;
	for (int compress = 0; compress < 2; compress++) {
		struct fr_dump_result r;

		f->params.compress = compress;
		assert_int_equal(dumping_dump(f, &r), 0);
		assert_int_equal(r.samples, 0);
		check_marks(f, r.name);
	}
}

/* Reports begin with the events that were asked for, and fields that all samples had, all have still. */
static void test_reports(void **state)
{
	struct dumping *f = *state;
	struct fr_dump_result r;
	_cleanup_buf_ struct fr_buf report = {0}, list = {0}, period = {0}, json = {0};
	const char *clock, *raw, *mark;
	char name[128];

	assert_int_equal(dumping_dump(f, &r), 0);
	perf(f, "report", r.name, "--stdio 2>/dev/null", &report);
	clock = strstr((char *)report.data, "of event 'cpu-clock'");
	raw = strstr((char *)report.data, "of event 'bpf-output'");
	mark = strstr((char *)report.data, "# Samples: 6  of event 'flightrec:trigger'");
	assert_true(clock && raw && mark && clock < raw && raw < mark);
	assert_null(strstr((char *)report.data, "Children")); /* there are no stacks */
	perf(f, "evlist", r.name, "", &list);
	assert_non_null(strstr((char *)list.data, "cpu-clock\nbpf-output\nflightrec:trigger\n"));
	perf(f, "script", r.name, "-F comm,period,ip,sym", &period);

	snprintf(name, sizeof(name), "%s.json", r.name);
	assert_int_equal(fr_read_file(f->dirfd, name, 1u << 20, &json), 0);
	assert_non_null(strstr((char *)json.data, "\"samples\":\t100000"));
	assert_non_null(strstr((char *)json.data, "\"marks\":\t6"));
}

/* An event with stacks beside it: a mark has an empty one, and not that of the sample before. */
static void test_beside_stacks(void **state)
{
	struct dumping *f = *state;
	struct fr_event_desc *mark;
	struct fr_dump_result r;
	struct fr_reader *reader;
	_cleanup_buf_ struct fr_buf out = {0};
	char path[256];

	f->session.events[1].attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	f->params.to_ns = 1; /* the samples of the ring have no stacks */
	assert_int_equal(fr_feature_set_event_desc(&f->session), 0);
	assert_int_equal(dumping_dump(f, &r), 0);
	check_marks(f, r.name);
	snprintf(path, sizeof(path), "%s/%s", f->dir, r.name);
	assert_int_equal(fr_reader_open(path, &reader, NULL), 0);
	mark = &fr_reader_session(reader)->events[2];
	assert_true(mark->attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	fr_reader_free(reader);
	perf(f, "report", r.name, "--stdio -g 2>/dev/null", &out);
	assert_non_null(strstr((char *)out.data, "# Samples: 6  of event 'flightrec:trigger'"));
}

/* Without a cause the file is as it always was. */
static void test_none(void **state)
{
	struct dumping *f = *state;
	struct fr_dump_result r;
	_cleanup_buf_ struct fr_buf list = {0};

	assert_int_equal(dumping_dump(f, &r), 0);
	assert_int_equal(r.trigger_samples, 0);
	perf(f, "evlist", r.name, "", &list);
	assert_string_equal((char *)list.data, "cpu-clock\nbpf-output\n");
}

/* Texts of any length, from anybody. */
static void test_long_texts(void **state)
{
	struct dumping *f = *state;
	char text[70000];
	struct fr_trigger_sample m = {.time_ns = SYNTHETIC_START_NS,
		.trigger = text,
		.reason = text,
		.detail = text,
		.unit = text,
		.value_text = text,
		.threshold_text = text,
		.value = UINT64_MAX,
		.threshold = UINT64_MAX};
	struct fr_dump_result r;
	_cleanup_buf_ struct fr_buf out = {0};
	char line[4096];
	const char *at;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	f->params.trigger_samples = &m;
	f->params.n_trigger_samples = 1;
	f->params.to_ns = 1;
	assert_int_equal(dumping_dump(f, &r), 0);
	perf(f, "script", r.name, "-F trace:pid,event,trace", &out);
	at = (char *)out.data;
	assert_true(next_mark(&at, line, sizeof(line)));
	assert_in_range(strlen(line), 5 * 255, 6 * 256);
	assert_false(next_mark(&at, line, sizeof(line)));
}

/* Two dumps with overlapping windows, of which one has what both have, and one more. */
static void test_merged(void **state)
{
	struct dumping *f = *state;
	struct fr_dump_result r[2];
	char paths[2][1024], output[256];
	const char *files[] = {paths[0], paths[1]};
	const struct fr_merge_options options = {
		.files = files, .n_files = 2, .output = output, .keep = true};
	struct fr_merge_report report;
	struct fr_diag d = {0};

	for (int i = 0; i < 2; i++) {
		f->params.n_trigger_samples = i ? 3 : FR_ARRAY_SIZE(marks);
		f->params.compress = i;
		assert_int_equal(dumping_dump(f, &r[i]), 0);
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", f->dir, r[i].name);
	}
	snprintf(output, sizeof(output), "%s/merged", f->dir);
	if (fr_merge(&options, &report, &d) != 0)
		fail_msg("%s", d.code ? d.what : "an input is damaged");
	assert_int_equal(report.samples, RUN * RUNS + FR_ARRAY_SIZE(marks));
	assert_int_equal(report.late, 0);
	check_marks(f, "merged");
	check_order(f, "merged", RUN * RUNS + FR_ARRAY_SIZE(marks));
}

/* One recorder with stacks, one without, and their dumps in one merge. */
static void test_merged_of_two_recorders(void **state)
{
	struct dumping *f = *state;
	struct fr_dump_result r[2];
	char paths[2][640], output[256];
	const char *files[] = {paths[0], paths[1]};
	const struct fr_merge_options options = {
		.files = files, .n_files = 2, .output = output, .keep = true};
	struct fr_merge_report report;
	struct fr_diag d = {0};

	f->params.to_ns = 1;
	for (int i = 0; i < 2; i++) {
		f->params.trigger_samples = marks + 3 * i;
		f->params.n_trigger_samples = 3;
		assert_int_equal(dumping_dump(f, &r[i]), 0);
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", f->dir, r[i].name);
		f->session.events[1].attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
		f->session.events[1].ids[0] += 100;
		f->session.events[1].ids[1] += 100;
		assert_int_equal(fr_feature_set_event_desc(&f->session), 0);
	}
	snprintf(output, sizeof(output), "%s/merged", f->dir);
	if (fr_merge(&options, &report, &d) != 0)
		fail_msg("%s", d.code ? d.what : "an input is damaged");
	check_marks(f, "merged");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, dumping_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole),
		TEST(test_windows),
		TEST(test_reports),
		TEST(test_beside_stacks),
		cmocka_unit_test_setup_teardown(test_none, setup_without, dumping_teardown),
		TEST(test_long_texts),
		TEST(test_merged),
		TEST(test_merged_of_two_recorders),
	};

	if (!synthetic_have_perf()) {
		print_message("perf is not installed: skipped\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
