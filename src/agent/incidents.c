// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The brake of Action=fleet. All machines that see an incident try to store it under the same subject, with
 * the condition that nobody has stored one since they looked. One of them wins, and stores the command. A
 * machine that comes later finds the incident; if the winner died before it stored the command, the machine
 * stores the command of that incident.
 */
#include "agent/agent_private.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

/* Stores the command, unless its subject has one. */
static int store_command(struct fr_agent *a, const struct fr_fleet_command *c, struct fr_diag *d)
{
	char subject[FR_FLEET_SUBJECT_SIZE];
	_cleanup_free_ char *text = fr_fleet_command_json(c);

	if (!text)
		return -ENOMEM;
	fr_fleet_subject(FR_SUBJECT_COMMAND, c->id, NULL, subject);
	return fr_bus_store(
		a->bus, FR_STREAM_COMMANDS, subject, text, strlen(text), 0, AGENT_BUS_TIMEOUT_NS, NULL, d);
}

/* Makes sure that the incident in M has its command. */
static int join(struct fr_agent *a, const struct fr_bus_message *m, struct fr_diag *d)
{
	struct fr_fleet_command c = {0};
	char subject[FR_FLEET_SUBJECT_SIZE];
	struct fr_bus_message there = {0};
	int r = fr_fleet_command_read(m->data, m->n, &c, d);

	if (r < 0)
		return r;
	fr_fleet_subject(FR_SUBJECT_COMMAND, c.id, NULL, subject);
	r = fr_bus_last(a->bus, FR_STREAM_COMMANDS, subject, AGENT_BUS_TIMEOUT_NS, &there, d);
	if (r == 0)
		fr_bus_message_deinit(&there);
	return r > 0 ? store_command(a, &c, d) : r;
}

/* Stores the incident if its last message still has the number EXPECTED, and its command. Returns 0; 1 if
   another machine was faster; or a negative errno. */
static int begin(struct fr_agent *a, const char *incident, const struct fr_fleet_command *c,
	uint64_t expected, struct fr_diag *d)
{
	_cleanup_free_ char *text = fr_fleet_command_json(c);
	int r;

	if (!text)
		return -ENOMEM;
	r = fr_bus_store(a->bus, FR_STREAM_INCIDENTS, incident, text, strlen(text), expected,
		AGENT_BUS_TIMEOUT_NS, NULL, d);
	if (r != 0)
		return r;
	r = store_command(a, c, d);
	return r < 0 ? r : 0;
}

/* Returns 0 if this machine asked the fleet; 1 if the incident is known; or a negative errno. */
static int ask(struct fr_agent *a, const struct fr_agent_decision *decision, const char *selector,
	struct fr_fleet_command *ret, struct fr_diag *d)
{
	char token[20], subject[FR_FLEET_SUBJECT_SIZE];
	struct fr_bus_message m = {0};
	uint64_t expected = 0;
	int r;

	fr_incident_token(selector, token);
	snprintf(subject, sizeof(subject), FR_SUBJECT_INCIDENT ".%s", token);
	r = fr_bus_last(a->bus, FR_STREAM_INCIDENTS, subject, AGENT_BUS_TIMEOUT_NS, &m, d);
	if (r < 0)
		return r;
	if (r == 0) {
		const bool lasts = fr_incident_lasts(m.time_ns, fr_agent_now_fleet(a), a->fleet->incident_ns);

		expected = m.sequence;
		r = lasts ? join(a, &m, d) : 0;
		fr_bus_message_deinit(&m);
		/* A message that makes no sense is replaced. */
		if (lasts && r != -EBADMSG)
			return r < 0 ? r : 1;
		if (d)
			*d = (struct fr_diag){0};
	}
	r = fr_decision_command(decision, selector, a->name, &a->clock, ret);
	return r < 0 ? r : begin(a, subject, ret, expected, d);
}

static void tell(
	struct fr_agent *a, const struct fr_agent_decision *d, const struct fr_fleet_command *c, int r)
{
	const struct fr_log_field fields[] = {{"FLIGHTREC_TRIGGER", d->trigger}, {"FLIGHTREC_FLEET", c->id}};

	fr_lock(&a->lock);
	a->stats.incidents_sent += r == 0;
	a->stats.incidents_joined += r > 0;
	fr_unlock(&a->lock);
	if (r == 0)
		fr_log_struct(LOG_NOTICE, FR_MSG_FLEET_INCIDENT, fields, FR_ARRAY_SIZE(fields),
			"trigger %s asks the fleet (%s): command %s", d->trigger, c->selector, c->id);
	else
		fr_log_struct(LOG_INFO, FR_MSG_FLEET_INCIDENT, fields, 1,
			"trigger %s: the fleet knows this incident already", d->trigger);
}

/* Asks for each selector. Returns 0; or a negative errno if it is tried again. */
static int send_one(struct fr_agent *a, const struct fr_agent_decision *decision)
{
	for (size_t i = 0; i < decision->n; i++) {
		struct fr_fleet_command c = {0};
		struct fr_diag d = {0};
		int r = ask(a, decision, decision->selectors[i], &c, &d);

		if (r >= 0) {
			tell(a, decision, &c, r);
			continue;
		}
		fr_agent_bus_failed(a, &d, r);
		if (r != -EACCES && fr_monotonic_ns() - decision->at_ns < AGENT_DECISION_AGE_NS)
			return r;
		fr_lock(&a->lock);
		a->stats.incidents_failed++;
		fr_unlock(&a->lock);
	}
	return 0;
}

/* Copies the oldest decision that is not handled. Returns whether there is one. */
static bool first(struct fr_agent *a, struct fr_agent_decision *ret)
{
	bool found = false;

	fr_lock(&a->lock);
	while (a->n_decisions && !found) {
		*ret = a->decisions[0];
		found = !fr_handled_has(&a->handled, ret->key);
		if (!found)
			memmove(&a->decisions[0], &a->decisions[1],
				--a->n_decisions * sizeof(a->decisions[0]));
	}
	fr_unlock(&a->lock);
	return found;
}

int fr_agent_send_incidents(struct fr_agent *a)
{
	struct fr_agent_decision d;

	while (first(a, &d)) {
		int r = a->clock.error_ns == UINT64_MAX ? -EAGAIN : send_one(a, &d);

		if (r < 0)
			return r;
		fr_lock(&a->lock);
		/* first() removes it from the queue now. */
		(void)fr_handled_add(&a->handled, d.key, fr_fleet_clock_to_fleet(&a->clock, d.at_ns));
		fr_unlock(&a->lock);
		(void)fr_table_save_handled(a);
	}
	return 0;
}
