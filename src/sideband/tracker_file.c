// SPDX-License-Identifier: GPL-2.0-or-later
/* Writing to perf.data.auxiliary, and the retry after a failed write. */
#include "sideband/tracker_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "perfdata/record.h"
#include "perfdata/writer.h"

#define RETRY_FIRST_NS FR_NSEC_PER_SEC
#define RETRY_MAX_NS (64 * FR_NSEC_PER_SEC)
/* Bytes between two FINISHED_ROUNDs. A reader keeps records in memory until it finds a FINISHED_ROUND. */
#define ROUND_BYTES (1u << 20)

/* Returns the number of records in RECORDS. Updates t->newest_ns. */
static uint64_t count_records(struct fr_tracker *t, const uint8_t *records, size_t len)
{
	struct fr_record_iter it = fr_record_iter(records, len);
	const struct perf_event_header *h;
	uint64_t n = 0;

	for (; (h = fr_record_next(&it)); n++)
		t->newest_ns = FR_MAX(t->newest_ns, fr_record_time(h));
	return n;
}

/* Counts a failed write, and sets the time of the next try. CODE is the negative errno of the write; 0: no
   write was tried, because an earlier write had failed. */
static void count_failure(struct fr_tracker *t, int code)
{
	atomic_fetch_add(&t->write_errors, 1);
	if (code == 0)
		return;
	atomic_store(&t->last_errno, -code);
	t->retry_after_ns = t->retry_after_ns ? FR_MIN(2 * t->retry_after_ns, RETRY_MAX_NS) : RETRY_FIRST_NS;
	t->retry_ns = fr_monotonic_ns() + t->retry_after_ns;
}

void tracker_file_append(struct fr_tracker *t, const void *records, size_t len)
{
	int r;

	/* An earlier write has failed, so these records will be missing in the file. After a successful
	   retry, a scan makes records for what is missing. */
	if (t->retry_ns) {
		count_failure(t, 0);
		return;
	}
	r = fr_auxfile_append(t->file, records, len);
	if (r < 0) {
		count_failure(t, r);
		return;
	}
	atomic_fetch_add(&t->records, count_records(t, records, len));
	atomic_fetch_add(&t->bytes, len);
	atomic_store(&t->file_bytes, fr_auxfile_bytes(t->file));
}

void tracker_file_retry(struct fr_tracker *t, uint64_t now_ns)
{
	int r;

	if (!t->retry_ns || now_ns < t->retry_ns)
		return;
	r = fr_auxfile_append(t->file, &fr_finished_round, sizeof(fr_finished_round));
	if (r < 0) {
		count_failure(t, r);
		return;
	}
	t->retry_ns = 0;
	tracker_describe(t, NULL); /* the events may have been opened again since the failed write */
	t->round_newest_ns = t->newest_ns;
	atomic_store(&t->scan_wanted, true);
}

/* A FINISHED_ROUND promises that no later record is older than the newest record before the previous
   FINISHED_ROUND. During a scan, the tracker adds records with the time of the scan's start, so it writes no
   FINISHED_ROUND before the scan is over. */
void tracker_file_end_round(struct fr_tracker *t)
{
	uint64_t bytes = fr_auxfile_bytes(t->file);

	if (t->retry_ns || t->scan_ns_now || bytes - t->round_bytes < ROUND_BYTES ||
		t->since_ns < t->round_newest_ns)
		return;
	tracker_file_append(t, &fr_finished_round, sizeof(fr_finished_round));
	t->round_newest_ns = t->newest_ns;
	t->round_bytes = bytes;
}
