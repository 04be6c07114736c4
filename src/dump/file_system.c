// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/file_system.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Describes the mount in LINE of /proc/self/mountinfo: "ID PARENT MAJ:MIN ROOT POINT OPTIONS … - TYPE SOURCE
   OPTIONS". */
static void describe_mount(const char *line, char *ret, size_t size)
{
	_cleanup_free_ char *point = NULL, *type = NULL, *source = NULL;
	const char *tail = strstr(line, " - ");

	if (tail && sscanf(line, "%*s %*s %*s %*s %ms", &point) == 1 &&
		sscanf(tail, " - %ms %ms", &type, &source) == 2)
		snprintf(ret, size, "%s %s on %s", type, source, point);
}

void fr_file_system_describe(int fd, char *ret, size_t size)
{
	_cleanup_fclose_ FILE *mounts = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	struct statx st;

	snprintf(ret, size, "its file system");
	if (!mounts || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 || !(st.stx_mask & STATX_MNT_ID))
		return;
	while (getline(&line, &room, mounts) > 0)
		if (strtoull(line, NULL, 10) == st.stx_mnt_id) {
			describe_mount(line, ret, size);
			return;
		}
}

uint64_t fr_file_allocated_bytes(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

const char *fr_file_system_hint(int code)
{
	switch (code) {
	case -ENOSPC:
		return "make room on this file system, lower MaxUse=, or set another Directory=";
	case -EDQUOT:
		return "raise the quota, remove files, or set another Directory=";
	case -EACCES:
	case -EPERM:
		return "give the recorder's user write permission on this directory";
	case -EROFS:
		return "mount this file system read-write, or set another Directory=";
	case -EIO:
		return "see the kernel's log for an error of the disk: journalctl -k";
	case -EFBIG:
		return "raise LimitFSIZE=, or use a file system that allows a file of this size";
	default:
		return NULL;
	}
}
