// SPDX-License-Identifier: GPL-2.0-or-later

/* From the causes of a job, as JSON, to the marks of its dump. */

#include "dumper/trigger_samples.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* Parsed JSON has doubles where the recorder's own has raw text: a time is exact to the digit in the latter.
 */
static void add_raw(cJSON *cause, const char *name, const char *text)
{
	assert_non_null(cJSON_AddRawToObject(cause, name, text));
}

static cJSON *meta_of(const char *causes, cJSON **ret_first)
{
	cJSON *meta = cJSON_CreateObject(), *list = cJSON_Parse(causes);

	assert_non_null(list);
	cJSON_AddItemToObject(meta, "causes", list);
	*ret_first = cJSON_GetArrayItem(list, 0);
	return meta;
}

static void test_probe(void **state)
{
	cJSON *cause,
		*meta = meta_of(
			"[{\"trigger\": \"run-queue-latency\", \"source\": \"bpf\", \"reason\": \"run-queue "
			"latency\", "
			"\"detail\": \"cpu 3\", \"unit\": \"ns\", \"pid\": 1234, \"tid\": 1240, \"cpu\": 3}]",
			&cause);
	struct fr_dumper_marks m = {0};

	add_raw(cause, "monotonic_ns", "18446744073709551615");
	add_raw(cause, "value", "12300000");
	add_raw(cause, "threshold", "5000000");
	assert_int_equal(fr_dumper_marks_of(meta, &m), 0);
	assert_int_equal(m.n, 1);
	assert_true(m.v[0].time_ns == UINT64_MAX);
	assert_int_equal(m.v[0].pid, 1234);
	assert_int_equal(m.v[0].tid, 1240);
	assert_int_equal(m.v[0].cpu, 3);
	assert_int_equal(m.v[0].value, 12300000);
	assert_int_equal(m.v[0].threshold, 5000000);
	assert_string_equal(m.v[0].trigger, "run-queue-latency");
	assert_string_equal(m.v[0].reason, "run-queue latency");
	assert_string_equal(m.v[0].detail, "cpu 3");
	assert_string_equal(m.v[0].unit, "ns");
	assert_string_equal(m.v[0].value_text, "12.3ms");
	assert_string_equal(m.v[0].threshold_text, "5ms");
	fr_dumper_marks_deinit(&m);
	cJSON_Delete(meta);
}

static void test_units(void **state)
{
	static const char *const causes =
		"[{\"monotonic_ns\": 1, \"value\": 12, \"threshold\": 10, \"unit\": \"percent\"},"
		"{\"monotonic_ns\": 2, \"value\": 67108864, \"threshold\": 1024, \"unit\": \"bytes\"},"
		"{\"monotonic_ns\": 3, \"value\": 7, \"threshold\": 5, \"unit\": \"count\"},"
		"{\"monotonic_ns\": 4, \"value\": 8, \"unit\": \"\"},"
		"{\"monotonic_ns\": 5, \"value\": 0, \"threshold\": 0},"
		"{\"monotonic_ns\": 6, \"value\": 9, \"threshold\": 1, \"unit\": \"furlong\"}]";
	static const char *const texts[][2] = {
		{"12%", "10%"}, {"64.0M", "1.0K"}, {"7", "5"}, {"8", NULL}, {NULL, NULL}, {"9", "1"}};
	struct fr_dumper_marks m = {0};
	cJSON *cause, *meta = meta_of(causes, &cause);

	assert_int_equal(fr_dumper_marks_of(meta, &m), 0);
	assert_int_equal(m.n, 6);
	for (size_t i = 0; i < m.n; i++) {
		const char *const got[2] = {m.v[i].value_text, m.v[i].threshold_text};

		assert_int_equal(m.v[i].time_ns, i + 1);
		for (int k = 0; k < 2; k++) {
			assert_true(!got[k] == !texts[i][k]);
			if (got[k])
				assert_string_equal(got[k], texts[i][k]);
		}
	}
	fr_dumper_marks_deinit(&m);
	cJSON_Delete(meta);
}

/* What has no time cannot stand anywhere; what is missing, or not of its type, is nothing. */
static void test_incomplete(void **state)
{
	static const char *const causes =
		"[{\"trigger\": \"no time\"}, 5, null, {\"monotonic_ns\": -1}, {\"monotonic_ns\": \"1\"},"
		"{\"monotonic_ns\": 7, \"trigger\": 8, \"pid\": \"x\", \"cpu\": -1, \"tid\": 1e300, "
		"\"value\": []}]";
	struct fr_dumper_marks m = {0};
	cJSON *cause, *meta = meta_of(causes, &cause), *none = cJSON_CreateObject();

	assert_int_equal(fr_dumper_marks_of(meta, &m), 0);
	assert_int_equal(m.n, 1);
	assert_int_equal(m.v[0].time_ns, 7);
	assert_string_equal(m.v[0].trigger, "");
	assert_int_equal(m.v[0].pid, 0);
	assert_int_equal(m.v[0].tid, 0);
	assert_null(m.v[0].value_text);
	fr_dumper_marks_deinit(&m);
	assert_int_equal(fr_dumper_marks_of(none, &m), 0);
	assert_int_equal(m.n, 0);
	assert_int_equal(fr_dumper_marks_of(NULL, &m), 0);
	cJSON_Delete(none);
	cJSON_Delete(meta);
}

/* A step in the window is a mark, one from before it is not. */
static void test_frequency_steps(void **state)
{
	struct fr_dumper_marks m = {0};
	cJSON *cause, *meta = meta_of("[{\"monotonic_ns\": 7, \"trigger\": \"control\"}]", &cause);

	cJSON_AddItemToObject(meta, "frequency_steps",
		cJSON_Parse("[{\"monotonic_ns\": 1, \"trigger\": \"cpu-budget\", \"before_window\": true},"
			    "{\"monotonic_ns\": 5, \"trigger\": \"cpu-budget\", \"reason\": \"99 Hz to 49 "
			    "Hz\"}]"));
	assert_int_equal(fr_dumper_marks_of(meta, &m), 0);
	assert_int_equal(m.n, 2);
	assert_int_equal(m.v[0].time_ns, 7);
	assert_int_equal(m.v[1].time_ns, 5);
	assert_string_equal(m.v[1].trigger, "cpu-budget");
	assert_string_equal(m.v[1].reason, "99 Hz to 49 Hz");
	fr_dumper_marks_deinit(&m);
	cJSON_Delete(meta);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_incomplete),
		cmocka_unit_test(test_frequency_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
