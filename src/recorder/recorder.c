// SPDX-License-Identifier: GPL-2.0-or-later
#include "recorder/recorder.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "capture/cutover.h"
#include "perfdata/record.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

/* The longest delay between the time of a record and its appearance in a kernel ring. The kernel reads the
   clock before it puts the record into the ring. Between these two steps, interrupts can run, or the
   hypervisor can take the CPU away. */
#define IN_FLIGHT_NS (10 * FR_NSEC_PER_MSEC)

/* If more tasks want to run than the machine has CPUs, the kernel rings fill up while the recorder waits for
   a CPU. With this priority, the recorder waits less. It runs only for microseconds at a time, so it does not
   slow other tasks down. */
#define RECORDER_NICE (-10)

struct fr_recorder {
	struct fr_recorder_config config;
	int wake_fd, all_tasks_ended_fd;
	pthread_t thread;
	pid_t tid;

	/* There is one request at a time. A thread with another request waits until `request` is IDLE. */
	struct fr_lock lock;
	struct fr_cond changed;
	enum { IDLE, BEGUN, ASKED, ANSWERED } request;
	int (*work)(struct fr_recorder *r, void *ctx); /* runs on the recorder thread */
	void *work_ctx;
	int answer_code;
	atomic_bool stop;

	uint64_t sideband_lost;
	struct fr_cutover *cutover; /* NULL: there is no cut-over */
	uint64_t cutover_ns;
	struct fr_cutover *takeover; /* the same, from adopted rings to the BPF rings of this capture */
	_Atomic uint64_t last_round_ns;
	_Atomic uint64_t rounds, longest_ns, longest_period_ns;
};

static void keep_sideband(struct fr_recorder *r, const struct fr_run *run)
{
	if (fr_history_append_sideband(fr_rings_sideband(&r->config.rings), run->data, run->len, run->records,
		    run->first_ns, run->last_ns) > 0)
		fr_tracker_request_scan(r->config.tracker);
	(void)fr_tracker_push_fresh(r->config.tracker, run->data,
		run->len); /* if the queue is full, the tracker counts the loss and scans /proc */
}

static void keep_samples(struct fr_recorder *r, const struct fr_run *run)
{
	const struct fr_rings *rings = &r->config.rings;

	(void)fr_history_append_from(rings->ring[run->ring < rings->n ? run->ring : 0], run->cpu_index,
		run->data, run->len, run->records, run->first_ns, run->last_ns);
}

typedef void (*keep_fn)(struct fr_recorder *r, const struct fr_run *run);

/* Used near the time of the cut-over C. Keeps only the records of RUN for which fr_cutover_keeps() returns
   true. */
static void keep_parts(struct fr_recorder *r, struct fr_cutover *c, const struct fr_run *run, keep_fn keep)
{
	struct fr_run part = {.data = run->data, .ring = run->ring, .cpu_index = run->cpu_index};

	for (size_t at = 0; at < run->len;) {
		const struct perf_event_header *h = (const void *)((const uint8_t *)run->data + at);
		const uint64_t t = fr_record_time(h);

		at += h->size;
		if (fr_cutover_keeps(c, h)) {
			part.first_ns = part.records ? FR_MIN(part.first_ns, t) : t;
			part.last_ns = FR_MAX(part.last_ns, t);
			part.len += h->size;
			part.records++;
			if (at < run->len)
				continue;
		}
		if (part.records)
			keep(r, &part);
		part = (struct fr_run){.data = (const uint8_t *)run->data + at,
			.ring = run->ring,
			.cpu_index = run->cpu_index};
	}
}

/* C is NULL if there is no cut-over. */
static void keep_run(struct fr_recorder *r, struct fr_cutover *c, const struct fr_run *run, keep_fn keep)
{
	if (!c || fr_cutover_keeps_run(c, run->first_ns, run->last_ns))
		keep(r, run);
	else
		keep_parts(r, c, run, keep);
}

static void on_sideband(void *ctx, const struct fr_run *run)
{
	struct fr_recorder *r = ctx;

	keep_run(r, r->cutover, run, keep_sideband);
}

static void on_samples(void *ctx, const struct fr_run *run)
{
	struct fr_recorder *r = ctx;

	keep_run(r, r->cutover, run, keep_samples);
}

static void on_bpf(void *ctx, const struct fr_run *run)
{
	struct fr_recorder *r = ctx;

	keep_run(r, r->takeover ? r->takeover : r->cutover, run, keep_samples);
}

static void on_adopted(void *ctx, const struct fr_run *run)
{
	struct fr_recorder *r = ctx;

	if (r->takeover)
		fr_cutover_begin_old(r->takeover);
	keep_run(r, r->takeover, run, keep_samples);
	if (r->takeover)
		fr_cutover_begin_new(r->takeover);
}

/* Records that do not come twice at a cut-over. */
static void on_shared(void *ctx, const struct fr_run *run)
{
	keep_samples(ctx, run);
}

static struct fr_capture_ops drain_ops(struct fr_recorder *r)
{
	return (struct fr_capture_ops){
		.sideband = on_sideband,
		.samples = on_samples,
		.shared = on_shared,
		.bpf = on_bpf,
		.adopted = on_adopted,
		.ctx = r,
		.samples_max = fr_rings_append_max(&r->config.rings),
	};
}

static void drain_overwrite(struct fr_recorder *r)
{
	const struct fr_capture_ops ops = drain_ops(r);

	if (fr_capture_has_overwrite(r->config.capture))
		fr_capture_drain_overwrite(r->config.capture, &ops);
}

/* Ends the cut-over, if there is one. The overwritable rings may have records near the cut-over time, for
   which the cut-over has to decide, so they are drained once before. */
static void end_cutover(struct fr_recorder *r)
{
	if (!r->cutover)
		return;
	drain_overwrite(r);
	r->cutover = fr_cutover_free(r->cutover);
}

/* Runs a round. BEGIN_NS is a time at or before the start of the round. */
static void run_round(struct fr_recorder *r, uint64_t begin_ns)
{
	const struct fr_capture_ops ops = drain_ops(r);
	const uint64_t since_ns = begin_ns - IN_FLIGHT_NS;
	uint64_t lost;

	fr_rings_begin_round(&r->config.rings, since_ns);
	fr_capture_drain(r->config.capture, &ops);
	fr_rings_end_round(&r->config.rings);
	fr_tracker_end_round(r->config.tracker, since_ns);

	lost = fr_capture_sideband_lost(r->config.capture);
	if (lost != r->sideband_lost) {
		r->sideband_lost = lost;
		fr_tracker_request_scan(r->config.tracker);
	}
	/* From now on, no kernel ring gets records near the cut-over time. */
	if (since_ns > r->cutover_ns + FR_CUTOVER_NEAR_NS)
		end_cutover(r);
	atomic_store_explicit(&r->last_round_ns, fr_monotonic_ns(), memory_order_relaxed);
}

/* If there is a request, runs its work. Call this function directly after a round. */
static void answer_request(struct fr_recorder *r)
{
	fr_lock(&r->lock);
	if (r->request == ASKED) {
		r->answer_code = r->work(r, r->work_ctx);
		r->request = ANSWERED;
		fr_cond_broadcast(&r->changed);
	}
	fr_unlock(&r->lock);
}

static void raise_maximum(_Atomic uint64_t *maximum, uint64_t ns)
{
	if (ns > atomic_load_explicit(maximum, memory_order_relaxed))
		atomic_store_explicit(maximum, ns, memory_order_relaxed);
}

/* If a task has ended or a CPU has gone offline, removes its perf event from the epoll set. Call this
   function after a round, which has drained the last records of the perf event. */
static void handle_hang_ups(struct fr_recorder *r, const struct epoll_event *events, int n)
{
	const uint64_t one = 1;
	bool any = false;

	for (int i = 0; i < n; i++)
		if (events[i].data.ptr && events[i].events & (EPOLLHUP | EPOLLERR)) {
			fr_capture_handle_epoll(r->config.capture, events[i].data.ptr, events[i].events);
			any = true;
		}
	if (any && fr_capture_has_ended(r->config.capture))
		(void)!write(r->all_tasks_ended_fd, &one, sizeof(one));
}

static void *recorder_main(void *arg)
{
	struct fr_recorder *r = arg;
	struct epoll_event events[32];
	uint64_t last_wake_ns;
	bool stop = false;

	fr_thread_begin(FR_THREAD_RECORDER);
	/* setpriority() needs CAP_SYS_NICE. Without this capability, the priority stays normal. */
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), RECORDER_NICE);
	fr_lock(&r->lock);
	r->tid = gettid();
	fr_cond_broadcast(&r->changed);
	fr_unlock(&r->lock);

	last_wake_ns = fr_monotonic_ns();
	while (!stop) {
		int n = epoll_wait(fr_capture_epoll_fd(r->config.capture), events, FR_ARRAY_SIZE(events),
			(int)r->config.period_ms);
		uint64_t woken_ns = fr_monotonic_ns(), took_ns;
		bool asked = false;

		for (int i = 0; i < n; i++)
			if (!events[i].data.ptr)
				asked = true;
		if (asked) {
			uint64_t count;

			(void)!read(r->wake_fd, &count, sizeof(count));
			stop = r->stop;
		}
		run_round(r, fr_monotonic_ns());
		handle_hang_ups(r, events, n);
		if (asked)
			answer_request(r);

		took_ns = fr_monotonic_ns() - woken_ns;
		atomic_fetch_add_explicit(&r->rounds, 1, memory_order_relaxed);
		raise_maximum(&r->longest_ns, took_ns);
		raise_maximum(&r->longest_period_ns, woken_ns - last_wake_ns);
		last_wake_ns = woken_ns;
	}
	return NULL;
}

static int add_wake_up(struct fr_recorder *r, struct fr_capture *capture)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};

	return epoll_ctl(fr_capture_epoll_fd(capture), EPOLL_CTL_ADD, r->wake_fd, &ev) < 0 ? -errno : 0;
}

int fr_recorder_start(const struct fr_recorder_config *config, struct fr_recorder **ret, struct fr_diag *d)
{
	struct fr_recorder *r = calloc(1, sizeof(*r));
	int code;

	if (!r)
		return -ENOMEM;
	r->config = *config;
	if (!r->config.period_ms)
		r->config.period_ms = FR_RECORDER_PERIOD_NS / FR_NSEC_PER_MSEC;
	fr_lock_init(&r->lock);
	fr_cond_init(&r->changed);

	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->all_tasks_ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wake_fd < 0 || r->all_tasks_ended_fd < 0 || add_wake_up(r, config->capture) < 0) {
		code = fr_fail_errno(d, -errno, NULL, "cannot make the recorder's eventfds");
		goto fail;
	}
	code = -pthread_create(&r->thread, NULL, recorder_main, r);
	if (code < 0) {
		fr_fail_errno(d, code, NULL, "cannot start the recorder thread");
		goto fail;
	}

	fr_lock(&r->lock);
	while (!r->tid)
		fr_cond_wait(&r->changed, &r->lock);
	fr_unlock(&r->lock);
	*ret = r;
	return 0;
fail:
	fr_closep(&r->wake_fd);
	fr_closep(&r->all_tasks_ended_fd);
	free(r);
	return code;
}

static void wake(struct fr_recorder *r)
{
	const uint64_t one = 1;

	(void)!write(r->wake_fd, &one, sizeof(one));
}

struct fr_recorder *fr_recorder_stop(struct fr_recorder *r)
{
	if (!r)
		return NULL;
	r->stop = true;
	wake(r);
	pthread_join(r->thread, NULL);
	fr_cutover_free(r->cutover);
	fr_cutover_free(r->takeover);
	close(r->wake_fd);
	close(r->all_tasks_ended_fd);
	fr_cond_deinit(&r->changed);
	fr_lock_deinit(&r->lock);
	free(r);
	return NULL;
}

pid_t fr_recorder_tid(const struct fr_recorder *r)
{
	return r->tid;
}

int fr_recorder_ended_fd(const struct fr_recorder *r)
{
	return r->all_tasks_ended_fd;
}

/* Reserves the request for the calling thread. Waits while another thread has a request. */
static void begin_request(struct fr_recorder *r)
{
	fr_lock(&r->lock);
	while (r->request != IDLE)
		fr_cond_wait(&r->changed, &r->lock);
	r->request = BEGUN;
	fr_unlock(&r->lock);
}

/* Lets the recorder thread call work() after its next round, and waits until work() has returned. Returns the
   result of work(). */
static int run_request(struct fr_recorder *r, int (*work)(struct fr_recorder *r, void *ctx), void *ctx)
{
	int code;

	fr_lock(&r->lock);
	r->request = ASKED;
	r->work = work;
	r->work_ctx = ctx;
	wake(r);
	while (r->request != ANSWERED)
		fr_cond_wait(&r->changed, &r->lock);
	code = r->answer_code;
	fr_unlock(&r->lock);
	return code;
}

static void end_request(struct fr_recorder *r)
{
	fr_lock(&r->lock);
	r->request = IDLE;
	fr_cond_broadcast(&r->changed);
	fr_unlock(&r->lock);
}

static int request(struct fr_recorder *r, int (*work)(struct fr_recorder *r, void *ctx), void *ctx)
{
	int code;

	begin_request(r);
	code = run_request(r, work, ctx);
	end_request(r);
	return code;
}

/* The round before this call has drained all kernel rings that are not overwritable. Drains the overwritable
   rings, seals the open chunks (compresses each into a frame), and makes the snapshots. */
static int take_snapshot(struct fr_recorder *r, void *ctx)
{
	drain_overwrite(r);
	fr_rings_seal(&r->config.rings);
	return fr_rings_snapshot(&r->config.rings, ctx);
}

int fr_recorder_snapshot(struct fr_recorder *r, struct fr_snapshots *ret)
{
	return request(r, take_snapshot, ret);
}

struct switching {
	struct fr_capture *to;
	const struct fr_rings *rings;
	struct fr_cutover *cutover;
};

/* Cuts over from the kernel rings of the old capture to the kernel rings of the new capture. The cut-over
   time is the start of a last round over the old rings. Records that are taken from the new rings are at most
   FR_CUTOVER_NEAR_NS older than the cut-over time. So no record in a frame, or in a later frame, is older
   than the frame's low watermark: for the low watermarks, each round allows for records that are IN_FLIGHT_NS
   older than its start, and IN_FLIGHT_NS is larger than FR_CUTOVER_NEAR_NS. */
static int switch_capture(struct fr_recorder *r, void *ctx)
{
	const struct switching *s = ctx;

	end_cutover(r);
	r->cutover = s->cutover;
	/* Wait, so that the cut-over time is not near the previous round. If the previous round took
	   records near the cut-over time, the cut-over would not know these records, and would keep
	   their duplicates. */
	usleep(FR_CUTOVER_WAIT_NS / FR_NSEC_PER_USEC);
	r->cutover_ns = fr_monotonic_ns();
	fr_cutover_set_time(r->cutover, r->cutover_ns);
	/* If the recorder is killed now, the next instance knows which capture has which samples. */
	fr_capture_begin(s->to, r->cutover_ns);
	fr_capture_disable(r->config.capture);
	drain_overwrite(r);
	run_round(r, r->cutover_ns);
	fr_cutover_begin_new(r->cutover);
	r->config.capture = s->to;
	r->config.rings = *s->rings;
	r->sideband_lost = fr_capture_sideband_lost(s->to);
	return 0;
}

int fr_recorder_switch(
	struct fr_recorder *r, struct fr_capture *to, const struct fr_rings *rings, struct fr_diag *d)
{
	struct switching s = {to, rings, fr_cutover_new()};
	int code = s.cutover ? add_wake_up(r, to) : -ENOMEM;

	if (code < 0) {
		fr_cutover_free(s.cutover);
		return fr_fail_errno(d, code, NULL, "cannot cut over to the new kernel rings");
	}
	return request(r, switch_capture, &s);
}

/* Takes over from the adopted rings. The programs of the previous instance go on, so this is only about which
   records count: the older ones of the adopted rings, the younger ones of our own. */
static int begin_take_over(struct fr_recorder *r, void *ctx)
{
	uint64_t *ret_ns = ctx;

	usleep(FR_CUTOVER_WAIT_NS / FR_NSEC_PER_USEC); /* for the reason in switch_capture() */
	*ret_ns = fr_monotonic_ns();
	r->takeover = fr_cutover_new();
	if (!r->takeover)
		return -ENOMEM;
	fr_cutover_set_time(r->takeover, *ret_ns);
	fr_cutover_begin_new(r->takeover);
	fr_capture_begin(r->config.capture, *ret_ns);
	/* Wait until the old programs have put their records from before the cut-over into the rings. A
	   duplicate is only recognized if the old record is read first. */
	usleep(FR_CUTOVER_NEAR_NS / FR_NSEC_PER_USEC);
	run_round(r, *ret_ns);
	return 0;
}

static int end_take_over(struct fr_recorder *r, void *ctx)
{
	fr_capture_end_adopted(r->config.capture, ctx);
	r->takeover = fr_cutover_free(r->takeover);
	return 0;
}

int fr_recorder_take_over(
	struct fr_recorder *r, uint64_t *ret_ns, uint64_t lost[static _FR_LOSS_MAX], struct fr_diag *d)
{
	int code = request(r, begin_take_over, ret_ns);

	if (code < 0)
		return fr_fail_errno(d, code, NULL, "cannot take over from the previous instance");
	/* After this time, no program puts a record from before the cut-over into the adopted rings. The
	   round before end_take_over() drains them a last time. */
	usleep((IN_FLIGHT_NS + FR_CUTOVER_NEAR_NS) / FR_NSEC_PER_USEC);
	return request(r, end_take_over, lost);
}

struct moving {
	struct fr_history *to;
	struct fr_snapshot *pins; /* of the frames that the calling thread has copied */
	uint64_t seq;		  /* of the newest of them */
};

static int pin_first_ring(struct fr_recorder *r, void *ctx)
{
	struct moving *m = ctx;

	(void)fr_history_seal(r->config.rings.ring[0]);
	return fr_history_snapshot(r->config.rings.ring[0], &m->pins);
}

/* Copies the side-band that came since the first copy, and lets the next side-band go to the new ring. */
static int move_rest(struct fr_recorder *r, void *ctx)
{
	struct fr_history *from = r->config.rings.ring[0];
	struct moving *m = ctx;
	struct fr_snapshot *s;
	int code;

	(void)fr_history_seal(from);
	code = fr_history_snapshot(from, &s);
	if (code < 0)
		return code;
	code = fr_rings_copy_sideband(s, fr_history_section_max(from), m->seq, m->to, &m->seq);
	fr_snapshot_free(s);
	if (code == 0)
		r->config.rings.sideband = m->to;
	return code;
}

int fr_recorder_add_sideband_ring(
	struct fr_recorder *r, struct fr_history *to, struct fr_snapshot **ret_pins, struct fr_diag *d)
{
	struct moving m = {.to = to};
	int code;

	begin_request(r);
	code = run_request(r, pin_first_ring, &m);
	if (code == 0)
		code = fr_rings_copy_sideband(
			m.pins, fr_history_section_max(r->config.rings.ring[0]), 0, to, &m.seq);
	if (code == 0)
		code = run_request(r, move_rest, &m);
	end_request(r);
	if (code < 0) {
		fr_snapshot_free(m.pins);
		fr_history_free(to);
		return fr_fail_errno(d, code, NULL, "cannot make the ring of the side-band");
	}
	*ret_pins = m.pins;
	return 0;
}

struct resizing {
	struct fr_resize *resize;
	struct fr_history_adopted *adopted;
	struct fr_history **ring; /* in the caller's struct fr_rings */
};

static int finish_resize(struct fr_recorder *r, void *ctx)
{
	const struct resizing *z = ctx;

	struct fr_history *from = *z->ring, *to = fr_resize_finish(z->resize, z->adopted);

	for (unsigned i = 0; i < r->config.rings.n; i++)
		if (r->config.rings.ring[i] == from)
			r->config.rings.ring[i] = to;
	if (r->config.rings.sideband == from)
		r->config.rings.sideband = to;
	*z->ring = to;
	return 0;
}

int fr_recorder_resize(struct fr_recorder *r, struct fr_history **h, uint64_t size_bytes,
	const struct fr_recorder_resize *calls, struct fr_history_adopted *ret, struct fr_diag *d)
{
	struct resizing z = {.adopted = ret, .ring = h};
	int code;

	begin_request(r);
	code = fr_resize_begin(*h, size_bytes, &z.resize, d);
	if (code == 0) {
		calls->begun(calls->ctx, fr_resize_fd(z.resize));
		while (fr_resize_step(z.resize) > 0)
			calls->stepped(calls->ctx);
		code = run_request(r, finish_resize, &z);
	}
	end_request(r);
	if (code < 0)
		return code;
	while (fr_resize_populate(z.resize) > 0)
		calls->stepped(calls->ctx);
	fr_resize_free(z.resize);
	return 0;
}

uint64_t fr_recorder_last_round_ns(struct fr_recorder *r)
{
	return atomic_load_explicit(&r->last_round_ns, memory_order_relaxed);
}

void fr_recorder_rounds(struct fr_recorder *r, struct fr_recorder_rounds *ret)
{
	*ret = (struct fr_recorder_rounds){
		.rounds = atomic_load_explicit(&r->rounds, memory_order_relaxed),
		.longest_ns = atomic_exchange_explicit(&r->longest_ns, 0, memory_order_relaxed),
		.longest_period_ns = atomic_exchange_explicit(&r->longest_period_ns, 0, memory_order_relaxed),
	};
}
