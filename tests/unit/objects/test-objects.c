// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the cache of object files: its layout, its limits, and hostile files. */

#include "../unit.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "objects/cache.h"
#include "perfdata/sample.h"
#include "sideband/buildid.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define PLENTY (1u << 30)

static char paths[8][128]; /* the paths of the newest copies */
static size_t n_paths;

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

static void assert_add(struct fixture *f, const struct fr_object *o, int result)
{
	assert_int_equal(fr_object_cache_add(f->cache, o), result);
}

/* Make a copy NAME of this program, which belongs to UID. The first byte of its build-id is XORed with
   CHANGE. END is appended to the copy, unless it is 0. */
static struct fr_object make_copy(struct fixture *f, const char *name, uint8_t change, char end, uid_t uid)
{
	char *path = paths[n_paths++ % FR_ARRAY_SIZE(paths)];
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_object o = f->self;
	uint8_t *note;

	snprintf(path, sizeof(paths[0]), "%s/%s", f->dir, name);
	assert_int_equal(fr_read_file(AT_FDCWD, f->path, PLENTY, &b), 0);
	note = memmem(b.data, b.len, o.id, o.id_len);
	assert_non_null(note);
	note[0] = o.id[0] = (uint8_t)(o.id[0] ^ change);
	assert_int_equal(fr_buf_append(&b, &end, end ? 1 : 0), 0);
	assert_int_equal(fr_file_replace(f->dirfd, name, 0755, (gid_t)-1, b.data, b.len), 0);
	if (uid)
		assert_int_equal(chown(path, uid, uid), 0);
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

FIXTURE(setup, teardown)

/* Open the cached file of O by the link that perf uses. Returns the file descriptor, or -1 if the file does
   not exist. */
static int open_cached(struct fixture *f, const struct fr_object *o)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "debug/.build-id/%02x/", o->id[0]);

	for (size_t i = 1; i < o->id_len; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", o->id[i]);
	snprintf(path + n, sizeof(path) - (size_t)n, "/elf");
	return openat(f->dirfd, path, O_RDONLY | O_CLOEXEC);
}

/* Returns the last byte of the cached file of O, or -1 if there is no file. Copies with the same build-id
   differ in the last byte. */
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

TEST(copy_is_made_once_and_found_after_a_restart)
{
	struct fixture *f = *state;
	uint8_t id[FR_BUILD_ID_MAX];
	_cleanup_close_ int fd = -1;
	struct fr_object_cache_stats s;

	open_cache(f, PLENTY, PLENTY);
	assert_add(f, &f->self, 0);
	fd = open_cached(f, &f->self);
	assert_int_equal(fr_build_id_read(fd, id), FR_BUILD_ID_MAX);
	assert_memory_equal(id, f->self.id, sizeof(id));
	assert_add(f, &f->self, 0);
	fr_object_cache_stats(f->cache, &s);
	assert_int_equal(s.added, 1);
	assert_int_equal(s.bytes, f->size);
	open_cache(f, PLENTY, PLENTY);
	fr_object_cache_stats(f->cache, &s);
	assert_int_equal(s.objects, 1);
	assert_int_equal(s.bytes, f->size);
}

TEST(file_with_another_build_id_is_not_copied)
{
	struct fixture *f = *state;
	struct fr_object old = make_copy(f, "program", 1, 0, 0);

	(void)make_copy(f, "program", 2, 0, 0);
	open_cache(f, PLENTY, PLENTY);
	assert_add(f, &old, 1);
	assert_int_equal(cached_end(f, &old), -1);
}

/* perf finds a cached file only by its build-id, and each user can put any build-id into a file. */
TEST(file_of_a_user_does_not_serve_the_maps_of_others)
{
	struct fixture *f = *state;
	struct fr_object hostile, root, other, same;

	if (geteuid() != 0)
		unit_skip("it needs root");
	hostile = make_copy(f, "hostile", 1, 'h', 1000);
	same = make_copy(f, "same", 1, 'h', 1002);
	other = make_copy(f, "other", 1, 'o', 1001);
	root = make_copy(f, "libc", 1, 'r', 0);
	open_cache(f, PLENTY, PLENTY);
	/* A copy is used for its owner, and for another user whose file has the same bytes. */
	assert_add(f, &hostile, 0);
	assert_int_equal(cached_end(f, &hostile), 'h');
	assert_add(f, &same, 0);
	assert_int_equal(cached_end(f, &same), 'h');
	/* A third user has another file with this build-id. From then on no copy is used, also after a
	   restart. */
	assert_add(f, &other, 1);
	assert_int_equal(cached_end(f, &other), -1);
	open_cache(f, PLENTY, PLENTY);
	assert_add(f, &hostile, 1);
	assert_int_equal(cached_end(f, &hostile), -1);
	/* The file of root is used for all users, and stays. */
	assert_add(f, &root, 0);
	assert_int_equal(cached_end(f, &root), 'r');
	assert_add(f, &hostile, 0);
	open_cache(f, PLENTY, PLENTY);
	assert_add(f, &hostile, 0);
	assert_int_equal(cached_end(f, &root), 'r');
}

TEST(removed_file_is_not_served_by_the_file_of_a_user)
{
	struct fixture *f = *state;
	struct fr_object hostile, gone;

	if (geteuid() != 0)
		unit_skip("it needs root");
	hostile = make_copy(f, "hostile", 1, 'h', 1000);
	gone = make_copy(f, "libc", 1, 'r', 0);
	assert_int_equal(unlink(gone.path), 0);
	open_cache(f, PLENTY, PLENTY);
	assert_add(f, &hostile, 0);
	assert_int_equal(unlink(hostile.path), 0);
	open_cache(f, PLENTY, PLENTY); /* the cache still knows the owner of the copy */
	assert_add(f, &hostile, 0);
	assert_add(f, &gone, 1);
	assert_int_equal(cached_end(f, &gone), -1);
}

/* An entry is contested if two users have different files with its build-id. A contested entry has no bytes,
   so the number of these entries must be limited. */
TEST(contested_entries_are_bounded)
{
	struct fixture *f = *state;
	struct fr_object_cache_stats stats;
	const unsigned most = (unsigned)(f->size / 4096);
	char gone_path[PATH_MAX];

	if (geteuid() != 0 || most > 250) /* with sanitizers: there are only 255 different ids */
		unit_skip("it needs root, and a small program");
	snprintf(gone_path, sizeof(gone_path), "%s/gone", f->dir);
	open_cache(f, f->size, PLENTY);
	for (unsigned i = 1; i <= most + 3; i++) {
		struct fr_object hostile = make_copy(f, "hostile", (uint8_t)i, 0, 1000), gone = hostile;

		fr_object_cache_begin_dump(f->cache);
		assert_add(f, &hostile, 0);
		assert_int_equal(unlink(hostile.path), 0);
		gone.path = gone_path;
		assert_add(f, &gone, 1);
	}
	fr_object_cache_stats(f->cache, &stats);
	assert_in_range(stats.objects, 1, most);
	assert_int_equal(stats.bytes, 0);
}

TEST(only_regular_files_are_opened)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	struct fr_object o = f->self;

	open_cache(f, PLENTY, PLENTY);
	o.path = path;
	snprintf(path, sizeof(path), "%s/fifo", f->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_add(f, &o, 1);
	snprintf(path, sizeof(path), "%s/link", f->dir);
	assert_int_equal(symlink(f->path, path), 0);
	assert_add(f, &o, 1);
	o.path = "/../../etc/passwd";
	assert_add(f, &o, 1);
}

TEST(least_recently_used_entry_is_evicted)
{
	struct fixture *f = *state;
	struct fr_object a = make_copy(f, "a", 1, 'a', 0), b = make_copy(f, "b", 2, 'b', 0),
			 c = make_copy(f, "c", 3, 'c', 0);

	open_cache(f, 2 * f->size + 2, PLENTY);
	fr_object_cache_begin_dump(f->cache);
	assert_add(f, &a, 0);
	assert_add(f, &b, 0);
	assert_add(f, &c, 1); /* an object does not evict objects of the same dump */
	fr_object_cache_begin_dump(f->cache);
	assert_add(f, &a, 0);
	assert_add(f, &c, 0);
	assert_int_equal(cached_end(f, &a), 'a');
	assert_int_equal(cached_end(f, &b), -1);
	assert_int_equal(cached_end(f, &c), 'c');
}

TEST(large_file_is_not_copied)
{
	struct fixture *f = *state;

	open_cache(f, PLENTY, f->size - 1);
	assert_add(f, &f->self, 1);
	open_cache(f, f->size - 1, PLENTY);
	assert_add(f, &f->self, 1);
}

static void count_address(void *ctx, uint64_t address, uint16_t mode)
{
	uint64_t *sum = ctx;

	*sum += address * (mode == PERF_RECORD_MISC_KERNEL ? 1000 : 1);
}

TEST(addresses_of_a_sample_are_read_within_bounds)
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
		.raw = 4, /* the size of the raw data, which follows */
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
