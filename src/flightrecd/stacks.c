// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/stacks.h"
#include "base/log.h"

#include <string.h>

/* Keeps the reason why the unwinder does not run, and logs it if it is a new one. */
static void report(struct fr_daemon *m, const struct fr_diag *d)
{
	const bool is_new = strcmp(m->no_unwinder.what, d->what) != 0;

	fr_lock(&m->parts_lock);
	m->no_unwinder = *d;
	fr_unlock(&m->parts_lock);
	if (is_new)
		fr_log_diag(LOG_NOTICE, d, d->code);
}

static struct fr_unwinder_config config_of(const struct fr_daemon *m)
{
	return (struct fr_unwinder_config){m->config->unwind_memory_bytes, m->config->cpu_budget_ppm};
}

const struct fr_unwinder *fr_daemon_unwinder(void *daemon)
{
	struct fr_daemon *m = daemon;
	const struct fr_unwinder_config config = config_of(m);
	struct fr_unwinder *u = atomic_load(&m->unwinder);
	struct fr_diag d = {0};

	if (u)
		return u;
	if (fr_unwinder_start(&config, &u, &d) < 0) {
		fr_diag_prefix(
			&d, "user stacks are recorded by frame pointers, because they cannot be unwound");
		report(m, &d);
		return NULL;
	}
	report(m, &d);
	atomic_store(&m->unwinder, u);
	/* The unwinder learns the processes from a scan. At a start, the first scan is still to come. */
	if (m->tracker)
		fr_tracker_request_scan(m->tracker);
	return u;
}

static struct fr_unwinder *unwinder_of(struct fr_daemon *m)
{
	return atomic_load(&m->unwinder);
}

void fr_daemon_unwinder_set(struct fr_daemon *m)
{
	const struct fr_unwinder_config config = config_of(m);

	if (unwinder_of(m))
		fr_unwinder_set(unwinder_of(m), &config);
}

void fr_daemon_unwind_records(struct fr_daemon *m, const void *records, size_t len)
{
	if (unwinder_of(m))
		fr_unwinder_update(unwinder_of(m), records, len);
}

bool fr_daemon_unwind_round(void *daemon, uint64_t since_ns)
{
	struct fr_daemon *m = daemon;

	if (!unwinder_of(m))
		return false;
	if (fr_unwinder_end_round(unwinder_of(m), since_ns))
		fr_tracker_request_scan(m->tracker);
	return fr_unwinder_is_behind(unwinder_of(m));
}

void fr_daemon_unwind_lost(void *daemon)
{
	if (unwinder_of(daemon))
		fr_unwinder_distrust(unwinder_of(daemon));
}

void fr_daemon_unwind_scanned(void *daemon, uint64_t scan_ns)
{
	if (unwinder_of(daemon))
		fr_unwinder_trust(unwinder_of(daemon), scan_ns);
}
