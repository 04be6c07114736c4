// SPDX-License-Identifier: GPL-2.0-or-later
/* The BPF programs of a process that was killed go on, and another process adopts their rings. */
#include "live.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "capture/adopt.h"
#include "capture/bpf_ring.h"
#include "perfdata/record.h"
#include "unwind/unwinder.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PERIOD_NS FR_NSEC_PER_MSEC
#define SPEC "cpu-clock/period=1000000,call-graph=unwind/"
/* Room for a minute: with sanitizers on a busy machine, the start of the unwinder takes seconds. */
#define RING_BYTES (16u << 20)
#define TIMES_MAX (1u << 16)
#define KEPT_BYTES RING_BYTES
#define IDS_MAX 8

/* The samples of this CPU that a process has drained. */
struct drained {
	uint64_t times[TIMES_MAX], ids[TIMES_MAX];
	size_t n, len;
	uint8_t records[KEPT_BYTES];
};

/* What the previous process tells, in memory that both share. */
struct previous {
	uint64_t ids[IDS_MAX];
	size_t n_ids;
	int n[_FR_BPF_FD_KINDS];
	char error[1024];
	struct drained drained;
};

static void keep(void *ctx, const struct fr_run *run)
{
	struct fr_record_iter it = fr_record_iter(run->data, run->len);
	struct drained *d = ctx;
	const struct perf_event_header *h;

	while ((h = fr_record_next(&it)))
		if (h->type == PERF_RECORD_SAMPLE && d->n < TIMES_MAX) {
			d->ids[d->n] = fr_record_id(h);
			d->times[d->n++] = fr_record_time(h);
		}
	assert_true(d->len + run->len <= KEPT_BYTES);
	memcpy(d->records + d->len, run->data, run->len);
	d->len += run->len;
}

static void ignore(void *ctx, const struct fr_run *run)
{
	(void)ctx;
	(void)run;
}

static void drain(struct fr_capture *c, struct drained *d)
{
	const struct fr_capture_ops ops = {.sideband = ignore, .samples = keep, .ctx = d};

	fr_capture_drain(c, &ops);
}

static struct fr_unwinder *unwinder; /* one for a process */

static int open_capture(size_t ring_bytes, int cpu, struct fr_capture **ret, struct fr_diag *d)
{
	const struct fr_unwinder_config config = {.memory_bytes = 4u << 20};
	struct fr_capture_config c = {.ring_bytes = ring_bytes};
	char cpus[16];
	int r = unwinder ? 0 : fr_unwinder_start(&config, &unwinder, d);

	snprintf(cpus, sizeof(cpus), "%d", cpu);
	c.cpus = cpus;
	c.unwinder = unwinder;
	return r < 0 ? r : live_try_open(SPEC, NULL, &c, ret, d);
}

static void send_fds(int socket, const struct fr_bpf_fds *f, struct previous *p)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(64 * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = &(char){0}, .iov_len = 1};
	int fds[64], n = 0;
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control};

	for (int kind = 0; kind < _FR_BPF_FD_KINDS; kind++)
		for (size_t i = 0; i < f->of[kind].n; i++) {
			fds[n++] = f->of[kind].fds[i];
			p->n[kind]++;
		}
	m.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
	control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN((size_t)n * sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.header), fds, (size_t)n * sizeof(int));
	assert_int_equal(sendmsg(socket, &m, 0), 1);
}

static void receive_fds(int socket, const struct previous *p, struct fr_bpf_fds *ret)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(64 * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = &(char){0}, .iov_len = 1};
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fds[64], at = 0;

	*ret = (struct fr_bpf_fds){.number = 1};
	if (recvmsg(socket, &m, 0) != 1)
		unit_skip("%s", p->error);
	memcpy(fds, CMSG_DATA(&control.header), control.header.cmsg_len - CMSG_LEN(0));
	for (int kind = 0; kind < _FR_BPF_FD_KINDS; kind++)
		for (int i = 0; i < p->n[kind]; i++)
			assert_int_equal(fr_bpf_fds_add(ret, (enum fr_bpf_fd)kind, fds[at++]), 0);
}

/* The process that is killed: drains what it has recorded in 100 ms. */
static _Noreturn void record(struct previous *p, size_t ring_bytes, int cpu, int socket)
{
	struct fr_session s = {0};
	struct fr_diag d = {0};
	struct fr_bpf_fds fds;
	struct fr_capture *c;

	unwinder = NULL; /* that of the parent */
	if (open_capture(ring_bytes, cpu, &c, &d) < 0 || fr_capture_bpf_fds(c, &fds) < 0 ||
		fr_capture_describe(c, &s) < 0) {
		snprintf(p->error, sizeof(p->error), "%s", d.what);
		_exit(1);
	}
	p->n_ids = s.events[0].n_ids;
	memcpy(p->ids, s.events[0].ids, p->n_ids * sizeof(*p->ids));
	fr_capture_begin(c, fr_monotonic_ns());
	live_enable(c);
	live_spin_ms(100);
	drain(c, &p->drained);
	send_fds(socket, &fds, p);
	for (;;)
		live_spin_ms(1000);
}

/* Returns the memory of a process that has recorded this CPU, and was killed. */
static struct previous *kill_previous(size_t ring_bytes, int cpu, struct fr_bpf_fds *ret)
{
	struct previous *p =
		mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int sockets[2];
	pid_t pid;

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		record(p, ring_bytes, cpu, sockets[1]);
	close(sockets[1]);
	receive_fds(sockets[0], p, ret);
	close(sockets[0]);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return p;
}

static int adopt(struct fr_capture *c, const struct previous *p, const struct fr_bpf_fds *fds,
	const struct fr_buf *newest, struct fr_diag *d)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE};
	struct fr_session s = {0};
	const struct fr_adoption a = {.sets = fds, .n = 1, .session = &s, .newest = newest};
	int r = fr_session_add_event(&s, &attr, "cpu-clock", p->ids, p->n_ids, NULL);

	assert_int_equal(r, 0);
	r = fr_capture_adopt(c, &a, d);
	fr_session_deinit(&s);
	return r;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Checks that TIMES has no time twice, and nearly as many as there were periods. (The kernel drops samples,
   and a busy machine delays them.) */
static void judge(uint64_t *times, size_t n)
{
	qsort(times, n, sizeof(*times), compare);
	for (size_t i = 1; i < n; i++)
		assert_true(times[i] > times[i - 1]);
	assert_true(n * 10 > (times[n - 1] - times[0]) / PERIOD_NS * 8);
}

static size_t count_of(const struct drained *d, const struct previous *p)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n; i++)
		for (size_t k = 0; k < p->n_ids; k++)
			n += d->ids[i] == p->ids[k];
	return n;
}

static struct drained *new_drained(const struct previous *p)
{
	struct drained *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	memcpy(d->times, p->drained.times, sizeof(d->times));
	memcpy(d->ids, p->drained.ids, sizeof(d->ids));
	d->n = p->drained.n;
	return d;
}

static void rewind_ring(const struct fr_bpf_fds *fds)
{
	struct fr_bpf_ring ring;

	assert_int_equal(fr_bpf_ring_adopt(&ring, fds->of[FR_BPF_FD_RING].fds[0]), 0);
	assert_true(fr_bpf_ring_consumed(&ring) > 0);
	*(uint64_t *)ring.consumer_page = 0;
	fr_bpf_ring_free(&ring);
}

/* REWIND: the process was killed between the append of a run and the release of its records. */
static void continue_after_a_kill(bool rewind)
{
	const int cpu = live_pin();
	const struct fr_buf none = {0};
	uint64_t lost[_FR_LOSS_MAX] = {0};
	struct fr_bpf_fds fds;
	struct previous *p = kill_previous(RING_BYTES, cpu, &fds);
	const struct fr_buf newest = {.data = p->drained.records, .len = p->drained.len};
	struct drained *d = new_drained(p);
	struct fr_capture *c;

	live_spin_ms(100); /* nobody drains the rings */
	assert_true(d->n > 50);
	if (rewind)
		rewind_ring(&fds);
	assert_int_equal(open_capture(1u << 20, cpu, &c, NULL), 0);
	assert_int_equal(adopt(c, p, &fds, rewind ? &newest : &none, NULL), 0);
	assert_true(fr_capture_continues_id(c, p->ids[0]));
	drain(c, d);
	assert_int_equal(count_of(d, p), d->n);
	assert_int_equal(live_counter(c, 0).samples, d->n - p->drained.n);
	judge(d->times, d->n);

	/* The own rings are drained from fr_capture_begin() on. */
	live_enable(c);
	live_spin_ms(20);
	drain(c, d);
	assert_int_equal(count_of(d, p), d->n);
	fr_capture_begin(c, fr_monotonic_ns());
	drain(c, d);
	assert_true(count_of(d, p) < d->n);
	fr_capture_end_adopted(c, lost);
	assert_false(fr_capture_has_adopted(c));
	fr_capture_free(c);
	fr_bpf_fds_close(&fds);
	free(d);
	munmap(p, sizeof(*p));
}

TEST(samples_go_on_after_a_kill)
{
	continue_after_a_kill(false);
}

TEST(records_of_an_interrupted_drain_come_once)
{
	continue_after_a_kill(true);
}

TEST(a_full_ring_counts_its_losses)
{
	const int cpu = live_pin();
	const struct fr_buf none = {0};
	struct fr_bpf_fds fds;
	struct previous *p = kill_previous(4096, cpu, &fds);
	struct drained *d = calloc(1, sizeof(*d));
	struct fr_counter n;
	struct fr_capture *c;

	assert_non_null(d);
	live_spin_ms(200);
	assert_int_equal(open_capture(1u << 20, cpu, &c, NULL), 0);
	assert_int_equal(adopt(c, p, &fds, &none, NULL), 0);
	drain(c, d);
	n = live_counter(c, 0);
	assert_true(d->n > 0);
	assert_int_equal(n.samples, d->n);
	assert_true((n.samples + n.lost[FR_LOSS_KERNEL_RING]) * 10 > 200 * 8);
	drain(c, d);
	assert_true(live_counter(c, 0).lost[FR_LOSS_KERNEL_RING] - n.lost[FR_LOSS_KERNEL_RING] < 20);
	fr_capture_free(c);
	fr_bpf_fds_close(&fds);
	free(d);
	munmap(p, sizeof(*p));
}

/* If the descriptor store has refused some of the descriptors, or they are of another version. */
TEST(sets_that_are_not_complete_are_refused)
{
	static const enum fr_bpf_fd missing[] = {FR_BPF_FD_RING, FR_BPF_FD_LINK, FR_BPF_FD_GUARD};
	const int cpu = live_pin();
	const struct fr_buf none = {0};
	struct fr_bpf_fds fds;
	struct previous *p = kill_previous(4096, cpu, &fds);
	struct fr_capture *c;
	int swap;

	assert_int_equal(open_capture(1u << 20, cpu, &c, NULL), 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(missing); i++) {
		struct fr_diag d = {0};

		fds.of[missing[i]].n--;
		assert_int_equal(adopt(c, p, &fds, &none, &d), -EBADMSG);
		assert_non_null(strstr(d.hint, "FileDescriptorStoreMax="));
		fds.of[missing[i]].n++;
	}
	swap = fds.of[FR_BPF_FD_SHARED].fds[0];
	fds.of[FR_BPF_FD_SHARED].fds[0] = fds.of[FR_BPF_FD_LINK].fds[0];
	assert_int_equal(adopt(c, p, &fds, &none, NULL), -EBADMSG);
	fds.of[FR_BPF_FD_SHARED].fds[0] = swap;
	assert_false(fr_capture_has_adopted(c));
	assert_int_equal(adopt(c, p, &fds, &none, NULL), 0);
	fr_capture_free(c);
	fr_bpf_fds_close(&fds);
	munmap(p, sizeof(*p));
}
