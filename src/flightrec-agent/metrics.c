// SPDX-License-Identifier: GPL-2.0-or-later
/* The names follow the rules of Prometheus: a prefix, base units, _total for counters. */
#include "flightrec-agent/metrics.h"
#include "base/clock.h"
#include "metrics/openmetrics.h"

#include <string.h>

#define NO_LABELS ((const struct fr_metric_label[FR_METRIC_LABELS_MAX]){{0}})
#define LABEL(n, v) ((const struct fr_metric_label[FR_METRIC_LABELS_MAX]){{n, v}})

static void add_link(struct fr_openmetrics *o, const struct fr_agent_stats *s)
{
	fr_openmetrics_family(
		o, "flightrec_agent", FR_METRIC_INFO, NULL, "The machine and the version of its agent.");
	fr_openmetrics_u64(o,
		(const struct fr_metric_label[FR_METRIC_LABELS_MAX]){
			{"machine", s->name}, {"version", FR_VERSION}},
		1);
	fr_openmetrics_add_gauge(
		o, "flightrec_agent_link_up", NULL, "1 if the broker is connected.", s->is_up);
	fr_openmetrics_add_counter(
		o, "flightrec_agent_links", "How often the link to the broker was made.", s->links);
	fr_openmetrics_add_counter(
		o, "flightrec_agent_broker_errors", "Calls of the broker that failed.", s->bus_errors);
	fr_openmetrics_add_counter(o, "flightrec_agent_messages_refused",
		"Replies of the broker that made no sense.", s->messages_refused);
	fr_openmetrics_add_gauge(
		o, "flightrec_agent_recorder_up", NULL, "1 if the recorder answers.", !s->recorder[0]);
	fr_openmetrics_add_counter(o, "flightrec_agent_presences",
		"How often the presence of this machine was stored.", s->presence);
	if (s->last_presence_ns)
		fr_openmetrics_add_seconds(o, "flightrec_agent_presence_age_seconds", FR_METRIC_GAUGE,
			"The age of the last stored presence.", fr_monotonic_ns() - s->last_presence_ns);
}

static void add_clock(struct fr_openmetrics *o, const struct fr_agent_stats *s)
{
	if (s->clock_error_ns == UINT64_MAX)
		return;
	fr_openmetrics_add_seconds(o, "flightrec_agent_clock_offset_seconds", FR_METRIC_GAUGE,
		"The clock of the broker minus the monotonic clock of this machine.",
		s->clock_offset_ns > 0 ? (uint64_t)s->clock_offset_ns : 0);
	fr_openmetrics_add_seconds(o, "flightrec_agent_clock_error_seconds", FR_METRIC_GAUGE,
		"The largest possible error of the offset.", s->clock_error_ns);
}

static void add_commands(struct fr_openmetrics *o, const struct fr_agent_stats *s)
{
	const struct {
		const char *outcome;
		uint64_t n;
	} all[] = {
		{"dumped", s->done}, {"stored", s->stored}, {"refused", s->refused}, {"failed", s->failed}};

	fr_openmetrics_add_counter(o, "flightrec_agent_commands", "Commands for this machine.", s->commands);
	fr_openmetrics_add_counter(
		o, "flightrec_agent_commands_malformed", "Commands that made no sense.", s->commands_bad);
	fr_openmetrics_family(o, "flightrec_agent_outcomes", FR_METRIC_COUNTER, NULL,
		"Commands by outcome. A stored dump was counted as dumped before.");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fr_openmetrics_u64(o, LABEL("outcome", all[i].outcome), all[i].n);
	fr_openmetrics_add_gauge(
		o, "flightrec_agent_commands_pending", NULL, "Commands that are not complete.", s->jobs);
}

static void add_uploads(struct fr_openmetrics *o, const struct fr_agent_stats *s)
{
	fr_openmetrics_add_gauge(
		o, "flightrec_agent_uploads", NULL, "Dumps that wait for the store.", s->uploads);
	fr_openmetrics_add_gauge(
		o, "flightrec_agent_uploads_bytes", "bytes", "Bytes of these dumps.", s->uploads_bytes);
	fr_openmetrics_add_gauge(
		o, "flightrec_agent_store_up", NULL, "0 if the last upload failed.", !s->store[0]);
	fr_openmetrics_add_counter(o, "flightrec_agent_uploaded_bytes",
		"Bytes that were sent to the store or received.", s->uploaded_bytes);
	fr_openmetrics_add_counter(
		o, "flightrec_agent_store_errors", "Tries of an upload that failed.", s->store_errors);
}

static void add_incidents(struct fr_openmetrics *o, const struct fr_agent_stats *s)
{
	const struct {
		const char *outcome;
		uint64_t n;
	} all[] = {{"sent", s->incidents_sent}, {"joined", s->incidents_joined},
		{"failed", s->incidents_failed}};

	fr_openmetrics_family(o, "flightrec_agent_incidents", FR_METRIC_COUNTER, NULL,
		"Decisions of triggers with Action=fleet; joined: the fleet was asked already.");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fr_openmetrics_u64(o, LABEL("outcome", all[i].outcome), all[i].n);
}

int agent_metrics(void *agent, struct fr_buf *ret)
{
	struct fr_openmetrics o = {0};
	struct fr_agent_stats s;
	int r;

	fr_agent_stats(agent, &s);
	add_link(&o, &s);
	add_clock(&o, &s);
	add_commands(&o, &s);
	add_uploads(&o, &s);
	add_incidents(&o, &s);
	r = fr_openmetrics_end(&o);
	if (r < 0) {
		fr_buf_deinit(&o.text);
		return r;
	}
	*ret = o.text;
	return 0;
}
