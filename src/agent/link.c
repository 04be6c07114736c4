// SPDX-License-Identifier: GPL-2.0-or-later
/* The bus thread. It alone uses the bus, so the answers of a job reach the broker in their order. */
#include "agent/agent_private.h"
#include "base/cleanup.h"
#include "base/thread.h"

#include <errno.h>
#include <string.h>

#define CONNECT_PAUSE_NS (10 * FR_NSEC_PER_SEC)
#define PAUSE_NS (2 * FR_NSEC_PER_SEC)
#define WAIT_MAX_NS (5 * FR_NSEC_PER_SEC)
#define BURST 5u
#define DOWN_NS FR_NSEC_PER_SEC /* a link that is down for less is not worth a line */

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

/* Called on a thread of the bus. */
static void on_link(void *ctx, bool is_up)
{
	struct fr_agent *a = ctx;

	fr_lock(&a->lock);
	a->stats.is_up = is_up;
	if (is_up)
		a->link_came = a->rescan = true;
	fr_cond_broadcast(&a->cond);
	fr_unlock(&a->lock);
}

void fr_agent_bus_failed(struct fr_agent *a, const struct fr_diag *d, int code)
{
	const char *why = d->what[0] ? d->what : strerror(-code);

	a->bus_due_ns = fr_monotonic_ns() + PAUSE_NS;
	fr_lock(&a->lock);
	a->stats.bus_errors++;
	snprintf(a->stats.why_down, sizeof(a->stats.why_down), "%.255s", why);
	fr_unlock(&a->lock);
	if (!strcmp(a->bus_said, why))
		return;
	snprintf(a->bus_said, sizeof(a->bus_said), "%s", why);
	fr_log_struct(LOG_WARNING, FR_MSG_FLEET_LINK, NULL, 0, "broker: %s%s%s", why,
		d->hint[0] ? "\n  " : "", d->hint);
}

/* Makes the bus. Returns 0 or a negative errno. */
static int open_bus(struct fr_agent *a, struct fr_diag *d)
{
	char name[FR_FLEET_TOKEN_SIZE + 32], token[FR_FLEET_TOKEN_SIZE], inbox[FR_FLEET_TOKEN_SIZE + 16];
	const struct fr_fleet_config *f = a->fleet;
	const struct fr_bus_config config = {.servers = f->servers,
		.credentials = or_null(f->credentials),
		.ca = or_null(f->ca),
		.certificate = or_null(f->certificate),
		.key = or_null(f->key),
		.name = name,
		.inbox = inbox,
		.on_link = on_link,
		.ctx = a};
	int r;

	fr_fleet_token(a->name, token);
	/* libnats puts the name into JSON as it is, so it must not have quotes. */
	snprintf(name, sizeof(name), "flightrec-agent %s", token);
	snprintf(inbox, sizeof(inbox), "_INBOX.%s", token);
	r = fr_bus_new(&config, true, AGENT_BUS_TIMEOUT_NS, &a->bus, d);
	if (r == 0)
		r = fr_bus_subscribe(a->bus, FR_SUBJECT_COMMAND ".*", fr_agent_on_bell, a, d);
	if (r < 0)
		a->bus = fr_bus_free(a->bus);
	return r;
}

/* Does what a new link needs: another broker can have another clock. */
static int on_new_link(struct fr_agent *a)
{
	bool came;
	int r;

	fr_lock(&a->lock);
	came = a->link_came;
	fr_unlock(&a->lock);
	if (!came)
		return 0;
	fr_fleet_clock_reset(&a->estimator);
	r = fr_agent_measure(a, BURST);
	if (r < 0)
		return r;
	fr_lock(&a->lock);
	a->link_came = false;
	fr_unlock(&a->lock);
	a->presence_due_ns = 0;
	fr_log_struct(LOG_INFO, FR_MSG_FLEET_LINK, NULL, 0, "%s is a member of the fleet: the broker answers",
		a->name);
	return 0;
}

/* One round: each function does what is to do, and ends the round at the first error. */
static int round_of(struct fr_agent *a)
{
	static int (*const steps[])(struct fr_agent *) = {on_new_link, fr_agent_read_commands,
		fr_agent_check_jobs, fr_agent_send_answers, fr_agent_send_incidents, fr_agent_presence};
	int r = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(steps) && r == 0; i++) {
		atomic_store(&a->bus_beat_ns, fr_monotonic_ns());
		r = steps[i](a);
	}
	if (r < 0 && a->bus_due_ns <= fr_monotonic_ns())
		a->bus_due_ns = fr_monotonic_ns() + PAUSE_NS;
	if (r == 0 && a->bus_said[0]) {
		a->bus_said[0] = '\0';
		fr_lock(&a->lock);
		a->stats.why_down[0] = '\0';
		fr_unlock(&a->lock);
	}
	return r;
}

static void note_state(struct fr_agent *a)
{
	struct fr_bus_stats stats;
	const bool is_up = fr_bus_is_up(a->bus);
	char why[256];

	fr_bus_stats(a->bus, &stats);
	fr_bus_why_down(a->bus, why, sizeof(why));
	fr_lock(&a->lock);
	a->stats.is_up = is_up;
	a->stats.links = stats.links;
	a->stats.messages_refused = stats.refused;
	fr_unlock(&a->lock);
	if (is_up || !a->down_since_ns)
		a->down_since_ns = fr_monotonic_ns();
	if (!is_up && why[0] && strcmp(why, a->bus_said) != 0 &&
		fr_monotonic_ns() - a->down_since_ns > DOWN_NS) {
		struct fr_diag d = {0};

		fr_fail(&d, -ENOTCONN, NULL, "%s", why);
		fr_agent_bus_failed(a, &d, -ENOTCONN);
	}
}

/* Returns whether the bus thread has to do something now. */
static bool has_work(struct fr_agent *a)
{
	if (a->n_bells || a->rescan || a->link_came || a->n_decisions || a->presence_now)
		return true;
	for (size_t i = 0; i < a->n_jobs; i++) {
		const struct fr_job *j = a->jobs[i];

		if (j->phase == FR_JOB_CHECK || j->phase == FR_JOB_INDEX || j->phase == FR_JOB_STORED ||
			j->phase == FR_JOB_END || j->answer_version != j->sent_version)
			return true;
	}
	return false;
}

/* Waits until there is something to do. */
static void pause_bus(struct fr_agent *a)
{
	fr_lock(&a->lock);
	while (!atomic_load(&a->stop)) {
		const uint64_t now_ns = fr_monotonic_ns();
		uint64_t until_ns = now_ns + WAIT_MAX_NS;

		atomic_store(&a->bus_beat_ns, now_ns);
		if (now_ns < a->bus_due_ns)
			until_ns = FR_MIN(until_ns, a->bus_due_ns);
		else if (a->stats.is_up && has_work(a))
			break;
		if (a->stats.is_up)
			until_ns = FR_MIN(until_ns, FR_MAX(a->presence_due_ns, a->bus_due_ns));
		if (!fr_cond_wait_until(&a->cond, &a->lock, until_ns) && now_ns >= a->bus_due_ns)
			break;
	}
	fr_unlock(&a->lock);
}

static void run_bus(struct fr_agent *a)
{
	struct fr_diag d = {0};
	int r = a->bus ? 0 : open_bus(a, &d);

	if (r < 0) {
		fr_agent_bus_failed(a, &d, r);
		a->bus_due_ns = fr_monotonic_ns() + CONNECT_PAUSE_NS;
		return;
	}
	note_state(a);
	if (fr_bus_is_up(a->bus) && fr_monotonic_ns() >= a->bus_due_ns)
		(void)round_of(a);
}

void *fr_agent_bus_main(void *agent)
{
	struct fr_agent *a = agent;

	fr_thread_begin(FR_THREAD_BUS);
	while (!atomic_load(&a->stop)) {
		run_bus(a);
		pause_bus(a);
	}
	if (a->bus && fr_bus_is_up(a->bus))
		fr_agent_leave(a);
	a->bus = fr_bus_free(a->bus);
	return NULL;
}
