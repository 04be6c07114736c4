/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Not a load: it checks the snapshots of AUX areas with the synthetic PMU of kmod/flightrec_pmu.c. Usage:
 * frtest-aux PMU CONFIG cpu|task SNAPSHOTS. Opens an event on each CPU, with an AUX area in snapshot mode:
 * for all tasks (cpu), or for itself (task). Then it works on one CPU after the other, and takes a snapshot
 * of each area: stops the event, copies what is new (capture/aux_window.h), and starts the event. Prints as
 * JSON how many records there were in the snapshots, and how many of them were torn, older than the snapshot
 * before, there twice, or of another CPU or thread. `wrapped` and `nothing` are the numbers of full and of
 * empty snapshots.
 */

#include "capture/aux_window.h"

#include <err.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define AUX_BYTES (64u << 10)
#define WORK_NS 500000
#define CPUS_MAX 64

/* As in kmod/flightrec_pmu.c. */
struct record {
	uint64_t check, time_ns, seq;
	uint32_t cpu, tid;
};

struct area {
	int fd;
	struct perf_event_mmap_page *page;
	const uint8_t *aux;
	uint8_t *copy;
	struct fr_aux_window window;
	uint64_t next_seq;
};

static struct {
	uint64_t records, torn, stale, twice, foreign, wrapped, nothing;
} found;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t check_of(const struct record *r)
{
	uint64_t x = r->time_ns ^ (r->seq * 0x9e3779b97f4a7c15ULL) ^ ((uint64_t)r->cpu << 32 | r->tid);

	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ULL;
}

static uint32_t type_of(const char *pmu)
{
	char path[256];
	uint32_t type;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%u", &type) != 1)
		err(1, "%s", path);
	fclose(f);
	return type;
}

static void open_area(struct area *a, uint32_t type, uint64_t config, int cpu, int is_task)
{
	struct perf_event_attr attr = {.type = type, .size = sizeof(attr), .config = config};
	const long page = sysconf(_SC_PAGESIZE);

	a->fd = (int)syscall(SYS_perf_event_open, &attr, is_task ? 0 : -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (a->fd < 0)
		err(1, "perf_event_open on CPU %d", cpu);
	a->page = mmap(NULL, (size_t)(9 * page), PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
	if (a->page == MAP_FAILED)
		err(1, "mmap");
	a->page->aux_offset = 16 * (uint64_t)page;
	a->page->aux_size = AUX_BYTES;
	a->aux = mmap(NULL, AUX_BYTES, PROT_READ, MAP_SHARED, a->fd, (off_t)a->page->aux_offset);
	a->copy = malloc(AUX_BYTES);
	if (a->aux == MAP_FAILED || !a->copy)
		err(1, "mmap of the AUX area");
	fr_aux_window_init(&a->window, AUX_BYTES);
}

static void check_record(struct area *a, const struct record *r, int cpu, int is_task, uint64_t since_ns)
{
	found.records++;
	if (r->check != check_of(r)) {
		found.torn++;
		return;
	}
	found.stale += r->time_ns < since_ns || r->time_ns > now_ns();
	found.foreign += r->cpu != (uint32_t)cpu || (is_task && r->tid != (uint32_t)gettid());
	found.twice += r->seq < a->next_seq;
	a->next_seq = r->seq + 1;
}

static void take_snapshot(struct area *a, int cpu, int is_task, uint64_t since_ns)
{
	struct fr_aux_part part;

	ioctl(a->fd, PERF_EVENT_IOC_DISABLE, 0);
	fr_aux_window_look(
		&a->window, a->aux, __atomic_load_n(&a->page->aux_head, __ATOMIC_ACQUIRE), now_ns());
	part = fr_aux_window_take(&a->window, 0, UINT64_MAX);
	fr_aux_window_copy(&a->window, a->aux, &part, a->copy);
	for (size_t at = 0; at < part.len; at += sizeof(struct record))
		check_record(a, (const struct record *)(a->copy + at), cpu, is_task, since_ns);
	found.wrapped += part.len == AUX_BYTES;
	found.nothing += part.len == 0;
	ioctl(a->fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void work_on(int cpu, uint64_t work_ns)
{
	uint64_t end;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		err(1, "sched_setaffinity");
	for (end = now_ns() + work_ns; now_ns() < end;)
		;
}

int main(int argc, char *argv[])
{
	const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	static struct area areas[CPUS_MAX];
	uint64_t since_ns = now_ns();
	int is_task, snapshots;

	if (argc != 5 || cpus > CPUS_MAX)
		errx(2, "usage: frtest-aux PMU CONFIG cpu|task SNAPSHOTS");
	is_task = !strcmp(argv[3], "task");
	snapshots = atoi(argv[4]);
	for (int i = 0; i < cpus; i++)
		open_area(&areas[i], type_of(argv[1]), strtoull(argv[2], NULL, 0), i, is_task);
	for (int n = 0; n < snapshots; n++) {
		uint64_t begin_ns = now_ns();

		work_on(n % cpus, WORK_NS * (uint64_t)(1 + n % 7));
		for (int i = 0; i < cpus; i++)
			take_snapshot(&areas[i], i, is_task, since_ns);
		since_ns = begin_ns;
	}
	printf("{\"records\": %llu, \"torn\": %llu, \"stale\": %llu, \"twice\": %llu, \"foreign\": %llu, "
	       "\"wrapped\": %llu, \"nothing\": %llu}\n",
		(unsigned long long)found.records, (unsigned long long)found.torn,
		(unsigned long long)found.stale, (unsigned long long)found.twice,
		(unsigned long long)found.foreign, (unsigned long long)found.wrapped,
		(unsigned long long)found.nothing);
	return 0;
}
