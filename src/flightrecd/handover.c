// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/handover.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "flightrecd/config_kept.h"
#include "flightrecd/daemon.h"
#include "flightrecd/memory.h"
#include "history/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <systemd/sd-daemon.h>

#define STATE_NAME "flightrec-state"
#define RING_NAME "flightrec-ring-"
/* Until the service manager has let go of it, too. */
#define BARRIER_USEC 5000000

static void __attribute__((format(printf, 2, 3))) refuse(struct fr_daemon *m, const char *fmt, ...)
{
	struct fr_handover *h = &m->handover;
	va_list args;

	va_start(args, fmt);
	vsnprintf(h->refused, sizeof(h->refused), fmt, args);
	va_end(args);
	fr_log(LOG_WARNING, "the history of the instance before is lost: %s", h->refused);
}

/* The descriptors with the store's names, each close-on-exec. They stay until an instance has taken over: one
   that cannot use its configuration tries again. The environment keeps telling of all of them: others look
   for theirs. */
static bool passed_are_taken;

static int find_passed(const char *name)
{
	char **names = NULL;
	int n = passed_are_taken ? 0 : sd_listen_fds_with_names(0, &names), fd = -1;

	for (int i = 0; i < n; i++) {
		if (!strcmp(names[i], name))
			fd = SD_LISTEN_FDS_START + i;
		free(names[i]);
	}
	free(names);
	return fd;
}

static void remove_from_store(const char *name)
{
	(void)sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}

static void name_ring(char ret[static FR_STATE_NAME_MAX], unsigned number)
{
	snprintf(ret, FR_STATE_NAME_MAX, RING_NAME "%u", number);
}

/* What was passed is ours now, or of no use: a ring of which nothing tells. How many of these went. */
static unsigned settle(struct fr_daemon *m)
{
	const struct fr_handover *h = &m->handover;
	char **names = NULL, taken[FR_STATE_NAME_MAX];
	int n = passed_are_taken ? 0 : sd_listen_fds_with_names(0, &names);
	unsigned removed = 0;

	name_ring(taken, h->ring_number);
	passed_are_taken = true;
	for (int i = 0; i < n; i++) {
		const bool state = !strcmp(names[i], STATE_NAME),
			   ring = h->adopted &&
				  (!strcmp(names[i], h->state.ring) || !strcmp(names[i], taken)),
			   ours = state ? h->file.fd >= 0 : ring;

		if (state || !strncmp(names[i], RING_NAME, strlen(RING_NAME))) {
			close(SD_LISTEN_FDS_START + i);
			if (!ours) {
				remove_from_store(names[i]);
				removed++;
			}
		}
		free(names[i]);
	}
	free(names);
	return removed;
}

static bool is_same_directory(const struct fr_daemon *m, const struct fr_state *s)
{
	struct stat st;

	return fr_stat_known(m->dirfd, &st) == 0 && s->directory_dev == st.st_dev &&
	       s->directory_ino == st.st_ino;
}

/* State and ring of the instance before, in descriptors of our own. 0; -ENOENT: there is none; a negative
   errno with D. */
static int receive(
	struct fr_state_file *ret_file, struct fr_state *ret, int *ret_ring, char *boot_id, struct fr_diag *d)
{
	const int passed = find_passed(STATE_NAME);
	_cleanup_close_ int fd = passed < 0 ? -1 : fcntl(passed, F_DUPFD_CLOEXEC, 0);
	int r, ring;

	if (fd < 0)
		return passed < 0 ? -ENOENT : -errno;
	r = fr_state_file_adopt(fd, ret_file, ret, d);
	if (r < 0)
		return r;
	if (strcmp(ret->boot_id, boot_id) != 0)
		r = fr_fail(d, -EBADMSG, NULL, "it is of another boot");
	ring = r == 0 ? find_passed(ret->ring) : -1;
	if (r == 0 && ring < 0)
		r = fr_fail(d, -EBADMSG, NULL, "its ring is not in the descriptor store");
	*ret_ring = r == 0 ? fcntl(ring, F_DUPFD_CLOEXEC, 0) : -1;
	if (r == 0 && *ret_ring < 0)
		r = fr_fail_errno(d, -errno, NULL, "its ring cannot be taken");
	if (r < 0)
		fr_state_deinit(ret);
	else
		TAKE_FD(fd);
	return r;
}

void fr_handover_receive(struct fr_daemon *m)
{
	struct fr_handover *h = &m->handover;
	char next[FR_STATE_NAME_MAX];
	struct fr_diag d = {0};
	int r, passed;

	*h = (struct fr_handover){.on = !m->config->command && getenv("NOTIFY_SOCKET"),
		.file.fd = -1,
		.ring_fd = -1,
		.next_fd = -1,
		.ring_number = 1};
	if (!h->on || fr_boot_id(m->boot_id) < 0)
		return;
	r = receive(&h->file, &h->state, &h->ring_fd, m->boot_id, &d);
	if (r == 0) {
		(void)sscanf(h->state.ring, RING_NAME "%u", &h->ring_number);
		name_ring(next, h->ring_number + 1);
		passed = find_passed(next);
		h->next_fd = passed < 0 ? -1 : fcntl(passed, F_DUPFD_CLOEXEC, 0);
		return;
	}
	h->file.fd = -1;
	if (r != -ENOENT)
		refuse(m, "%s", d.code ? d.what : strerror(-r));
}

int fr_handover_config(struct fr_buf *ret)
{
	_cleanup_(fr_state_deinit) struct fr_state state = {0};
	_cleanup_close_ int ring = -1;
	struct fr_state_file file = {.fd = -1};
	char boot_id[FR_BOOT_ID_SIZE];
	int r = getenv("NOTIFY_SOCKET") ? fr_boot_id(boot_id) : -ENOENT;

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

static void take_counters(struct fr_daemon *m, const struct fr_state *s)
{
	m->next_job_id = s->next_job_id;
	m->dumps_done = s->dumps_done;
	m->dumps_joined = s->dumps_joined;
	m->dumps_failed = s->dumps_failed;
	m->dumps_suppressed = s->dumps_suppressed;
	m->dumps_canceled = s->dumps_canceled;
	m->dumps_rescued = s->dumps_rescued;
	m->dumps_given_up = s->dumps_given_up;
	m->dumps_removed = s->dumps_removed;
	m->dumps_not_durable = s->dumps_not_durable;
	memcpy(m->lost_before, s->lost, sizeof(m->lost_before));
}

int fr_handover_take_over(struct fr_daemon *m)
{
	struct fr_handover *h = &m->handover;
	int r;

	if (h->ring_fd < 0)
		return 0;
	r = fr_session_unite(&m->session, &h->state.session);
	if (r == -EBADMSG) {
		refuse(m, "its formats of tracepoints are damaged");
		close(TAKE_FD(h->ring_fd));
		h->ring_number++;
		return 0;
	}
	if (r < 0)
		return r;
	fr_session_close_events(&m->session, fr_monotonic_ns());
	take_counters(m, &h->state);
	return 0;
}

static void say_adopted(struct fr_daemon *m)
{
	const struct fr_history_adopted *w = &m->handover.what;
	char span[FR_UNIT_SIZE], left_out[64] = "";

	if (w->frames_left_out)
		snprintf(left_out, sizeof(left_out), "; %llu older frames are left out",
			(unsigned long long)w->frames_left_out);
	fr_log(LOG_INFO, "goes on with the history of the instance before: %llu samples of %s%s%s",
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
		struct fr_section_iter it = fr_section_iter(raw, n > 0 ? (size_t)n : 0);
		const struct perf_event_header *h = fr_section_next(&it);

		if (h)
			r = fr_buf_append(ret, h, h->size);
	}
	return r;
}

/* What the auxiliary file has before it has left the ring. */
static int find_first_sideband(struct fr_daemon *m)
{
	struct fr_snapshot *snapshot;
	int r = fr_history_seal(m->history); /* the open chunk's, too; nobody appends yet */

	if (r >= 0)
		r = fr_history_snapshot(m->history, &snapshot);
	if (r < 0)
		return r;
	r = take_first_record(m->history, snapshot, &m->handover.first);
	fr_snapshot_free(snapshot);
	return r;
}

/* H, and where an instance was killed while another ring took over from it, that one with all of both. */
static void take_both(struct fr_daemon *m, const struct fr_history_config *config)
{
	struct fr_handover *h = &m->handover;
	struct fr_history_adopted what;
	struct fr_history *next = NULL;
	struct fr_resize *resize = NULL;
	int r = fr_history_adopt(config, h->next_fd, &next, &what, NULL);

	if (r < 0)
		close(h->next_fd);
	h->next_fd = -1;
	if (r == 0)
		r = fr_resize_resume(m->history, next, &resize);
	if (r < 0) {
		fr_history_free(next);
		fr_log(LOG_WARNING, "the ring that was to take over has no part of the history: %s",
			strerror(-r));
		return;
	}
	while (fr_resize_step(resize) > 0)
		;
	m->history = fr_resize_finish(resize, &h->what);
	while (fr_resize_populate(resize) > 0)
		;
	fr_resize_free(resize);
	h->ring_number++;
}

static int check_memory(const struct fr_daemon *m, struct fr_diag *d)
{
	struct fr_memory memory;

	fr_memory_look("", &memory);
	if (m->config->ring_bytes > memory.total / 2 && memory.total)
		fr_log(LOG_WARNING, "the ring takes more than half of the machine's memory, and keeps it");
	return fr_memory_check_ring(&memory, 0, m->config->ring_bytes, m->config->ring_origin, d);
}

/* A ring that was passed and is of no use has the memory that the new one takes. */
static void let_go_of_passed(struct fr_daemon *m)
{
	fr_closep(&m->handover.next_fd);
	m->handover.next_fd = -1;
	if (m->handover.on && settle(m) > 0)
		(void)sd_notify_barrier(0, BARRIER_USEC);
}

static int open_empty(struct fr_daemon *m, const struct fr_history_config *config, struct fr_diag *d)
{
	int r;

	let_go_of_passed(m);
	r = check_memory(m, d);
	return r < 0 ? r : fr_history_new(config, &m->history, d);
}

int fr_handover_open_history(struct fr_daemon *m, const struct fr_history_config *config, struct fr_diag *d)
{
	struct fr_handover *h = &m->handover;
	struct fr_history_config own = *config;
	struct fr_diag why = {0};
	int r = -EBADMSG;

	if (h->ring_fd < 0)
		return open_empty(m, config, d);
	/* It is there already; where it is to have another size, that comes when all else runs. */
	own.keep_size = true;
	own.populate = h->next_fd < 0;
	r = fr_history_adopt(&own, h->ring_fd, &m->history, &h->what, &why);
	/* The ring is whole, and what the configuration asks for cannot be had: that of before can. */
	if (r < 0 && r != -EBADMSG && !m->refused.code)
		return fr_fail(d, r, why.hint, "the history of the instance before cannot be taken over: %s",
			why.what[0] ? why.what : strerror(-r));
	if (r < 0) {
		refuse(m, "%s", why.what[0] ? why.what : strerror(-r));
		close(TAKE_FD(h->ring_fd));
		h->ring_number++;
		return open_empty(m, config, d);
	}
	h->ring_number += !h->what.in_place;
	if (h->next_fd >= 0)
		take_both(m, &own);
	h->ring_fd = -1;
	h->adopted = true;
	h->same_directory = is_same_directory(m, &h->state);
	say_adopted(m);
	r = find_first_sideband(m);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot read the history of the instance before");
	if (!h->same_directory)
		fr_log(LOG_NOTICE,
			"processes that have exited have no names in the older history: the auxiliary "
			"file is in another directory");
	return 0;
}

static void fill_state(const struct fr_daemon *m, struct fr_state *s)
{
	struct stat st = {0};

	(void)fr_stat_known(m->dirfd, &st);
	s->directory_dev = st.st_dev;
	s->directory_ino = st.st_ino;
	strcpy(s->boot_id, m->boot_id);
	name_ring(s->ring, m->handover.ring_number);
	if (!s->first_started_ns)
		s->first_started_ns = m->started.monotonic_ns;
	s->next_job_id = m->next_job_id;
	s->dumps_done = m->dumps_done;
	s->dumps_joined = m->dumps_joined;
	s->dumps_failed = m->dumps_failed;
	s->dumps_suppressed = m->dumps_suppressed;
	s->dumps_canceled = m->dumps_canceled;
	s->dumps_rescued = m->dumps_rescued;
	s->dumps_given_up = m->dumps_given_up;
	s->dumps_removed = m->dumps_removed;
	s->dumps_not_durable = m->dumps_not_durable;
}

/* The session is borrowed for the time of the call. */
static void write_state(struct fr_daemon *m)
{
	struct fr_handover *h = &m->handover;
	struct fr_session events = {.events = m->session.events, .n_events = m->session.n_events};
	int r;

	events.features[FR_FEATURE_TRACING_DATA] = m->session.features[FR_FEATURE_TRACING_DATA];
	h->state.session = events;
	r = fr_state_file_write(&h->file, &h->state);
	h->state.session = (struct fr_session){0};
	if (r < 0)
		fr_log(LOG_WARNING,
			"a restart will lose the history: what tells of its events cannot be kept: %s",
			strerror(-r));
}

static int put_into_store(const char *name, int fd)
{
	char text[64 + FR_STATE_NAME_MAX];

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name);
	return sd_pid_notify_with_fds(0, 0, text, &fd, 1);
}

void fr_handover_add_ring(struct fr_daemon *m, int fd)
{
	char name[FR_STATE_NAME_MAX];

	name_ring(name, m->handover.ring_number + 1);
	if (m->handover.on)
		(void)put_into_store(name, fd);
}

/* The new ring first, then the state that names it, then the old one goes: a kill in between leaves one of
   the two whole. */
void fr_handover_store(struct fr_daemon *m)
{
	struct fr_handover *h = &m->handover;
	char before[FR_STATE_NAME_MAX];
	struct fr_diag d = {0};
	int r = 0;

	if (!h->on)
		return;
	if (!h->settled) {
		settle(m);
		h->settled = true;
		if (!m->refused.code)
			fr_handover_keep_config(m);
	}
	memcpy(before, h->state.ring, sizeof(before));
	fr_session_deinit(&h->state.session);
	fill_state(m, &h->state);
	if (h->file.fd < 0)
		r = fr_state_file_new(&h->file, &d);
	if (r == 0)
		r = put_into_store(h->state.ring, fr_history_fd(m->history));
	if (r >= 0)
		write_state(m);
	if (r >= 0)
		r = put_into_store(STATE_NAME, h->file.fd);
	if (r < 0) {
		fr_log(LOG_WARNING, "a restart will lose the history: %s", d.what[0] ? d.what : strerror(-r));
		h->on = false;
	} else if (before[0] && strcmp(before, h->state.ring) != 0) {
		remove_from_store(before);
	}
}

void fr_handover_keep_config(struct fr_daemon *m)
{
	struct fr_handover *h = &m->handover;
	struct fr_buf kept = {0};

	if (!h->on || fr_config_keep(m->config, m->argc, m->argv, &kept) < 0) {
		fr_buf_deinit(&kept); /* that of before does, then */
		return;
	}
	fr_buf_deinit(&h->state.config);
	h->state.config = kept;
	h->written = false;
}

/* From the last moment of which all is in the ring. An instance that drained nothing at all only made the gap
   before it longer. */
static void count_gap(struct fr_state *s, uint64_t drained_ns, uint64_t now_ns)
{
	const uint64_t from_ns = drained_ns ? drained_ns : s->first_started_ns;

	if (from_ns <= s->gap_from_ns)
		s->gap_ns -= s->gap_to_ns - s->gap_from_ns;
	s->gap_from_ns = from_ns;
	s->gap_to_ns = now_ns;
	s->gap_ns += now_ns - from_ns;
}

void fr_handover_record(struct fr_daemon *m)
{
	struct fr_handover *h = &m->handover;
	char gap[FR_UNIT_SIZE];

	if (!h->adopted)
		return;
	h->state.restarts++;
	m->lost_before[FR_LOSS_RESTART]++;
	count_gap(&h->state, h->what.drained_ns, fr_monotonic_ns());
	fr_log(LOG_NOTICE, "nothing was recorded for %s, between the instance before and this one",
		fr_duration_format(h->state.gap_to_ns - h->state.gap_from_ns, gap));
	fr_handover_update(m);
}

void fr_handover_update(struct fr_daemon *m)
{
	struct fr_handover *h = &m->handover;
	struct fr_state before = h->state;

	if (!h->on || h->file.fd < 0)
		return;
	fill_state(m, &h->state);
	fr_status_losses(m, h->state.lost);
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding that differs costs one more write */
	if (memcmp(&before, &h->state, sizeof(before)) != 0 || !h->written) {
		write_state(m);
		h->written = true;
	}
}

void fr_handover_forget(struct fr_daemon *m)
{
	struct fr_handover *h = &m->handover;

	if (!h->on || h->file.fd < 0)
		return;
	remove_from_store(STATE_NAME);
	remove_from_store(h->state.ring);
}

void fr_handover_close(struct fr_daemon *m)
{
	struct fr_handover *h = &m->handover;

	if (h->ring_number == 0) /* never received */
		return;
	fr_closep(&h->ring_fd);
	fr_closep(&h->next_fd);
	fr_closep(&h->file.fd);
	fr_state_deinit(&h->state);
	fr_buf_deinit(&h->first);
	*h = (struct fr_handover){.file.fd = -1, .ring_fd = -1, .next_fd = -1};
}

void fr_handover_add_gap(const struct fr_daemon *m, cJSON *loss)
{
	cJSON_AddNumberToObject(loss, "seconds", (double)m->handover.state.gap_ns / 1e9);
}

void fr_handover_add_status(const struct fr_daemon *m, cJSON *status)
{
	const struct fr_handover *h = &m->handover;
	const struct fr_state *s = &h->state;
	char stamp[FR_STAMP_SIZE];
	cJSON *o;

	if (!h->adopted)
		return;
	o = cJSON_AddObjectToObject(status, "adopted");
	fr_rfc3339_format(fr_clock_to_realtime(&m->started, s->first_started_ns), stamp);
	cJSON_AddStringToObject(o, "first_since", stamp);
	cJSON_AddNumberToObject(o, "restarts", (double)s->restarts);
	cJSON_AddNumberToObject(o, "gap_s", (double)(s->gap_to_ns - s->gap_from_ns) / 1e9);
	cJSON_AddNumberToObject(o, "gaps_s", (double)s->gap_ns / 1e9);
	cJSON_AddNumberToObject(o, "gap_from_ns", (double)s->gap_from_ns);
	cJSON_AddNumberToObject(o, "gap_to_ns", (double)s->gap_to_ns);
	cJSON_AddNumberToObject(o, "samples", (double)h->what.samples);
	cJSON_AddNumberToObject(o, "frames", (double)h->what.frames);
	cJSON_AddNumberToObject(o, "frames_left_out", (double)h->what.frames_left_out);
	cJSON_AddNumberToObject(o, "first_ns", (double)h->what.first_ns);
	cJSON_AddNumberToObject(o, "last_ns", (double)h->what.last_ns);
	cJSON_AddBoolToObject(o, "in_place", h->what.in_place);
}
