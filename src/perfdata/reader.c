// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The loop over records. Outer records stand in the file; a COMPRESSED one is handed to the zstd stream, and
 * what comes out of it is handed out before the next outer record is looked at. Where a header cannot be
 * believed, the reader looks for the next place at which several records in a row can: the id of an event in
 * each of them, or the begin of a compressed frame.
 */

#include "perfdata/reader.h"
#include "base/cleanup.h"
#include "perfdata/reader_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void fr_reader_damaged(struct fr_reader *r, uint64_t at, uint64_t lost, const char *what)
{
	r->damage.lost_bytes += lost;
	r->damage.only_tail = false;
	if (r->damage.damaged)
		return;
	r->damage.damaged = true;
	r->damage.offset = at;
	snprintf(r->damage.what, sizeof(r->damage.what), "%s", what);
}

/* Nothing but the last record is missing, where nothing else was. */
static void damaged_tail(struct fr_reader *r, uint64_t at)
{
	bool first = !r->damage.damaged;

	fr_reader_damaged(r, at, r->data_end - at, "it ends inside a record");
	r->damage.only_tail = first;
	r->at = r->data_end;
}

static int check_magic(struct fr_reader *r, struct fr_diag *d)
{
	struct {
		char magic[8];
		uint64_t size;
	} h;
	const uint8_t *p;
	size_t n;
	int x = fr_reader_window(r, 0, sizeof(h), &p, &n);

	if (x < 0)
		return fr_fail_errno(d, x, NULL, "cannot read");
	if (n < sizeof(h))
		return fr_fail(d, -EBADMSG, NULL, "it is too short for a perf.data");
	memcpy(&h, p, sizeof(h));
	if (memcmp(h.magic, "2ELIFREP", 8) == 0)
		return fr_fail(d, -EBADMSG, "Read it on a machine of the byte order that it was recorded on.",
			"it was recorded on a machine of the other byte order");
	if (memcmp(h.magic, "PERFFILE", 8) == 0)
		return fr_fail(d, -EBADMSG, NULL, "it has the format of perf before 2010");
	if (memcmp(h.magic, "PERFILE2", 8) != 0)
		return fr_fail(d, -EBADMSG, NULL, "it is no perf.data");
	r->pipe = h.size == sizeof(h);
	if (!r->pipe && h.size < 104)
		return fr_fail(d, -EBADMSG, NULL, "the size of its header is wrong");
	return 0;
}

static int open_head(struct fr_reader *r, struct fr_diag *d)
{
	int x = check_magic(r, d);

	if (x < 0)
		return x;
	if (r->pipe) {
		r->data_start = 16;
		r->data_end = r->file_size;
	} else {
		x = fr_reader_head(r, d);
		if (x < 0)
			return x;
	}
	r->at = r->data_start;
	return fr_reader_layouts(r);
}

int fr_reader_open(const char *path, struct fr_reader **ret, struct fr_diag *d)
{
	_cleanup_free_ struct fr_reader *r = calloc(1, sizeof(*r));
	struct stat st;
	int x;

	if (!r)
		return -ENOMEM;
	r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (r->fd < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot open %s", path);
	r->window = malloc(FR_READER_WINDOW);
	x = r->window ? 0 : -ENOMEM;
	if (x == 0 && fstat(r->fd, &st) < 0)
		x = -errno;
	if (x == 0 && !S_ISREG(st.st_mode))
		x = fr_fail(d, -EBADMSG, NULL, "it is no regular file");
	if (x == 0) {
		r->file_size = (uint64_t)st.st_size;
		x = open_head(r, d);
	}
	if (x < 0) {
		fr_diag_prefix(d, "%s", path);
		fr_reader_free(TAKE_PTR(r));
		return x;
	}
	*ret = TAKE_PTR(r);
	return 0;
}

struct fr_reader *fr_reader_free(struct fr_reader *r)
{
	if (!r)
		return NULL;
	ZSTD_freeDStream(r->zstd);
	free(r->opened);
	free(r->window);
	free(r->layouts);
	free(r->ids.slots);
	fr_session_deinit(&r->session);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
	return NULL;
}

/* FR_READER_RESYNC_RECORDS believable records in a row at P, or fewer up to the end of the data; a run of
   nothing but rounds says little. */
static bool believable_run(const struct fr_reader *r, const uint8_t *p, size_t left, bool to_end)
{
	bool telling = false;

	for (int i = 0; i < FR_READER_RESYNC_RECORDS; i++) {
		struct perf_event_header h;

		if (left == 0 && to_end)
			return telling;
		if (!fr_reader_is_telling(r, p, left))
			return false;
		memcpy(&h, p, sizeof(h));
		if (h.type == FR_RECORD_COMPRESSED)
			return true;
		telling |= h.type != FR_RECORD_FINISHED_ROUND;
		p += h.size;
		left -= h.size;
	}
	return telling;
}

/* Skip from the damage at r->at to the next believable run. 0 or a negative errno of reading. */
static int resync(struct fr_reader *r, const char *what)
{
	const size_t ahead = (FR_READER_RESYNC_RECORDS + 1) * 65536;
	uint64_t begin = r->at, at = begin + 1;
	bool found = false;

	while (!found && at + sizeof(struct perf_event_header) <= r->data_end) {
		size_t want = (size_t)FR_MIN(r->data_end - at, FR_READER_WINDOW), n, i;
		const uint8_t *p;
		int x = fr_reader_window(r, at, want, &p, &n);

		if (x < 0)
			return x;
		if (n < sizeof(struct perf_event_header))
			break;
		bool last = at + n >= r->data_end || n < want;
		size_t stop = last ? n : n - ahead;

		for (i = 0; i < stop && !found; i += !found)
			found = believable_run(r, p + i, n - i, last);
		at += i;
		if (last && !found)
			break;
	}
	r->at = found ? at : r->data_end;
	fr_reader_damaged(r, begin, r->at - begin, what);
	fr_reader_drop_frame(r);
	return 0;
}

/* Step over an AUX payload: its length is outside of header.size. -EBADMSG where it cannot be. */
static int skip_auxtrace(struct fr_reader *r, const struct perf_event_header *h)
{
	uint64_t size;

	if (h->size < sizeof(*h) + sizeof(size))
		return -EBADMSG;
	memcpy(&size, h + 1, sizeof(size));
	if (size > r->data_end - r->at - h->size)
		return -EBADMSG;
	r->aux_bytes += size;
	r->at += h->size + size;
	return 0;
}

/* P, or an aligned copy of it. */
static const struct perf_event_header *aligned(struct fr_reader *r, const uint8_t *p, size_t len)
{
	return ((uintptr_t)p & 7) ? memcpy(r->scratch, p, len) : (const void *)p;
}

/* A believable header of a stray record: its size is believed only if telling records, or none, follow. */
static bool is_followed(const struct fr_reader *r, const uint8_t *p, size_t left, size_t size)
{
	return left == size || fr_reader_is_telling(r, p + size, left - size);
}

/* The record at r->at: its header, and where it is (unaligned, in the window). 1, 0: the end, -EBADMSG:
   damage, negative errno of reading. */
static int outer(struct fr_reader *r, struct perf_event_header *ret, const uint8_t **ret_p)
{
	size_t want = (size_t)FR_MIN(r->data_end - r->at, 2 * 65536), n;
	int x;

	if (r->at >= r->data_end)
		return 0;
	x = fr_reader_window(r, r->at, want, ret_p, &n);
	if (x < 0)
		return x;
	if (n < want) {
		fr_reader_damaged(
			r, r->at + n, r->data_end - r->at - n, "the file was cut off while it was read");
		r->data_end = r->at + n;
	}
	if (n < sizeof(*ret)) {
		if (n > 0)
			damaged_tail(r, r->at);
		return 0;
	}
	memcpy(ret, *ret_p, sizeof(*ret));
	if (!fr_reader_believable(r, *ret_p, n))
		return -EBADMSG;
	if (!fr_reader_is_stray(r, *ret_p))
		return 1;
	if (!is_followed(r, *ret_p, n, ret->size))
		return -EBADMSG;
	fr_reader_damaged(r, r->at, ret->size, "a record is of no event of the file");
	r->at += ret->size;
	return 2;
}

/* What outer() gave, stepping behind it: 1 where it was for the reader itself, 0: RET is for the caller,
 * -EBADMSG. */
static int consume(struct fr_reader *r, const struct perf_event_header *h, const uint8_t *p,
	const struct perf_event_header **ret)
{
	uint64_t at = r->at, size = h->size;
	int x = 0;

	if (h->type == FR_RECORD_COMPRESSED) {
		r->at += h->size;
		fr_reader_packed(r, p + sizeof(*h), h->size - sizeof(*h), at);
		return 1;
	}
	*ret = aligned(r, p, h->size);
	if (h->type == FR_RECORD_AUXTRACE)
		return skip_auxtrace(r, *ret) < 0 ? -EBADMSG : 1;
	if (r->pipe) {
		if (*ret != (const void *)r->scratch)
			*ret = memcpy(r->scratch, p, h->size); /* the window may move */
		x = fr_reader_pipe_record(r, *ret, at, &size);
	}
	if (x >= 0)
		r->at += size;
	return x;
}

/* One step of fr_reader_next(): 1: a record, 2: go on, 0: the end, negative errno. */
static int step(struct fr_reader *r, const struct perf_event_header **ret, uint64_t *ret_at)
{
	struct perf_event_header h;
	const uint8_t *p;
	uint64_t begin;
	int x = fr_reader_unpack(r, &p);

	*ret_at = r->packed_at;
	if (x == 1) {
		memcpy(&h, p, sizeof(h));
		*ret = aligned(r, p, h.size);
	}
	if (x != 0)
		return x;
	*ret_at = begin = r->at;
	x = outer(r, &h, &p);
	if (x == 1) {
		x = consume(r, &h, p, ret);
		if (x >= 0)
			return x == 1 ? 2 : 1;
	}
	if (x == -EBADMSG) {
		bool first = !r->damage.damaged;

		x = resync(r, "a record is damaged");
		r->damage.only_tail = first && r->at == r->data_end && r->data_end - begin <= FR_RECORD_MAX;
		return x < 0 ? x : 2;
	}
	return x;
}

int fr_reader_next(struct fr_reader *r, const struct perf_event_header **ret, uint64_t *ret_offset)
{
	const struct perf_event_header *h = NULL;
	uint64_t at;
	int x;

	do
		x = step(r, &h, &at);
	while (x == 2);
	if (x == 0)
		fr_reader_packed_end(r);
	if (x <= 0)
		return x;
	*ret = h;
	if (ret_offset)
		*ret_offset = at;
	return 1;
}

const struct fr_session *fr_reader_session(const struct fr_reader *r)
{
	return &r->session;
}

bool fr_reader_is_pipe(const struct fr_reader *r)
{
	return r->pipe;
}

int fr_reader_fd(const struct fr_reader *r)
{
	return r->fd;
}

const struct fr_damage *fr_reader_damage(const struct fr_reader *r)
{
	return &r->damage;
}

uint64_t fr_reader_aux_bytes(const struct fr_reader *r)
{
	return r->aux_bytes;
}

void fr_reader_progress(const struct fr_reader *r, uint64_t *ret_done, uint64_t *ret_total)
{
	*ret_done = r->at;
	*ret_total = r->data_end;
}
