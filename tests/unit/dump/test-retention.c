// SPDX-License-Identifier: GPL-2.0-or-later

/* What has to go, decided without a disk; and that just that goes, with what belongs to it, on one. */

#include "base/clock.h"
#include "base/cleanup.h"
#include "dump/names.h"
#include "dump/vacuum.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#define M (1ULL << 20)
#define G (1ULL << 30)
#define HOUR (3600 * FR_NSEC_PER_SEC)

/* Ten dumps of 10M, an hour apart, the newest one an hour old, on a disk of 1000M with 500M free. */
#define N 10u
#define NOW (1000 * HOUR)
static const struct fr_retention_disk disk = {.size = 1000 * M, .free = 500 * M, .now_ns = NOW};

static void make(struct fr_retention_file *files)
{
	for (unsigned i = 0; i < N; i++)
		files[i] = (struct fr_retention_file){
			.time_ns = NOW - (N - i) * HOUR, .bytes = 10 * M, .remove = i % 2};
}

/* The oldest GONE go. */
static void choose(const struct fr_retention *r, const struct fr_retention_disk *d, unsigned gone, bool fits)
{
	struct fr_retention_file files[N];

	make(files);
	assert_int_equal(fr_retention_choose(r, d, files, N), fits);
	for (unsigned i = 0; i < N; i++)
		if (files[i].remove != (i < gone))
			fail_msg("file %u: %d, and %u should go", i, files[i].remove, gone);
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		enum fr_name kind;
	} names[] = {
		{"perf.data", FR_NAME_MERGED},
		{"perf.data.20261120T231137.123456Z", FR_NAME_MERGED_OLDER},
		{"perf.data.sample.20261120T231137.123456Z", FR_NAME_DUMP},
		{"perf.data.auxiliary.20261120T231137.123456Z", FR_NAME_AUXILIARY},
		{"perf.data.auxiliary", FR_NAME_OTHER},
		{"perf.data.json", FR_NAME_OTHER},
		{"perf.data.old", FR_NAME_OTHER},
		{"perf.data.sample.20261120T231137.123456Z.json", FR_NAME_OTHER},
		{"perf.data.sample.", FR_NAME_OTHER},
		{"", FR_NAME_OTHER},
	};
	uint64_t ns;

	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++) {
		assert_int_equal(fr_name_kind(names[i].name, &ns), names[i].kind);
		assert_int_equal(
			ns, strstr(names[i].name, "123456Z") && names[i].kind ? 1795216297123456000ULL : 0);
	}
}

static void test_limits(void **state)
{
	choose(&(struct fr_retention){0}, &disk, 0, true);
	choose(&(struct fr_retention){.max_use = 100 * M}, &disk, 0, true);
	choose(&(struct fr_retention){.max_use = 100 * M - 1}, &disk, 1, true);
	choose(&(struct fr_retention){.max_use = 35 * M}, &disk, 7, true);
	choose(&(struct fr_retention){.keep_free = 500 * M}, &disk, 0, true);
	choose(&(struct fr_retention){.keep_free = 500 * M + 1}, &disk, 1, true);
	choose(&(struct fr_retention){.keep_free = 545 * M}, &disk, 5, true);
	choose(&(struct fr_retention){.keep_free = 900 * M}, &disk, 10, false);
	choose(&(struct fr_retention){.max_files = 10}, &disk, 0, true);
	choose(&(struct fr_retention){.max_files = 3}, &disk, 7, true);
	choose(&(struct fr_retention){.max_age_ns = 10 * HOUR}, &disk, 0, true);
	choose(&(struct fr_retention){.max_age_ns = 10 * HOUR - 1}, &disk, 1, true);
	choose(&(struct fr_retention){.max_age_ns = HOUR / 2}, &disk, 10, true);
	/* Together: the strictest decides. */
	choose(&(struct fr_retention){.max_use = 80 * M, .max_files = 6, .max_age_ns = 9 * HOUR}, &disk, 4,
		true);
}

/* Room for a dump to come, which is a file more. */
static void test_need(void **state)
{
	struct fr_retention_disk d = disk;

	d.need = 30 * M;
	choose(&(struct fr_retention){.max_use = 130 * M}, &d, 0, true);
	choose(&(struct fr_retention){.max_use = 100 * M}, &d, 3, true);
	choose(&(struct fr_retention){.max_files = 10}, &d, 1, true);
	choose(&(struct fr_retention){.keep_free = 480 * M}, &d, 1, true);
	choose(&(struct fr_retention){.max_use = 20 * M}, &d, 10, false);
	d.need = 560 * M;
	choose(&(struct fr_retention){0}, &d, 6, true);
	d.need = UINT64_MAX / 2;
	choose(&(struct fr_retention){0}, &d, 10, false);
	/* Files that are ours and do not go. */
	d = disk;
	d.other = 50 * M;
	choose(&(struct fr_retention){.max_use = 100 * M}, &d, 5, true);
}

static void test_the_new_one_stays(void **state)
{
	const struct fr_retention r = {.max_files = 2, .max_age_ns = 1};
	struct fr_retention_file files[N];

	for (unsigned keep = 0; keep < N; keep++) {
		make(files);
		files[keep].keep = true;
		assert_true(fr_retention_choose(&r, &disk, files, N));
		for (unsigned i = 0; i < N; i++)
			assert_int_equal(files[i].remove, i != keep);
	}
	/* A clock that was set back makes nothing old. */
	make(files);
	files[9].time_ns = NOW + HOUR;
	assert_true(fr_retention_choose(&r, &disk, files, N));
	assert_false(files[9].remove);
	assert_true(fr_retention_choose(&r, &disk, files, 0));
}

static void test_defaults(void **state)
{
	const struct fr_retention unset = {FR_RETENTION_DEFAULT, FR_RETENTION_DEFAULT, 7, 9};
	struct fr_retention r = fr_retention_resolve(&unset, 20 * G);

	assert_int_equal(r.max_use, 20 * G / 100 * 10);
	assert_int_equal(r.keep_free, 20 * G / 100 * 15);
	assert_int_equal(r.max_files, 7);
	assert_int_equal(r.max_age_ns, 9);
	r = fr_retention_resolve(&unset, 1000 * G);
	assert_int_equal(r.max_use, 4 * G);
	assert_int_equal(r.keep_free, 4 * G);
	r = fr_retention_resolve(&(struct fr_retention){0}, 1000 * G);
	assert_int_equal(r.max_use, 0);
	assert_int_equal(r.keep_free, 0);
}

/* --- on a disk --- */

struct fixture {
	char dir[64];
	int dirfd;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/var/tmp/flightrec-retention.XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = f;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->dirfd);
	nftw(f->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

static void put(struct fixture *f, const char *name)
{
	_cleanup_close_ int fd = openat(f->dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char block[8192] = "x";

	assert_true(fd >= 0);
	assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
}

static bool exists(struct fixture *f, const char *name)
{
	struct stat st;

	return fstatat(f->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

#define DUMP(day) "perf.data.sample.202611" day "T120000.000000Z"

static void put_dump(struct fixture *f, const char *name)
{
	char other[128];

	put(f, name);
	snprintf(other, sizeof(other), "%s.json", name);
	put(f, other);
	snprintf(other, sizeof(other), "%s.jit", name);
	assert_int_equal(mkdirat(f->dirfd, other, 0700), 0);
	snprintf(other, sizeof(other), "%s.jit/1.so", name);
	put(f, other);
}

static void test_what_belongs_to_a_dump_goes(void **state)
{
	static const char *const others[] = {"perf.data", "perf.data.json", "perf.data.auxiliary", "notes",
		"perf.data.sample.20261101T120000.000000Z.orig", "perf.data.sample.",
		".perf.data.sample.x.1234"};
	const struct fr_retention r = {.max_files = 1};
	struct fr_vacuum_report report = {0};
	struct fixture *f = *state;

	for (size_t i = 0; i < FR_ARRAY_SIZE(others); i++)
		put(f, others[i]);
	put_dump(f, DUMP("02"));
	put_dump(f, DUMP("01"));
	put_dump(f, DUMP("03"));
	put(f, "perf.data.auxiliary.20261101T130000.000000Z");
	put(f, "perf.data.auxiliary.20261103T130000.000000Z");
	assert_int_equal(fr_vacuum(f->dirfd, &r, 0, UINT64_MAX, &report, NULL), 0);
	assert_int_equal(report.n_removed, 2);
	assert_string_equal(report.removed[0], DUMP("01"));
	assert_string_equal(report.removed[1], DUMP("02"));
	assert_true(report.fits);
	assert_int_equal(report.files, 1);
	assert_true(report.bytes >= 3 * 8192);
	assert_true(report.freed_bytes >= 7 * 8192);
	fr_vacuum_report_deinit(&report);
	assert_false(exists(f, DUMP("01")) || exists(f, DUMP("01") ".json") || exists(f, DUMP("01") ".jit"));
	assert_false(exists(f, DUMP("02")) || exists(f, DUMP("02") ".json") || exists(f, DUMP("02") ".jit"));
	assert_true(
		exists(f, DUMP("03")) && exists(f, DUMP("03") ".json") && exists(f, DUMP("03") ".jit/1.so"));
	assert_false(exists(f, "perf.data.auxiliary.20261101T130000.000000Z"));
	assert_true(exists(f, "perf.data.auxiliary.20261103T130000.000000Z"));
	for (size_t i = 0; i < FR_ARRAY_SIZE(others); i++)
		assert_true(exists(f, others[i]));
}

#define MERGED(day) "perf.data.202611" day "T120000.000000Z"

/* What a stop leaves, and the next one moves aside. */
static void test_merged_files_count(void **state)
{
	const struct fr_retention r = {.max_files = 2};
	struct fr_vacuum_report report = {0};
	struct fixture *f = *state;

	put(f, "perf.data");
	put(f, "perf.data.json");
	assert_int_equal(mkdirat(f->dirfd, "perf.data.jit", 0700), 0);
	put(f, "perf.data.jit/1.so");
	put(f, MERGED("01"));
	put(f, MERGED("01") ".json");
	put(f, MERGED("03"));
	put(f, MERGED("03") ".json");
	put(f, MERGED("02")); /* perf record's */
	put_dump(f, DUMP("02"));
	put_dump(f, DUMP("04"));
	put(f, "perf.data.auxiliary."
	       "20261101T130000.000000Z");
	assert_int_equal(fr_vacuum(f->dirfd, &r, 0, UINT64_MAX, &report, NULL), 0);
	assert_int_equal(report.n_removed, 2);
	assert_string_equal(report.removed[0], MERGED("01"));
	assert_string_equal(report.removed[1], DUMP("02"));
	assert_int_equal(report.files, 2);
	fr_vacuum_report_deinit(&report);
	assert_false(exists(f, MERGED("01")) || exists(f, MERGED("01") ".json"));
	/* Of no dump: a merged file needs none. */
	assert_false(exists(f, "perf.data.auxiliary.20261101T130000.000000Z"));
	assert_true(exists(f, "perf.data") && exists(f, "perf.data.json") && exists(f, MERGED("02")));
	assert_true(exists(f, "perf.data.jit/1.so"));
	assert_int_equal(unlinkat(f->dirfd, "perf.data", 0), 0);
	assert_int_equal(unlinkat(f->dirfd, MERGED("02"), 0), 0);
	assert_int_equal(fr_vacuum_remove(f->dirfd, MERGED("03"), &report, NULL), 0);
	assert_false(exists(f, "perf.data.jit") || exists(f, MERGED("03") ".json"));
	fr_vacuum_report_deinit(&report);
}

static void test_links_are_not_followed(void **state)
{
	const struct fr_retention r = {.max_age_ns = 1};
	struct fixture *f = *state;

	assert_int_equal(mkdirat(f->dirfd, "elsewhere", 0700), 0);
	put(f, "elsewhere/file");
	put(f, DUMP("01"));
	assert_int_equal(symlinkat("elsewhere", f->dirfd, DUMP("01") ".jit"), 0);
	assert_int_equal(fr_vacuum(f->dirfd, &r, 0, UINT64_MAX, NULL, NULL), 0);
	assert_false(exists(f, DUMP("01")) || exists(f, DUMP("01") ".jit"));
	assert_true(exists(f, "elsewhere/file"));
}

/* Dumps of the time of the one that was written, and later ones, stay; none goes in vain for one to come. */
static void test_what_stays(void **state)
{
	const struct fr_retention r = {.max_files = 1, .max_use = 1, .max_age_ns = 1};
	struct fr_vacuum_report report = {0};
	struct fixture *f = *state;
	uint64_t second;

	put_dump(f, DUMP("01"));
	put_dump(f, DUMP("02"));
	put_dump(f, DUMP("03"));
	assert_int_equal(fr_vacuum(f->dirfd, &(struct fr_retention){.max_use = 1}, 1ULL << 60, UINT64_MAX,
				 &report, NULL),
		0);
	assert_false(report.fits);
	assert_int_equal(report.n_removed, 0);
	assert_int_equal(fr_stamp_parse("20261102T120000.000000Z", &second), 0);
	assert_int_equal(fr_vacuum(f->dirfd, &r, 0, second, &report, NULL), 0);
	assert_int_equal(report.n_removed, 1);
	assert_int_equal(report.files, 2);
	assert_false(exists(f, DUMP("01")));
	assert_true(exists(f, DUMP("02")) && exists(f, DUMP("03")));
	fr_vacuum_report_deinit(&report);
}

static void test_remove_by_name(void **state)
{
	static const char *const bad[] = {"", "perf.data", "../perf.data.sample.20261101T120000.000000Z",
		"perf.data.sample.20261101T120000.000000Z/", "perf.data.auxiliary", ".json"};
	struct fr_vacuum_report report = {0};
	struct fixture *f = *state;
	struct fr_diag d = {0};

	put_dump(f, DUMP("01"));
	put_dump(f, DUMP("02"));
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		assert_int_equal(fr_vacuum_remove(f->dirfd, bad[i], &report, &d), -EINVAL);
	assert_true(d.what[0]);
	assert_int_equal(fr_vacuum_remove(f->dirfd, DUMP("03"), &report, NULL), -ENOENT);
	assert_int_equal(report.n_removed, 0);
	assert_int_equal(fr_vacuum_remove(f->dirfd, DUMP("01") ".json", &report, NULL), 0);
	assert_int_equal(report.n_removed, 1);
	assert_false(exists(f, DUMP("01")) || exists(f, DUMP("01") ".json") || exists(f, DUMP("01") ".jit"));
	assert_true(exists(f, DUMP("02")) && exists(f, DUMP("02") ".jit/1.so"));
	fr_vacuum_report_deinit(&report);
}

static void test_leftovers(void **state)
{
	struct fixture *f = *state;

	put(f, "." DUMP("01") ".0123abcd");
	put(f, "." DUMP("01") ".json.0123abcd");
	put(f, ".perf.data.0123abcd");
	put(f, DUMP("02") ".json"); /* its dump is gone */
	put_dump(f, DUMP("03"));
	assert_int_equal(fr_vacuum_leftovers(f->dirfd), 2);
	assert_false(exists(f, "." DUMP("01") ".0123abcd") || exists(f, DUMP("02") ".json"));
	assert_true(exists(f, ".perf.data.0123abcd") && exists(f, DUMP("03") ".json"));
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_need),
		cmocka_unit_test(test_the_new_one_stays),
		cmocka_unit_test(test_defaults),
		TEST(test_what_belongs_to_a_dump_goes),
		TEST(test_merged_files_count),
		TEST(test_links_are_not_followed),
		TEST(test_what_stays),
		TEST(test_remove_by_name),
		TEST(test_leftovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
