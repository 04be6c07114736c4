// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/loss.h"
#include "base/owner.h"
#include "base/units.h"
#include "base/utf8.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void sizes_are_read_as_people_write_them(void **state)
{
	static const struct {
		const char *text;
		int code;
		uint64_t bytes;
	} cases[] = {
		{"0", 0, 0},
		{"4096", 0, 4096},
		{"64M", 0, 64 << 20},
		{"64m", 0, 64 << 20},
		{"1.5K", 0, 1536},
		{"1GiB", 0, 1 << 30},
		{"2kB", 0, 2048},
		{" 8 M ", 0, 8 << 20},
		{"16T", 0, 16ULL << 40},
		{"", -EINVAL, 0},
		{"M", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"64X", -EINVAL, 0},
		{"64MM", -EINVAL, 0},
		{"inf", -EINVAL, 0},
		{"99999999T", -ERANGE, 0},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		uint64_t bytes = 0;

		assert_int_equal(fr_size_parse(cases[i].text, &bytes), cases[i].code);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

static void durations_are_systemds(void **state)
{
	static const struct {
		const char *text;
		int code;
		uint64_t ns;
	} cases[] = {
		{"30", 0, 30 * FR_NSEC_PER_SEC},
		{"30s", 0, 30 * FR_NSEC_PER_SEC},
		{"5min 20s", 0, 320 * FR_NSEC_PER_SEC},
		{"1h30m", 0, 5400 * FR_NSEC_PER_SEC},
		{"250ms", 0, 250 * FR_NSEC_PER_MSEC},
		{"1.5 s", 0, 1500 * FR_NSEC_PER_MSEC},
		{"7us", 0, 7000},
		{"", -EINVAL, 0},
		{"s", -EINVAL, 0},
		{"5 parsecs", -EINVAL, 0},
		{"-5s", -EINVAL, 0},
		{"99999999999w", -ERANGE, 0},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		uint64_t ns = 0;

		assert_int_equal(fr_duration_parse(cases[i].text, &ns), cases[i].code);
		assert_int_equal(ns, cases[i].ns);
	}
}

static void cpu_lists(void **state)
{
	uint8_t bits[8];

	assert_int_equal(fr_cpulist_parse("0-3,8\n", bits, 64), 5);
	assert_int_equal(bits[0], 0x0f);
	assert_int_equal(bits[1], 0x01);
	assert_int_equal(fr_cpulist_parse("1,1-2", bits, 64), 2);
	assert_int_equal(fr_cpulist_parse("64", bits, 64), -ERANGE);
	assert_int_equal(fr_cpulist_parse("0-4000000000", bits, 64), -ERANGE);
	assert_int_equal(fr_cpulist_parse("3-1", bits, 64), -EINVAL);
	assert_int_equal(fr_cpulist_parse("", bits, 64), -EINVAL);
	assert_int_equal(fr_cpulist_parse("1,", bits, 64), -EINVAL);
	assert_int_equal(fr_cpulist_parse("a", bits, 64), -EINVAL);
}

static void formats_fit_and_read_well(void **state)
{
	char text[FR_UNIT_SIZE];

	assert_string_equal(fr_size_format(0, text), "0B");
	assert_string_equal(fr_size_format(64 << 20, text), "64.0M");
	assert_string_equal(fr_duration_format(1500 * FR_NSEC_PER_MSEC, text), "1.5s");
	assert_string_equal(fr_duration_format(320 * FR_NSEC_PER_SEC, text), "5min 20s");
	fr_size_format(UINT64_MAX, text);
	fr_duration_format(UINT64_MAX, text);
}

static void stamps_are_the_files_names(void **state)
{
	char stamp[FR_STAMP_SIZE];
	uint64_t ns;

	fr_stamp_format(1795648297123456789ULL, stamp);
	assert_string_equal(stamp, "20261125T231137.123456Z");
	assert_int_equal(fr_stamp_parse(stamp, &ns), 0);
	assert_int_equal(ns, 1795648297123456000ULL);
	fr_rfc3339_format(1795648297123456789ULL, stamp);
	assert_string_equal(stamp, "2026-11-25T23:11:37.123456Z");
	assert_int_equal(fr_stamp_parse("20261125T231137.123456", &ns), -EINVAL);
	assert_int_equal(fr_stamp_parse("20261125T231137.123456Zx", &ns), -EINVAL);
	assert_int_equal(fr_stamp_parse("", &ns), -EINVAL);
}

static void both_clocks_agree(void **state)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	const uint64_t earlier = fr_clock_to_realtime(&pair, pair.monotonic_ns - FR_NSEC_PER_SEC);

	assert_int_equal(pair.realtime_ns - earlier, FR_NSEC_PER_SEC);
}

static void a_diag_keeps_its_first_cause(void **state)
{
	struct fr_diag d = {0};

	assert_int_equal(fr_fail_errno(&d, -ENOENT, "make it", "cannot open %s", "/x"), -ENOENT);
	assert_int_equal(fr_fail(&d, -EIO, NULL, "later"), -EIO);
	assert_string_equal(d.what, "cannot open /x: No such file or directory");
	assert_string_equal(d.hint, "make it");
	fr_diag_prefix(&d, "%s:%d", "a.conf", 3);
	assert_string_equal(d.what, "a.conf:3: cannot open /x: No such file or directory");
	assert_int_equal(fr_fail(NULL, -EIO, NULL, "nobody listens"), -EIO);
	assert_int_equal(fr_exit_code(-EPERM), FR_EXIT_PERMISSION);
	assert_int_equal(fr_exit_code(-ENOSPC), FR_EXIT_NO_SPACE);
	assert_int_equal(fr_exit_code(-EIO), FR_EXIT_ERROR);
	assert_int_equal(fr_exit_code(0), FR_EXIT_OK);
}

static void every_loss_has_a_name_and_an_explanation(void **state)
{
	for (int i = 0; i < _FR_LOSS_MAX; i++) {
		assert_non_null(fr_loss_name(i));
		assert_non_null(fr_loss_explain(i));
	}
	assert_null(fr_loss_name(_FR_LOSS_MAX));
}

static void a_buffer_grows(void **state)
{
	_cleanup_buf_ struct fr_buf b = {0};

	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(fr_buf_append_u32(&b, i), 0);
	assert_int_equal(b.len, 4000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(((uint32_t *)b.data)[i], i);
	assert_int_equal(fr_buf_append(&b, NULL, 0), 0);
	assert_int_equal(fr_buf_reserve(&b, SIZE_MAX), -ENOMEM);
}

static void a_file_appears_whole_and_clobbers_nothing(void **state)
{
	char path[] = "/tmp/fr-test-base.XXXXXX", tmp[NAME_MAX + 1];
	_cleanup_buf_ struct fr_buf b = {0};
	int dirfd, fd;

	assert_non_null(mkdtemp(path));
	dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dirfd >= 0);

	fd = fr_tmp_create(dirfd, "x", 0640, tmp, sizeof(tmp));
	assert_true(fd >= 0);
	assert_int_equal(fr_write_all(fd, "hello", 5), 0);
	assert_int_equal(faccessat(dirfd, "x", F_OK, 0), -1);
	assert_int_equal(fr_tmp_publish(dirfd, tmp, "x"), 0);
	assert_int_equal(faccessat(dirfd, tmp, F_OK, 0), -1);
	close(fd);

	fd = fr_tmp_create(dirfd, "x", 0640, tmp, sizeof(tmp));
	assert_true(fd >= 0);
	assert_int_equal(fr_tmp_publish(dirfd, tmp, "x"), -EEXIST);
	assert_int_equal(unlinkat(dirfd, tmp, 0), 0);
	close(fd);

	assert_int_equal(fr_read_file(dirfd, "x", 100, &b), 0);
	assert_int_equal(b.len, 5);
	assert_string_equal((char *)b.data, "hello");
	assert_int_equal(fr_read_file(dirfd, "x", 4, &b), -EFBIG);
	assert_int_equal(b.len, 5);

	assert_int_equal(fr_file_replace(dirfd, "x", 0640, (gid_t)-1, "bye", 3), 0);
	b.len = 0;
	assert_int_equal(fr_read_file(dirfd, "x", 100, &b), 0);
	assert_string_equal((char *)b.data, "bye");

	assert_int_equal(unlinkat(dirfd, "x", 0), 0);
	close(dirfd);
	assert_int_equal(rmdir(path), 0); /* nothing else was left behind */
}

#define CHECK(x)                                                                                             \
	do {                                                                                                 \
		if (!(x))                                                                                    \
			_exit(__LINE__ & 0xff);                                                              \
	} while (0)

static bool has(capng_type_t set)
{
	return capng_get_caps_process() == 0 && capng_have_capability(set, CAP_CHOWN);
}

/* As a service: a user of its own with CAP_CHOWN, in a directory of its own. */
static void become_service(int dirfd)
{
	CHECK(fchown(dirfd, 65534, 65534) == 0 && prctl(PR_SET_KEEPCAPS, 1) == 0);
	CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
	capng_clear(CAPNG_SELECT_CAPS);
	CHECK(capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_INHERITABLE, CAP_CHOWN) == 0);
	CHECK(capng_apply(CAPNG_SELECT_CAPS) == 0);
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) == 0);
}

static uid_t owner_of(int dirfd, const char *name)
{
	struct stat st;

	CHECK(fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return st.st_uid;
}

static void give_and_take(int dirfd)
{
	int fd;

	become_service(dirfd);
	CHECK(fr_owner_init());
	CHECK(!has(CAPNG_EFFECTIVE) && has(CAPNG_PERMITTED) && !has(CAPNG_INHERITABLE));
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0) == 0);
	CHECK(fr_file_replace(dirfd, "x", 0640, (gid_t)-1, "hello", 5) == 0);
	CHECK(owner_of(dirfd, "x") == 0 && !has(CAPNG_EFFECTIVE));
	CHECK(openat(dirfd, "x", O_RDWR) < 0 && errno == EACCES);
	fd = fr_owner_open(dirfd, "x");
	CHECK(fd >= 0 && owner_of(dirfd, "x") == 0 && !has(CAPNG_EFFECTIVE));
	CHECK(fr_pwrite_all(fd, "jelly", 5, 0) == 0 && close(fd) == 0);
	/* Of somebody else, or not a file: not ours to take. */
	CHECK(fr_owner_open(dirfd, "link") == -ELOOP && fr_owner_open(dirfd, "roots") == -EACCES);
	CHECK(owner_of(dirfd, "roots") == 0 && fr_owner_open(dirfd, "none") == -ENOENT);
	/* The older one is replaced though it is root's. */
	CHECK(fr_file_replace(dirfd, "x", 0640, (gid_t)-1, "bye", 3) == 0 && owner_of(dirfd, "x") == 0);
	CHECK(unlinkat(dirfd, "x", 0) == 0);
	_exit(0);
}

static void a_service_gives_its_files_to_root(void **state)
{
	char path[] = "/tmp/fr-test-base.XXXXXX";
	int dirfd, status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_false(fr_owner_init()); /* root's files are root's */
	assert_non_null(mkdtemp(path));
	dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dirfd >= 0);
	assert_int_equal(symlinkat("x", dirfd, "link"), 0);
	assert_int_equal(fr_file_replace(dirfd, "roots", 0644, (gid_t)-1, "", 0), 0);
	assert_int_equal(linkat(dirfd, "roots", dirfd, "also", 0), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		give_and_take(dirfd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0); /* else the line in bits 8 to 15 */
	assert_int_equal(
		unlinkat(dirfd, "link", 0) | unlinkat(dirfd, "roots", 0) | unlinkat(dirfd, "also", 0), 0);
	close(dirfd);
	assert_int_equal(rmdir(path), 0);
}

static void what_is_no_text_becomes_question_marks(void **state)
{
	static const char *const cases[][2] = {
		{"", ""},
		{"plain", "plain"},
		{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
			"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"\x1b[31m\n\x7f", "?[31m ?"},
		{"a\xff"
		 "b",
			"a?b"},
		{"cut \xe2\x82", "cut ??"},
		{"c1 \xc2\x9b", "c1 ??"},
		{"\xc0\xaf\xed\xa0\x80", "?????"},
	};
	char text[64];

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text), "%s", cases[i][0]);
		fr_utf8_sanitize(text);
		assert_string_equal(text, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_read_as_people_write_them),
		cmocka_unit_test(durations_are_systemds),
		cmocka_unit_test(cpu_lists),
		cmocka_unit_test(formats_fit_and_read_well),
		cmocka_unit_test(stamps_are_the_files_names),
		cmocka_unit_test(both_clocks_agree),
		cmocka_unit_test(a_diag_keeps_its_first_cause),
		cmocka_unit_test(what_is_no_text_becomes_question_marks),
		cmocka_unit_test(every_loss_has_a_name_and_an_explanation),
		cmocka_unit_test(a_buffer_grows),
		cmocka_unit_test(a_file_appears_whole_and_clobbers_nothing),
		cmocka_unit_test(a_service_gives_its_files_to_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
