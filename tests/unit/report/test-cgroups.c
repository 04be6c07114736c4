// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the paths of cgroups that an option chooses, and of the cgroup of a sample. */
#include "../unit.h"
#include "perfdata/sample.h"
#include "report/cgroups.h"

#include <errno.h>
#include <string.h>

static bool matches(const char *wanted, const char *path)
{
	return fr_cgroup_matches(wanted, path, strlen(path));
}

TEST(a_cgroup_is_chosen_by_its_path_or_its_end)
{
	static const char path[] = "/system.slice/web.slice/nginx.service";

	assert_true(matches(path, path));
	assert_true(matches("system.slice/web.slice/nginx.service/", path));
	assert_true(matches("nginx.service", path));
	assert_true(matches("web.slice/nginx.service", path));
	assert_false(matches("/web.slice/nginx.service", path));
	assert_false(matches("/nginx.service", path));
	assert_false(matches("nginx", path));
	assert_false(matches("inx.service", path));
	assert_false(matches("system.slice/nginx.service", path));
	assert_false(matches("nginx.service/worker", path));
}

TEST(cgroups_below_a_cgroup_belong_to_it)
{
	assert_true(matches("/system.slice", "/system.slice/nginx.service"));
	assert_true(matches("system.slice", "/user.slice/system.slice/a/b"));
	assert_true(matches("/", "/system.slice"));
	assert_true(matches("/", "/"));
	assert_false(matches("/system.slice", "/"));
	assert_false(matches("/system.slice", "/system.slices"));
	/* The path is not NUL-terminated. */
	assert_false(fr_cgroup_matches("abc", "/abcd", 5));
	assert_true(fr_cgroup_matches("abc", "/abcd", 4));
	assert_false(fr_cgroup_matches("abc", "/abcd", 3));
}

TEST(the_cgroup_of_a_sample_is_behind_all_other_fields)
{
	const struct perf_event_attr attr = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_WEIGHT |
			       PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR |
			       PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP,
		.sample_regs_intr = 0x3,
	};
	struct {
		struct perf_event_header header;
		uint64_t ip, n_chain, chain, weight, source, transaction, abi, regs[2], physical, cgroup;
	} s = {.header = {PERF_RECORD_SAMPLE, 0, sizeof(s)}, .n_chain = 1, .abi = 2, .cgroup = 4711};
	struct fr_sample_fields fields;

	assert_int_equal(fr_sample_parse(&attr, &s.header, &fields), 0);
	assert_int_equal(fields.cgroup, 4711);
	s.header.size -= 8;
	assert_int_equal(fr_sample_parse(&attr, &s.header, &fields), -EBADMSG);
	assert_int_equal(fields.cgroup, 0);
	/* Without registers, the ABI is 0. */
	s.header.size += 8;
	s.abi = 0;
	s.regs[1] = 815;
	assert_int_equal(fr_sample_parse(&attr, &s.header, &fields), 0);
	assert_int_equal(fields.cgroup, 815);
}
