// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of making the trigger samples of a job (a dump that waits or is being written) from its JSON. */

#include "../unit.h"
#include "dumper/job_samples.h"

#include <stdio.h>
#include <string.h>

/* Make the trigger samples of the JSON TEXT. TEXT has apostrophes in the place of quotation marks. The
   samples borrow strings from *RET_META, which the caller deletes after them. */
static struct fr_job_samples make_samples(const char *text, cJSON **ret_meta)
{
	struct fr_job_samples s;
	char json[1024];

	assert_true((size_t)snprintf(json, sizeof(json), "%s", text) < sizeof(json));
	for (char *p = json; (p = strchr(p, '\''));)
		*p = '"';
	*ret_meta = cJSON_Parse(json);
	assert_non_null(*ret_meta);
	assert_int_equal(fr_job_samples_init(&s, *ret_meta), 0);
	return s;
}

TEST(a_cause_becomes_a_sample)
{
	cJSON *meta = cJSON_Parse("{\"causes\": []}"), *cause = cJSON_CreateObject();
	struct fr_job_samples s;

	/* Numbers are raw text, as the recorder writes them, because this is exact to the last digit. */
	cJSON_AddRawToObject(cause, "monotonic_ns", "18446744073709551615");
	cJSON_AddRawToObject(cause, "value", "12300000");
	cJSON_AddRawToObject(cause, "threshold", "5000000");
	cJSON_AddNumberToObject(cause, "pid", 1234);
	cJSON_AddNumberToObject(cause, "tid", 1240);
	cJSON_AddNumberToObject(cause, "cpu", 3);
	cJSON_AddStringToObject(cause, "trigger", "run-queue-latency");
	cJSON_AddStringToObject(cause, "reason", "run-queue latency");
	cJSON_AddStringToObject(cause, "detail", "cpu 3");
	cJSON_AddStringToObject(cause, "unit", "ns");
	cJSON_AddItemToArray(cJSON_GetObjectItem(meta, "causes"), cause);
	assert_int_equal(fr_job_samples_init(&s, meta), 0);
	assert_int_equal(s.n, 1);
	assert_true(s.v[0].time_ns == UINT64_MAX);
	assert_int_equal(s.v[0].pid, 1234);
	assert_int_equal(s.v[0].tid, 1240);
	assert_int_equal(s.v[0].cpu, 3);
	assert_int_equal(s.v[0].value, 12300000);
	assert_int_equal(s.v[0].threshold, 5000000);
	assert_string_equal(s.v[0].trigger, "run-queue-latency");
	assert_string_equal(s.v[0].reason, "run-queue latency");
	assert_string_equal(s.v[0].detail, "cpu 3");
	assert_string_equal(s.v[0].unit, "ns");
	assert_string_equal(s.v[0].value_text, "12.3ms");
	assert_string_equal(s.v[0].threshold_text, "5ms");
	fr_job_samples_deinit(&s);
	cJSON_Delete(meta);
}

TEST(values_have_their_units)
{
	static const char *const texts[][2] = {
		{"12%", "10%"}, {"64.0M", "1.0K"}, {"7", "5"}, {"8", NULL}, {NULL, NULL}, {"9", "1"}};
	cJSON *meta;
	struct fr_job_samples s = make_samples(
		"{'causes': [{'monotonic_ns': 1, 'value': 12, 'threshold': 10, 'unit': 'percent'},"
		"{'monotonic_ns': 2, 'value': 67108864, 'threshold': 1024, 'unit': 'bytes'},"
		"{'monotonic_ns': 3, 'value': 7, 'threshold': 5, 'unit': 'count'},"
		"{'monotonic_ns': 4, 'value': 8, 'unit': ''},"
		"{'monotonic_ns': 5, 'value': 0, 'threshold': 0},"
		"{'monotonic_ns': 6, 'value': 9, 'threshold': 1, 'unit': 'furlong'}]}",
		&meta);

	assert_int_equal(s.n, 6);
	for (size_t i = 0; i < s.n; i++) {
		const char *const got[2] = {s.v[i].value_text, s.v[i].threshold_text};

		assert_int_equal(s.v[i].time_ns, i + 1);
		for (int k = 0; k < 2; k++) {
			assert_true(!got[k] == !texts[i][k]);
			if (got[k])
				assert_string_equal(got[k], texts[i][k]);
		}
	}
	fr_job_samples_deinit(&s);
	cJSON_Delete(meta);
}

/* A cause without a time makes no sample. A member that is missing or of another type counts as empty. */
TEST(incomplete_causes)
{
	cJSON *meta;
	struct fr_job_samples s = make_samples(
		"{'causes': [{'trigger': 'no time'}, 5, null, {'monotonic_ns': -1}, {'monotonic_ns': '1'},"
		"{'monotonic_ns': 7, 'trigger': 8, 'pid': 'x', 'cpu': -1, 'tid': 1e300, 'value': []}]}",
		&meta);

	assert_int_equal(s.n, 1);
	assert_int_equal(s.v[0].time_ns, 7);
	assert_string_equal(s.v[0].trigger, "");
	assert_int_equal(s.v[0].pid, 0);
	assert_null(s.v[0].value_text);
	fr_job_samples_deinit(&s);
	cJSON_Delete(meta);
	assert_int_equal(fr_job_samples_init(&s, NULL), 0);
	assert_int_equal(s.n, 0);
	fr_job_samples_deinit(&s);
}

TEST(a_frequency_step_in_the_window_becomes_a_sample)
{
	cJSON *meta;
	struct fr_job_samples s =
		make_samples("{'causes': [{'monotonic_ns': 7, 'trigger': 'control'}], 'frequency_steps': ["
			     "{'monotonic_ns': 1, 'trigger': 'cpu-budget', 'before_window': true},"
			     "{'monotonic_ns': 5, 'trigger': 'cpu-budget', 'reason': '99 Hz to 49 Hz'}]}",
			&meta);

	assert_int_equal(s.n, 2);
	assert_int_equal(s.v[0].time_ns, 7);
	assert_int_equal(s.v[1].time_ns, 5);
	assert_string_equal(s.v[1].trigger, "cpu-budget");
	assert_string_equal(s.v[1].reason, "99 Hz to 49 Hz");
	fr_job_samples_deinit(&s);
	cJSON_Delete(meta);
}

TEST(a_switch_in_the_window_becomes_a_sample)
{
	cJSON *meta;
	struct fr_job_samples s =
		make_samples("{'causes': [], 'frequency_steps': [{'monotonic_ns': 4}], 'switches': ["
			     "{'monotonic_ns': 1, 'trigger': 'switch', 'before_window': true},"
			     "{'monotonic_ns': 5, 'trigger': 'switch', 'reason': 'a off', 'detail': 'by x', "
			     "'pid': 3, 'tid': 4, 'cpu': 1}]}",
			&meta);

	assert_int_equal(s.n, 2);
	assert_int_equal(s.v[1].time_ns, 5);
	assert_string_equal(s.v[1].trigger, "switch");
	assert_string_equal(s.v[1].reason, "a off");
	assert_string_equal(s.v[1].detail, "by x");
	assert_int_equal(s.v[1].tid, 4);
	assert_int_equal(s.v[1].cpu, 1);
	fr_job_samples_deinit(&s);
	cJSON_Delete(meta);
}
