// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/reload.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "base/utf8.h"
#include "config/compare.h"
#include "config/read_in_time.h"
#include "flightrecd/reopen.h"
#include "flightrecd/resize.h"
#include "flightrecd/stages.h"
#include "flightrecd/triggers.h"

#include <errno.h>
#include <stdarg.h>

#include <systemd/sd-daemon.h>

#define READ_TIMEOUT_NS (2 * FR_NSEC_PER_SEC)

static void __attribute__((format(printf, 2, 3))) add_line(cJSON *list, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	cJSON_AddItemToArray(list, cJSON_CreateString(text));
}

static int change_recording(
	struct fr_daemon *m, struct fr_config *fresh, struct fr_reloaded *ret, struct fr_diag *d)
{
	int r;

	if (fr_config_has_same_recording(m->config, fresh))
		return 0;
	if (m->config->command) {
		add_line(ret->waiting, "the events of a command are those that it was started with");
		return 0;
	}
	r = fr_daemon_switch(m, fresh, fresh->cpus, d);
	if (r < 0)
		return r;
	fr_config_swap_recording(m->config, fresh);
	add_line(ret->changed, "records %s%s on %zu CPUs", fr_capture_event_name(m->recording.capture, 0),
		fr_capture_n_events(m->recording.capture) > 2 ? " and more" : "",
		fr_capture_n_sampled(m->recording.capture));
	return 0;
}

static void change_ring(struct fr_daemon *m, const struct fr_config *fresh, struct fr_reloaded *ret)
{
	struct fr_history_adopted adopted = {0};
	char size[FR_UNIT_SIZE];

	if (fresh->ring_bytes == m->config->ring_bytes)
		return;
	if (fr_daemon_resize(m, fresh, &adopted) < 0) {
		add_line(ret->waiting, "RingSize= stays at %s: %s%s%s",
			fr_size_format(fr_history_size(m->history), size), m->ring_kept.what,
			m->ring_kept.hint[0] ? "; " : "", m->ring_kept.hint);
		return;
	}
	m->config->ring_bytes = fresh->ring_bytes;
	add_line(ret->changed, "RingSize= is %s, with %llu samples of before%s",
		fr_size_format(fresh->ring_bytes, size), (unsigned long long)adopted.samples,
		adopted.frames_left_out ? "; the oldest did not fit" : "");
}

static void change_simple_keys(struct fr_daemon *m, const struct fr_config *fresh)
{
	fr_config_copy_live_keys(m->config, fresh);
	fr_dumper_set(m->dumper, &(struct fr_dumper_settings){m->config->retention, m->config->keep_failed});
	fr_log_set_level(m->config->log_level);
	fr_frequency_set_budget(&m->frequency, m->recording.capture, m->config->cpu_budget_ppm);
}

static int put_in_force(
	struct fr_daemon *m, struct fr_config *fresh, struct fr_reloaded *ret, struct fr_diag *d)
{
	const char *keys[FR_CONFIG_RESTART_KEYS];
	size_t n;
	int r = change_recording(m, fresh, ret, d);

	if (r >= 0)
		r = fr_daemon_triggers_reload(m, fresh);
	if (r < 0)
		return r;
	change_ring(m, fresh, ret);
	n = fr_config_restart_keys(m->config, fresh, keys);
	for (size_t i = 0; i < n; i++)
		add_line(ret->waiting, "%s= waits for a restart", keys[i]);
	change_simple_keys(m, fresh);
	return 0;
}

static void log_reloaded(const struct fr_reloaded *reloaded)
{
	const cJSON *line;

	fr_log_struct(LOG_INFO, FR_MSG_RELOADED, NULL, 0, "configuration reloaded");
	cJSON_ArrayForEach (line, reloaded->changed)
		fr_log(LOG_INFO, "%s", cJSON_GetStringValue(line));
	cJSON_ArrayForEach (line, reloaded->waiting)
		fr_log(LOG_NOTICE, "%s", cJSON_GetStringValue(line));
}

void fr_daemon_refuse_config(struct fr_diag *ret, const struct fr_diag *why)
{
	*ret = *why;
	fr_utf8_tidy(ret->what); /* it quotes a file that may be anything */
	fr_utf8_tidy(ret->hint);
	fr_log_struct(LOG_ERR, FR_MSG_OLD_CONFIG, NULL, 0,
		"the configuration cannot be used, that of before stays in force: %s%s%s", ret->what,
		ret->hint[0] ? "\n  " : "", ret->hint);
}

/* A configuration of which something waits for a restart has not been tried as a whole: the next instance
   must not rely on it. */
static void save_config(struct fr_daemon *m, struct fr_config *fresh, const struct fr_reloaded *reloaded)
{
	const struct fr_buf text = m->config->text;

	m->refused = (struct fr_diag){0};
	m->config->text = fresh->text;
	fresh->text = text;
	if (cJSON_GetArraySize(reloaded->waiting) == 0)
		fr_daemon_save_config(m);
	fr_daemon_update_state(m);
}

int fr_daemon_reload(struct fr_daemon *m, struct fr_reloaded *ret, struct fr_diag *d)
{
	struct fr_config fresh;
	int r;

	fr_thread_assert(FR_THREAD_MAIN);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)(fr_monotonic_ns() / FR_NSEC_PER_USEC));
	*ret = (struct fr_reloaded){cJSON_CreateArray(), cJSON_CreateArray()};
	fr_config_init(&fresh);
	r = fr_config_read_in_time(READ_TIMEOUT_NS, &fresh, m->argc, m->argv, d);
	if (r >= 0)
		r = put_in_force(m, &fresh, ret, d);
	if (r >= 0) {
		save_config(m, &fresh, ret);
		log_reloaded(ret);
	} else {
		if (!d->code)
			fr_fail_errno(d, r, NULL, "the configuration cannot be taken over");
		fr_daemon_refuse_config(&m->refused, d);
	}
	fr_config_deinit(&fresh);
	sd_notify(0, "READY=1");
	return r < 0 ? r : 0;
}

void fr_reloaded_deinit(struct fr_reloaded *reloaded)
{
	cJSON_Delete(reloaded->changed);
	cJSON_Delete(reloaded->waiting);
	*reloaded = (struct fr_reloaded){0};
}
