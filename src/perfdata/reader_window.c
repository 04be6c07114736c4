// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/reader_private.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <string.h>

void fr_reader_set_source(struct fr_reader *r, const struct fr_reader_source *source)
{
	r->source = *source;
}

static ssize_t read_at(struct fr_reader *r, void *data, size_t len, uint64_t at)
{
	return r->source.read ? r->source.read(r->source.ctx, data, len, at)
			      : fr_pread_all(r->fd, data, len, (off_t)at);
}

int fr_reader_window(struct fr_reader *r, uint64_t at, size_t len, const uint8_t **ret, size_t *ret_len)
{
	uint64_t end = r->window_at + r->window_len;
	size_t kept = 0, want;
	ssize_t n;

	if (at >= r->window_at && at <= end && end - at >= len) {
		*ret = r->window + (at - r->window_at);
		*ret_len = len;
		return 0;
	}
	if (at >= r->window_at && at < end) {
		kept = (size_t)(end - at);
		memmove(r->window, r->window + (at - r->window_at), kept);
	}
	r->window_at = at;
	r->window_len = kept;
	want = at + kept < r->file_size ? (size_t)FR_MIN(FR_READER_WINDOW - kept, r->file_size - at - kept)
					: 0;
	n = want ? read_at(r, r->window + kept, want, at + kept) : 0;
	if (n < 0)
		return (int)n;
	if ((size_t)n < want) /* the file was truncated after it was opened */
		r->file_size = at + kept + (size_t)n;
	r->window_len = kept + (size_t)n;
	*ret = r->window;
	*ret_len = FR_MIN(len, r->window_len);
	return 0;
}
