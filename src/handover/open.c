// SPDX-License-Identifier: GPL-2.0-or-later
/* Opens the ring: adopts that of the previous instance, or makes an empty one. */
#include "handover/handover_private.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "config/memory.h"
#include "handover/newest.h"
#include "history/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <systemd/sd-daemon.h>

/* The longest wait for the service manager to close its copy of a descriptor. */
#define BARRIER_USEC 5000000

static bool is_same_directory(int dirfd, const struct fr_state *s)
{
	struct stat st;

	return fr_stat_cached(dirfd, &st) == 0 && s->directory_dev == st.st_dev &&
	       s->directory_ino == st.st_ino;
}

static void log_adopted(const struct fr_handover *h)
{
	const struct fr_history_adopted *w = &h->history;
	char span[FR_UNIT_SIZE], left_out[64] = "";

	if (w->frames_left_out)
		snprintf(left_out, sizeof(left_out), "; %llu older frames are left out",
			(unsigned long long)w->frames_left_out);
	fr_log(LOG_INFO, "continues the history of the previous instance: %llu samples over %s%s%s",
		(unsigned long long)w->samples, fr_duration_format(w->last_ns - w->first_ns, span),
		w->in_place ? "" : ", copied into a ring of another size", left_out);
}

static int take_first_record(struct fr_history *history, struct fr_snapshot *snapshot, struct fr_buf *ret)
{
	const size_t size = fr_history_section_max(history);
	_cleanup_unpack_ struct fr_unpack *unpack = NULL;
	_cleanup_free_ void *raw = malloc(size);
	struct fr_frame frame;
	int r = raw ? fr_unpack_new(&unpack) : -ENOMEM;

	while (r == 0 && ret->len == 0 && fr_snapshot_next(snapshot, &frame) == 1) {
		ssize_t n = fr_frame_sideband(unpack, &frame, raw, size);
		struct fr_record_iter it = fr_record_iter(raw, n > 0 ? (size_t)n : 0);
		const struct perf_event_header *h = fr_record_next(&it);

		if (h)
			r = fr_buf_append(ret, h, h->size);
	}
	return r;
}

/* Copies the first side-band record to h->first_sideband, which stays empty if there is no side-band; and the
   newest samples of each ring. The side-band tracker searches for this record in the auxiliary file
   (perf.data.auxiliary, which has all side-band). The ring has evicted the side-band records before this
   record, so the tracker has to take those records from the file. */
static int read_rings(struct fr_handover *h, const struct fr_rings *rings)
{
	struct fr_snapshots s;
	int r;

	fr_rings_seal(rings); /* so that the snapshots have the open chunks; no thread appends yet */
	r = fr_rings_snapshot(rings, &s);
	if (r < 0)
		return r;
	fr_snapshots_keep_pinned(&s, true);
	r = take_first_record(fr_rings_sideband(rings), s.of[s.sideband], &h->first_sideband);
	fr_snapshots_rewind(&s);
	for (unsigned i = 0; r == 0 && h->bpf.n_old && i < s.n_rings; i++)
		r = fr_newest_samples(rings->ring[i], s.of[i], &h->newest_samples);
	h->history.low_watermark_ns = fr_snapshots_low_watermark(&s);
	fr_snapshots_free(&s);
	return r;
}

int fr_handover_read_rings(struct fr_handover *h, const struct fr_rings *rings, struct fr_diag *d)
{
	const int r = h->adopted ? read_rings(h, rings) : 0;

	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot read the history of the previous instance") : 0;
}

int fr_handover_finish_resize(int next_fd, const struct fr_history_config *config, struct fr_history **h,
	struct fr_history_adopted *ret)
{
	struct fr_history *next;
	const int r = fr_history_adopt(config, next_fd, &next, ret, NULL);

	if (r < 0) {
		close(next_fd);
		return r;
	}
	return fr_resize_finish_interrupted(h, next, ret);
}

static void finish_replacement(
	struct fr_handover *h, const struct fr_history_config *config, struct fr_history **history)
{
	struct fr_history_adopted adopted;
	const int r = fr_handover_finish_resize(TAKE_FD(h->next_fd), config, history, &adopted);

	if (r < 0) {
		fr_log(LOG_WARNING,
			"the interrupted change of RingSize= cannot be finished, the old ring stays: %s",
			strerror(-r));
		return;
	}
	h->history = adopted;
	h->ring_number++;
}

static int check_memory(const struct fr_handover_ring *ring, struct fr_diag *d)
{
	struct fr_memory memory;

	fr_memory_read("", &memory);
	memory.later = ring->later;
	if (ring->bytes > memory.total / 2 && memory.total)
		fr_log(LOG_WARNING, "the ring takes more than half of the machine's memory, and keeps it");
	return fr_memory_check_ring(&memory, 0, ring->bytes, ring->origin, d);
}

static int open_empty(struct fr_handover *h, const struct fr_history_config *config,
	const struct fr_handover_ring *ring, struct fr_history **ret, struct fr_diag *d)
{
	int r;

	/* First release the passed rings that cannot be used, because the new ring needs their memory. */
	handover_drop_parts(h);
	fr_closep(&h->next_fd);
	h->next_fd = -1;
	if (h->on && handover_release_passed(h) > 0)
		(void)sd_notify_barrier(0, BARRIER_USEC);
	r = h->memory ? 0 : check_memory(ring, d);
	return r < 0 ? r : fr_history_new(config, ret, d);
}

static int open_adopted(struct fr_handover *h, const struct fr_history_config *config,
	const struct fr_handover_ring *ring, struct fr_history **ret, struct fr_diag *d)
{
	h->ring_number += !h->history.in_place;
	if (h->next_fd >= 0 && config->memory.at) {
		/* There is only one memory, and it has the newer frames already. */
		fr_log(LOG_WARNING,
			"a change of RingSize= was interrupted, and RingMemory= is new: the oldest "
			"part of the history is lost");
		close(TAKE_FD(h->next_fd));
	}
	if (h->next_fd >= 0)
		finish_replacement(h, config, ret);
	h->ring_fd = -1;
	h->adopted = true;
	h->same_directory = is_same_directory(ring->dirfd, &h->state);
	log_adopted(h);
	if (!h->same_directory)
		fr_log(LOG_NOTICE,
			"the auxiliary file is in another directory, so processes that have exited have "
			"no names in the older history");
	return 0;
}

int fr_handover_open_history(struct fr_handover *h, const struct fr_history_config *config,
	const struct fr_handover_ring *ring, struct fr_history **ret, struct fr_diag *d)
{
	struct fr_history_config own = *config;
	struct fr_diag why = {0};
	int r;

	if (!handover_has_ring(h))
		return open_empty(h, config, ring, ret, d);
	/* Keep the size. If RingSize= has changed, the ring is resized at the end of the start. */
	own.keep_size = true;
	own.populate = h->next_fd < 0;
	r = fr_history_adopt(&own, h->ring_fd, ret, &h->history, &why);
	if (r == 0)
		return open_adopted(h, &own, ring, ret, d);
	/* The ring is intact, but it cannot be adopted with this configuration. If this function fails, the
	   start tries the configuration of the previous instance, which fits the ring. */
	if (r != -EBADMSG && !ring->last_try)
		return fr_fail(d, r, why.hint, "the history of the previous instance cannot be adopted: %s",
			why.what[0] ? why.what : strerror(-r));
	handover_refuse(h, "%s", why.what[0] ? why.what : strerror(-r));
	handover_drop_ring(h);
	return open_empty(h, config, ring, ret, d);
}
