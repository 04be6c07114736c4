// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "base/cleanup.h"
#include "store/hash.h"
#include "store/s3.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* FIPS 180-2 */
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static int make_file(const char *text, size_t n)
{
	int fd = memfd_create("hash", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	return fd;
}

TEST(hashes_of_memory)
{
	char sha256[FR_SHA256_SIZE], md5[FR_MD5_SIZE];

	assert_int_equal(fr_hash_data("abc", 3, sha256, md5, NULL), 0);
	assert_string_equal(sha256, ABC);
	if (md5[0])
		assert_string_equal(md5, "900150983cd24fb0d6963f7d28e17f72"); /* RFC 1321 */
	assert_int_equal(fr_hash_data("", 0, sha256, md5, NULL), 0);
	assert_string_equal(sha256, EMPTY);
}

TEST(hash_of_a_part_of_a_file)
{
	_cleanup_close_ int fd = make_file("xxabcyy", 7);
	char sha256[65] = "";

	assert_int_equal(fr_hash_range(fd, 2, 3, NULL, sha256, NULL), 0);
	assert_string_equal(sha256, ABC);
	assert_int_equal(fr_store_sha256(fd, 0, NULL, sha256, NULL), 0);
	assert_string_equal(sha256, EMPTY);
}

/* One million "a", so that the file has many chunks. */
TEST(hash_of_a_long_file)
{
	static char text[1000000];
	_cleanup_close_ int fd = -1;
	char sha256[65] = "";

	memset(text, 'a', sizeof(text));
	fd = make_file(text, sizeof(text));
	assert_int_equal(fr_store_sha256(fd, sizeof(text), NULL, sha256, NULL), 0);
	assert_string_equal(sha256, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(a_file_that_is_too_short)
{
	_cleanup_close_ int fd = make_file("abc", 3);
	char sha256[65] = "old";
	struct fr_diag d = {0};

	assert_int_equal(fr_store_sha256(fd, 5, NULL, sha256, &d), -EBADMSG);
	assert_non_null(strstr(d.what, "ends 2 bytes early"));
	assert_string_equal(sha256, "old");
	assert_int_equal(fr_store_sha256(-1, 5, NULL, sha256, NULL), -EBADF);
}

TEST(a_hash_can_be_canceled)
{
	_cleanup_close_ int fd = make_file("abc", 3);
	const atomic_bool cancel = true;
	char sha256[65];

	assert_int_equal(fr_store_sha256(fd, 3, &cancel, sha256, NULL), -ECANCELED);
}
