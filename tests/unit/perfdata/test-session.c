/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "perfdata/session.h"
#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void add(struct fr_session *s, const char *name, uint64_t id, uint64_t until_ns)
{
	const struct perf_event_attr attr = {.config = id};
	struct fr_event_desc *e;

	assert_int_equal(fr_session_add_event(s, &attr, name, &id, 1, &e), 0);
	e->until_ns = until_ns;
}

static void expect_names(const struct fr_session *s, const char *names)
{
	char all[64] = "";

	for (size_t i = 0; i < s->n_events; i++)
		strcat(strcat(all, s->events[i].name), " ");
	assert_string_equal(all, names);
}

static void an_event_goes_once_nothing_of_it_can_be_there(void **state)
{
	_cleanup_session_ struct fr_session s = {0}, copy = {0};

	add(&s, "old", 1, 1000);
	add(&s, "closing", 2, UINT64_MAX);
	add(&s, "now", 3, 0);
	assert_int_equal(fr_session_copy(&s, &copy), 0);
	fr_session_drop_closed(&copy, 999);
	expect_names(&copy, "old closing now ");
	fr_session_drop_closed(&copy, 1000);
	expect_names(&copy, "closing now ");
	fr_session_drop_closed(&copy, UINT64_MAX - 1);
	expect_names(&copy, "closing now ");
	fr_session_close_events(&copy, 5000);
	fr_session_drop_closed(&copy, 4999);
	expect_names(&copy, "closing now ");
	fr_session_drop_closed(&copy, 5000);
	expect_names(&copy, "now ");
	assert_int_equal(copy.events[0].ids[0], 3);
	expect_names(&s, "old closing now ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_goes_once_nothing_of_it_can_be_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
