// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/where.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define MOUNTS_MAX (4u << 20)

/* The mount's line of /proc/self/mountinfo: "ID parent maj:min root POINT options … - TYPE SOURCE options".
 */
static int parse_mount(char *line, char *ret, size_t size)
{
	char *tail = strstr(line, " - "), *save = NULL, *point = NULL, *type, *source;

	if (!tail)
		return -EBADMSG;
	*tail = '\0';
	point = strtok_r(line, " ", &save);
	for (int i = 0; point && i < 4; i++)
		point = strtok_r(NULL, " ", &save);
	type = strtok_r(tail + 3, " ", &save);
	source = strtok_r(NULL, " ", &save);
	if (!point || !type || !source)
		return -EBADMSG;
	snprintf(ret, size, "%s %s on %s", type, source, point);
	return 0;
}

void fr_where_file_system(int fd, char *ret, size_t size)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct statx st;
	char *save = NULL;

	snprintf(ret, size, "its file system");
	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 || !(st.stx_mask & STATX_MNT_ID) ||
		fr_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_MAX, &b) < 0)
		return;
	for (char *line = strtok_r((char *)b.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strtoull(line, NULL, 10) == st.stx_mnt_id) {
			(void)parse_mount(line, ret, size);
			return;
		}
}

uint64_t fr_where_allocated(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

const char *fr_where_hint(int code)
{
	switch (code) {
	case -ENOSPC:
		return "make room on that file system, let the recorder keep fewer files, or have it write "
		       "elsewhere";
	case -EDQUOT:
		return "raise the quota, remove files, or have the recorder write elsewhere";
	case -EACCES:
	case -EPERM:
		return "the recorder's user needs write permission on that directory";
	case -EROFS:
		return "that file system is mounted read-only: mount it read-write, or have the recorder "
		       "write elsewhere";
	case -EIO:
		return "the disk reported an error: see the kernel's log (journalctl -k)";
	case -EFBIG:
		return "the file system or LimitFSIZE= does not allow a file of this size";
	default:
		return NULL;
	}
}
