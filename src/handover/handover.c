// SPDX-License-Identifier: GPL-2.0-or-later
#include "handover/handover_private.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"
#include "crashmem/crashmem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void __attribute__((format(printf, 2, 3))) handover_refuse(struct fr_handover *h, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(h->refused, sizeof(h->refused), fmt, args);
	va_end(args);
	fr_log(LOG_WARNING, "the history of the previous instance is lost: %s", h->refused);
}

/* Returns whether this instance uses the passed descriptor NAME. A name that only another version knows is
   not used, and would stay in the store for ever. */
static bool is_used(const void *handover, const char *name)
{
	const struct fr_handover *h = handover;
	char taken[FR_STATE_NAME_MAX];

	if (!strcmp(name, FR_FD_STORE_STATE))
		return h->file.fd >= 0;
	if (fr_bpf_store_knows(name))
		return h->bpf.n_old > 0;
	if (h->adopted && handover_is_part(&h->state, name))
		return true;
	fr_fd_store_name_ring(taken, h->ring_number);
	return h->adopted && (!strcmp(name, h->state.ring) || !strcmp(name, taken));
}

unsigned handover_release_passed(const struct fr_handover *h)
{
	return fr_fd_store_release(is_used, h);
}

/* Duplicates the descriptors of the previous instance's state and ring, and reads the state. Returns 0;
   -ENOENT if there is no state; or another negative errno, with a message in D. */
static int receive(struct fr_state_file *ret_file, struct fr_state *ret, int *ret_ring, const char *boot_id,
	struct fr_diag *d)
{
	_cleanup_close_ int fd = fr_fd_store_dup(FR_FD_STORE_STATE);
	int r;

	if (fd < 0)
		return fd;
	r = fr_state_file_adopt(fd, ret_file, ret, d);
	if (r < 0)
		return r;
	if (strcmp(ret->boot_id, boot_id) != 0)
		r = fr_fail(d, -EBADMSG, NULL, "the state is from another boot");
	*ret_ring = -1;
	if (r == 0 && strcmp(ret->ring, FR_STATE_RING_IN_MEMORY) != 0)
		*ret_ring = fr_fd_store_dup(ret->ring);
	if (r == 0 && *ret_ring == -ENOENT)
		r = fr_fail(d, -EBADMSG, NULL, "its ring is not in the descriptor store");
	else if (r == 0 && *ret_ring < -1)
		r = fr_fail_errno(d, *ret_ring, NULL, "its ring cannot be duplicated");
	if (r < 0)
		fr_state_deinit(ret);
	else
		TAKE_FD(fd);
	return r;
}

/* If this fails, there is a gap, as without BPF programs. */
static void receive_bpf(struct fr_handover *h)
{
	const int r = fr_fd_store_is_released() ? 0 : fr_bpf_store_receive(&h->bpf);

	if (r < 0)
		fr_log(LOG_WARNING, "cannot continue the BPF programs of the previous instance: %s",
			strerror(-r));
}

void fr_handover_receive(struct fr_handover *h, bool wanted, const char *boot_id)
{
	char next[FR_STATE_NAME_MAX];
	struct fr_diag d = {0};
	int r;

	*h = (struct fr_handover){.on = wanted && getenv("NOTIFY_SOCKET"),
		.file.fd = -1,
		.ring_fd = -1,
		.next_fd = -1,
		.ring_number = 1};
	for (uint32_t i = 0; i < FR_STATE_PARTS_MAX; i++)
		h->part_fds[i] = -1;
	if (!h->on)
		return;
	r = receive(&h->file, &h->state, &h->ring_fd, boot_id, &d);
	if (r == 0) {
		h->in_memory = h->ring_fd < 0;
		(void)sscanf(h->state.ring, FR_FD_STORE_RING "%u", &h->ring_number);
		fr_fd_store_name_ring(next, h->ring_number + 1);
		h->next_fd = fr_fd_store_dup(next);
		handover_receive_parts(h);
		receive_bpf(h);
		return;
	}
	h->file.fd = -1;
	if (r != -ENOENT)
		handover_refuse(h, "%s", d.code ? d.what : strerror(-r));
}

int fr_handover_config(struct fr_buf *ret)
{
	_cleanup_(fr_state_deinit) struct fr_state state = {0};
	_cleanup_close_ int ring = -1;
	struct fr_state_file file = {.fd = -1};
	char boot_id[FR_BOOT_ID_SIZE];
	int r = getenv("NOTIFY_SOCKET") ? fr_boot_id_read(boot_id) : -ENOENT;

	if (r == 0)
		r = receive(&file, &state, &ring, boot_id, NULL);
	if (r < 0)
		return r;
	close(file.fd);
	if (ret) {
		*ret = state.config;
		state.config = (struct fr_buf){0};
	}
	return 0;
}

void fr_handover_refuse(struct fr_handover *h, const char *why)
{
	handover_refuse(h, "%s", why);
	h->in_memory = false;
}

void handover_drop_ring(struct fr_handover *h)
{
	if (h->in_memory) {
		fr_crashmem_format(h->memory, h->state.boot_id);
		h->in_memory = false;
		return;
	}
	close(TAKE_FD(h->ring_fd));
	h->ring_number++;
}

bool handover_has_ring(const struct fr_handover *h)
{
	return h->ring_fd >= 0 || h->in_memory;
}

void fr_handover_use_memory(struct fr_handover *h, struct fr_crashmem *m)
{
	h->memory = m;
	if (h->state.n_parts && h->ring_fd >= 0) {
		handover_refuse(h, "it has several rings, and RingMemory= has room for one");
		handover_drop_ring(h);
	}
}

int fr_handover_unite_session(struct fr_handover *h, struct fr_session *session, struct fr_counters *counters,
	uint64_t lost[static _FR_LOSS_MAX])
{
	int r;

	if (!handover_has_ring(h))
		return 0;
	r = fr_session_add_older_events(session, &h->state.session);
	if (r == -EBADMSG) {
		handover_refuse(h, "its formats of tracepoints are damaged");
		handover_drop_ring(h);
		return 0;
	}
	if (r < 0)
		return r;
	if (!h->bpf.n_old)
		fr_session_close_events(session, fr_monotonic_ns());
	*counters = h->state.counters;
	memcpy(lost, h->state.lost, sizeof(h->state.lost));
	return 0;
}

bool fr_handover_is_in_gap(const struct fr_handover *h)
{
	return h->state.gap_from_ns && !h->state.gap_to_ns;
}

void handover_begin_gap(struct fr_handover *h)
{
	struct fr_state *s = &h->state;
	const uint64_t drained_ns = h->history.drained_ns,
		       from_ns = drained_ns ? drained_ns : s->first_started_ns;

	if (fr_handover_is_in_gap(h))
		return;
	if (from_ns <= s->gap_from_ns)
		s->gap_ns -= s->gap_to_ns - s->gap_from_ns;
	s->gap_from_ns = from_ns;
	s->gap_to_ns = 0;
}

bool fr_handover_end_gap(struct fr_handover *h, uint64_t now_ns)
{
	char gap[FR_UNIT_SIZE];

	if (!h->adopted)
		return false;
	h->state.restarts++;
	if (h->continued == FR_CONTINUED_ALL) {
		h->state.gap_from_ns = h->state.gap_to_ns = now_ns;
		fr_log(LOG_INFO, "the samples go on without a gap");
		return false;
	}
	handover_begin_gap(h);
	h->state.gap_to_ns = now_ns;
	h->state.gap_ns += now_ns - h->state.gap_from_ns;
	fr_log(LOG_NOTICE, "%s recorded for %s, from the end of the previous instance until now",
		h->continued ? "events whose samples the kernel makes were not" : "nothing was",
		fr_duration_format(h->state.gap_to_ns - h->state.gap_from_ns, gap));
	return true;
}

void fr_handover_close(struct fr_handover *h)
{
	if (h->ring_number == 0) /* fr_handover_receive() was not called */
		return;
	fr_closep(&h->ring_fd);
	fr_closep(&h->next_fd);
	for (uint32_t i = 0; i < FR_STATE_PARTS_MAX; i++)
		if (h->part_fds[i] >= 0)
			close(h->part_fds[i]);
	fr_closep(&h->file.fd);
	fr_state_deinit(&h->state);
	fr_buf_deinit(&h->first_sideband);
	fr_buf_deinit(&h->newest_samples);
	fr_bpf_store_close(&h->bpf);
	*h = (struct fr_handover){.file.fd = -1, .ring_fd = -1, .next_fd = -1};
}
