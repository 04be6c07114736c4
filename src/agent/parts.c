// SPDX-License-Identifier: GPL-2.0-or-later
#include "agent/parts.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define LINE_MAX_BYTES (FR_STORE_UPLOAD_SIZE + FR_STORE_ETAG_SIZE + 48)
#define FILE_MAX (2ull * FR_STORE_PARTS_MAX * LINE_MAX_BYTES)

int fr_parts_add(int dirfd, const char *name, const char *upload, const struct fr_store_part *p)
{
	_cleanup_close_ int fd =
		openat(dirfd, name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	char line[LINE_MAX_BYTES];
	int n;

	if (fd < 0)
		return -errno;
	/* A line that was cut by a crash must not spoil this one. */
	n = snprintf(line, sizeof(line), "\n%u %" PRIu64 " %s %s\n", p->number, p->bytes, p->etag, upload);
	return n < (int)sizeof(line) ? fr_write_all(fd, line, (size_t)n) : -ENAMETOOLONG;
}

/* Reads a line. Returns whether it is a part of UPLOAD. */
static bool read_line(const char *line, const char *upload, struct fr_store_part *ret)
{
	int end = 0;

	/* The width is that of FR_STORE_ETAG_SIZE. */
	return sscanf(line, "%u %" SCNu64 " %127s %n", &ret->number, &ret->bytes, ret->etag, &end) == 3 &&
	       end > 0 && ret->number > 0 && ret->number <= FR_STORE_PARTS_MAX && !strcmp(line + end, upload);
}

int fr_parts_read(
	int dirfd, const char *name, const char *upload, struct fr_store_part *ret, size_t max, size_t *ret_n)
{
	_cleanup_buf_ struct fr_buf text = {0};
	int r = fr_read_file(dirfd, name, FILE_MAX, &text);
	char *save = NULL;
	size_t n = 0;

	*ret_n = 0;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (char *line = strtok_r((char *)text.data, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		struct fr_store_part p = {0};
		size_t i = 0;

		if (!read_line(line, upload, &p))
			continue;
		while (i < n && ret[i].number != p.number)
			i++;
		if (i == max)
			continue;
		ret[i] = p;
		n += i == n;
	}
	*ret_n = n;
	return 0;
}
