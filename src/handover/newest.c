// SPDX-License-Identifier: GPL-2.0-or-later
#include "handover/newest.h"
#include "base/cleanup.h"
#include "history/unpack.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* A run, and some more. If the previous instance was killed in a take-over, the records of
   FR_CUTOVER_WAIT_NS, too: of more than a million records a second. */
#define END_BYTES (512u << 10)
static_assert(END_BYTES > FR_HISTORY_RUN_MAX, "a run fits");
/* The newest run can be in the newest frame that has samples, or partly in the frame before it. */
#define FRAMES 2u

/* Sets RET to the newest frames that have samples, oldest first. Returns their number. */
static size_t find_frames(struct fr_snapshot *snapshot, struct fr_frame ret[static FRAMES])
{
	struct fr_frame f;
	size_t n = 0;

	while (fr_snapshot_next(snapshot, &f) == 1)
		if (f.n_samples) {
			if (n == FRAMES)
				ret[0] = ret[1];
			ret[n == FRAMES ? n - 1 : n++] = f;
		}
	return n;
}

/* Appends the records of the last END_BYTES bytes of RECORDS, and the record that they begin in. */
static int append_end(struct fr_buf *ret, const uint8_t *records, size_t len)
{
	struct fr_record_iter it = fr_record_iter(records, len);
	const uint8_t *begin = it.at;

	while ((size_t)(records + len - it.at) > END_BYTES) {
		begin = it.at;
		if (!fr_record_next(&it))
			break;
	}
	return fr_buf_append(ret, begin, (size_t)(records + len - begin));
}

int fr_newest_samples(struct fr_history *history, struct fr_snapshot *snapshot, struct fr_buf *ret)
{
	const size_t size = fr_history_section_max(history);
	_cleanup_unpack_ struct fr_unpack *unpack = NULL;
	_cleanup_free_ void *raw = malloc(size);
	struct fr_frame frames[FRAMES];
	const size_t n_frames = find_frames(snapshot, frames);
	int r = raw ? fr_unpack_new(&unpack) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n_frames; i++) {
		const ssize_t n = fr_frame_samples(unpack, &frames[i], raw, size);

		if (n > 0)
			r = append_end(ret, raw, (size_t)n);
		else if (n < 0 && n != -EBADMSG)
			r = (int)n;
	}
	return r;
}
