// SPDX-License-Identifier: GPL-2.0-or-later
#include "recorder/cpu_watch.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#define CPUS_MAX 8192
#define CPU_DIRECTORY "/sys/devices/system/cpu"
/* suspended_ns() reads its two clocks one after the other, so the difference of the clocks varies a little
   even if there was no suspend. Only a larger change of the difference is a suspend. */
#define SUSPENDED_MIN_NS (100 * FR_NSEC_PER_MSEC)

struct cpus {
	uint8_t bits[CPUS_MAX / 8];
};

/* The file "online" of a CPU in CPU_DIRECTORY. */
struct online_file {
	struct fr_cpu_watch *watch;
	int cpu;
	sd_event_source *source; /* NULL: the file is not watched */
};

struct fr_cpu_watch {
	fr_cpus_came came;
	void *ctx;
	struct cpus online; /* CPUs that were online at the last look(); before the first look(), the
			       recorded CPUs */
	uint64_t suspended_ns;
	unsigned missing; /* CPUs that came online and are not recorded yet; a suspend counts as one */
	struct online_file files[CPUS_MAX];
};

static bool has_cpu(const uint8_t *bits, int cpu)
{
	return cpu >= 0 && cpu < CPUS_MAX && bits[cpu / 8] & 1u << cpu % 8;
}

static int read_cpus(const char *name, struct cpus *ret)
{
	char line[4096];
	int r = fr_read_line(name, line, sizeof(line));

	return r < 0 ? r : fr_cpulist_parse(line, ret->bits, CPUS_MAX);
}

static uint64_t suspended_ns(void)
{
	const uint64_t awake_ns = fr_now_ns(CLOCK_MONOTONIC);

	return fr_now_ns(CLOCK_BOOTTIME) - awake_ns;
}

int fr_cpus_online(const char *wanted, char *ret, size_t size)
{
	struct cpus online, chosen;
	size_t n = 0;
	int r = read_cpus(CPU_DIRECTORY "/online", &online);

	if (r < 0)
		return r;
	if (!wanted || fr_cpulist_parse(wanted, chosen.bits, CPUS_MAX) < 0)
		memset(&chosen, 0xff, sizeof(chosen));
	for (int cpu = 0; cpu < CPUS_MAX && n < size; cpu++)
		if (has_cpu(online.bits, cpu) && has_cpu(chosen.bits, cpu))
			n += (size_t)snprintf(ret + n, size - n, n ? ",%d" : "%d", cpu);
	if (n >= size)
		return -E2BIG;
	return n ? 0 : -ENODEV;
}

/* Looks for changes since the last call. The parameter `back` is a CPU that can have gone offline and come
   back since the last call; -1: no CPU. */
static void look(struct fr_cpu_watch *w, int back)
{
	const uint64_t slept_ns = suspended_ns();
	struct cpus online;

	fr_thread_assert(FR_THREAD_MAIN);
	if (read_cpus(CPU_DIRECTORY "/online", &online) < 0)
		return;
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		const bool was = has_cpu(w->online.bits, cpu), is = has_cpu(online.bits, cpu);

		if (was == is && !(is && cpu == back))
			continue;
		/* CPUs that are not sampled also count, because their side-band is recorded. */
		w->missing += is;
		fr_log(LOG_NOTICE, is ? "CPU %d came online" : "CPU %d went offline", cpu);
	}
	/* A suspend takes all CPUs but one offline, and brings them back. */
	if (slept_ns > w->suspended_ns + SUSPENDED_MIN_NS) {
		fr_log(LOG_NOTICE, "the machine was suspended");
		w->missing++;
	}
	w->suspended_ns = slept_ns;
	w->online = online;
	if (w->missing)
		w->came(w->ctx, w->missing);
}

static int on_written(sd_event_source *source, const struct inotify_event *event, void *ctx)
{
	const struct online_file *f = ctx;

	look(f->watch, f->cpu);
	return 0;
}

static void watch_files(struct fr_cpu_watch *w, sd_event *event, const struct cpus *present)
{
	char path[sizeof(CPU_DIRECTORY "/cpu/online") + 16];

	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!has_cpu(present->bits, cpu))
			continue;
		w->files[cpu] = (struct online_file){.watch = w, .cpu = cpu};
		snprintf(path, sizeof(path), CPU_DIRECTORY "/cpu%d/online", cpu);
		/* A CPU that cannot go offline has no file "online", so an error is ignored. The watch keeps
		   a reference to the event source: with a floating inotify source, libsystemd 252 never frees
		   the event loop. */
		(void)sd_event_add_inotify(
			event, &w->files[cpu].source, path, IN_CLOSE_WRITE, on_written, &w->files[cpu]);
	}
}

int fr_cpu_watch_new(sd_event *event, const struct fr_capture *capture, fr_cpus_came came, void *ctx,
	struct fr_cpu_watch **ret)
{
	struct fr_cpu_watch *w = calloc(1, sizeof(*w));
	struct cpus present;

	if (!w)
		return -ENOMEM;
	w->came = came;
	w->ctx = ctx;
	w->suspended_ns = suspended_ns();
	/* Begin with the recorded CPUs, and not with the CPUs that are online now, because a CPU can have
	   come online since the events were opened. */
	for (size_t i = 0; i < fr_capture_n_cpus(capture); i++) {
		const int cpu = fr_capture_cpu_number(capture, i);

		w->online.bits[cpu / 8] |= (uint8_t)(1u << cpu % 8);
	}
	if (read_cpus(CPU_DIRECTORY "/present", &present) > 0)
		watch_files(w, event, &present);
	*ret = w;
	return 0;
}

void fr_cpu_watch_tick(struct fr_cpu_watch *w)
{
	if (w)
		look(w, -1);
}

void fr_cpu_watch_opened(struct fr_cpu_watch *w, unsigned n)
{
	w->missing -= FR_MIN(n, w->missing);
}

struct fr_cpu_watch *fr_cpu_watch_free(struct fr_cpu_watch *w)
{
	for (int cpu = 0; w && cpu < CPUS_MAX; cpu++)
		sd_event_source_disable_unref(w->files[cpu].source);
	free(w);
	return NULL;
}
