// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Tests of trigger samples (samples that describe the causes of a dump): stock perf prints them, a streaming
 * reader gets them early enough, and a merged file has each of them only once.
 */

#include "dumping.h"
#include "synthetic.h"
#include "merge/merge.h"
#include "perfdata/reader.h"

#include <inttypes.h>

/* These samples fill about ten frames of the ring: a chunk has 1 MiB. */
#define RUN 500u
#define RUNS 200u
#define END_NS (SYNTHETIC_START_NS + (uint64_t)RUN * RUNS * 1000)

/* Causes inside and outside of the window, at the time of a sample and between two samples. Two causes have
   the same time. The array is not ordered by time. */
static const struct fr_trigger_sample causes[] = {
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

/* The lines that perf must print, without the comm. */
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

	if (dumping_setup(state, "/var/tmp", RUNS, RUN, false) < 0)
		return -1;
	f = *state;
	f->params.trigger_samples = causes;
	f->params.n_trigger_samples = FR_ARRAY_SIZE(causes);
	return 0;
}

FIXTURE(setup, dumping_teardown)

/* Find the next line of AT that shows a trigger sample, and put it into LINE, without its comm and with
   single blanks. Returns false if no more line shows a trigger sample. */
static bool next_trigger_sample(char **at, char *line, size_t size)
{
	char *text;

	while ((text = strsep(at, "\n"))) {
		size_t n = 0;

		line[0] = '\0';
		for (char *word; (word = strsep(&text, " ")) && n < size;)
			if (*word)
				n += (size_t)snprintf(line + n, size - n, "%s%s", n ? " " : "", word);
		if (strstr(line, " flightrec:trigger: "))
			return true;
	}
	return false;
}

static void check_trigger_samples(const struct dumping *f, const char *name)
{
	_cleanup_buf_ struct fr_buf out = {0};
	char line[4096], *at;

	dumping_perf(f, "script", name, "--ns -F trace:pid,tid,cpu,time,event,trace", &out);
	at = (char *)out.data;
	for (size_t i = 0; i < FR_ARRAY_SIZE(expected); i++) {
		assert_true(next_trigger_sample(&at, line, sizeof(line)));
		assert_string_equal(line, expected[i]);
	}
	assert_false(next_trigger_sample(&at, line, sizeof(line)));
}

/* Check the order of records. At a FINISHED_ROUND, a reader delivers all records up to the newest time that
   it had at the previous FINISHED_ROUND. So no later record is allowed to be older than this time. Returns
   the number of rounds. */
static unsigned check_rounds(const struct dumping *f, const char *name)
{
	uint64_t newest = 0, newest_before = 0, released = 0, t;
	const struct perf_event_header *h;
	struct fr_reader *r;
	unsigned rounds = 0;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(fr_reader_open(path, &r, NULL), 0);
	while (fr_reader_next(r, &h, NULL) == 1) {
		if (h->type == FR_RECORD_FINISHED_ROUND) {
			released = newest_before;
			newest_before = newest;
			rounds++;
			continue;
		}
		t = fr_reader_time(r, h);
		if (t && t < released)
			fail_msg("%s: a record of %" PRIu64 " follows the release of %" PRIu64, name, t,
				released);
		newest = FR_MAX(newest, t);
	}
	assert_false(fr_reader_damage(r)->damaged);
	fr_reader_free(r);
	return rounds;
}

/* Check dumps with and without compression, and with and without rounds. */
static void check_each_encoding(struct dumping *f, uint64_t samples)
{
	struct fr_dump_result r;

	for (int encoding = 0; encoding < 4; encoding++) {
		f->params.compress = encoding & 1;
		f->params.no_rounds = encoding & 2;
		assert_int_equal(dumping_dump(f, &r, NULL), 0);
		assert_int_equal(r.samples, samples);
		assert_int_equal(r.trigger_samples, FR_ARRAY_SIZE(causes));
		assert_true(r.from_ns >= f->params.from_ns && r.from_ns >= SYNTHETIC_START_NS);
		assert_true(r.to_ns <= f->params.to_ns && r.to_ns < END_NS);
		assert_true(check_rounds(f, r.name) > 1 || f->params.no_rounds);
		check_trigger_samples(f, r.name);
	}
}

TEST(each_cause_is_a_sample_in_its_place)
{
	struct dumping *f = *state;
	struct fr_dump_result r;
	_cleanup_buf_ struct fr_buf out = {0};

	check_each_encoding(f, RUN * RUNS);
	assert_int_equal(dumping_dump(f, &r, NULL), 0);
	dumping_perf(f, "script", r.name, "--ns -F comm,time,event", &out);
	assert_non_null(strstr((char *)out.data, "synthetic     5.050000500: flightrec:trigger:"));
}

TEST(a_window_leaves_no_cause_out)
{
	struct dumping *f = *state;

	f->params.from_ns = SYNTHETIC_START_NS + 30000 * 1000;
	f->params.to_ns = SYNTHETIC_START_NS + 77777 * 1000;
	check_each_encoding(f, 77777 - 30000 + 1);
	f->params.from_ns = SYNTHETIC_START_NS + 1;
	f->params.to_ns = SYNTHETIC_START_NS + 2;
	for (int compress = 0; compress < 2; compress++) {
		struct fr_dump_result r;

		f->params.compress = compress;
		assert_int_equal(dumping_dump(f, &r, NULL), 0);
		assert_int_equal(r.samples, 0);
		check_trigger_samples(f, r.name);
	}
}

TEST(a_dump_without_a_cause_lacks_the_event)
{
	struct dumping *f = *state;
	struct fr_dump_result r;
	_cleanup_buf_ struct fr_buf list = {0};

	f->params.n_trigger_samples = 0;
	assert_int_equal(dumping_dump(f, &r, NULL), 0);
	assert_int_equal(r.trigger_samples, 0);
	dumping_perf(f, "evlist", r.name, "", &list);
	assert_string_equal((char *)list.data, "cpu-clock\nbpf-output\n");
}

TEST(a_long_text_is_truncated)
{
	struct dumping *f = *state;
	char text[70000] = "";
	const struct fr_trigger_sample sample = {.time_ns = SYNTHETIC_START_NS,
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
	char line[4096], *at;

	memset(text, 'x', sizeof(text) - 1);
	f->params.trigger_samples = &sample;
	f->params.n_trigger_samples = 1;
	f->params.to_ns = 1;
	assert_int_equal(dumping_dump(f, &r, NULL), 0);
	dumping_perf(f, "script", r.name, "-F trace:pid,event,trace", &out);
	at = (char *)out.data;
	assert_true(next_trigger_sample(&at, line, sizeof(line)));
	assert_in_range(strlen(line), 5 * 255, 6 * 256);
	assert_false(next_trigger_sample(&at, line, sizeof(line)));
}

/* Merge two dumps of the directory into the file "merged". Returns the number of samples in that file. */
static uint64_t merge(const struct dumping *f, const struct fr_dump_result r[2])
{
	char paths[2][1024], output[256];
	const char *files[] = {paths[0], paths[1]};
	const struct fr_merge_options options = {
		.files = files, .n_files = 2, .output = output, .keep = true};
	struct fr_merge_report report;
	struct fr_diag d = {0};

	for (int i = 0; i < 2; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", f->dir, r[i].name);
	snprintf(output, sizeof(output), "%s/merged", f->dir);
	if (fr_merge(&options, &report, &d) != 0)
		fail_msg("%s", d.code ? d.what : "an input is damaged");
	assert_int_equal(report.late, 0);
	return report.samples;
}

/* Both dumps have the same window. The second dump has only the first three causes. */
TEST(a_merge_has_each_cause_once)
{
	struct dumping *f = *state;
	struct fr_dump_result r[2];

	for (int i = 0; i < 2; i++) {
		f->params.n_trigger_samples = i ? 3 : FR_ARRAY_SIZE(causes);
		f->params.compress = i;
		assert_int_equal(dumping_dump(f, &r[i], NULL), 0);
	}
	assert_int_equal(merge(f, r), RUN * RUNS + FR_ARRAY_SIZE(causes));
	check_trigger_samples(f, "merged");
}
