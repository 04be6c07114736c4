// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/reload.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "base/utf8.h"
#include "config/compare.h"
#include "config/read_in_time.h"
#include "flightrecd/change.h"
#include "flightrecd/reopen.h"
#include "flightrecd/resize.h"
#include "flightrecd/ring_changes.h"
#include "flightrecd/rings.h"
#include "flightrecd/stacks.h"
#include "flightrecd/stages.h"
#include "flightrecd/switches.h"
#include "flightrecd/triggers.h"
#include "flightrecd/view.h"

#include <errno.h>

#include <systemd/sd-daemon.h>

#define READ_TIMEOUT_NS (2 * FR_NSEC_PER_SEC)

struct reload {
	struct fr_call **calls; /* the calls that wait for this reload */
	size_t n_calls;
	struct fr_recording_config open;
	const struct fr_config *now;
	struct fr_config fresh;
	struct fr_recording next;
	bool has_next;		  /* `next` has the events of another recording */
	cJSON *changed, *waiting; /* lines for a person: what has changed; what has not changed, and why */
	int result;
	struct fr_diag diag;
};

/* Reads the configuration in the files. If this configuration records something else than the configuration
   in force, opens its events, unless a command is recorded. This function reads x->now without a lock,
   because only a reload changes the configuration, and only one reload runs at a time. */
static void prepare(void *ctx)
{
	struct reload *x = ctx;

	x->result = fr_config_read_in_time(
		READ_TIMEOUT_NS, &x->fresh, x->open.argc, (char **)x->open.argv, &x->diag);
	if (x->result != 0 || x->now->command || fr_config_has_same_recording(x->now, &x->fresh))
		return;
	x->open.config = &x->fresh;
	x->open.cpus = x->fresh.cpus;
	x->result = fr_recording_open(&x->open, &x->next, &x->diag);
	x->has_next = x->result == 0;
}

static int change_recording(struct fr_daemon *m, struct reload *x)
{
	struct fr_rings rings, old;
	char events[512];
	int r;

	if (!x->has_next && !fr_config_has_same_recording(m->config, &x->fresh))
		fr_json_add_line(x->waiting, "the recording of a command keeps its first events");
	if (!x->has_next)
		return 0;
	r = fr_daemon_prepare_rings(m, &x->fresh, &rings, &x->diag);
	if (r < 0)
		return r;
	old = m->rings;
	r = fr_daemon_switch(m, &x->next, &rings, &x->diag);
	if (r < 0) {
		fr_daemon_free_rings(&rings, &m->rings);
		return r;
	}
	fr_daemon_drop_rings(m, &old);
	/* Now x->next has the old events with their kernel rings. Close them before the ring changes its
	   size, because a larger ring can need the memory of the old kernel rings. */
	fr_recording_close(&x->next);
	fr_config_swap_recording(m->config, &x->fresh);
	fr_daemon_store(m); /* with the new names of the rings */
	fr_recording_describe(&m->recording, events, sizeof(events));
	fr_json_add_line(x->changed, "records %s", events);
	return 0;
}

static void change_ring(struct fr_daemon *m, struct reload *x)
{
	const struct fr_config *fresh = &x->fresh;
	struct fr_history_adopted adopted = {0};
	char size[FR_UNIT_SIZE];

	if (fresh->ring_bytes == m->config->ring_bytes)
		return;
	if (fr_daemon_resize(m, 0, fresh->ring_bytes, fresh->ring_origin, &adopted, &m->ring_kept) < 0) {
		fr_json_add_line(x->waiting, "RingSize= stays at %s: %s%s%s",
			fr_size_format(fr_history_size(m->rings.ring[0]), size), m->ring_kept.what,
			m->ring_kept.hint[0] ? "; " : "", m->ring_kept.hint);
		return;
	}
	m->config->ring_bytes = fresh->ring_bytes;
	fr_json_add_line(x->changed, "RingSize= is now %s; the ring keeps %llu samples%s",
		fr_size_format(fresh->ring_bytes, size), (unsigned long long)adopted.samples,
		adopted.frames_left_out ? "; the oldest did not fit" : "");
}

/* The sizes and windows of the sections [Ring NAME]. */
static void change_rings(struct fr_daemon *m, struct reload *x)
{
	/* If the recording has changed, the fresh rings are in the configuration in force already. */
	const struct fr_ring_config *rings = x->has_next ? m->config->ring : x->fresh.ring;

	if (!x->has_next && !fr_config_has_same_recording(m->config, &x->fresh))
		return; /* a command keeps its events, and so its rings */
	for (size_t i = 0; i < m->config->n_ring && i + 1 < m->rings.n; i++) {
		const struct fr_ring_config *fresh = &rings[i];
		struct fr_ring_config *now = &m->config->ring[i];
		struct fr_history_adopted adopted = {0};
		char size[FR_UNIT_SIZE];
		struct fr_diag d = {0};

		if (now->window_ns != fresh->window_ns)
			fr_json_add_line(x->changed, "the ring %s has another Window=", now->name);
		now->window_ns = fresh->window_ns;
		if (fr_history_level(m->rings.ring[i + 1]) != fr_config_ring_level(m->config, fresh))
			fr_json_add_line(x->waiting, "CompressionLevel= of the ring %s waits for a restart",
				now->name);
		if (fr_history_size(m->rings.ring[i + 1]) == fr_history_whole_pages(fresh->size_bytes))
			continue;
		fr_size_format(fresh->size_bytes, size);
		if (fr_daemon_resize(m, (unsigned)i + 1, fresh->size_bytes, fresh->origin, &adopted, &d) <
			0) {
			fr_json_add_line(x->waiting, "the ring %s does not get %s: %s%s%s", now->name, size,
				d.what, d.hint[0] ? "; " : "", d.hint);
			continue;
		}
		now->size_bytes = fresh->size_bytes;
		fr_json_add_line(x->changed, "the ring %s has %s now, and keeps %llu samples", now->name,
			size, (unsigned long long)adopted.samples);
	}
}

static void change_sideband_ring(struct fr_daemon *m, const struct reload *x)
{
	struct fr_history_adopted adopted = {0};
	char size[FR_UNIT_SIZE];
	struct fr_diag d = {0};
	uint64_t bytes;

	m->config->sideband_ring_bytes = x->fresh.sideband_ring_bytes;
	if (!m->rings.sideband)
		return;
	bytes = fr_daemon_sideband_bytes(m);
	if (fr_history_size(m->rings.sideband) == fr_history_whole_pages(bytes))
		return;
	fr_size_format(bytes, size);
	if (fr_daemon_resize(m, m->rings.n, bytes, "SidebandRing=", &adopted, &d) < 0)
		fr_json_add_line(x->waiting, "the ring of the side-band does not get %s: %s%s%s", size,
			d.what, d.hint[0] ? "; " : "", d.hint);
	else
		fr_json_add_line(x->changed, "the ring of the side-band has %s now", size);
}

static void apply_live_keys(struct fr_daemon *m, const struct fr_config *fresh)
{
	fr_config_copy_live_keys(m->config, fresh);
	fr_dumper_set(m->dumper, &(struct fr_dumper_settings){m->config->retention, m->config->keep_failed,
					 m->config->aux_window_ns});
	fr_log_set_level(m->config->log_level);
	fr_daemon_unwinder_set(m);
	fr_frequency_set_budget(&m->frequency, m->recording.capture, m->config->cpu_budget_ppm);
	fr_daemon_switches_tick(m);
}

static int put_in_force(struct fr_daemon *m, struct reload *x)
{
	const char *keys[FR_CONFIG_RESTART_KEYS];
	size_t n;
	int r = change_recording(m, x);

	if (r >= 0)
		r = fr_daemon_triggers_reload(m, &x->fresh);
	if (r < 0)
		return r;
	change_ring(m, x);
	change_rings(m, x);
	change_sideband_ring(m, x);
	n = fr_config_restart_keys(m->config, &x->fresh, keys);
	for (size_t i = 0; i < n; i++)
		fr_json_add_line(x->waiting, "%s= waits for a restart", keys[i]);
	apply_live_keys(m, &x->fresh);
	return 0;
}

static void log_reloaded(const struct reload *x)
{
	const cJSON *line;

	fr_log_struct(LOG_INFO, FR_MSG_RELOADED, NULL, 0, "configuration reloaded");
	cJSON_ArrayForEach (line, x->changed)
		fr_log(LOG_INFO, "%s", cJSON_GetStringValue(line));
	cJSON_ArrayForEach (line, x->waiting)
		fr_log(LOG_NOTICE, "%s", cJSON_GetStringValue(line));
}

void fr_daemon_refuse_config(struct fr_diag *ret, const struct fr_diag *why)
{
	*ret = *why;
	fr_utf8_sanitize(ret->what); /* the text quotes a file, which can have any bytes */
	fr_utf8_sanitize(ret->hint);
	fr_log_struct(LOG_ERR, FR_MSG_OLD_CONFIG, NULL, 0,
		"the configuration cannot be used, the previous one stays in force: %s%s%s", ret->what,
		ret->hint[0] ? "\n  " : "", ret->hint);
}

/* Saves the configuration for the next instance, but only if every key is in force. A value that waits for a
   restart is not tested yet, and the start of the next instance could fail because of it. */
static void save_config(struct fr_daemon *m, struct reload *x)
{
	const struct fr_buf text = m->config->text;

	m->refused = (struct fr_diag){0};
	m->config->text = x->fresh.text;
	x->fresh.text = text;
	if (cJSON_GetArraySize(x->waiting) == 0)
		fr_daemon_save_config(m);
	fr_daemon_update_state(m);
}

static void answer_call(struct fr_call *call, const struct reload *x)
{
	cJSON *reply;

	if (x->result < 0) {
		fr_call_fail(call, &x->diag, x->result);
		return;
	}
	reply = cJSON_CreateObject();
	cJSON_AddItemToObject(reply, "changed", cJSON_Duplicate(x->changed, true));
	cJSON_AddItemToObject(reply, "waiting", cJSON_Duplicate(x->waiting, true));
	fr_call_reply(call, reply);
}

static void reload_free(struct reload *x)
{
	fr_recording_close(&x->next);
	fr_config_deinit(&x->fresh);
	cJSON_Delete(x->changed);
	cJSON_Delete(x->waiting);
	free(x->calls);
	free(x);
}

/* If the reload X has succeeded, saves and logs the new configuration. Otherwise, reports why the
   configuration is refused. */
static void end_reload(struct fr_daemon *m, struct reload *x)
{
	if (x->result >= 0) {
		save_config(m, x);
		log_reloaded(x);
	} else {
		if (!x->diag.code)
			fr_fail_errno(&x->diag, x->result, NULL, "it cannot be put in force");
		fr_daemon_refuse_config(&m->refused, &x->diag);
	}
	sd_notify(0, "READY=1");
	fr_daemon_notify_status(m);
}

static void finish(struct fr_daemon *m, void *ctx, bool aborted)
{
	struct reload *x = ctx;

	if (aborted)
		x->result = fr_fail(&x->diag, -ESHUTDOWN, NULL, "flightrecd is stopping");
	else if (x->result >= 0)
		x->result = put_in_force(m, x);
	if (!aborted)
		end_reload(m, x);
	for (size_t i = 0; i < x->n_calls; i++)
		answer_call(x->calls[i], x);
	reload_free(x);
}

/* Begins a reload. When it ends, it answers the calls that are in m->reload_calls now. Later calls wait for
   the next reload. */
static void begin(struct fr_daemon *m)
{
	static const struct fr_change_ops ops = {prepare, finish};
	struct reload *x = calloc(1, sizeof(*x));
	int r;

	if (!x) {
		fr_reload_fail_calls(m, &(struct fr_diag){.code = -ENOMEM, .what = "no memory"});
		return;
	}
	x->calls = TAKE_PTR(m->reload_calls);
	x->n_calls = m->n_reload_calls;
	m->n_reload_calls = 0;
	x->now = m->config;
	x->open = fr_daemon_recording_config(m);
	x->changed = cJSON_CreateArray();
	x->waiting = cJSON_CreateArray();
	fr_config_init(&x->fresh);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)(fr_monotonic_ns() / FR_NSEC_PER_USEC));
	/* If fr_change_begin() returns 0, the change has begun and owns X. */
	r = fr_change_begin(m, &ops, x);
	if (r < 0) {
		x->result = r;
		finish(m, x, false);
	}
}

void fr_daemon_reload(struct fr_daemon *m, struct fr_call *call)
{
	struct fr_call **calls;

	if (call) {
		calls = reallocarray(m->reload_calls, m->n_reload_calls + 1, sizeof(struct fr_call *));
		if (!calls) {
			fr_call_fail(call, NULL, -ENOMEM);
			return;
		}
		m->reload_calls = calls;
		calls[m->n_reload_calls++] = call;
	}
	/* If a change is being prepared, begin when that change has ended. This is also necessary if that
	   change is a reload, because the files can have changed after that reload has read them. */
	if (m->change)
		fr_change_set_next(m, begin);
	else
		begin(m);
}

void fr_reload_fail_calls(struct fr_daemon *m, const struct fr_diag *d)
{
	for (size_t i = 0; i < m->n_reload_calls; i++)
		fr_call_fail(m->reload_calls[i], d, d->code);
	free(TAKE_PTR(m->reload_calls));
	m->n_reload_calls = 0;
}
