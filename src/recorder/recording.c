// SPDX-License-Identifier: GPL-2.0-or-later
#include "recorder/recording.h"
#include "base/clock.h"
#include "base/log.h"
#include "perfdata/features.h"
#include "perfdata/tracing_data.h"

#include <stdio.h>
#include <stdlib.h>

static int parse_events(
	const struct fr_config *c, uint64_t off_cpu_ns, struct fr_event_list *ret, struct fr_diag *d)
{
	int r = fr_config_has_default_event(c) ? fr_event_add_default(&c->defaults, ret, d) : 0;

	for (size_t i = 0; r == 0 && i < c->n_events; i++)
		r = fr_config_parse_event(c, i, ret, d);
	return r == 0 && off_cpu_ns ? fr_event_add_off_cpu(off_cpu_ns, ret) : r;
}

/* Build-ids of the kernel must not disturb other recorders, whenever they start. They can be read from the
   files instead, so if the trial fails, the recording does not ask for them. */
static bool ask_for_build_ids(enum fr_build_ids how)
{
	return how == FR_BUILD_IDS_YES || (how == FR_BUILD_IDS_AUTO && fr_capture_build_ids_leak() == 0);
}

static const struct fr_unwinder *find_unwinder(
	const struct fr_recording_config *rc, const struct fr_event_list *events)
{
	for (size_t i = 0; i < events->n; i++)
		if (events->items[i].unwind || events->items[i].off_cpu)
			return rc->unwinder(rc->ctx);
	return NULL;
}

/* Adds to the notice of the recording what is not recorded as configured, and WHY. */
static void add_notice(struct fr_event_list *events, const char *what, const struct fr_diag *why)
{
	char *text, *before = events->notice;

	if (asprintf(&text, "%s%s%s: %s", before ? before : "", before ? "; " : "", what, why->what) < 0)
		return;
	free(before);
	events->notice = text;
}

/* If the kernel refuses the programs that unwind stacks, opens the capture without them. */
static int open_with_unwinder(struct fr_capture_config *config, struct fr_recording *ret, struct fr_diag *d)
{
	struct fr_diag why = {0};
	int r = fr_capture_open(config, &ret->capture, config->unwinder ? &why : d);

	if (r == 0 || !config->unwinder)
		return r;
	config->unwinder = NULL;
	r = fr_capture_open(config, &ret->capture, d);
	/* If both attempts fail, it is not because of the unwinder. */
	if (r == 0)
		add_notice(&ret->events, "user stacks are recorded by frame pointers (CallGraph=)", &why);
	return r;
}

static int open_capture(const struct fr_recording_config *rc, struct fr_recording *ret, struct fr_diag *d)
{
	const struct fr_config *c = rc->config;
	const bool follow_command = rc->command_pid > 0 && !c->all_cpus;
	struct fr_capture_config config = {
		.events = &ret->events,
		.cpus = rc->cpus,
		.pids = follow_command ? &rc->command_pid : c->pids,
		.n_pids = follow_command ? 1 : c->n_pids,
		.enable_on_exec = follow_command,
		.cgroup = c->cgroup,
		.build_ids = ask_for_build_ids(c->kernel_build_ids),
		.ring_bytes = c->kernel_buffer_bytes,
		.sideband_ring_bytes = c->sideband_buffer_bytes,
		.aux_bytes = c->aux_buffer_bytes,
		.previous = rc->previous,
		.sleeps_fd = rc->sleeps_fd,
		.switches = rc->switches,
		.unwinder = find_unwinder(rc, &ret->events),
	};

	return open_with_unwinder(&config, ret, d);
}

static int describe(const struct fr_recording_config *c, struct fr_recording *ret, struct fr_diag *d)
{
	const struct fr_clock_pair now = fr_clock_pair_now();
	int r = fr_capture_describe(ret->capture, &ret->session);

	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot describe the events");
	r = fr_features_gather(&ret->session, c->argc, c->argv, &now, d);
	if (r == 0)
		r = fr_tracing_data_gather(&ret->session, d);
	if (r < 0)
		return r;
	r = fr_capture_add_formats(ret->capture, &ret->session);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot describe the event offcpu") : 0;
}

/* Opens everything, with the event offcpu if OFF_CPU_NS is not 0. On an error, RET is closed. */
static int open_recording(
	const struct fr_recording_config *c, uint64_t off_cpu_ns, struct fr_recording *ret, struct fr_diag *d)
{
	int r = parse_events(c->config, off_cpu_ns, &ret->events, d);

	if (r >= 0)
		r = open_capture(c, ret, d);
	if (r >= 0)
		r = describe(c, ret, d);
	if (r < 0)
		fr_recording_close(ret);
	return r < 0 ? r : 0;
}

int fr_recording_open(const struct fr_recording_config *c, struct fr_recording *ret, struct fr_diag *d)
{
	const struct fr_config *config = c->config;
	const bool is_auto = config->off_cpu_ns == FR_OFF_CPU_AUTO;
	const uint64_t off_cpu_ns = !is_auto				   ? config->off_cpu_ns
				    : !fr_config_has_default_event(config) ? 0
									   : FR_OFF_CPU_DEFAULT_NS;
	const bool is_optional = is_auto && off_cpu_ns;
	struct fr_diag why = {0};
	int r = open_recording(c, off_cpu_ns, ret, is_optional ? &why : d);

	/* The cause can also be another event. Then the second attempt fails, too, and says why. */
	if (r < 0 && is_optional) {
		r = open_recording(c, 0, ret, d);
		if (r == 0)
			add_notice(&ret->events, "waiting tasks are not recorded (OffCPU=)", &why);
	}
	if (r == 0 && ret->events.notice)
		fr_log(LOG_NOTICE, "%s", ret->events.notice);
	return r;
}

void fr_recording_close(struct fr_recording *recording)
{
	fr_capture_free(recording->capture);
	fr_session_deinit(&recording->session);
	fr_event_list_deinit(&recording->events);
	*recording = (struct fr_recording){0};
}

uint64_t fr_session_sideband_id(const struct fr_session *s)
{
	return s->events[s->n_events - 1].ids[0];
}

void fr_recording_describe(const struct fr_recording *recording, char *ret, size_t size)
{
	enum { NAMES_MAX = 3 };
	const size_t n = fr_capture_n_events(recording->capture) - 1; /* without the side-band event */
	const size_t shown = n > NAMES_MAX ? NAMES_MAX - 1 : n;
	size_t len = 0;

	for (size_t i = 0; i < shown && len < size; i++)
		len += (size_t)snprintf(ret + len, size - len, "%s%s",
			i == 0	     ? ""
			: i + 1 == n ? " and "
				     : ", ",
			fr_capture_event_name(recording->capture, i));
	if (shown < n && len < size)
		len += (size_t)snprintf(ret + len, size - len, " and %zu more", n - shown);
	if (len < size)
		snprintf(
			ret + len, size - len, " on %zu CPUs", fr_capture_n_sampled_cpus(recording->capture));
}
