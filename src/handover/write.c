// SPDX-License-Identifier: GPL-2.0-or-later
/* Writes what the next instance needs: the state, and the descriptors in the store. */
#include "handover/handover_private.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "crashmem/crashmem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <zstd.h>

#define STATE_MAX (16u << 20) /* most bytes of a state in the crash memory, before compression */
#define STATE_LEVEL 3
/* A smaller step of the wall clock is not written to the crash memory. */
#define CLOCK_STEP_NS (10 * (int64_t)FR_NSEC_PER_MSEC)

static void fill_state(const struct fr_handover *h, const struct fr_handover_facts *f, struct fr_state *s)
{
	struct stat st = {0};

	(void)fr_stat_cached(f->dirfd, &st);
	s->directory_dev = st.st_dev;
	s->directory_ino = st.st_ino;
	strcpy(s->boot_id, f->boot_id);
	fr_fd_store_name_ring(s->ring, h->ring_number);
	s->memory[0] = '\0';
	if (h->memory) {
		strcpy(s->ring, FR_STATE_RING_IN_MEMORY);
		snprintf(s->memory, sizeof(s->memory), "%s", f->memory);
	}
	s->period_ns = f->period_ns;
	if (!s->first_started_ns)
		s->first_started_ns = f->started_ns;
	s->counters = *f->counters;
	if (f->lost)
		memcpy(s->lost, f->lost, sizeof(s->lost));
}

/* Writes the state into the crash memory. The clocks change all the time, so they are read only here. */
static int write_to_memory(struct fr_handover *h)
{
	_cleanup_buf_ struct fr_buf payload = {0};
	_cleanup_free_ void *packed = NULL;
	size_t n;
	int r;

	h->state.clock = fr_clock_pair_now();
	r = fr_state_encode(&h->state, &payload);
	if (r < 0)
		return r;
	packed = malloc(ZSTD_compressBound(payload.len));
	if (!packed)
		return -ENOMEM;
	n = ZSTD_compress(packed, ZSTD_compressBound(payload.len), payload.data, payload.len, STATE_LEVEL);
	return ZSTD_isError(n) ? -ENOMEM
			       : fr_crashmem_put(h->memory, FLIGHTREC_CRASHMEM_AREA_STATE, packed, n);
}

int fr_handover_read_memory(const struct fr_crashmem *m, struct fr_state *ret)
{
	_cleanup_free_ void *packed = NULL, *payload = NULL;
	const ssize_t n = fr_crashmem_get(m, FLIGHTREC_CRASHMEM_AREA_STATE, &packed);
	unsigned long long len;

	if (n < 0)
		return (int)n;
	len = ZSTD_getFrameContentSize(packed, (size_t)n);
	if (len > STATE_MAX) /* also the values that mean an error */
		return -EBADMSG;
	payload = malloc(len ? len : 1);
	if (!payload)
		return -ENOMEM;
	if (ZSTD_decompress(payload, len, packed, (size_t)n) != len)
		return -EBADMSG;
	return fr_state_decode(payload, len, ret);
}

static void write_state(struct fr_handover *h, const struct fr_session *session)
{
	int r = 0, q = 0;

	h->state.session = *session; /* borrowed until the state is written */
	if (h->file.fd >= 0)
		r = fr_state_file_write(&h->file, &h->state);
	if (h->memory)
		q = write_to_memory(h);
	h->state.session = (struct fr_session){0};
	if (r < 0)
		fr_log(LOG_WARNING,
			"a restart will lose the history, because the state cannot be written: %s",
			strerror(-r));
	if (q < 0 && q != h->memory_error)
		fr_log(LOG_WARNING,
			"a crash of the machine will lose the history, because %s cannot hold the state: %s",
			h->state.memory, strerror(-q));
	h->memory_error = q;
}

/* An opening of this instance whose samples are not enabled yet. It is not in the state before store(): an
   open event in the state that no BPF program records means a gap. */
static bool is_new_sample_event(const struct fr_event_desc *e, const void *ctx)
{
	(void)ctx;
	return e->until_ns == 0 && !fr_attr_is_sideband(&e->attr);
}

int fr_handover_announce_sideband(struct fr_handover *h, const struct fr_session *session)
{
	_cleanup_session_ struct fr_session announced = {0};
	int r;

	/* Do this now: as soon as side-band is drained, the ring does not tell any more when the samples of
	   the previous instance ended. */
	if (h->adopted && h->continued != FR_CONTINUED_ALL)
		handover_begin_gap(h);
	/* If the adopted frames were moved to or from the crash memory, the next instance would not find the
	   ring of this instance before store(). */
	if (!h->adopted || h->in_memory != (h->memory != NULL))
		return 0;
	r = fr_session_copy(session, &announced);
	if (r < 0)
		return r;
	fr_session_remove_events(&announced, is_new_sample_event, NULL);
	fr_session_deinit(&h->state.session);
	write_state(h, &announced);
	return 0;
}

void fr_handover_add_ring(struct fr_handover *h, int fd)
{
	char name[FR_STATE_NAME_MAX];

	fr_fd_store_name_ring(name, h->ring_number + 1);
	if (h->on)
		(void)fr_fd_store_put(name, fd);
}

void fr_handover_add_part(struct fr_handover *h, const char *ring, int fd, const struct fr_session *session)
{
	const uint32_t i = h->state.n_parts;
	char name[FR_STATE_NAME_MAX];

	if (!h->on || h->file.fd < 0 || i == FR_STATE_PARTS_MAX)
		return;
	snprintf(h->state.parts[i].ring, sizeof(h->state.parts[i].ring), "%s", ring);
	h->state.parts[i].number = ++h->part_number;
	h->part_inodes[i] = handover_inode(fd);
	h->state.n_parts++;
	fr_fd_store_name_part(name, h->part_number);
	(void)fr_fd_store_put(name, fd);
	write_state(h, session);
}

/* Puts the ring and the state into the store. The store first gets the new ring, then its state, and then
   loses the old ring, BEFORE. With this order, the store always has a ring and the state that belongs to it,
   even if a kill comes between two steps. */
static int put_all(struct fr_handover *h, const struct fr_handover_facts *facts,
	const struct fr_state *before, struct fr_diag *d)
{
	char name[FR_STATE_NAME_MAX];
	int r = 0;

	if (h->file.fd < 0)
		r = fr_state_file_new(&h->file, d);
	if (r == 0 && !h->memory)
		r = fr_fd_store_put(h->state.ring, fr_history_fd(facts->history));
	for (unsigned i = 0; r >= 0 && i < facts->n_parts; i++) {
		fr_fd_store_name_part(name, h->state.parts[i].number);
		if (!handover_is_part(before, name))
			r = fr_fd_store_put(name, fr_history_fd(facts->parts[i].history));
	}
	if (r >= 0)
		write_state(h, facts->session);
	if (r >= 0)
		r = fr_fd_store_put(FR_FD_STORE_STATE, h->file.fd);
	if (r >= 0 && before->ring[0] && strcmp(before->ring, h->state.ring) != 0)
		fr_fd_store_remove(before->ring);
	for (uint32_t i = 0; r >= 0 && i < before->n_parts; i++) {
		fr_fd_store_name_part(name, before->parts[i].number);
		if (!handover_is_part(&h->state, name))
			fr_fd_store_remove(name);
	}
	return r;
}

void fr_handover_store(struct fr_handover *h, const struct fr_handover_facts *facts)
{
	struct fr_state before;
	struct fr_diag d = {0};
	int r;

	if (!h->on && !h->memory)
		return;
	if (!h->settled)
		handover_drop_parts(h);
	if (h->on && !h->settled)
		handover_release_passed(h);
	h->settled = true;
	before = h->state; /* only its names are used */
	fr_session_deinit(&h->state.session);
	fill_state(h, facts, &h->state);
	handover_fill_parts(h, facts);
	if (!h->on) {
		write_state(h, facts->session);
		return;
	}
	r = put_all(h, facts, &before, &d);
	if (r < 0) {
		fr_log(LOG_WARNING, "a restart will lose the history: %s", d.what[0] ? d.what : strerror(-r));
		h->on = false;
	}
}

void fr_handover_set_config(struct fr_handover *h, struct fr_buf *config)
{
	fr_buf_deinit(&h->state.config);
	h->state.config = *config;
	*config = (struct fr_buf){0};
	h->written = false;
}

/* Returns whether the crash memory has another relation of the clocks than now: somebody has set the wall
   clock, or the machine was suspended. */
static bool has_clock_moved(const struct fr_handover *h)
{
	const struct fr_clock_pair now = fr_clock_pair_now(), *was = &h->state.clock;
	const int64_t moved =
		(int64_t)((now.realtime_ns - now.monotonic_ns) - (was->realtime_ns - was->monotonic_ns));

	return h->memory && (moved > CLOCK_STEP_NS || moved < -CLOCK_STEP_NS);
}

void fr_handover_update(struct fr_handover *h, const struct fr_handover_facts *facts)
{
	struct fr_state before = h->state;

	fr_thread_assert(FR_THREAD_MAIN);
	if ((!h->on || h->file.fd < 0) && !h->memory)
		return;
	fill_state(h, facts, &h->state);
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding that differs costs one more write */
	if (memcmp(&before, &h->state, sizeof(before)) != 0 || !h->written || has_clock_moved(h)) {
		write_state(h, facts->session);
		h->written = true;
	}
}

void fr_handover_forget(struct fr_handover *h)
{
	if (!h->on || h->file.fd < 0)
		return;
	fr_bpf_store_remove_own(&h->bpf);
	fr_fd_store_remove(FR_FD_STORE_STATE);
	fr_fd_store_remove(h->state.ring);
	for (uint32_t i = 0; i < h->state.n_parts; i++) {
		char name[FR_STATE_NAME_MAX];

		fr_fd_store_name_part(name, h->state.parts[i].number);
		fr_fd_store_remove(name);
	}
}
