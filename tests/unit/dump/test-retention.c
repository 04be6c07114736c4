// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of retention (the removal of old dumps): which dumps it removes, and whether it removes all files
   that belong to a dump. */

#include "../unit.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "dump/hold.h"
#include "dump/names.h"
#include "dump/vacuum.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

#define M (1ULL << 20)
#define G (1ULL << 30)
#define HOUR (3600 * FR_NSEC_PER_SEC)

/* There are ten dumps of 10M each. Their times are an hour apart, and the newest dump is an hour old. The
   disk has 1000M, of which 500M are free. */
#define N 10u
#define NOW (1000 * HOUR)

static void make_files(struct fr_retention_file *files)
{
	for (unsigned i = 0; i < N; i++)
		files[i] = (struct fr_retention_file){
			.time_ns = NOW - (N - i) * HOUR, .bytes = 10 * M, .remove = i % 2};
}

TEST(names)
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

TEST(the_oldest_dumps_are_removed_until_the_limits_hold)
{
	static const struct {
		struct fr_retention limits;
		uint64_t need, other;
		unsigned gone;
		bool misfit; /* the limits are still exceeded after the removals */
	} cases[] = {
		{{0}, 0, 0, 0, false},
		{{.max_use = 100 * M}, 0, 0, 0, false},
		{{.max_use = 100 * M - 1}, 0, 0, 1, false},
		{{.max_use = 35 * M}, 0, 0, 7, false},
		{{.keep_free = 500 * M}, 0, 0, 0, false},
		{{.keep_free = 500 * M + 1}, 0, 0, 1, false},
		{{.keep_free = 545 * M}, 0, 0, 5, false},
		{{.keep_free = 900 * M}, 0, 0, 10, true},
		{{.max_files = 10}, 0, 0, 0, false},
		{{.max_files = 3}, 0, 0, 7, false},
		{{.max_age_ns = 10 * HOUR}, 0, 0, 0, false},
		{{.max_age_ns = 10 * HOUR - 1}, 0, 0, 1, false},
		{{.max_age_ns = HOUR / 2}, 0, 0, 10, false},
		/* The strictest limit decides. */
		{{.max_use = 80 * M, .max_files = 6, .max_age_ns = 9 * HOUR}, 0, 0, 4, false},
		/* A dump that is about to be written needs space, and counts as a file. */
		{{.max_use = 130 * M}, 30 * M, 0, 0, false},
		{{.max_use = 100 * M}, 30 * M, 0, 3, false},
		{{.max_files = 10}, 30 * M, 0, 1, false},
		{{.keep_free = 480 * M}, 30 * M, 0, 1, false},
		{{.max_use = 20 * M}, 30 * M, 0, 10, true},
		{{0}, 560 * M, 0, 6, false},
		{{0}, UINT64_MAX / 2, 0, 10, true},
		/* Other files of the recorder take space, too. */
		{{.max_use = 100 * M}, 0, 50 * M, 5, false},
	};

	for (size_t c = 0; c < FR_ARRAY_SIZE(cases); c++) {
		const struct fr_retention_disk disk = {.size = 1000 * M,
			.free = 500 * M,
			.now_ns = NOW,
			.need = cases[c].need,
			.other = cases[c].other};
		struct fr_retention_file files[N];

		make_files(files);
		assert_int_equal(fr_retention_choose(&cases[c].limits, &disk, files, N), !cases[c].misfit);
		for (unsigned i = 0; i < N; i++)
			if (files[i].remove != (i < cases[c].gone))
				fail_msg("case %zu: file %u: %d", c, i, files[i].remove);
	}
}

TEST(a_new_dump_stays)
{
	const struct fr_retention_disk disk = {.size = 1000 * M, .free = 500 * M, .now_ns = NOW};
	const struct fr_retention r = {.max_files = 2, .max_age_ns = 1};
	struct fr_retention_file files[N];

	for (unsigned keep = 0; keep < N; keep++) {
		make_files(files);
		files[keep].keep = true;
		assert_true(fr_retention_choose(&r, &disk, files, N));
		for (unsigned i = 0; i < N; i++)
			assert_int_equal(files[i].remove, i != keep);
	}
	/* A dump whose time is in the future, because the clock was set back, is not old. */
	make_files(files);
	files[9].time_ns = NOW + HOUR;
	assert_true(fr_retention_choose(&r, &disk, files, N));
	assert_false(files[9].remove);
	assert_true(fr_retention_choose(&r, &disk, files, 0));
}

/* Four dumps are held: 0, 1, 4 and 5. */
TEST(held_dumps_stay_as_long_as_there_is_room)
{
	static const struct {
		struct fr_retention limits;
		uint64_t need;
		const char *gone;
		bool misfit;
	} cases[] = {
		{{.max_files = 7}, 0, "236", false},
		{{.max_files = 4}, 0, "236789", false},
		{{.max_files = 2}, 0, "236789", true},
		{{.max_use = 10 * M}, 0, "236789", true},
		{{.max_age_ns = 1}, 0, "236789", false},
		{{.keep_free = 530 * M}, 0, "236", false},
		{{.keep_free = 580 * M}, 0, "01236789", false},
		{{.keep_free = 900 * M}, 0, "0123456789", true},
		{{0}, 560 * M, "236789", false},
		{{0}, 561 * M, "0236789", false},
		{{.keep_free = 520 * M}, 60 * M, "01236789", false},
	};

	for (size_t c = 0; c < FR_ARRAY_SIZE(cases); c++) {
		const struct fr_retention_disk disk = {
			.size = 1000 * M, .free = 500 * M, .now_ns = NOW, .need = cases[c].need};
		struct fr_retention_file files[N];

		make_files(files);
		for (unsigned i = 0; i < N; i++)
			files[i].held = i < 2 || i == 4 || i == 5;
		assert_int_equal(fr_retention_choose(&cases[c].limits, &disk, files, N), !cases[c].misfit);
		for (unsigned i = 0; i < N; i++)
			if (files[i].remove != (strchr(cases[c].gone, '0' + (int)i) != NULL))
				fail_msg("case %zu: file %u: %d", c, i, files[i].remove);
	}
}

TEST(default_limits_are_parts_of_the_disk)
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

/* --- On a disk. --- */

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

FIXTURE(setup, teardown)

/* Make the files NAMES. A name that ends with a slash is the name of a directory. */
static void put(struct fixture *f, const char *const *names)
{
	static const char block[8192] = "x";

	for (; *names; names++) {
		if ((*names)[strlen(*names) - 1] == '/') {
			assert_int_equal(mkdirat(f->dirfd, *names, 0700), 0);
			continue;
		}

		_cleanup_close_ int fd =
			openat(f->dirfd, *names, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
		assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
	}
}
#define PUT(...) put(*state, (const char *const[]){__VA_ARGS__, NULL})

static void check_files(struct fixture *f, bool expected, const char *const *names)
{
	struct stat st;

	for (; *names; names++)
		if ((fstatat(f->dirfd, *names, &st, AT_SYMLINK_NOFOLLOW) == 0) != expected)
			fail_msg("%s is%s there", *names, expected ? " not" : "");
}
#define ARE_THERE(...) check_files(*state, true, (const char *const[]){__VA_ARGS__, NULL})
#define ARE_GONE(...) check_files(*state, false, (const char *const[]){__VA_ARGS__, NULL})

/* Apply the limits, and check that exactly the dumps GONE are removed. The names end with NULL. */
static void vacuum(struct fixture *f, struct fr_retention limits, uint64_t keep_from_ns,
	const char *const *gone, struct fr_vacuum_report *ret)
{
	struct fr_vacuum_report copy;
	size_t n = 0;

	*ret = (struct fr_vacuum_report){0};
	assert_int_equal(fr_vacuum(f->dirfd, &limits, 0, keep_from_ns, ret, NULL), 0);
	for (; gone[n]; n++) {
		assert_true(n < ret->n_removed);
		assert_string_equal(ret->removed[n], gone[n]);
	}
	assert_int_equal(ret->n_removed, n);
	copy = *ret; /* frees what the report owns. The numbers in *RET remain */
	fr_vacuum_report_deinit(&copy);
}
#define GONE(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Names are made of literals. NOLINTBEGIN(bugprone-suspicious-missing-comma) */
#define DUMP(day) "perf.data.sample.202611" day "T120000.000000Z"
#define MERGED(day) "perf.data.202611" day "T120000.000000Z"
#define SIDECAR(file) (file ".json")
#define AUXILIARY(day) "perf.data.auxiliary.202611" day "T130000.000000Z"
/* A dump and all files that belong to it. */
#define FILES_OF(dump) dump, SIDECAR(dump), (dump ".jit/"), (dump ".jit/1.so"), (dump ".kallsyms")

TEST(all_files_of_a_dump_are_removed)
{
#define OTHERS                                                                                               \
	"perf.data", "perf.data.json", "perf.data.auxiliary", "notes", DUMP("01") ".orig",                   \
		"perf.data.sample.", ".perf.data.sample.x.1234"
	struct fr_vacuum_report report;

	PUT(OTHERS, FILES_OF(DUMP("02")), FILES_OF(DUMP("01")), FILES_OF(DUMP("03")), AUXILIARY("01"),
		AUXILIARY("03"));
	vacuum(*state, (struct fr_retention){.max_files = 1}, UINT64_MAX, GONE(DUMP("01"), DUMP("02")),
		&report);
	assert_true(report.fits);
	assert_int_equal(report.files, 1);
	assert_true(report.bytes >= 3 * 8192);
	assert_true(report.freed_bytes >= 7 * 8192);
	/* This auxiliary file is removed, because no dump remains of the recording to which it belongs. */
	ARE_GONE(AUXILIARY("01"), DUMP("01"), SIDECAR(DUMP("01")), DUMP("01") ".jit", DUMP("02"),
		SIDECAR(DUMP("02")), DUMP("02") ".jit", DUMP("01") ".kallsyms", DUMP("02") ".kallsyms");
	ARE_THERE(OTHERS, AUXILIARY("03"), FILES_OF(DUMP("03")));
}

/* A stop leaves perf.data. The next stop renames this file, so that its name has a time. It then counts as a
   dump. */
TEST(older_merged_files_count_as_dumps)
{
	struct fr_vacuum_report report;
	struct fixture *f = *state;

	PUT("perf.data", "perf.data.json", "perf.data.jit/", "perf.data.jit/1.so", MERGED("01"),
		SIDECAR(MERGED("01")), MERGED("03"), SIDECAR(MERGED("03")), FILES_OF(DUMP("02")),
		FILES_OF(DUMP("04")), AUXILIARY("01"));
	PUT(MERGED("01") ".kallsyms");
	PUT(MERGED("02")); /* without a sidecar: it can be a file of perf record, and is not removed */
	vacuum(f, (struct fr_retention){.max_files = 2}, UINT64_MAX, GONE(MERGED("01"), DUMP("02")), &report);
	assert_int_equal(report.files, 2);
	/* A merged file does not need an auxiliary file. */
	ARE_GONE(MERGED("01"), SIDECAR(MERGED("01")), MERGED("01") ".kallsyms", AUXILIARY("01"));
	ARE_THERE("perf.data", "perf.data.json", MERGED("02"), "perf.data.jit/1.so");
	assert_int_equal(unlinkat(f->dirfd, "perf.data", 0), 0);
	assert_int_equal(unlinkat(f->dirfd, MERGED("02"), 0), 0);
	report = (struct fr_vacuum_report){0};
	assert_int_equal(fr_vacuum_remove(f->dirfd, MERGED("03"), &report, NULL), 0);
	ARE_GONE("perf.data.jit", SIDECAR(MERGED("03")));
	fr_vacuum_report_deinit(&report);
}

/* The time of an auxiliary file is its last change. On an idle machine, a dump can be up to ten minutes
 * newer. */
TEST(an_auxiliary_file_can_be_older_than_its_dumps)
{
#define OLDER(time) "perf.data.auxiliary.202611" time ".000000Z"
	struct fr_vacuum_report report;

	PUT(FILES_OF(DUMP("01")), FILES_OF(DUMP("02")), OLDER("02T115000"), OLDER("03T115000"),
		OLDER("04T115000"), FILES_OF(DUMP("05")), OLDER("05T114959"));
	vacuum(*state, (struct fr_retention){.max_files = 2}, UINT64_MAX, GONE(DUMP("01")), &report);
	ARE_THERE(FILES_OF(DUMP("02")), OLDER("02T115000"), FILES_OF(DUMP("05")));
	ARE_GONE(OLDER("04T115000"), OLDER("05T114959"));
}

TEST(links_are_not_followed)
{
	struct fr_vacuum_report report;
	struct fixture *f = *state;

	PUT("elsewhere/", "elsewhere/file", DUMP("01"));
	assert_int_equal(symlinkat("elsewhere", f->dirfd, DUMP("01") ".jit"), 0);
	vacuum(f, (struct fr_retention){.max_age_ns = 1}, UINT64_MAX, GONE(DUMP("01")), &report);
	ARE_GONE(DUMP("01"), DUMP("01") ".jit");
	ARE_THERE("elsewhere/file");
}

TEST(no_dump_is_removed_if_the_limits_would_still_be_exceeded)
{
	const struct fr_retention limits = {.max_use = 1};
	struct fr_vacuum_report report = {0};
	struct fixture *f = *state;

	PUT(FILES_OF(DUMP("01")));
	assert_int_equal(fr_vacuum(f->dirfd, &limits, 1ULL << 60, UINT64_MAX, &report, NULL), 0);
	assert_false(report.fits);
	assert_int_equal(report.n_removed, 0);
	ARE_THERE(DUMP("01"));
}

TEST(dumps_from_a_time_on_stay)
{
	const struct fr_retention limits = {.max_files = 1, .max_use = 1, .max_age_ns = 1};
	struct fr_vacuum_report report;
	uint64_t second;

	PUT(FILES_OF(DUMP("01")), FILES_OF(DUMP("02")), FILES_OF(DUMP("03")));
	assert_int_equal(fr_stamp_parse("20261102T120000.000000Z", &second), 0);
	vacuum(*state, limits, second, GONE(DUMP("01")), &report);
	assert_int_equal(report.files, 2);
	ARE_THERE(DUMP("02"), DUMP("03"));
}

TEST(a_dump_is_removed_by_its_name)
{
	static const char *const bad[] = {
		"", "perf.data", "../" DUMP("01"), DUMP("01") "/", "perf.data.auxiliary", ".json"};
	struct fr_vacuum_report report = {0};
	struct fixture *f = *state;
	struct fr_diag d = {0};

	PUT(FILES_OF(DUMP("01")), FILES_OF(DUMP("02")));
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		assert_int_equal(fr_vacuum_remove(f->dirfd, bad[i], &report, &d), -EINVAL);
	assert_true(d.what[0]);
	assert_int_equal(fr_vacuum_remove(f->dirfd, DUMP("03"), &report, NULL), -ENOENT);
	assert_int_equal(report.n_removed, 0);
	assert_int_equal(fr_vacuum_remove(f->dirfd, SIDECAR(DUMP("01")), &report, NULL), 0);
	assert_int_equal(report.n_removed, 1);
	ARE_GONE(DUMP("01"), SIDECAR(DUMP("01")), DUMP("01") ".jit", DUMP("01") ".kallsyms");
	ARE_THERE(FILES_OF(DUMP("02")));
	fr_vacuum_report_deinit(&report);
}

TEST(leftovers_of_a_killed_recorder_are_removed)
{
	struct fixture *f = *state;

	PUT("." DUMP("01") ".0123abcd", ("." DUMP("01") ".json.0123abcd"), ".perf.data.0123abcd",
		FILES_OF(DUMP("03")));
	PUT(SIDECAR(DUMP("02")), DUMP("02") ".kallsyms"); /* without a dump */
	assert_int_equal(fr_vacuum_leftovers(f->dirfd), 2);
	ARE_GONE("." DUMP("01") ".0123abcd", SIDECAR(DUMP("02")), DUMP("02") ".kallsyms");
	ARE_THERE(".perf.data.0123abcd", FILES_OF(DUMP("03")));
}

TEST(a_hold_is_a_file_that_ends)
{
	const struct fr_retention limits = {.max_files = 1};
	const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	const uint64_t now_ns = fr_now_ns(CLOCK_REALTIME);
	struct fr_vacuum_report report;
	struct fixture *f = *state;
	uint64_t n, bytes;

	PUT(FILES_OF(DUMP("01")), FILES_OF(DUMP("02")), FILES_OF(DUMP("03")), MERGED("01"),
		SIDECAR(MERGED("01")), MERGED("01") ".hold");
	assert_int_equal(fr_hold_make(f->dirfd, DUMP("01")), 0);
	assert_int_equal(fr_hold_make(f->dirfd, DUMP("01")), -EEXIST);
	assert_int_equal(fr_hold_make(f->dirfd, DUMP("02")), 0);
	assert_int_equal(fr_hold_check(f->dirfd, DUMP("03"), now_ns), 0);
	assert_int_equal(fr_hold_check(f->dirfd, DUMP("01"), now_ns), 1);
	assert_int_equal(fr_hold_check(f->dirfd, DUMP("01"), now_ns + 25 * HOUR), -ETIME);
	/* The clock was set back. */
	assert_int_equal(fr_hold_check(f->dirfd, DUMP("01"), 1), 1);
	assert_int_equal(fr_holds_count(f->dirfd, &n, &bytes), 0);
	assert_int_equal(n, 2);
	assert_in_range(bytes, 4 * 8192, 5 * 8192);
	/* A merged file is never held. */
	vacuum(f, limits, UINT64_MAX, GONE(MERGED("01"), DUMP("03")), &report);
	assert_false(report.fits);
	assert_int_equal(report.n_held_removed, 0);
	/* The hold of the first dump is too old. */
	assert_int_equal(utimensat(f->dirfd, DUMP("01") ".hold", old, 0), 0);
	vacuum(f, limits, UINT64_MAX, GONE(DUMP("01")), &report);
	assert_true(report.fits);
	assert_int_equal(report.n_holds_expired, 1);
	ARE_GONE(DUMP("01"), DUMP("01") ".hold", DUMP("03"), SIDECAR(DUMP("03")));
	ARE_THERE(FILES_OF(DUMP("02")), DUMP("02") ".hold");
}

TEST(held_dumps_make_room_and_are_released)
{
	const struct fr_retention room = {.keep_free = UINT64_MAX / 2}, age = {.max_age_ns = 1};
	struct fr_vacuum_report report = {0};
	struct fr_diag d = {0};
	struct fixture *f = *state;

	PUT(FILES_OF(DUMP("01")), FILES_OF(DUMP("02")), FILES_OF(DUMP("03")), MERGED("01"));
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			fr_hold_make(f->dirfd, ((const char *[]){DUMP("01"), DUMP("02"), DUMP("03")})[i]), 0);
	vacuum(f, age, UINT64_MAX, GONE(NULL), &report);
	assert_int_equal(fr_hold_release(f->dirfd, DUMP("01"), &d), 0);
	assert_int_equal(fr_hold_release(f->dirfd, DUMP("01"), &d), 0);
	assert_int_equal(fr_hold_release(f->dirfd, DUMP("09"), &d), -ENOENT);
	assert_int_equal(fr_hold_release(f->dirfd, MERGED("01"), &d), -EINVAL);
	assert_int_equal(fr_hold_release(f->dirfd, "../" DUMP("02"), &d), -EINVAL);
	assert_int_equal(fr_hold_release(f->dirfd, "", &d), -EINVAL);
	vacuum(f, age, UINT64_MAX, GONE(DUMP("01")), &report);
	/* A person removes the second one. No disk has enough room for KeepFree=. */
	report = (struct fr_vacuum_report){0};
	assert_int_equal(fr_vacuum_remove(f->dirfd, DUMP("02"), &report, NULL), 0);
	fr_vacuum_report_deinit(&report);
	ARE_GONE(DUMP("02"), DUMP("02") ".hold");
	vacuum(f, room, UINT64_MAX, GONE(DUMP("03")), &report);
	assert_int_equal(report.n_held_removed, 1);
	ARE_GONE(DUMP("03") ".hold");
}

TEST(a_hold_without_a_dump_is_a_leftover)
{
	struct fixture *f = *state;

	PUT(DUMP("01") ".hold", DUMP("02"), DUMP("02") ".hold");
	assert_int_equal(fr_vacuum_leftovers(f->dirfd), 0);
	ARE_GONE(DUMP("01") ".hold");
	ARE_THERE(DUMP("02") ".hold");
}
/* NOLINTEND(bugprone-suspicious-missing-comma) */
