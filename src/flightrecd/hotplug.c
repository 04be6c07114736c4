// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/hotplug.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "flightrecd/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#define CPU_DIRECTORY "/sys/devices/system/cpu"
/* The two clocks are not read in one instant. */
#define SUSPENDED_MIN_NS (100 * FR_NSEC_PER_MSEC)

struct cpus {
	uint8_t bits[FR_CPUS_MAX / 8];
};

static bool has_cpu(const uint8_t *bits, int cpu)
{
	return cpu >= 0 && cpu < FR_CPUS_MAX && bits[cpu / 8] & 1u << cpu % 8;
}

static int read_cpus(const char *name, struct cpus *ret)
{
	char line[4096];
	int r = fr_read_line(name, line, sizeof(line));

	return r < 0 ? r : fr_cpulist_parse(line, ret->bits, FR_CPUS_MAX);
}

/* Those of CPUs=, or all. */
static void read_wanted(const struct fr_config *config, struct cpus *ret)
{
	if (!config->cpus || fr_cpulist_parse(config->cpus, ret->bits, FR_CPUS_MAX) < 0)
		memset(ret, 0xff, sizeof(*ret));
}

/* What is in both, as a list. 0, -E2BIG, or -ENODEV: nothing. */
static int list_both(const struct cpus *a, const struct cpus *b, char *ret, size_t size)
{
	size_t n = 0;

	for (int cpu = 0; cpu < FR_CPUS_MAX && n < size; cpu++)
		if (has_cpu(a->bits, cpu) && has_cpu(b->bits, cpu))
			n += (size_t)snprintf(ret + n, size - n, n ? ",%d" : "%d", cpu);
	if (n >= size)
		return -E2BIG;
	return n ? 0 : -ENODEV;
}

static uint64_t suspended_ns(void)
{
	const uint64_t awake_ns = fr_now_ns(CLOCK_MONOTONIC);

	return fr_now_ns(CLOCK_BOOTTIME) - awake_ns;
}

int fr_hotplug_reopen(struct fr_daemon *m, enum fr_loss came, unsigned n, struct fr_diag *d)
{
	struct cpus online, wanted;
	char list[6 * FR_CPUS_MAX];
	int r = read_cpus(CPU_DIRECTORY "/online", &online);

	read_wanted(m->config, &wanted);
	if (r >= 0)
		r = list_both(&online, &wanted, list, sizeof(list));
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot list the CPUs")
		     : fr_daemon_reopen(m, list, came, n, d);
}

/* MISSING are there, some since the last time. */
static void take_up(struct fr_daemon *m, bool again)
{
	struct fr_diag d = {0};
	int r = fr_hotplug_reopen(m, FR_LOSS_CPU_CAME, m->hotplug.missing, &d);

	if (r >= 0) {
		m->hotplug.missing = 0;
		fr_log(LOG_NOTICE, "recording on %zu CPUs from now on", fr_capture_n_sampled_cpus(m->capture));
	} else if (!again) {
		fr_diag_prefix(&d, "CPUs that came are not recorded, and it is tried again");
		fr_log_diag(LOG_ERR, &d, r);
	}
}

/* BACK: it may have gone and come since we last looked; -1: none. */
static void look(struct fr_daemon *m, int back)
{
	struct fr_hotplug *h = &m->hotplug;
	const unsigned missing = h->missing;
	const uint64_t slept_ns = suspended_ns();
	struct cpus online;

	if (read_cpus(CPU_DIRECTORY "/online", &online) < 0)
		return;
	for (int cpu = 0; cpu < FR_CPUS_MAX; cpu++) {
		const bool was = has_cpu(h->online, cpu), is = has_cpu(online.bits, cpu);

		/* Also one that is not sampled: names come from there. */
		if (was == is && !(is && cpu == back))
			continue;
		h->missing += is;
		fr_log(LOG_NOTICE, is ? "CPU %d came online" : "CPU %d went offline", cpu);
	}
	/* In a suspend, all but one have gone and come. */
	if (slept_ns > h->suspended_ns + SUSPENDED_MIN_NS) {
		fr_log(LOG_NOTICE, "the machine was suspended");
		h->missing++;
	}
	h->suspended_ns = slept_ns;
	memcpy(h->online, online.bits, sizeof(h->online));
	if (h->missing)
		take_up(m, h->missing == missing);
}

static int on_written(sd_event_source *source, const struct inotify_event *event, void *ctx)
{
	const struct fr_hotplug_file *f = ctx;

	look(f->daemon, f->cpu);
	return 0;
}

static void watch(struct fr_daemon *m, const struct cpus *present)
{
	struct fr_hotplug *h = &m->hotplug;
	char path[sizeof(CPU_DIRECTORY "/cpu/online") + 16];

	h->files = calloc(FR_CPUS_MAX, sizeof(*h->files));
	for (int cpu = 0; h->files && cpu < FR_CPUS_MAX; cpu++) {
		if (!has_cpu(present->bits, cpu))
			continue;
		h->files[cpu] = (struct fr_hotplug_file){.daemon = m, .cpu = cpu};
		snprintf(path, sizeof(path), CPU_DIRECTORY "/cpu%d/online", cpu);
		/* A CPU that cannot go has no such file. The source is not a floating one, as libsystemd 252
		   keeps the loop for ever then. */
		(void)sd_event_add_inotify(
			m->event, &h->files[cpu].source, path, IN_CLOSE_WRITE, on_written, &h->files[cpu]);
	}
}

void fr_hotplug_open(struct fr_daemon *m)
{
	struct fr_hotplug *h = &m->hotplug;
	struct cpus present;

	if (fr_config_follows_tasks(m->config))
		return;
	h->on = true;
	h->suspended_ns = suspended_ns();
	/* And not those that are online now: one may have come since the events were opened. */
	for (size_t i = 0; i < fr_capture_n_cpus(m->capture); i++) {
		const int cpu = fr_capture_cpu_number(m->capture, i);

		h->online[cpu / 8] |= (uint8_t)(1u << cpu % 8);
	}
	if (read_cpus(CPU_DIRECTORY "/present", &present) > 0)
		watch(m, &present);
}

void fr_hotplug_tick(struct fr_daemon *m)
{
	if (m->hotplug.on)
		look(m, -1);
}

void fr_hotplug_close(struct fr_daemon *m)
{
	for (int cpu = 0; m->hotplug.files && cpu < FR_CPUS_MAX; cpu++)
		sd_event_source_disable_unref(m->hotplug.files[cpu].source);
	free(m->hotplug.files);
	m->hotplug = (struct fr_hotplug){0};
}
