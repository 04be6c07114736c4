// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-fleet/wait.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#define POLL_NS (500 * FR_NSEC_PER_MSEC) /* a bell can be lost */
#define GATHER_NS (5 * FR_NSEC_PER_MSEC) /* many machines answer at the same time */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	interrupted = number;
}

static void on_bell(void *ctx, const char *subject)
{
	const struct wait *w = ctx;

	(void)eventfd_write(w->bell, 1);
}

int wait_begin(struct wait *w, struct fr_diag *d)
{
	const struct sigaction action = {.sa_handler = on_interrupt};
	char subject[FR_FLEET_SUBJECT_SIZE];

	if (w->bell < 0)
		w->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->bell < 0)
		return -errno;
	sigaction(SIGINT, &action, NULL);
	snprintf(subject, sizeof(subject), FR_SUBJECT_ANSWER ".%s.*", w->id);
	return fr_bus_subscribe(w->f->bus, subject, on_bell, w, d);
}

void wait_end(struct wait *w)
{
	if (w->bell >= 0)
		close(w->bell);
	w->bell = -1;
}

bool wait_is_over(const struct wait *w, const struct machine *m)
{
	/* Without an answer, only a machine that is reachable can still give one. */
	if (!m->answer)
		return m->manifest || !m->is_chosen || !machine_is_reachable(m, w->now_ns);
	if (m->answer->state == FR_FLEET_RECORDING)
		return false;
	return m->answer->state != FR_FLEET_DONE || !w->stored || m->manifest;
}

static void show_progress(const struct wait *w, size_t over, size_t all)
{
	static bool is_there;

	if (w->f->command->quiet || !isatty(STDERR_FILENO))
		return;
	if (over < all) {
		fprintf(stderr, "\r\033[K%zu of %zu machines are ready", over, all);
		is_there = true;
	} else if (is_there) {
		fputs("\r\033[K", stderr);
	}
	fflush(stderr);
}

/* Returns whether all machines are over. */
static bool count(const struct wait *w)
{
	size_t over = 0, all = 0;

	for (size_t i = 0; i < w->machines->n; i++) {
		const struct machine *m = w->machines->v[i];

		if (!machine_takes_part(m))
			continue;
		all++;
		over += wait_is_over(w, m);
	}
	show_progress(w, over, all);
	return over == all;
}

static void wait_for_bell(const struct wait *w, uint64_t until_ns)
{
	const uint64_t now_ns = fr_monotonic_ns();
	const uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct pollfd p = {.fd = w->bell, .events = POLLIN};
	const struct timespec t = {(time_t)(left_ns / FR_NSEC_PER_SEC), (long)(left_ns % FR_NSEC_PER_SEC)};
	eventfd_t bells;

	if (ppoll(&p, 1, &t, NULL) > 0)
		(void)eventfd_read(w->bell, &bells);
}

static void sleep_ns(uint64_t ns)
{
	const struct timespec t = {(time_t)(ns / FR_NSEC_PER_SEC), (long)(ns % FR_NSEC_PER_SEC)};

	nanosleep(&t, NULL);
}

static int read_all(struct wait *w, uint64_t *ret_took_ns, struct fr_diag *d)
{
	const uint64_t begin_ns = fr_monotonic_ns();
	int r;

	/* Each reading finds the same bad messages again. */
	w->f->ignored = w->ignored;
	r = machines_read_answers(w->f, w->machines, w->id, d);

	if (r == 0 && w->stored)
		r = machines_read_index(w->f, w->machines, w->id, d);
	*ret_took_ns = fr_monotonic_ns() - begin_ns;
	return r;
}

/* Returns whether the error can pass: for example, the broker starts again. A broker that stops can say many
   things, also that it has no such stream; but the command is in a stream. */
static bool can_pass(int r)
{
	return r < 0 && r != -EACCES && r != -EBADMSG && r != -EINVAL && r != -ENOMEM;
}

int wait_run(struct wait *w, struct fr_diag *d)
{
	uint64_t took_ns = 0;
	int r;

	w->ignored = w->f->ignored;
	r = read_all(w, &took_ns, d);
	while ((can_pass(r) || (r == 0 && !count(w))) && !interrupted) {
		uint64_t now_ns = fr_monotonic_ns();

		if (now_ns >= w->until_ns)
			break;
		if (r < 0 && d)
			*d = (struct fr_diag){0};
		wait_for_bell(w, FR_MIN(now_ns + POLL_NS, w->until_ns));
		/* With many machines, reading takes longer, so it happens less often. */
		now_ns = fr_monotonic_ns();
		if (now_ns < w->until_ns)
			sleep_ns(FR_MIN(FR_MAX(took_ns, GATHER_NS), w->until_ns - now_ns));
		r = read_all(w, &took_ns, d);
	}
	show_progress(w, 0, 0);
	return r;
}
