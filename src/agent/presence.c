// SPDX-License-Identifier: GPL-2.0-or-later
/* The presence of this machine. The time that the broker gives to it is the clock of the fleet. */
#include "agent/agent_private.h"
#include "base/cleanup.h"
#include "control/interface.h"

#include <errno.h>
#include <string.h>

#define PING_TIMEOUT_NS (3 * FR_NSEC_PER_SEC)
#define LEAVE_TIMEOUT_NS (2 * FR_NSEC_PER_SEC)

static char *presence_json(struct fr_agent *a, bool is_leaving)
{
	struct fr_fleet_presence p = {.labels = a->labels, .leaving = is_leaving};

	snprintf(p.machine, sizeof(p.machine), "%s", a->name);
	snprintf(p.boot_id, sizeof(p.boot_id), "%s", a->boot_id);
	snprintf(p.version, sizeof(p.version), "%s", FR_VERSION);
	fr_lock(&a->lock);
	p.clock = a->clock;
	snprintf(p.recorder, sizeof(p.recorder), "%s", a->stats.recorder);
	snprintf(p.store, sizeof(p.store), "%s", a->stats.store);
	fr_table_uploads(a, &p.uploads, &p.uploads_bytes);
	fr_unlock(&a->lock);
	return fr_fleet_presence_json(&p);
}

/* Stores the presence. Sets *RET_SEQUENCE. */
static int store_presence(
	struct fr_agent *a, bool is_leaving, uint64_t timeout_ns, uint64_t *ret_sequence, struct fr_diag *d)
{
	char subject[FR_FLEET_SUBJECT_SIZE];
	_cleanup_free_ char *text = presence_json(a, is_leaving);

	if (!text)
		return -ENOMEM;
	fr_fleet_subject(FR_SUBJECT_PRESENCE, NULL, a->name, subject);
	return fr_bus_store(a->bus, FR_STREAM_PRESENCE, subject, text, strlen(text), FR_BUS_ANY, timeout_ns,
		ret_sequence, d);
}

static void update_clock(struct fr_agent *a)
{
	const struct fr_clock_pair now = fr_clock_pair_now();
	struct fr_fleet_clock clock;

	fr_fleet_clock_get(&a->estimator, now.monotonic_ns, now.realtime_ns, &clock);
	fr_lock(&a->lock);
	a->clock = clock;
	a->stats.presence++;
	a->stats.last_presence_ns = now.monotonic_ns;
	fr_unlock(&a->lock);
}

/* Stores the presence, and reads when the broker stored it. */
static int measure_once(struct fr_agent *a, struct fr_diag *d)
{
	char subject[FR_FLEET_SUBJECT_SIZE];
	struct fr_bus_message m = {0};
	uint64_t sequence = 0, after_ns;
	const uint64_t before_ns = fr_monotonic_ns();
	int r = store_presence(a, false, AGENT_BUS_TIMEOUT_NS, &sequence, d);

	after_ns = fr_monotonic_ns();
	if (r < 0)
		return r;
	fr_fleet_subject(FR_SUBJECT_PRESENCE, NULL, a->name, subject);
	r = fr_bus_last(a->bus, FR_STREAM_PRESENCE, subject, AGENT_BUS_TIMEOUT_NS, &m, d);
	/* A replica can be late, and another agent can have the same name. Then this is no measurement. */
	if (r == 0 && m.sequence == sequence)
		fr_fleet_clock_add(&a->estimator, before_ns, after_ns, m.time_ns);
	if (r == 0)
		fr_bus_message_deinit(&m);
	if (r >= 0)
		update_clock(a);
	return r < 0 ? r : 0;
}

int fr_agent_measure(struct fr_agent *a, unsigned times)
{
	int r = 0;

	for (unsigned i = 0; i < times && r == 0; i++) {
		struct fr_diag d = {0};

		atomic_store(&a->bus_beat_ns, fr_monotonic_ns());
		r = measure_once(a, &d);
		if (r < 0)
			fr_agent_bus_failed(a, &d, r);
	}
	return r;
}

/* Asks the recorder whether it answers. */
static void look_at_recorder(struct fr_agent *a)
{
	struct fr_diag d = {0};
	int r = fr_recorder_call(a, "org.varlink.service.GetInfo", NULL, PING_TIMEOUT_NS, NULL, &d);

	if (r != -ECANCELED && fr_agent_set_text(a, a->stats.recorder, r < 0 ? d.what : "")) {
		if (r < 0)
			fr_log_diag(LOG_WARNING, &d, r);
		else
			fr_log(LOG_INFO, "the recorder answers");
	}
}

int fr_agent_presence(struct fr_agent *a)
{
	const uint64_t now_ns = fr_monotonic_ns();
	bool now;
	int r;

	fr_lock(&a->lock);
	now = a->presence_now;
	fr_unlock(&a->lock);
	if (!now && now_ns < a->presence_due_ns)
		return 0;
	look_at_recorder(a);
	fr_lock(&a->lock);
	a->presence_now = false;
	fr_unlock(&a->lock);
	r = fr_agent_measure(a, 1);
	if (r < 0)
		return r;
	/* A tenth earlier or later, so that a fleet that starts at once does not stay together. */
	a->presence_due_ns =
		now_ns + FR_PRESENCE_INTERVAL_NS / 10 * 9 + fr_agent_random() % (FR_PRESENCE_INTERVAL_NS / 5);
	return 0;
}

void fr_agent_leave(struct fr_agent *a)
{
	struct fr_diag d = {0};

	if (a->is_leaving)
		(void)store_presence(a, true, LEAVE_TIMEOUT_NS, NULL, &d);
}
