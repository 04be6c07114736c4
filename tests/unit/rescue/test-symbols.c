// SPDX-License-Identifier: GPL-2.0-or-later
/* Stores symbols in a crash memory, damages them, and writes them beside a dump. */
#include "../unit.h"
#include "../crashmem/memory.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/record.h"
#include "rescue/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define LARGE (32ULL << 20)
#define LINES "ffffffff81000000 T _stext\nffffffff81000010 d a_datum\nffffffffc0000000 t init\t[snd_pcm]\n"

static char directory[64], file[96];
static int dirfd_;
static struct fr_crashmem *m;

static int set_up(void **state)
{
	strcpy(directory, "/tmp/fr-symbols-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	dirfd_ = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(file, sizeof(file), "%s/kallsyms", directory);
	return 0;
}

static int tear_down(void **state)
{
	m = fr_crashmem_free(m);
	close(dirfd_);
	return unit_shell("rm -rf '%s'", directory);
}

FIXTURE(set_up, tear_down)

static void write_file(const void *data, size_t len)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(fr_write_all(fd, data, len), 0);
	close(fd);
}

static int store(const char *path, struct fr_diag *d)
{
	*d = (struct fr_diag){0};
	return fr_rescue_symbols_store(m, path, d);
}

static size_t count_build_ids(const struct fr_rescue_symbols *s)
{
	struct fr_record_iter it = fr_record_iter(s->build_ids.data, s->build_ids.len);
	const struct fr_record_build_id *b;
	size_t n = 0;

	while ((b = fr_record_next_build_id(&it))) {
		assert_true(n > 0 || strcmp(b->filename, "[kernel.kallsyms]") == 0);
		n++;
	}
	return n;
}

/* /sys/kernel/notes is there on any kernel with CONFIG_SYSFS. */
static void assert_stored(const char *kallsyms, size_t len)
{
	struct fr_rescue_symbols s;

	assert_int_equal(fr_rescue_symbols_read(m, &s), 0);
	assert_int_equal(s.kallsyms.len, len);
	if (len)
		assert_memory_equal(s.kallsyms.data, kallsyms, len);
	assert_true(count_build_ids(&s) >= 1);
	fr_rescue_symbols_deinit(&s);
}

TEST(symbols_and_build_ids_are_stored)
{
	struct fr_rescue_symbols s;
	struct fr_diag d;

	m = memory_new(LARGE);
	assert_int_equal(fr_rescue_symbols_read(m, &s), -ENOENT);
	write_file(LINES, strlen(LINES));
	assert_int_equal(store(file, &d), FR_RESCUE_STORED_ALL);
	assert_int_equal(d.code, 0);
	assert_stored(LINES, strlen(LINES));
	write_file(LINES, strlen(LINES) / 3); /* a torn line at the end is not stored */
	assert_int_equal(store(file, &d), FR_RESCUE_STORED_ALL);
	assert_stored(LINES, strlen("ffffffff81000000 T _stext\n"));
}

TEST(the_symbols_of_this_kernel_are_stored)
{
	_cleanup_buf_ struct fr_buf kallsyms = {0};
	struct fr_rescue_symbols s;
	struct fr_diag d;
	int r;

	m = memory_new(LARGE);
	r = store(NULL, &d);
	if (r == FR_RESCUE_STORED_BUILD_IDS)
		unit_skip("%s", d.what);
	assert_int_equal(r, FR_RESCUE_STORED_ALL);
	assert_int_equal(fr_read_file(AT_FDCWD, "/proc/kallsyms", 64u << 20, &kallsyms), 0);
	assert_int_equal(fr_rescue_symbols_read(m, &s), 0);
	/* BPF programs of other tests come and go. */
	assert_in_range(s.kallsyms.len, kallsyms.len - 100000, kallsyms.len + 100000);
	assert_memory_equal(s.kallsyms.data, kallsyms.data, 100000);
	fr_rescue_symbols_deinit(&s);
}

TEST(hidden_addresses_leave_the_build_ids)
{
	static const char hidden[] = "0000000000000000 T _stext\n0000000000000000 D a_datum\n";
	struct fr_diag d;

	m = memory_new(LARGE);
	write_file(hidden, strlen(hidden));
	assert_int_equal(store(file, &d), FR_RESCUE_STORED_BUILD_IDS);
	assert_int_equal(d.code, -EACCES);
	assert_stored(NULL, 0);
	assert_int_equal(store("/nowhere", &d), FR_RESCUE_STORED_BUILD_IDS);
	assert_int_equal(d.code, -ENOENT);
	assert_stored(NULL, 0);
}

/* Makes a file of N symbols with random names: half of them are functions. */
static void write_symbols(size_t n)
{
	_cleanup_buf_ struct fr_buf b = {0};

	for (size_t i = 0; i < n; i++) {
		char line[64];
		int len = snprintf(line, sizeof(line), "ffffffff%08zx %c s%08x%08x\n", i, i % 2 ? 't' : 'd',
			rand(), rand());

		assert_int_equal(fr_buf_append(&b, line, (size_t)len), 0);
	}
	write_file(b.data, b.len);
}

TEST(what_does_not_fit_is_left_out)
{
	struct fr_rescue_symbols s;
	struct fr_diag d;

	m = memory_new(LARGE);
	write_symbols(420000);
	assert_int_equal(store(file, &d), FR_RESCUE_STORED_TEXT);
	assert_int_equal(d.code, -E2BIG);
	assert_int_equal(fr_rescue_symbols_read(m, &s), 0);
	assert_int_equal(s.kallsyms.len, 210000 * strlen("ffffffff00000001 t s0123456701234567\n"));
	assert_null(memmem(s.kallsyms.data, s.kallsyms.len, " d ", 3));
	fr_rescue_symbols_deinit(&s);
	write_symbols(900000);
	assert_int_equal(store(file, &d), FR_RESCUE_STORED_BUILD_IDS);
	assert_int_equal(d.code, -E2BIG);
	assert_stored(NULL, 0);
}

TEST(a_small_memory_has_the_build_ids)
{
	struct fr_diag d;

	m = memory_new(FR_CRASHMEM_BYTES_MIN);
	write_symbols(100000);
	assert_int_equal(store(file, &d), FR_RESCUE_STORED_BUILD_IDS);
	assert_int_equal(d.code, -E2BIG);
	assert_stored(NULL, 0);
}

/* The data of a slot, as symbols.c writes it. */
static void put(
	uint32_t version, uint64_t build_ids_bytes, uint64_t kallsyms_bytes, const void *raw, size_t len)
{
	struct {
		uint32_t version, reserved;
		uint64_t build_ids_bytes, kallsyms_bytes;
		uint8_t zstd[4096];
	} data = {version, 0, build_ids_bytes, kallsyms_bytes, {0}};
	size_t n = ZSTD_compress(data.zstd, sizeof(data.zstd), raw, len, 1);

	assert_false(ZSTD_isError(n));
	assert_int_equal(fr_crashmem_put(m, FLIGHTREC_CRASHMEM_AREA_SYMBOLS, &data, 24 + n), 0);
}

TEST(forged_symbols_are_refused)
{
	static const char *const bad[] = {"ffffffff81000000 T", "ffffffff81000000 T a",
		"ffffffff8100000g T a\n", "ffffffff81000000 T a\nx\n", "ffffffff81000000 T a\x01\n", "\n"};
	const size_t len = strlen(LINES);
	struct fr_rescue_symbols s;

	m = memory_new(LARGE);
	put(1, 0, len, LINES, len);
	assert_int_equal(fr_rescue_symbols_read(m, &s), 0);
	assert_int_equal(s.kallsyms.len, len);
	fr_rescue_symbols_deinit(&s);
	put(2, 0, len, LINES, len);
	assert_int_equal(fr_rescue_symbols_read(m, &s), -EBADMSG);
	put(1, 0, len + 1, LINES, len);
	assert_int_equal(fr_rescue_symbols_read(m, &s), -EBADMSG);
	put(1, 0, len - 1, LINES, len);
	assert_int_equal(fr_rescue_symbols_read(m, &s), -EBADMSG);
	put(1, 0, UINT64_MAX, LINES, len);
	assert_int_equal(fr_rescue_symbols_read(m, &s), -EBADMSG);
	put(1, UINT64_MAX, len, LINES, len);
	assert_int_equal(fr_rescue_symbols_read(m, &s), -EBADMSG);
	put(1, len, 0, LINES, len); /* these are no build-ids */
	assert_int_equal(fr_rescue_symbols_read(m, &s), -EBADMSG);
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		put(1, 0, strlen(bad[i]), bad[i], strlen(bad[i]));
		assert_int_equal(fr_rescue_symbols_read(m, &s), -EBADMSG);
	}
	assert_int_equal(fr_crashmem_put(m, FLIGHTREC_CRASHMEM_AREA_SYMBOLS, "short", 5), 0);
	assert_int_equal(fr_rescue_symbols_read(m, &s), -EBADMSG);
}

TEST(forged_build_ids_are_refused)
{
	static const struct {
		struct fr_record_build_id b;
		char name[28];
	} good = {{{FR_RECORD_HEADER_BUILD_ID, FR_MISC_BUILD_ID_SIZE, 64}, -1, {1}, 20, {0}}, "[snd_pcm]"};
	struct fr_rescue_symbols s;

	m = memory_new(LARGE);
	for (int i = 0; i < 6; i++) {
		__typeof__(good) record;

		memcpy((void *)&record, &good, sizeof(good));
		switch (i) {
		case 1:
			((struct fr_record_build_id *)&record)->size = 21;
			break;
		case 2:
			memset((char *)record.name, 'x', sizeof(record.name));
			break;
		case 3:
			((struct fr_record_build_id *)&record)->header.size = 72;
			break;
		case 4:
			((struct fr_record_build_id *)&record)->header.type = 1;
			break;
		case 5:
			memcpy((char *)record.name, "/bin/sh", 8);
			break;
		}
		put(1, sizeof(record), 0, &record, sizeof(record));
		assert_int_equal(fr_rescue_symbols_read(m, &s), i == 0 ? 0 : -EBADMSG);
		if (i == 0)
			fr_rescue_symbols_deinit(&s);
	}
}

TEST(the_file_is_beside_the_dump)
{
	struct fr_rescue_symbols s = {0};
	_cleanup_buf_ struct fr_buf content = {0};
	struct stat st;

	assert_int_equal(fr_rescue_symbols_write(dirfd_, "dump", (gid_t)-1, &s), 0);
	assert_int_equal(fstatat(dirfd_, "dump.kallsyms", &st, 0), -1);
	assert_int_equal(fr_buf_append(&s.kallsyms, LINES, strlen(LINES)), 0);
	assert_int_equal(fr_rescue_symbols_write(dirfd_, "dump", 12345, &s), 0);
	assert_int_equal(fstatat(dirfd_, "dump.kallsyms", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	if (geteuid() == 0)
		assert_int_equal(st.st_gid, 12345);
	assert_int_equal(fr_read_file(dirfd_, "dump.kallsyms", 1000, &content), 0);
	assert_string_equal((char *)content.data, LINES);
	fr_rescue_symbols_deinit(&s);
}
