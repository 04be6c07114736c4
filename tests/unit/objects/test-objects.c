// SPDX-License-Identifier: GPL-2.0-or-later

/* The cache of object files: its layout, its bound, and files that are not what they were. */

#include "base/cleanup.h"
#include "base/file.h"
#include "objects/cache.h"
#include "perfdata/sample.h"
#include "sideband/buildid.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

struct fixture {
	char dir[64];
	int dirfd;
	struct fr_object_cache *cache;
	struct fr_object self; /* this program */
	char path[PATH_MAX];
	uint64_t size;
};

static void open_cache(struct fixture *f, uint64_t bytes_max, uint64_t object_max)
{
	const struct fr_object_cache_config config = {f->dirfd, "debug", bytes_max, object_max, (gid_t)-1};

	f->cache = fr_object_cache_free(f->cache);
	assert_int_equal(fr_object_cache_open(&config, &f->cache, NULL), 0);
}

/* A copy of this program under NAME, with a build-id of its own. */
static struct fr_object copy_of_self(struct fixture *f, const char *name, uint8_t change, char path[PATH_MAX])
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_object o = f->self;
	uint8_t *note;

	snprintf(path, PATH_MAX, "%s/%s", f->dir, name);
	assert_int_equal(fr_read_file(AT_FDCWD, f->path, 1u << 30, &b), 0);
	note = memmem(b.data, b.len, o.id, o.id_len);
	assert_non_null(note);
	note[0] = o.id[0] = (uint8_t)(o.id[0] ^ change);
	assert_int_equal(fr_file_replace(f->dirfd, name, 0755, (gid_t)-1, b.data, b.len), 0);
	o.path = path;
	return o;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct stat st;
	ssize_t n;
	int fd;

	strcpy(f->dir, "/var/tmp/flightrec-objects.XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	n = readlink("/proc/self/exe", f->path, sizeof(f->path) - 1);
	fd = n < 0 ? -1 : open(f->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	f->size = (uint64_t)st.st_size;
	f->self = (struct fr_object){.path = f->path, .pid = getpid()};
	f->self.id_len = (size_t)fr_build_id_read(fd, f->self.id);
	close(fd);
	*state = f;
	return f->self.id_len == FR_BUILD_ID_MAX ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fr_object_cache_free(f->cache);
	close(f->dirfd);
	nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

/* The cached file of an id, through the link that perf follows; -1: there is none. */
static int open_cached(struct fixture *f, const struct fr_object *o)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "debug/.build-id/%02x/", o->id[0]);

	for (size_t i = 1; i < o->id_len; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", o->id[i]);
	snprintf(path + n, sizeof(path) - (size_t)n, "/elf");
	return openat(f->dirfd, path, O_RDONLY | O_CLOEXEC);
}

static bool is_cached(struct fixture *f, const struct fr_object *o)
{
	_cleanup_close_ int fd = open_cached(f, o);

	return fd >= 0;
}

static void test_a_copy_is_what_was_mapped(void **state)
{
	struct fixture *f = *state;
	uint8_t id[FR_BUILD_ID_MAX];
	_cleanup_close_ int fd = -1;
	struct fr_object_cache_stats s;

	open_cache(f, 1u << 30, 1u << 30);
	assert_int_equal(fr_object_cache_add(f->cache, &f->self), 0);
	fd = open_cached(f, &f->self);
	assert_int_equal(fr_build_id_read(fd, id), FR_BUILD_ID_MAX);
	assert_memory_equal(id, f->self.id, sizeof(id));
	assert_int_equal(fr_object_cache_add(f->cache, &f->self), 0);
	fr_object_cache_stats(f->cache, &s);
	assert_int_equal(s.added, 1);
	assert_int_equal(s.bytes, f->size);
	open_cache(f, 1u << 30, 1u << 30); /* and is found again */
	fr_object_cache_stats(f->cache, &s);
	assert_int_equal(s.objects, 1);
	assert_int_equal(s.bytes, f->size);
}

static void test_another_build_is_not_taken_for_it(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	struct fr_object old = copy_of_self(f, "program", 1, path);

	(void)copy_of_self(f, "program", 2, path);
	open_cache(f, 1u << 30, 1u << 30);
	assert_int_equal(fr_object_cache_add(f->cache, &old), 1);
	assert_false(is_cached(f, &old));
}

/* The bytes of what perf would find for O, but the last one alone: it tells copies of one build-id apart. */
static int cached_end(struct fixture *f, const struct fr_object *o)
{
	_cleanup_close_ int fd = open_cached(f, o);
	struct stat st;
	uint8_t end;

	if (fd < 0)
		return -1;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pread(fd, &end, 1, st.st_size - 1), 1);
	return end;
}

/* A file with libc's build-id, of UID, that ends with END. */
static struct fr_object forged(struct fixture *f, const char *name, uid_t uid, char end, char path[PATH_MAX])
{
	struct fr_object o = copy_of_self(f, name, 1, path);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_int_equal(write(fd, &end, 1), 1);
	assert_int_equal(fchown(fd, uid, uid), 0);
	return o;
}

/* perf looks by build-id alone, and whoever can write a file can put any into it. */
static void test_nobody_serves_the_maps_of_others(void **state)
{
	struct fixture *f = *state;
	char hostile_path[PATH_MAX], root_path[PATH_MAX], other_path[PATH_MAX], same_path[PATH_MAX];
	struct fr_object hostile, root, other, same;

	if (geteuid() != 0)
		skip();
	hostile = forged(f, "hostile", 1000, 'h', hostile_path);
	same = forged(f, "same", 1002, 'h', same_path);
	other = forged(f, "other", 1001, 'o', other_path);
	root = forged(f, "libc", 0, 'r', root_path);
	open_cache(f, 1u << 30, 1u << 30);
	/* Alone it serves its own, and another's where that has the same bytes. */
	assert_int_equal(fr_object_cache_add(f->cache, &hostile), 0);
	assert_int_equal(cached_end(f, &hostile), 'h');
	assert_int_equal(fr_object_cache_add(f->cache, &same), 0);
	assert_int_equal(cached_end(f, &same), 'h');
	/* Another user's is another file: neither serves, whoever comes again, and after a restart. */
	assert_int_equal(fr_object_cache_add(f->cache, &other), 1);
	assert_int_equal(cached_end(f, &other), -1);
	open_cache(f, 1u << 30, 1u << 30);
	assert_int_equal(fr_object_cache_add(f->cache, &hostile), 1);
	assert_int_equal(cached_end(f, &hostile), -1);
	/* Root's serves all, and stays. */
	assert_int_equal(fr_object_cache_add(f->cache, &root), 0);
	assert_int_equal(cached_end(f, &root), 'r');
	assert_int_equal(fr_object_cache_add(f->cache, &hostile), 0);
	open_cache(f, 1u << 30, 1u << 30);
	assert_int_equal(fr_object_cache_add(f->cache, &hostile), 0);
	assert_int_equal(cached_end(f, &root), 'r');
}

/* And one that is gone, of another path, is not the user's either. */
static void test_a_map_whose_file_is_gone_is_not_served_by_another(void **state)
{
	struct fixture *f = *state;
	char hostile_path[PATH_MAX], gone_path[PATH_MAX];
	struct fr_object hostile, gone;

	if (geteuid() != 0)
		skip();
	hostile = forged(f, "hostile", 1000, 'h', hostile_path);
	gone = forged(f, "libc", 0, 'r', gone_path);
	assert_int_equal(unlink(gone_path), 0);
	open_cache(f, 1u << 30, 1u << 30);
	assert_int_equal(fr_object_cache_add(f->cache, &hostile), 0);
	assert_int_equal(unlink(hostile_path), 0);
	open_cache(f, 1u << 30, 1u << 30); /* its owner is known still */
	assert_int_equal(fr_object_cache_add(f->cache, &hostile), 0);
	assert_int_equal(fr_object_cache_add(f->cache, &gone), 1);
	assert_int_equal(cached_end(f, &gone), -1);
}

/* What says that a build-id is contested has no bytes, and is bounded all the same. */
static void test_contested_ids_are_bounded(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX], gone_path[PATH_MAX];
	struct fr_object_cache_stats stats;
	struct fr_object hostile, gone;
	const unsigned most = (unsigned)(f->size / 4096);

	if (geteuid() != 0 || most > 250) /* a build with sanitizers: the ids differ in one byte */
		skip();
	snprintf(gone_path, sizeof(gone_path), "%s/gone", f->dir);
	open_cache(f, f->size, 1u << 30);
	for (unsigned i = 1; i <= most + 3; i++) {
		fr_object_cache_begin(f->cache);
		gone = hostile = copy_of_self(f, "hostile", (uint8_t)i, path);
		assert_int_equal(chown(path, 1000, 1000), 0);
		assert_int_equal(fr_object_cache_add(f->cache, &hostile), 0);
		assert_int_equal(unlink(path), 0);
		gone.path = gone_path;
		assert_int_equal(fr_object_cache_add(f->cache, &gone), 1);
	}
	fr_object_cache_stats(f->cache, &stats);
	assert_in_range(stats.objects, 1, most);
	assert_int_equal(stats.bytes, 0);
}

static void test_what_is_no_regular_file_is_not_opened(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	struct fr_object o = f->self;

	open_cache(f, 1u << 30, 1u << 30);
	snprintf(path, sizeof(path), "%s/fifo", f->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	o.path = path;
	assert_int_equal(fr_object_cache_add(f->cache, &o), 1);
	snprintf(path, sizeof(path), "%s/link", f->dir);
	assert_int_equal(symlink(f->path, path), 0);
	assert_int_equal(fr_object_cache_add(f->cache, &o), 1);
	o.path = "/../../etc/passwd";
	assert_int_equal(fr_object_cache_add(f->cache, &o), 1);
}

static void test_the_least_recently_used_goes(void **state)
{
	struct fixture *f = *state;
	char path[3][PATH_MAX];
	struct fr_object a = copy_of_self(f, "a", 1, path[0]), b = copy_of_self(f, "b", 2, path[1]),
			 c = copy_of_self(f, "c", 3, path[2]);

	open_cache(f, 2 * f->size, 1u << 30);
	fr_object_cache_begin(f->cache);
	assert_int_equal(fr_object_cache_add(f->cache, &a), 0);
	assert_int_equal(fr_object_cache_add(f->cache, &b), 0);
	assert_int_equal(fr_object_cache_add(f->cache, &c), 1); /* one dump does not push itself out */
	fr_object_cache_begin(f->cache);
	assert_int_equal(fr_object_cache_add(f->cache, &a), 0);
	assert_int_equal(fr_object_cache_add(f->cache, &c), 0);
	assert_true(is_cached(f, &a));
	assert_false(is_cached(f, &b));
	assert_true(is_cached(f, &c));
}

static void test_a_large_one_is_left_out(void **state)
{
	struct fixture *f = *state;

	open_cache(f, 1u << 30, f->size - 1);
	assert_int_equal(fr_object_cache_add(f->cache, &f->self), 1);
	open_cache(f, f->size - 1, 1u << 30);
	assert_int_equal(fr_object_cache_add(f->cache, &f->self), 1);
}

static void count_address(void *ctx, uint64_t address, uint16_t mode)
{
	uint64_t *sum = ctx;

	*sum += address * (mode == PERF_RECORD_MISC_KERNEL ? 1000 : 1);
}

static void test_addresses_of_a_sample(void **state)
{
	const struct perf_event_attr attr = {.sample_type = FR_SAMPLE_TYPE | PERF_SAMPLE_PERIOD |
							    PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
							    PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = 3};
	struct {
		struct perf_event_header h;
		uint64_t id, ip, tid, time, cpu, period, n, chain[4], raw, abi, regs[2], size, stack[2], used;
	} s = {.h = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, sizeof(s)},
		.ip = 1,
		.n = 4,
		.chain = {(uint64_t)PERF_CONTEXT_KERNEL, 2, (uint64_t)PERF_CONTEXT_USER, 3},
		.raw = 4, /* u32 size, 4 bytes */
		.abi = 2,
		.size = 16,
		.stack = {5, 7},
		.used = 8};
	uint64_t sum = 0;

	fr_sample_for_each_address(&attr, &s.h, count_address, &sum);
	assert_int_equal(sum, 1000 + 2000 + 3 + 5);
	for (uint16_t size = sizeof(s.h); size < sizeof(s); size += 8) {
		s.h.size = size;
		sum = 0;
		fr_sample_for_each_address(&attr, &s.h, count_address, &sum);
		assert_true(sum <= 3003);
	}
	s.h.size = sizeof(s);
	s.n = UINT64_MAX;
	fr_sample_for_each_address(&attr, &s.h, count_address, &sum);
}

int main(void)
{
#define WITH_CACHE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_CACHE(test_a_copy_is_what_was_mapped),
		WITH_CACHE(test_another_build_is_not_taken_for_it),
		WITH_CACHE(test_nobody_serves_the_maps_of_others),
		WITH_CACHE(test_a_map_whose_file_is_gone_is_not_served_by_another),
		WITH_CACHE(test_contested_ids_are_bounded),
		WITH_CACHE(test_what_is_no_regular_file_is_not_opened),
		WITH_CACHE(test_the_least_recently_used_goes),
		WITH_CACHE(test_a_large_one_is_left_out),
		cmocka_unit_test(test_addresses_of_a_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
