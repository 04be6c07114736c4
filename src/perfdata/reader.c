// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Reads one record after the other. An outer record is a record of the file itself. The zstd stream gets the
 * payload of a COMPRESSED outer record. The reader returns the records that it decompresses from this payload
 * before it goes to the next outer record.
 *
 * A record is plausible if its size and type are possible. A plausible record is proven if it also has the id
 * of an event, or is of a type whose content is known. After a record that is not plausible, the reader
 * searches for several proven records in a row.
 */

#include "perfdata/reader.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/thread.h"
#include "perfdata/reader_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void fr_reader_note_damage(struct fr_reader *r, uint64_t at, uint64_t lost, const char *text)
{
	r->damage.lost_bytes += lost;
	r->damage.only_tail = false;
	if (r->damage.damaged)
		return;
	r->damage.damaged = true;
	r->damage.offset = at;
	snprintf(r->damage.text, sizeof(r->damage.text), "%s", text);
}

void fr_reader_set_read_ahead(struct fr_reader *r, size_t ahead_bytes)
{
	r->ahead_bytes = ahead_bytes;
	(void)posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
}

/* The kernel's own read-ahead covers 256 KiB by default, less than one read of the window. If the advice
   fails, the next read takes longer. */
static ssize_t read_at(const struct fr_reader *r, void *data, size_t len, uint64_t at)
{
	if (r->ahead_bytes)
		(void)posix_fadvise(r->fd, (off_t)(at + len), (off_t)r->ahead_bytes, POSIX_FADV_WILLNEED);
	return fr_pread_all(r->fd, data, len, (off_t)at);
}

/* Makes the window contain LEN bytes of the file at AT, or fewer at the end of the file. LEN is at most
   FR_READER_WINDOW. *RET points to *RET_LEN bytes, which are valid until the next call. Returns 0 or a
   negative errno. */
static int read_window(struct fr_reader *r, uint64_t at, size_t len, const uint8_t **ret, size_t *ret_len)
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

static int check_magic(struct fr_reader *r, struct fr_diag *d)
{
	struct {
		char magic[8];
		uint64_t size;
	} h;
	const uint8_t *p;
	size_t n;
	int x = read_window(r, 0, sizeof(h), &p, &n);

	if (x < 0)
		return fr_fail_errno(d, x, NULL, "cannot read");
	if (n < sizeof(h))
		return fr_fail(d, -EBADMSG, NULL, "it is too short for a perf.data file");
	memcpy(&h, p, sizeof(h));
	if (memcmp(h.magic, "2ELIFREP", 8) == 0)
		return fr_fail(d, -EBADMSG, "read it on a machine with the same byte order",
			"it was recorded on a machine with the other byte order");
	if (memcmp(h.magic, "PERFFILE", 8) == 0)
		return fr_fail(d, -EBADMSG, NULL, "it has the format of perf before 2010");
	if (memcmp(h.magic, "PERFILE2", 8) != 0)
		return fr_fail(d, -EBADMSG, NULL, "it is not a perf.data file");
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
	return fr_reader_add_layouts(r);
}

int fr_reader_open(const char *path, struct fr_reader **ret, struct fr_diag *d)
{
	_cleanup_free_ struct fr_reader *r = calloc(1, sizeof(*r));
	struct stat st;
	int x;

	fr_thread_assert_may_wait();
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
		x = fr_fail(d, -EBADMSG, NULL, "it is not a regular file");
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
	free(r->raw);
	free(r->window);
	free(r->layouts);
	fr_id_table_deinit(&r->ids);
	fr_session_deinit(&r->session);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
	return NULL;
}

/* Returns whether P begins FR_READER_RESYNC_RECORDS proven records. If TO_END is true, the data ends after
   the LEFT bytes, and fewer records are enough. At least one record must not be a FINISHED_ROUND, because 8
   random bytes can look like a FINISHED_ROUND. */
static bool is_proven_run(const struct fr_reader *r, const uint8_t *p, size_t left, bool to_end)
{
	bool is_proven = false;

	for (int i = 0; i < FR_READER_RESYNC_RECORDS; i++) {
		struct perf_event_header h;

		if (left == 0 && to_end)
			return is_proven;
		if (!fr_reader_is_proven(r, p, left))
			return false;
		memcpy(&h, p, sizeof(h));
		if (h.type == FR_RECORD_COMPRESSED || h.type == FR_RECORD_AUXTRACE)
			return true;
		is_proven |= h.type != FR_RECORD_FINISHED_ROUND;
		p += h.size;
		left -= h.size;
	}
	return is_proven;
}

/* Skips from the damaged record at r->at to the next run of proven records, or to the end of the data.
   Returns 0, or a negative errno if reading fails. */
static int skip_to_proven_run(struct fr_reader *r)
{
	const size_t lookahead = (FR_READER_RESYNC_RECORDS + 1) * 65536;
	uint64_t begin = r->at, at = begin + 1;
	bool is_first_damage = !r->damage.damaged, is_found = false, is_last = false;

	while (!is_found && !is_last && at + sizeof(struct perf_event_header) <= r->data_end) {
		size_t want = (size_t)FR_MIN(r->data_end - at, FR_READER_WINDOW), n, i, stop;
		const uint8_t *p;
		int x = read_window(r, at, want, &p, &n);

		if (x < 0)
			return x;
		if (n < sizeof(struct perf_event_header))
			break;
		is_last = at + n >= r->data_end || n < want;
		stop = is_last ? n : n - lookahead;
		for (i = 0; i < stop && !is_found; i += !is_found)
			is_found = is_proven_run(r, p + i, n - i, is_last);
		at += i;
	}
	r->at = is_found ? at : r->data_end;
	fr_reader_note_damage(r, begin, r->at - begin, "a record is damaged");
	fr_reader_drop_frame(r);
	r->damage.only_tail = is_first_damage && r->at == r->data_end && r->data_end - begin <= FR_RECORD_MAX;
	return 0;
}

/* Returns the number of bytes of the AUXTRACE record at r->at and of the AUX data after it, which header.size
   does not count; or 0 if the data would reach past the end. */
static uint64_t measure_auxtrace(const struct fr_reader *r, const struct perf_event_header *h)
{
	const struct fr_record_auxtrace *t = (const void *)h;

	if (h->size < sizeof(*t) || t->size > r->data_end - r->at - h->size)
		return 0;
	return h->size + t->size;
}

/* Returns P, or an aligned copy if P is not aligned. */
static const struct perf_event_header *align_record(struct fr_reader *r, const uint8_t *p, size_t len)
{
	return ((uintptr_t)p & 7) ? memcpy(r->scratch, p, len) : (const void *)p;
}

/* The results of take_step(), find_outer() and consume_outer(), besides a negative errno. */
enum step {
	STEP_END,    /* the data has ended */
	STEP_RECORD, /* there is a record for the caller */
	STEP_AGAIN,  /* there is no record yet: take the next step */
};

/* Finds the outer record at r->at. Returns:
   STEP_RECORD  *RET is its header, and *RET_P points to it in the window, perhaps not aligned;
   STEP_AGAIN   the record belongs to no event, and is skipped;
   STEP_END     the data has ended;
   -EBADMSG     the record is damaged; or another negative errno if reading fails. */
static int find_outer(struct fr_reader *r, struct perf_event_header *ret, const uint8_t **ret_p)
{
	size_t want = (size_t)FR_MIN(r->data_end - r->at, 2 * 65536), n;
	int x;

	if (r->at >= r->data_end)
		return STEP_END;
	x = read_window(r, r->at, want, ret_p, &n);
	if (x < 0)
		return x;
	if (n < want) {
		fr_reader_note_damage(
			r, r->at + n, r->data_end - r->at - n, "the file was truncated while it was read");
		r->data_end = r->at + n;
	}
	if (n == 0)
		return STEP_END;
	if (n < sizeof(*ret)) {
		bool is_first_damage = !r->damage.damaged;

		fr_reader_note_damage(r, r->at, n, "it ends inside a record");
		r->damage.only_tail = is_first_damage;
		r->at = r->data_end;
		return STEP_END;
	}
	memcpy(ret, *ret_p, sizeof(*ret));
	if (!fr_reader_is_plausible(r, *ret_p, n))
		return -EBADMSG;
	if (!fr_reader_has_unknown_id(r, *ret_p))
		return STEP_RECORD;
	/* Random bytes can look like a record with an unknown id. Such bytes count as a record if a proven
	   record follows, or if the data ends after them. */
	if (n != ret->size && !fr_reader_is_proven(r, *ret_p + ret->size, n - ret->size))
		return -EBADMSG;
	fr_reader_note_damage(r, r->at, ret->size, "a record belongs to no event of the file");
	r->at += ret->size;
	return STEP_AGAIN;
}

/* Consumes the outer record P with the header H. Returns STEP_RECORD, and *RET is the record; STEP_AGAIN if
   there is no record for the caller; -EBADMSG if the record is damaged; or another negative errno. */
static int consume_outer(struct fr_reader *r, const struct perf_event_header *h, const uint8_t *p,
	const struct perf_event_header **ret)
{
	uint64_t at = r->at, size = h->size;
	int x = 0;

	if (h->type == FR_RECORD_COMPRESSED) {
		r->at += h->size;
		fr_reader_start_compressed(r, p + sizeof(*h), h->size - sizeof(*h), at);
		return STEP_AGAIN;
	}
	*ret = align_record(r, p, h->size);
	if (h->type == FR_RECORD_AUXTRACE) {
		size = measure_auxtrace(r, *ret);
		x = size ? 0 : -EBADMSG;
	} else if (r->pipe) {
		if (*ret != (const void *)r->scratch)
			*ret = memcpy(r->scratch, p, h->size); /* the window may move */
		x = fr_reader_pipe_record(r, *ret, at, &size);
	}
	if (x < 0)
		return x;
	r->at += size;
	return x == 1 ? STEP_AGAIN : STEP_RECORD;
}

static int take_step(struct fr_reader *r, const struct perf_event_header **ret, uint64_t *ret_at)
{
	struct perf_event_header h;
	const uint8_t *p;
	int x = fr_reader_next_compressed(r, &p);

	*ret_at = r->compressed_at;
	if (x == 1) {
		memcpy(&h, p, sizeof(h));
		*ret = align_record(r, p, h.size);
		return STEP_RECORD;
	}
	if (x < 0)
		return x;
	*ret_at = r->at;
	x = find_outer(r, &h, &p);
	if (x == STEP_RECORD)
		x = consume_outer(r, &h, p, ret);
	if (x != -EBADMSG)
		return x;
	x = skip_to_proven_run(r);
	return x < 0 ? x : STEP_AGAIN;
}

int fr_reader_next(struct fr_reader *r, const struct perf_event_header **ret, uint64_t *ret_offset)
{
	const struct perf_event_header *h = NULL;
	uint64_t at;
	int x;

	do
		x = take_step(r, &h, &at);
	while (x == STEP_AGAIN);
	if (x == STEP_END)
		fr_reader_end_compressed(r);
	if (x != STEP_RECORD)
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

void fr_reader_progress(const struct fr_reader *r, uint64_t *ret_done, uint64_t *ret_total)
{
	*ret_done = r->at;
	*ret_total = r->data_end;
}
