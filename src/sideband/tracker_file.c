// SPDX-License-Identifier: GPL-2.0-or-later
/* What the tracker writes to perf.data.auxiliary, and what it does while it cannot. */
#include "sideband/tracker_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "perfdata/record.h"
#include "perfdata/writer.h"

#define RETRY_FIRST_NS FR_NSEC_PER_SEC
#define RETRY_MAX_NS (64 * FR_NSEC_PER_SEC)
/* A reader holds records back until it finds a round's end: often enough for its memory. */
#define ROUND_BYTES (1u << 20)

/* How many they are; and the newest of them. */
static uint64_t look_over(struct fr_tracker *k, const uint8_t *records, size_t len)
{
	uint64_t n = 0;

	for (size_t at = 0; fr_record_is_whole(records + at, len - at); n++) {
		const struct perf_event_header *h = (const void *)(records + at);

		k->newest_ns = FR_MAX(k->newest_ns, fr_record_time(h));
		at += h->size;
	}
	return n;
}

static void failed(struct fr_tracker *k, int code)
{
	atomic_fetch_add(&k->write_errors, 1);
	if (code == 0)
		return;
	atomic_store(&k->last_errno, -code);
	k->retry_after_ns = k->retry_after_ns ? FR_MIN(2 * k->retry_after_ns, RETRY_MAX_NS) : RETRY_FIRST_NS;
	k->retry_ns = fr_monotonic_ns() + k->retry_after_ns;
}

void tracker_file_append(struct fr_tracker *k, const void *records, size_t len)
{
	int r;

	/* After a gap the file is made whole by a scan, not by what comes in between. */
	if (k->retry_ns) {
		failed(k, 0);
		return;
	}
	r = fr_auxfile_append(k->file, records, len);
	if (r < 0) {
		failed(k, r);
		return;
	}
	atomic_fetch_add(&k->records, look_over(k, records, len));
	atomic_fetch_add(&k->bytes, len);
	atomic_store(&k->file_bytes, fr_auxfile_bytes(k->file));
}

void tracker_file_retry(struct fr_tracker *k, uint64_t now_ns)
{
	int r;

	if (!k->retry_ns || now_ns < k->retry_ns)
		return;
	r = fr_auxfile_append(k->file, &fr_finished_round, sizeof(fr_finished_round));
	if (r < 0) {
		failed(k, r);
		return;
	}
	k->retry_ns = 0;
	tracker_describe(k, NULL); /* it may have been opened anew meanwhile */
	k->round_newest_ns = k->newest_ns;
	atomic_store(&k->scan_wanted, true);
}

/* It says that nothing that follows is older than what was known at the one before. A scan's records are as
   old as its begin. */
void tracker_file_round(struct fr_tracker *k)
{
	uint64_t bytes = fr_auxfile_bytes(k->file);

	if (k->retry_ns || k->scan_ns_now || bytes - k->round_bytes < ROUND_BYTES ||
		k->since_ns < k->round_newest_ns)
		return;
	tracker_file_append(k, &fr_finished_round, sizeof(fr_finished_round));
	k->round_newest_ns = k->newest_ns;
	k->round_bytes = bytes;
}
