// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/spill.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int create(void)
{
	const char *folder = getenv("TMPDIR");
	_cleanup_free_ char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/flightrec-report.XXXXXX", folder && *folder ? folder : "/var/tmp") < 0)
		return -ENOMEM;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	return fd;
}

int fr_spill_append(struct fr_spill *s, const void *data, size_t len)
{
	int r = s->fd < 0 ? create() : 0;

	if (r < 0)
		return r;
	if (s->fd < 0)
		s->fd = r;
	r = fr_pwrite_all(s->fd, data, len, (off_t)s->size);
	if (r == 0)
		s->size += len;
	return r;
}

int fr_spill_read(const struct fr_spill *s, uint64_t at, void *ret, size_t len)
{
	const ssize_t n = fr_pread_all(s->fd, ret, len, (off_t)at);

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EIO;
}

void fr_spill_deinit(struct fr_spill *s)
{
	fr_closep(&s->fd);
	*s = FR_SPILL_INIT;
}
