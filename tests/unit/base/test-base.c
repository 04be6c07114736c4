// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
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

struct parse_case {
	const char *text;
	uint64_t value;
};

/* Checks that PARSE reads the texts of GOOD with their values, and refuses the texts of BAD, which '|'
   separates, and OUT_OF_RANGE. */
static void check_parser(int (*parse)(const char *, uint64_t *), const struct parse_case *good, size_t n_good,
	const char *bad, const char *out_of_range)
{
	char text[128], *rest = text;
	uint64_t v = 4711;

	snprintf(text, sizeof(text), "%s", bad);
	for (const char *one; (one = strsep(&rest, "|"));)
		if (parse(one, &v) != -EINVAL)
			fail_msg("'%s' is not refused", one);
	assert_int_equal(parse(out_of_range, &v), -ERANGE);
	assert_int_equal(v, 4711);
	for (size_t i = 0; i < n_good; i++)
		if (parse(good[i].text, &v) != 0 || v != good[i].value)
			fail_msg("'%s': %llu", good[i].text, (unsigned long long)v);
}

TEST(size_is_read_with_its_suffix)
{
	static const struct parse_case good[] = {{"0", 0}, {"4096", 4096}, {"64M", 64 << 20},
		{"64m", 64 << 20}, {"1.5K", 1536}, {"1GiB", 1 << 30}, {"2kB", 2048}, {" 8 M ", 8 << 20},
		{"16T", 16ULL << 40}, {"7B", 7}};

	check_parser(fr_size_parse, good, FR_ARRAY_SIZE(good), "|M|-1|0x10|1e3|64X|64MM|64Bi|inf|1 2",
		"99999999T");
}

TEST(duration_is_read_with_its_units)
{
	static const struct parse_case good[] = {{"30", 30 * FR_NSEC_PER_SEC}, {"30s", 30 * FR_NSEC_PER_SEC},
		{"5min 20s", 320 * FR_NSEC_PER_SEC}, {"1h30m", 5400 * FR_NSEC_PER_SEC},
		{"250ms", 250 * FR_NSEC_PER_MSEC}, {"1.5 s", 1500 * FR_NSEC_PER_MSEC}, {"7us", 7000},
		{"9ns", 9}, {"2 weeks 1day", 15 * 86400 * FR_NSEC_PER_SEC}};

	check_parser(fr_duration_parse, good, FR_ARRAY_SIZE(good),
		"|s|5 parsecs|-5s|5 second seconds|5  s  x|5secondsandmoreandmore", "99999999999w");
}

TEST(cpu_list_is_read_within_its_bounds)
{
	static const struct {
		const char *text;
		int result;
	} cases[] = {{"0-3,8\n", 5}, {"1,1-2", 2}, {"64", -ERANGE}, {"0-4000000000", -ERANGE},
		{"3-1", -EINVAL}, {"", -EINVAL}, {"1,", -EINVAL}, {"a", -EINVAL}};
	uint8_t bits[8];

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++)
		assert_int_equal(fr_cpulist_parse(cases[i].text, bits, 64), cases[i].result);
	assert_int_equal(fr_cpulist_parse(cases[0].text, bits, 64), 5);
	assert_int_equal(bits[0], 0x0f);
	assert_int_equal(bits[1], 0x01);
}

TEST(values_are_formatted_for_people)
{
	char text[FR_UNIT_SIZE];

	assert_string_equal(fr_size_format(0, text), "0B");
	assert_string_equal(fr_size_format(64 << 20, text), "64.0M");
	assert_string_equal(fr_duration_format(1500 * FR_NSEC_PER_MSEC, text), "1.5s");
	assert_string_equal(fr_duration_format(320 * FR_NSEC_PER_SEC, text), "5min 20s");
	fr_size_format(UINT64_MAX, text); /* a sanitizer would notice an overflow */
	fr_duration_format(UINT64_MAX, text);
}

TEST(stamp_is_read_back)
{
	static const char *const bad[] = {"20261125T231137.123456", "20261125T231137.123456Zx", ""};
	char stamp[FR_STAMP_SIZE];
	uint64_t ns;

	fr_rfc3339_format(1795648297123456789ULL, stamp);
	assert_string_equal(stamp, "2026-11-25T23:11:37.123456Z");
	fr_stamp_format(1795648297123456789ULL, stamp);
	assert_string_equal(stamp, "20261125T231137.123456Z");
	assert_int_equal(fr_stamp_parse(stamp, &ns), 0);
	assert_int_equal(ns, 1795648297123456000ULL);
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		assert_int_equal(fr_stamp_parse(bad[i], &ns), -EINVAL);
}

TEST(clock_pair_converts_earlier_times)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	const uint64_t earlier = fr_clock_to_realtime(&pair, pair.monotonic_ns - FR_NSEC_PER_SEC);

	assert_int_equal(pair.realtime_ns - earlier, FR_NSEC_PER_SEC);
}

TEST(diag_keeps_the_first_error)
{
	struct fr_diag d = {0};

	assert_int_equal(fr_fail_errno(&d, -ENOENT, "make it", "cannot open %s", "/x"), -ENOENT);
	assert_int_equal(fr_fail(&d, -EIO, NULL, "later"), -EIO);
	assert_string_equal(d.what, "cannot open /x: No such file or directory");
	assert_string_equal(d.hint, "make it");
	fr_diag_prefix(&d, "%s:%d", "a.conf", 3);
	assert_string_equal(d.what, "a.conf:3: cannot open /x: No such file or directory");
	assert_int_equal(fr_fail(NULL, -EIO, NULL, "ignored"), -EIO);
	assert_int_equal(fr_exit_code(-EPERM), FR_EXIT_PERMISSION);
	assert_int_equal(fr_exit_code(-ENOSPC), FR_EXIT_NO_SPACE);
	assert_int_equal(fr_exit_code(-EIO), FR_EXIT_ERROR);
	assert_int_equal(fr_exit_code(0), FR_EXIT_OK);
}

TEST(each_loss_has_a_name_and_an_explanation)
{
	for (int i = 0; i < _FR_LOSS_MAX; i++) {
		assert_non_null(fr_loss_name(i));
		assert_non_null(fr_loss_explain(i));
	}
	assert_null(fr_loss_name(_FR_LOSS_MAX));
}

TEST(buffer_grows)
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

static int make_directory(char *path)
{
	int dirfd;

	assert_non_null(mkdtemp(path));
	dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dirfd >= 0);
	return dirfd;
}

TEST(file_appears_whole_and_replaces_only_on_request)
{
	char path[] = "/tmp/fr-test-base.XXXXXX", tmp[NAME_MAX + 1];
	_cleanup_buf_ struct fr_buf b = {0};
	int dirfd = make_directory(path);

	for (int exists = 0; exists < 2; exists++) {
		_cleanup_close_ int fd = fr_tmp_create(dirfd, "x", 0640, tmp, sizeof(tmp));

		assert_true(fd >= 0);
		assert_int_equal(fr_write_all(fd, "hello", 5), 0);
		assert_int_equal(faccessat(dirfd, "x", F_OK, 0), exists - 1);
		assert_int_equal(fr_tmp_publish(dirfd, tmp, "x"), exists ? -EEXIST : 0);
		assert_int_equal(unlinkat(dirfd, tmp, 0), exists - 1);
	}
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
	assert_int_equal(rmdir(path), 0); /* succeeds only if the directory has no other file */
}

#define CHECK(x)                                                                                             \
	do {                                                                                                 \
		if (!(x))                                                                                    \
			_exit(__LINE__ & 0xff);                                                              \
	} while (0)

static bool has_chown(capng_type_t set)
{
	return capng_get_caps_process() == 0 && capng_have_capability(set, CAP_CHOWN);
}

/* Changes this process to a user who owns the directory and has CAP_CHOWN. */
static void become_service(int dirfd)
{
	CHECK(fchown(dirfd, 65534, 65534) == 0 && prctl(PR_SET_KEEPCAPS, 1) == 0);
	CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
	capng_clear(CAPNG_SELECT_CAPS);
	CHECK(capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_INHERITABLE, CAP_CHOWN) == 0);
	CHECK(capng_apply(CAPNG_SELECT_CAPS) == 0);
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) == 0);
}

static uid_t get_owner(int dirfd, const char *name)
{
	struct stat st;

	CHECK(fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return st.st_uid;
}

static void give_and_open_files(int dirfd)
{
	int fd;

	become_service(dirfd);
	CHECK(fr_owner_init());
	CHECK(!has_chown(CAPNG_EFFECTIVE) && has_chown(CAPNG_PERMITTED) && !has_chown(CAPNG_INHERITABLE));
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0) == 0);
	CHECK(fr_file_replace(dirfd, "x", 0640, (gid_t)-1, "hello", 5) == 0);
	CHECK(get_owner(dirfd, "x") == 0 && !has_chown(CAPNG_EFFECTIVE));
	CHECK(openat(dirfd, "x", O_RDWR) < 0 && errno == EACCES);
	fd = fr_owner_open(dirfd, "x");
	CHECK(fd >= 0 && get_owner(dirfd, "x") == 0 && !has_chown(CAPNG_EFFECTIVE));
	CHECK(fr_pwrite_all(fd, "jelly", 5, 0) == 0 && close(fd) == 0);
	/* Links, and files that the service did not make, are refused. */
	CHECK(fr_owner_open(dirfd, "link") == -ELOOP && fr_owner_open(dirfd, "roots") == -EACCES);
	CHECK(get_owner(dirfd, "roots") == 0 && fr_owner_open(dirfd, "none") == -ENOENT);
	/* But a file that belongs to root can be replaced. */
	CHECK(fr_file_replace(dirfd, "x", 0640, (gid_t)-1, "bye", 3) == 0 && get_owner(dirfd, "x") == 0);
	CHECK(unlinkat(dirfd, "x", 0) == 0);
	_exit(0);
}

TEST(service_gives_its_files_to_root)
{
	char path[] = "/tmp/fr-test-base.XXXXXX";
	int dirfd, status;
	pid_t pid;

	if (geteuid() != 0)
		unit_skip("it needs root");
	assert_false(fr_owner_init()); /* root does not need to give files to root */
	dirfd = make_directory(path);
	assert_int_equal(symlinkat("x", dirfd, "link"), 0);
	assert_int_equal(fr_file_replace(dirfd, "roots", 0644, (gid_t)-1, "", 0), 0);
	assert_int_equal(linkat(dirfd, "roots", dirfd, "also", 0), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		give_and_open_files(dirfd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0); /* if a CHECK fails, its line is in bits 8 to 15 */
	assert_int_equal(
		unlinkat(dirfd, "link", 0) | unlinkat(dirfd, "roots", 0) | unlinkat(dirfd, "also", 0), 0);
	close(dirfd);
	assert_int_equal(rmdir(path), 0);
}

TEST(invalid_text_becomes_question_marks)
{
	static const char *const cases[][2] = {
		{"", ""},
		{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
			"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"\x1b[31m\n\x7f", "?[31m ?"},
		{"a\xff"
		 "b",
			"a?b"},
		{"cut \xe2\x82", "cut ??"}, {"c1 \xc2\x9b", "c1 ??"},
		{"\xc0\xaf\xed\xa0\x80", "?????"}, /* "/" not in the shortest form, and a surrogate */
		{"\xf4\x90\x80\x80", "????"},	   /* above U+10FFFF */
	};
	char text[64];

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text), "%s", cases[i][0]);
		fr_utf8_sanitize(text);
		assert_string_equal(text, cases[i][1]);
	}
}
