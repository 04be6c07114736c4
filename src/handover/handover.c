// SPDX-License-Identifier: GPL-2.0-or-later
#include "handover/handover.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "config/memory.h"
#include "crashmem/crashmem.h"
#include "handover/newest.h"
#include "history/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <systemd/sd-daemon.h>
#include <zstd.h>

/* All names of ours begin so. The names of sockets do not: that of flightrecd.socket is "control". */
#define NAME_PREFIX "flightrec-"
#define STATE_NAME "flightrec-state"
#define RING_NAME "flightrec-ring-"
#define PART_NAME "flightrec-part-"
/* The longest wait for the service manager to close its copy of a descriptor. */
#define BARRIER_USEC 5000000
#define STATE_MAX (16u << 20) /* most bytes of a state in the crash memory, before compression */
#define STATE_LEVEL 3
/* A smaller step of the wall clock is not written to the crash memory. */
#define CLOCK_STEP_NS (10 * (int64_t)FR_NSEC_PER_MSEC)

static void __attribute__((format(printf, 2, 3))) refuse(struct fr_handover *h, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(h->refused, sizeof(h->refused), fmt, args);
	va_end(args);
	fr_log(LOG_WARNING, "the history of the previous instance is lost: %s", h->refused);
}

/* True: this process has closed the descriptors of ring and state that the service manager passed. The
   descriptors stay open until release_passed(), because it is possible that this process begins its start
   again with another configuration. LISTEN_FDS stays set, because other code looks for its own
   descriptors there. */
static bool passed_are_closed;

/* Returns a duplicate of the passed descriptor NAME; -ENOENT if no descriptor of this name was passed; or
   another negative errno. */
static int dup_passed(const char *name)
{
	char **names = NULL;
	int n = passed_are_closed ? 0 : sd_listen_fds_with_names(0, &names), fd = -1;

	for (int i = 0; i < n; i++) {
		if (!strcmp(names[i], name))
			fd = SD_LISTEN_FDS_START + i;
		free(names[i]);
	}
	free(names);
	if (fd < 0)
		return -ENOENT;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static void remove_from_store(const char *name)
{
	(void)sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}

static void name_ring(char ret[static FR_STATE_NAME_MAX], unsigned number)
{
	snprintf(ret, FR_STATE_NAME_MAX, RING_NAME "%u", number);
}

static void name_part(char ret[static FR_STATE_NAME_MAX], unsigned number)
{
	snprintf(ret, FR_STATE_NAME_MAX, PART_NAME "%u", number);
}

static bool is_part(const struct fr_state *s, const char *name)
{
	char taken[FR_STATE_NAME_MAX];

	for (uint32_t i = 0; i < s->n_parts; i++) {
		name_part(taken, s->parts[i].number);
		if (!strcmp(name, taken))
			return true;
	}
	return false;
}

static uint64_t inode_of(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

/* Returns whether this instance uses the passed descriptor NAME. A name that only another version knows is
   not used, and would stay in the store for ever. */
static bool is_used(const struct fr_handover *h, const char *name)
{
	char taken[FR_STATE_NAME_MAX];

	if (!strcmp(name, STATE_NAME))
		return h->file.fd >= 0;
	if (fr_bpf_store_knows(name))
		return h->bpf.n_old > 0;
	if (h->adopted && is_part(&h->state, name))
		return true;
	name_ring(taken, h->ring_number);
	return h->adopted && (!strcmp(name, h->state.ring) || !strcmp(name, taken));
}

/* Closes the passed descriptors, except sockets. Also removes those that this instance does not use from the
   store. Returns the number of removed descriptors. */
static unsigned release_passed(const struct fr_handover *h)
{
	char **names = NULL;
	int n = passed_are_closed ? 0 : sd_listen_fds_with_names(0, &names);
	unsigned removed = 0;

	passed_are_closed = true;
	for (int i = 0; i < n; i++) {
		if (!strncmp(names[i], NAME_PREFIX, strlen(NAME_PREFIX))) {
			close(SD_LISTEN_FDS_START + i);
			if (!is_used(h, names[i])) {
				remove_from_store(names[i]);
				removed++;
			}
		}
		free(names[i]);
	}
	free(names);
	return removed;
}

static bool is_same_directory(int dirfd, const struct fr_state *s)
{
	struct stat st;

	return fr_stat_cached(dirfd, &st) == 0 && s->directory_dev == st.st_dev &&
	       s->directory_ino == st.st_ino;
}

/* Duplicates the descriptors of the previous instance's state and ring, and reads the state. Returns 0;
   -ENOENT if there is no state; or another negative errno, with a message in D. */
static int receive(struct fr_state_file *ret_file, struct fr_state *ret, int *ret_ring, const char *boot_id,
	struct fr_diag *d)
{
	_cleanup_close_ int fd = dup_passed(STATE_NAME);
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
		*ret_ring = dup_passed(ret->ring);
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

static void receive_parts(struct fr_handover *h)
{
	char name[FR_STATE_NAME_MAX];

	for (uint32_t i = 0; i < h->state.n_parts; i++) {
		name_part(name, h->state.parts[i].number);
		h->part_fds[i] = dup_passed(name);
		h->part_inodes[i] = inode_of(h->part_fds[i]);
		h->part_number = FR_MAX(h->part_number, h->state.parts[i].number);
	}
}

/* If this fails, there is a gap, as without BPF programs. */
static void receive_bpf(struct fr_handover *h)
{
	const int r = passed_are_closed ? 0 : fr_bpf_store_receive(&h->bpf);

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
		(void)sscanf(h->state.ring, RING_NAME "%u", &h->ring_number);
		name_ring(next, h->ring_number + 1);
		h->next_fd = dup_passed(next);
		receive_parts(h);
		receive_bpf(h);
		return;
	}
	h->file.fd = -1;
	if (r != -ENOENT)
		refuse(h, "%s", d.code ? d.what : strerror(-r));
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
	refuse(h, "%s", why);
	h->in_memory = false;
}

/* The ring of the previous instance is not adopted. */
static void drop_ring(struct fr_handover *h)
{
	if (h->in_memory) {
		fr_crashmem_format(h->memory, h->state.boot_id);
		h->in_memory = false;
		return;
	}
	close(TAKE_FD(h->ring_fd));
	h->ring_number++;
}

/* Closes the rings of the previous instance that this instance does not use. */
static void drop_parts(struct fr_handover *h)
{
	for (uint32_t i = 0; i < h->state.n_parts; i++) {
		if (h->part_fds[i] < 0)
			continue;
		if (h->adopted)
			fr_log(LOG_NOTICE,
				"the ring %s of the previous instance has no section any more, and is "
				"dropped",
				h->state.parts[i].ring);
		close(h->part_fds[i]);
		h->part_fds[i] = -1;
	}
}

static bool has_ring(const struct fr_handover *h)
{
	return h->ring_fd >= 0 || h->in_memory;
}

void fr_handover_use_memory(struct fr_handover *h, struct fr_crashmem *m)
{
	h->memory = m;
	if (h->state.n_parts && h->ring_fd >= 0) {
		refuse(h, "it has several rings, and RingMemory= has room for one");
		drop_ring(h);
	}
}

int fr_handover_unite_session(struct fr_handover *h, struct fr_session *session, struct fr_counters *counters,
	uint64_t lost[static _FR_LOSS_MAX])
{
	int r;

	if (!has_ring(h))
		return 0;
	r = fr_session_add_older_events(session, &h->state.session);
	if (r == -EBADMSG) {
		refuse(h, "its formats of tracepoints are damaged");
		drop_ring(h);
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
		ssize_t n = fr_section_decompress(unpack, frame.sideband, frame.sideband_len, raw, size);
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

/* Returns the index of the ring RING in the state of the previous instance that is not
   taken yet; -1 if there is none. */
static int find_part(const struct fr_handover *h, const char *ring)
{
	for (uint32_t i = 0; h->adopted && i < h->state.n_parts; i++)
		if (!strcmp(h->state.parts[i].ring, ring) && h->part_fds[i] >= 0)
			return (int)i;
	return -1;
}

bool fr_handover_has_part(const struct fr_handover *h, const char *ring)
{
	return find_part(h, ring) >= 0;
}

int fr_handover_take_part(struct fr_handover *h, const char *ring)
{
	const int i = find_part(h, ring);

	return i < 0 ? -1 : TAKE_FD(h->part_fds[i]);
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
	drop_parts(h);
	fr_closep(&h->next_fd);
	h->next_fd = -1;
	if (h->on && release_passed(h) > 0)
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

	if (!has_ring(h))
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
	refuse(h, "%s", why.what[0] ? why.what : strerror(-r));
	drop_ring(h);
	return open_empty(h, config, ring, ret, d);
}

/* Gives each ring of F that the store does not have yet a new number. */
static void fill_parts(struct fr_handover *h, const struct fr_handover_facts *f)
{
	struct fr_state_part parts[FR_STATE_PARTS_MAX] = {0};
	uint64_t inodes[FR_STATE_PARTS_MAX];

	for (unsigned i = 0; i < f->n_parts; i++) {
		snprintf(parts[i].ring, sizeof(parts[i].ring), "%s", f->parts[i].ring);
		inodes[i] = inode_of(fr_history_fd(f->parts[i].history));
		for (uint32_t k = 0; k < h->state.n_parts; k++)
			if (h->part_inodes[k] == inodes[i])
				parts[i].number = h->state.parts[k].number;
		if (!parts[i].number)
			parts[i].number = ++h->part_number;
	}
	memcpy(h->state.parts, parts, sizeof(parts));
	memcpy(h->part_inodes, inodes, f->n_parts * sizeof(inodes[0]));
	h->state.n_parts = f->n_parts;
}

static void fill_state(const struct fr_handover *h, const struct fr_handover_facts *f, struct fr_state *s)
{
	struct stat st = {0};

	(void)fr_stat_cached(f->dirfd, &st);
	s->directory_dev = st.st_dev;
	s->directory_ino = st.st_ino;
	strcpy(s->boot_id, f->boot_id);
	name_ring(s->ring, h->ring_number);
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

bool fr_handover_is_in_gap(const struct fr_handover *h)
{
	return h->state.gap_from_ns && !h->state.gap_to_ns;
}

/* Begins the gap at the time up to which the ring is complete. If this time is unknown, the gap begins at the
   start of the first instance. If the previous instance has drained nothing, the new gap includes the gap
   before the previous instance, so that gap is subtracted. If the previous instance was killed during its
   start, its gap goes on. */
static void begin_gap(struct fr_handover *h)
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

int fr_handover_announce_sideband(struct fr_handover *h, const struct fr_session *session)
{
	_cleanup_session_ struct fr_session announced = {0};
	int r;

	/* Do this now: as soon as side-band is drained, the ring does not tell any more when the samples of
	   the previous instance ended. */
	if (h->adopted && h->continued != FR_CONTINUED_ALL)
		begin_gap(h);
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

static int put_into_store(const char *name, int fd)
{
	char text[64 + FR_STATE_NAME_MAX];

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name);
	return sd_pid_notify_with_fds(0, 0, text, &fd, 1);
}

void fr_handover_add_ring(struct fr_handover *h, int fd)
{
	char name[FR_STATE_NAME_MAX];

	name_ring(name, h->ring_number + 1);
	if (h->on)
		(void)put_into_store(name, fd);
}

void fr_handover_add_part(struct fr_handover *h, const char *ring, int fd, const struct fr_session *session)
{
	const uint32_t i = h->state.n_parts;
	char name[FR_STATE_NAME_MAX];

	if (!h->on || h->file.fd < 0 || i == FR_STATE_PARTS_MAX)
		return;
	snprintf(h->state.parts[i].ring, sizeof(h->state.parts[i].ring), "%s", ring);
	h->state.parts[i].number = ++h->part_number;
	h->part_inodes[i] = inode_of(fd);
	h->state.n_parts++;
	name_part(name, h->part_number);
	(void)put_into_store(name, fd);
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
		r = put_into_store(h->state.ring, fr_history_fd(facts->history));
	for (unsigned i = 0; r >= 0 && i < facts->n_parts; i++) {
		name_part(name, h->state.parts[i].number);
		if (!is_part(before, name))
			r = put_into_store(name, fr_history_fd(facts->parts[i].history));
	}
	if (r >= 0)
		write_state(h, facts->session);
	if (r >= 0)
		r = put_into_store(STATE_NAME, h->file.fd);
	if (r >= 0 && before->ring[0] && strcmp(before->ring, h->state.ring) != 0)
		remove_from_store(before->ring);
	for (uint32_t i = 0; r >= 0 && i < before->n_parts; i++) {
		name_part(name, before->parts[i].number);
		if (!is_part(&h->state, name))
			remove_from_store(name);
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
		drop_parts(h);
	if (h->on && !h->settled)
		release_passed(h);
	h->settled = true;
	before = h->state; /* only its names are used */
	fr_session_deinit(&h->state.session);
	fill_state(h, facts, &h->state);
	fill_parts(h, facts);
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
	begin_gap(h);
	h->state.gap_to_ns = now_ns;
	h->state.gap_ns += now_ns - h->state.gap_from_ns;
	fr_log(LOG_NOTICE, "%s recorded for %s, from the end of the previous instance until now",
		h->continued ? "events whose samples the kernel makes were not" : "nothing was",
		fr_duration_format(h->state.gap_to_ns - h->state.gap_from_ns, gap));
	return true;
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
	remove_from_store(STATE_NAME);
	remove_from_store(h->state.ring);
	for (uint32_t i = 0; i < h->state.n_parts; i++) {
		char name[FR_STATE_NAME_MAX];

		name_part(name, h->state.parts[i].number);
		remove_from_store(name);
	}
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
