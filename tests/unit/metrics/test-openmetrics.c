// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "metrics/openmetrics.h"

#include <string.h>

static const struct fr_metric_label none[FR_METRIC_LABELS_MAX];

/* Ends the text, and compares it with EXPECTED. */
static void expect_text(struct fr_openmetrics *o, const char *expected)
{
	assert_int_equal(fr_openmetrics_end(o), 0);
	assert_int_equal(o->text.len, strlen(expected));
	assert_memory_equal(o->text.data, expected, o->text.len);
	fr_buf_deinit(&o->text);
}

TEST(each_type_has_the_suffix_of_its_samples)
{
	struct fr_openmetrics o = {0};

	fr_openmetrics_family(&o, "a", FR_METRIC_COUNTER, NULL, "A counter.");
	fr_openmetrics_u64(&o, none, UINT64_MAX);
	fr_openmetrics_family(&o, "b_bytes", FR_METRIC_GAUGE, "bytes", "A gauge.");
	fr_openmetrics_u64(&o, none, 0);
	fr_openmetrics_family(&o, "c", FR_METRIC_INFO, NULL, "An info.");
	fr_openmetrics_u64(&o, (const struct fr_metric_label[FR_METRIC_LABELS_MAX]){{"version", "1"}}, 1);
	expect_text(&o, "# TYPE a counter\n# HELP a A counter.\na_total 18446744073709551615\n"
			"# TYPE b_bytes gauge\n# UNIT b_bytes bytes\n# HELP b_bytes A gauge.\nb_bytes 0\n"
			"# TYPE c info\n# HELP c An info.\nc_info{version=\"1\"} 1\n# EOF\n");
}

TEST(seconds_have_nine_decimals)
{
	struct fr_openmetrics o = {0};

	fr_openmetrics_family(&o, "t_seconds", FR_METRIC_GAUGE, "seconds", "A time.");
	fr_openmetrics_seconds(&o, none, 1000000001);
	expect_text(&o, "# TYPE t_seconds gauge\n# UNIT t_seconds seconds\n# HELP t_seconds A time.\n"
			"t_seconds 1.000000001\n# EOF\n");
}

TEST(a_label_cannot_end_its_value_or_its_line)
{
	struct fr_openmetrics o = {0};
	const struct fr_metric_label labels[FR_METRIC_LABELS_MAX] = {
		{"x", "a\"b"}, {"y", "c\\d"}, {"z", "e\nf"}};

	fr_openmetrics_family(&o, "a", FR_METRIC_GAUGE, NULL, "A gauge.");
	fr_openmetrics_u64(&o, labels, 7);
	expect_text(
		&o, "# TYPE a gauge\n# HELP a A gauge.\na{x=\"a\\\"b\",y=\"c\\\\d\",z=\"e\\nf\"} 7\n# EOF\n");
}
