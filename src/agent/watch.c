// SPDX-License-Identifier: GPL-2.0-or-later
/* The watch thread: gets the decisions of the recorder, and passes those with Action=fleet to the bus thread.
 */
#include "agent/agent_private.h"
#include "base/thread.h"
#include "control/interface.h"

#include <errno.h>

#define PAUSE_NS (2 * FR_NSEC_PER_SEC)
#define LOOK_TICKS 30u
#define DECISIONS_TIMEOUT_NS (10 * FR_NSEC_PER_SEC)

static void take(struct fr_agent *a, const cJSON *json)
{
	const uint64_t now_ns = fr_monotonic_ns();
	struct fr_agent_decision d;

	if (fr_decision_read(json, a->boot_id, &d) <= 0)
		return;
	if (now_ns > d.at_ns && now_ns - d.at_ns > AGENT_DECISION_AGE_NS)
		return;
	fr_lock(&a->lock);
	if (fr_handled_has(&a->handled, d.key)) {
		/* The decision came twice: Watch sends it again when it has changed. */
	} else if (a->n_decisions == AGENT_DECISIONS_MAX) {
		a->stats.incidents_failed++;
	} else {
		a->decisions[a->n_decisions++] = d;
		fr_cond_broadcast(&a->cond);
	}
	fr_unlock(&a->lock);
}

static bool on_decision(void *ctx, const cJSON *parameters)
{
	struct fr_agent *a = ctx;

	take(a, cJSON_GetObjectItemCaseSensitive(parameters, "decision"));
	return !atomic_load(&a->stop);
}

/* Looks at the decisions that came while this thread did not listen. */
static void read_old(struct fr_agent *a)
{
	cJSON *reply = NULL;
	const cJSON *item;
	struct fr_diag d = {0};

	(void)fr_recorder_call(a, FR_METHOD(Decisions), NULL, DECISIONS_TIMEOUT_NS, &reply, &d);

	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(reply, "decisions"))
		take(a, item);
	cJSON_Delete(reply);
}

struct watcher {
	struct fr_agent *agent;
	unsigned ticks;
};

/* Runs about once a second while no decision comes. Looks at the old ones after the stream has begun, so that
   none is missed; and again now and then, since a stream leaves out what it cannot send. */
static void on_tick(void *ctx)
{
	struct watcher *w = ctx;

	if (w->ticks++ % LOOK_TICKS == 0)
		read_old(w->agent);
}

static void watch(struct fr_agent *a)
{
	struct watcher w = {.agent = a};
	struct fr_client *c = NULL;
	struct fr_diag d = {0};

	if (fr_recorder_connect(a, &c, &d) < 0)
		return;
	fr_client_on_wait(c, on_tick, &w);
	(void)fr_client_stream(c, FR_METHOD(Watch), NULL, on_decision, a, &d);
	fr_recorder_disconnect(a, c);
}

void *fr_agent_watch_main(void *agent)
{
	struct fr_agent *a = agent;

	fr_thread_begin(FR_THREAD_WATCH);
	while (!atomic_load(&a->stop)) {
		uint64_t until_ns;

		watch(a);
		fr_lock(&a->lock);
		until_ns = fr_monotonic_ns() + PAUSE_NS;
		while (!atomic_load(&a->stop) && fr_monotonic_ns() < until_ns)
			fr_agent_wait(a, until_ns);
		fr_unlock(&a->lock);
	}
	return NULL;
}
