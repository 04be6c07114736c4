// SPDX-License-Identifier: GPL-2.0-or-later
/* Opens, formats and damages a crash memory, which is a file on tmpfs. */
#include "../unit.h"
#include "crashmem/crashmem.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BOOT "0123456789abcdef0123456789abcdef"
#define OTHER "00000000000000000000000000000001"
#define BYTES (32ULL << 20)

static char path[64];

static int set_up(void **state)
{
	snprintf(path, sizeof(path), "/dev/shm/flightrec-test.%d", getpid());
	unlink(path);
	return 0;
}

static int tear_down(void **state)
{
	unlink(path);
	return 0;
}

FIXTURE(set_up, tear_down)

static struct fr_crashmem *opened(uint64_t bytes)
{
	struct fr_crashmem *m = NULL;
	struct fr_diag d = {0};
	int r = fr_crashmem_open(path, bytes, &m, &d);

	if (r < 0)
		print_error("%s\n", d.what);
	assert_int_equal(r, 0);
	return m;
}

static void close_and_look(struct fr_crashmem *m, const char *boot_id, enum fr_crashmem_content wanted)
{
	fr_crashmem_free(m);
	m = opened(0);
	assert_int_equal(fr_crashmem_look(m, boot_id), wanted);
	fr_crashmem_free(m);
}

TEST(a_new_memory_is_empty_and_then_in_use)
{
	struct fr_crashmem *m = opened(BYTES);

	assert_int_equal(fr_crashmem_bytes(m), BYTES);
	assert_int_equal(fr_crashmem_look(m, BOOT), FR_CRASHMEM_EMPTY);
	fr_crashmem_format(m, BOOT);
	assert_int_equal(fr_crashmem_look(m, BOOT), FR_CRASHMEM_CLOSED);
	fr_crashmem_begin(m);
	assert_string_equal(fr_crashmem_boot_id(m), BOOT);
	close_and_look(m, BOOT, FR_CRASHMEM_SAME_BOOT);
	close_and_look(NULL, OTHER, FR_CRASHMEM_OTHER_BOOT);
}

TEST(a_closed_memory_has_nothing_to_rescue)
{
	struct fr_crashmem *m = opened(BYTES);

	fr_crashmem_format(m, BOOT);
	fr_crashmem_begin(m);
	fr_crashmem_close(m);
	close_and_look(m, OTHER, FR_CRASHMEM_CLOSED);
}

TEST(areas_do_not_overlap_and_fill_the_memory)
{
	static const uint64_t sizes[] = {FR_CRASHMEM_BYTES_MIN, 5ULL << 20, 8ULL << 20, BYTES, 100ULL << 20};

	for (size_t i = 0; i < FR_ARRAY_SIZE(sizes); i++) {
		struct fr_crashmem *m = opened(sizes[i]);
		uint64_t bytes, sum = FLIGHTREC_CRASHMEM_RECORD;
		uint8_t *end = NULL;

		fr_crashmem_format(m, BOOT);
		fr_crashmem_begin(m);
		for (int a = 0; a <= FLIGHTREC_CRASHMEM_AREA_RING; a++) {
			uint8_t *at = fr_crashmem_area(m, a, &bytes);

			assert_true(!end || at == end);
			memset(at, a + 1, bytes);
			end = at + bytes;
			sum += bytes;
		}
		assert_int_equal(sum, sizes[i]);
		assert_true(bytes >= 2ULL << 20); /* room for a ring */
		close_and_look(m, BOOT, FR_CRASHMEM_SAME_BOOT);
		unlink(path);
	}
}

TEST(two_recorders_do_not_share_a_memory)
{
	struct fr_crashmem *m = opened(BYTES), *second;
	struct fr_diag d = {0};

	assert_int_equal(fr_crashmem_open(path, 0, &second, &d), -EBUSY);
	fr_crashmem_free(m);
}

TEST(files_on_disks_and_small_files_are_refused)
{
	char disk[] = "/var/tmp/flightrec-test.XXXXXX";
	struct fr_crashmem *m;
	struct fr_diag d = {0};
	int fd = mkstemp(disk);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	close(fd);
	assert_int_equal(fr_crashmem_open(disk, BYTES, &m, &d), -ENOTSUP);
	unlink(disk);
	assert_int_equal(fr_crashmem_open(disk, BYTES, &m, &d), -ENOENT);
	assert_int_equal(fr_crashmem_open("/dev/null", BYTES, &m, &d) < 0, true);
	assert_int_equal(fr_crashmem_open(path, 1 << 20, &m, &d), -EMSGSIZE);
}

TEST(each_changed_bit_of_the_header_is_found)
{
	struct fr_crashmem *m = opened(FR_CRASHMEM_BYTES_MIN);
	const size_t unused = offsetof(struct flightrec_crashmem_header, reserved);
	uint64_t bytes;
	uint8_t *header;

	fr_crashmem_format(m, BOOT);
	fr_crashmem_begin(m);
	header = fr_crashmem_area(m, FLIGHTREC_CRASHMEM_AREA_RECORD, &bytes) - FLIGHTREC_CRASHMEM_RECORD;
	for (size_t bit = 0; bit < 8 * unused; bit++) {
		enum fr_crashmem_content found;

		header[bit / 8] ^= (uint8_t)(1u << bit % 8);
		found = fr_crashmem_look(m, BOOT);
		assert_true(found == FR_CRASHMEM_EMPTY || found == FR_CRASHMEM_DAMAGED);
		fr_crashmem_area(m, FLIGHTREC_CRASHMEM_AREA_RING, &bytes);
		assert_int_equal(bytes, 0);
		header[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(fr_crashmem_look(m, BOOT), FR_CRASHMEM_SAME_BOOT);
	fr_crashmem_free(m);
}

static void assert_slot(struct fr_crashmem *m, const char *wanted)
{
	void *data;
	ssize_t n = fr_crashmem_get(m, FLIGHTREC_CRASHMEM_AREA_STATE, &data);

	assert_int_equal(n, (ssize_t)strlen(wanted));
	assert_memory_equal(data, wanted, strlen(wanted));
	free(data);
}

TEST(a_slot_has_what_was_put_last)
{
	struct fr_crashmem *m = opened(BYTES);
	char text[32];
	void *data;

	fr_crashmem_format(m, BOOT);
	assert_int_equal(fr_crashmem_get(m, FLIGHTREC_CRASHMEM_AREA_STATE, &data), -ENOENT);
	for (int i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "state %d", i);
		assert_int_equal(fr_crashmem_put(m, FLIGHTREC_CRASHMEM_AREA_STATE, text, strlen(text)), 0);
		assert_slot(m, text);
	}
	data = calloc(1, BYTES);
	assert_int_equal(fr_crashmem_put(m, FLIGHTREC_CRASHMEM_AREA_STATE, data, BYTES), -E2BIG);
	free(data);
	assert_slot(m, "state 4");
	fr_crashmem_free(m);
}

/* A crash in the middle of a write leaves the slot before it. */
TEST(a_damaged_slot_is_never_believed)
{
	struct fr_crashmem *m = opened(FR_CRASHMEM_BYTES_MIN);
	uint64_t bytes;
	uint8_t *area;

	fr_crashmem_format(m, BOOT);
	assert_int_equal(fr_crashmem_put(m, FLIGHTREC_CRASHMEM_AREA_STATE, "first", 5), 0);
	assert_int_equal(fr_crashmem_put(m, FLIGHTREC_CRASHMEM_AREA_STATE, "second", 6), 0);
	area = fr_crashmem_area(m, FLIGHTREC_CRASHMEM_AREA_STATE, &bytes) + bytes / 2;
	for (size_t bit = 0; bit < 8 * (24 + 6); bit++) { /* the head and the data of the second slot */
		area[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_slot(m, "first");
		area[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_slot(m, "second");
	area[24] ^= 1;
	assert_int_equal(fr_crashmem_put(m, FLIGHTREC_CRASHMEM_AREA_STATE, "third", 5), 0);
	assert_slot(m, "third");
	fr_crashmem_free(m);
}
