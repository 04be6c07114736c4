// SPDX-License-Identifier: GPL-2.0-or-later
#include "reporting/losses.h"

#include <string.h>

static void add_counters(uint64_t sum[static _FR_LOSS_MAX], const uint64_t lost[static _FR_LOSS_MAX])
{
	for (int i = 0; i < _FR_LOSS_MAX; i++)
		sum[i] += lost[i];
}

/* Adds the losses that belong to no event: the losses of the ring, of the tracker and of the dumper, and the
   losses of earlier instances and captures. */
static void add_common(const struct fr_loss_counters *c, uint64_t sum[static _FR_LOSS_MAX])
{
	struct fr_history_stats history;
	struct fr_tracker_stats tracker;
	struct fr_dumper_stats dumper;

	fr_rings_stats(c->rings, &history);
	fr_tracker_stats(c->tracker, &tracker);
	if (c->dumper) {
		fr_dumper_stats(c->dumper, &dumper);
		sum[FR_LOSS_FAILED_DUMP] += dumper.samples_given_up;
		sum[FR_LOSS_AUX] += dumper.aux_given_up;
	}
	add_counters(sum, c->lost_before);
	sum[FR_LOSS_BACK_PRESSURE] += history.samples_dropped;
	sum[FR_LOSS_SIDEBAND] += history.sideband_dropped;
	sum[FR_LOSS_SIDEBAND_QUEUE] += tracker.queue_drops;
	sum[FR_LOSS_AUXILIARY] += tracker.write_errors;
}

void fr_losses_add_event(const struct fr_capture *c, size_t e, uint64_t sum[static _FR_LOSS_MAX])
{
	struct fr_counter counter;

	for (size_t cpu = 0; cpu < fr_capture_n_cpus(c); cpu++) {
		fr_capture_counter(c, e, cpu, &counter);
		add_counters(sum, counter.lost);
	}
}

void fr_losses_sum(const struct fr_loss_counters *c, uint64_t ret[static _FR_LOSS_MAX])
{
	memset(ret, 0, sizeof(*ret) * _FR_LOSS_MAX);
	for (size_t e = 0; e < fr_capture_n_events(c->capture); e++)
		fr_losses_add_event(c->capture, e, ret);
	add_common(c, ret);
}

uint64_t fr_losses_total(const struct fr_loss_counters *c)
{
	uint64_t lost[_FR_LOSS_MAX], sum = 0;

	fr_losses_sum(c, lost);
	for (int i = 0; i < _FR_LOSS_MAX; i++)
		sum += i == FR_LOSS_AUX_PAUSED ? 0 : lost[i];
	return sum;
}

/* Adds an object for a loss to ARRAY. EVENT is NULL if the loss belongs to no event. Returns the object. If
   COUNT is 0, adds nothing and returns NULL. */
static cJSON *add_loss(cJSON *array, enum fr_loss cause, const char *event, int cpu, uint64_t count)
{
	cJSON *o;

	if (!count)
		return NULL;
	o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "cause", fr_loss_name(cause));
	if (event) {
		cJSON_AddStringToObject(o, "event", event);
		cJSON_AddNumberToObject(o, "cpu", cpu);
	}
	cJSON_AddNumberToObject(o, "count", (double)count);
	cJSON_AddItemToArray(array, o);
	return o;
}

/* Adds losses that belong to no event. */
static void add_losses(cJSON *array, const uint64_t lost[static _FR_LOSS_MAX], uint64_t gaps_ns)
{
	for (int i = 0; i < _FR_LOSS_MAX; i++) {
		cJSON *loss = add_loss(array, i, NULL, -1, lost[i]);

		if (loss && i == FR_LOSS_RESTART)
			cJSON_AddNumberToObject(loss, "seconds", (double)gaps_ns / 1e9);
	}
}

void fr_losses_add_sums_json(const uint64_t lost[static _FR_LOSS_MAX], uint64_t gaps_ns, cJSON *meta)
{
	add_losses(cJSON_AddArrayToObject(meta, "losses"), lost, gaps_ns);
}

void fr_losses_add_json(const struct fr_loss_counters *c, uint64_t gaps_ns, cJSON *meta)
{
	cJSON *array = cJSON_AddArrayToObject(meta, "losses");
	uint64_t common[_FR_LOSS_MAX] = {0};
	struct fr_counter counter;

	for (size_t e = 0; e < fr_capture_n_events(c->capture); e++)
		for (size_t cpu = 0; cpu < fr_capture_n_cpus(c->capture); cpu++) {
			fr_capture_counter(c->capture, e, cpu, &counter);
			for (int i = 0; i < _FR_LOSS_MAX; i++)
				add_loss(array, i, fr_capture_event_name(c->capture, e),
					fr_capture_cpu_number(c->capture, cpu), counter.lost[i]);
		}
	add_common(c, common);
	add_losses(array, common, gaps_ns);
}
