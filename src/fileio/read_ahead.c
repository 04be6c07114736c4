// SPDX-License-Identifier: GPL-2.0-or-later

/*
 *   0 ─────────────── at ───────── at + len ──────────── requested
 *      already read     this call             on its way to the page cache, at most AHEAD_BYTES
 *
 * The kernel's own read-ahead covers 256 KiB by default, less than one read of the merge.
 */

#include "fileio/read_ahead.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>

struct fr_read_ahead {
	int fd;
	size_t ahead_bytes;
	uint64_t requested; /* end of what the kernel was asked to read */
};

int fr_read_ahead_new(int fd, size_t ahead_bytes, struct fr_read_ahead **ret)
{
	struct fr_read_ahead *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	*r = (struct fr_read_ahead){.fd = fd, .ahead_bytes = ahead_bytes};
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	*ret = r;
	return 0;
}

struct fr_read_ahead *fr_read_ahead_free(struct fr_read_ahead *r)
{
	free(r);
	return NULL;
}

/* Requests are made in halves of AHEAD_BYTES, so that one is on its way while the other is consumed. They are
   only advice: where one fails, the read takes longer. */
static void request_ahead(struct fr_read_ahead *r, uint64_t at, uint64_t end)
{
	const uint64_t until = end + r->ahead_bytes;
	const bool goes_on = r->requested >= at && r->requested <= until;
	const uint64_t from = goes_on ? FR_MAX(r->requested, end) : end;

	if (until - from <= r->ahead_bytes / 2)
		return;
	(void)posix_fadvise(r->fd, (off_t)from, (off_t)(until - from), POSIX_FADV_WILLNEED);
	r->requested = until;
}

ssize_t fr_read_ahead_read(void *ctx, void *data, size_t len, uint64_t at)
{
	struct fr_read_ahead *r = ctx;

	fr_thread_assert_may_wait();
	request_ahead(r, at, at + len);
	return fr_pread_all(r->fd, data, len, (off_t)at);
}
