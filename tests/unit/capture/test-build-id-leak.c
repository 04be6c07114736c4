// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/capture.h"
#include "base/cleanup.h"

#include <fcntl.h>
#include <string.h>

static size_t open_descriptors(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Which it is depends on the kernel; that it is told, alike each time, and that nothing is left open does
 * not. */
static void the_trial_tells_and_leaves_nothing(void **state)
{
	const size_t before = open_descriptors();
	const int leaks = fr_capture_build_ids_leak();

	if (leaks < 0) {
		print_message("the trial is not possible here: %s\n", strerror(-leaks));
		skip();
	}
	assert_in_range(leaks, 0, 1);
	assert_int_equal(fr_capture_build_ids_leak(), leaks);
	assert_int_equal(open_descriptors(), before);
	print_message("this kernel %s\n", leaks ? "marks the records of others" : "does as it should");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_trial_tells_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
