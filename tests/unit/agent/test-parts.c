// SPDX-License-Identifier: GPL-2.0-or-later
#include "agent/parts.h"
#include "../files.h"

#include <fcntl.h>

static int dirfd_of_root(void)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

FIXTURE(make_root, remove_root)

TEST(parts_are_read_again)
{
	_cleanup_close_ int fd = dirfd_of_root();
	struct fr_store_part p[4], a = {1, 100, "e1"}, b = {2, 50, "\"e2\""};
	size_t n = 7;

	assert_int_equal(fr_parts_read(fd, "x", "up", p, 4, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(fr_parts_add(fd, "x", "up", &a), 0);
	assert_int_equal(fr_parts_add(fd, "x", "other", &b), 0);
	assert_int_equal(fr_parts_add(fd, "x", "up", &b), 0);
	strcpy(a.etag, "new");
	assert_int_equal(fr_parts_add(fd, "x", "up", &a), 0);
	assert_int_equal(fr_parts_read(fd, "x", "up", p, 4, &n), 0);
	assert_int_equal(n, 2);
	assert_string_equal(p[0].etag, "new");
	assert_int_equal(p[1].number, 2);
	assert_int_equal(p[1].bytes, 50);
	assert_string_equal(p[1].etag, "\"e2\"");
	assert_int_equal(fr_parts_read(fd, "x", "up", p, 1, &n), 0);
	assert_int_equal(n, 1);
}

TEST(damaged_lines_are_ignored)
{
	_cleanup_close_ int fd = dirfd_of_root();
	struct fr_store_part p[4], c = {3, 9, "e3"};
	size_t n;

	write_file("x", "junk\n1 2\n0 5 e up\n99999 5 e up\n-1 5 e up\n2 7 e up \n4 100 cu");
	assert_int_equal(fr_parts_add(fd, "x", "up", &c), 0);
	assert_int_equal(fr_parts_read(fd, "x", "up", p, 4, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(p[0].number, 3);
}
