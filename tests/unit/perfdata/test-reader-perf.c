// SPDX-License-Identifier: GPL-2.0-or-later

/* The reader on files that perf itself makes on the spot; perf's own count of samples is the judge. */

#include "base/cleanup.h"
#include "perfdata/reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

static char dir[] = "/tmp/fr-perf-XXXXXX";

static void need(const char *command)
{
	if (system(command) != 0) {
		print_message("does not work here: %s\n", command);
		skip();
	}
}

static void need_perf(const char *file, const char *options)
{
	char command[512];

	snprintf(command, sizeof(command),
		"perf record -q -B %s -o %s/%s -- sh -c 'ls / >/dev/null; sleep 0.3' 2>&1", options, dir,
		file);
	need(command);
}

static uint64_t count_by_perf(const char *file)
{
	char command[512];
	unsigned long long n = 0;
	FILE *p;

	/* perf report -D reads build-ids. It aborts over those that a kernel leaks into these records while
	   another recorder, as that of another test, asks for its own (fr_capture_build_ids_leak()). */
	snprintf(command, sizeof(command),
		"perf report --stats -i %s/%s 2>/dev/null | sed -n 's/^ *SAMPLE events: *//p'", dir, file);
	p = popen(command, "r");
	assert_non_null(p);
	assert_int_equal(fscanf(p, "%llu", &n), 1);
	pclose(p);
	return n;
}

static void compare(const char *file, size_t n_events)
{
	struct fr_diag d = {0};
	struct fr_reader *r = NULL;
	const struct perf_event_header *h;
	uint64_t samples = 0, maps = 0;
	char path[300];
	int x;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (fr_reader_open(path, &r, &d) < 0)
		fail_msg("%s", d.what);
	while ((x = fr_reader_next(r, &h, NULL)) == 1) {
		if (h->type == PERF_RECORD_SAMPLE) {
			samples++;
			assert_int_not_equal(fr_reader_time(r, h), 0);
		}
		maps += h->type == PERF_RECORD_MMAP2;
	}
	assert_int_equal(x, 0);
	if (fr_reader_damage(r)->damaged)
		fail_msg("%s", fr_reader_damage(r)->text);
	assert_true(samples > 0);
	assert_true(maps > 0);
	assert_int_equal(samples, count_by_perf(file));
	assert_true(fr_reader_session(r)->n_events >= n_events);
	for (size_t i = 0; i < fr_reader_session(r)->n_events; i++)
		assert_true(fr_reader_session(r)->events[i].name[0] || fr_reader_is_pipe(r));
	fr_reader_free(r);
}

static void test_one_event(void **state)
{
	need_perf("one", "-e cpu-clock -a");
	compare("one", 1);
}

static void test_events_without_identifier(void **state)
{
	/* Two clocks: samples of other software events get the id of another recorder's event on 6.18. */
	need_perf("two", "-e cpu-clock,task-clock -a");
	compare("two", 2);
}

static void test_compressed(void **state)
{
	need_perf("z", "-z -e cpu-clock -g -a");
	compare("z", 1);
}

static void test_pipe(void **state)
{
	char command[256];

	snprintf(command, sizeof(command),
		"perf record -q -B -e cpu-clock -a -o - -- sleep 0.3 > %s/pipe 2>/dev/null", dir);
	need(command);
	compare("pipe", 1);
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_event),
		cmocka_unit_test(test_events_without_identifier),
		cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_pipe),
	};

	if (system("perf --version >/dev/null 2>&1") != 0) {
		printf("perf is not installed\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
