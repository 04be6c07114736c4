/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * What a sample costs in the ring: ns and bytes per event at each level, append and seal included.
 *
 * Streams like those of raw_syscalls:sys_enter, 120 bytes a record: `loop` is one task in one system call, as
 * in the project's benchmark; `mixed` is 24 tasks on 4 CPUs in 12 system calls with changing arguments. Runs
 * of up to 64 KiB, as drained, from 6 MB that are gone through again and again: a kernel ring is as warm.
 * Usage: history-bench [EVENTS]
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "history/history.h"
#include "history/unpack.h"
#include "perfdata/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sys_enter {
	struct fr_sample head;
	uint32_t cpu, reserved;
	uint32_t raw_size;
	struct __attribute__((packed)) {
		uint16_t type;
		uint8_t flags, preempt_count;
		int32_t pid;
		int64_t nr;
		uint64_t args[6];
		uint32_t padding;
	} raw;
};
_Static_assert(sizeof(struct sys_enter) == 120, "as the kernel writes it");

#define RUN_EVENTS (FR_HISTORY_RUN_MAX / sizeof(struct sys_enter))
#define N_TASKS 24

static uint64_t random_state = 88172645463325252ULL;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void fill_event(struct sys_enter *e, uint64_t time_ns, unsigned task, unsigned cpu, long nr)
{
	*e = (struct sys_enter){
		.head.header = {.type = PERF_RECORD_SAMPLE,
			.misc = PERF_RECORD_MISC_KERNEL,
			.size = sizeof(*e)},
		.head.id = 40 + cpu,
		.head.ip = 0xffffffff81002f5bULL,
		.head.pid = 4711 + task / 3,
		.head.tid = 4711 + task,
		.head.time = time_ns,
		.cpu = cpu,
		.raw_size = sizeof(e->raw),
		.raw.type = 348,
		.raw.pid = (int32_t)(4711 + task),
		.raw.nr = nr,
	};
	for (int i = 0; i < 6; i++)
		e->raw.args[i] = 0x7ffd00000000ULL + task * 4096 + (uint64_t)i * 0x1238;
}

static void loop_stream(struct sys_enter *events, size_t n)
{
	uint64_t t = 86400 * FR_NSEC_PER_SEC;

	for (size_t i = 0; i < n; i++) {
		t += 950 + next_random() % 64 + (next_random() % 512 == 0 ? 4000 : 0);
		fill_event(&events[i], t, 0, 1, 110);
	}
}

static void mixed_stream(struct sys_enter *events, size_t n)
{
	static const long calls[] = {0, 1, 3, 7, 9, 16, 35, 44, 45, 202, 232, 257};
	uint64_t t = 86400 * FR_NSEC_PER_SEC;
	unsigned task = 0, cpu = 0;

	for (size_t i = 0; i < n; i++) {
		if (next_random() % 16 == 0)
			task = (unsigned)(next_random() % N_TASKS);
		if (i % RUN_EVENTS == 0)
			cpu = (unsigned)(i / RUN_EVENTS % 4);
		t += 200 + next_random() % 4096;
		fill_event(&events[i], t, task, cpu, calls[next_random() % FR_ARRAY_SIZE(calls)]);
		events[i].raw.args[0] = next_random() % 32;
		events[i].raw.args[2] = (next_random() % 64) * 8;
	}
}

struct result {
	double append_ns, zstd_ns, bytes;
};

static int measure(const struct sys_enter *events, size_t n, unsigned rounds, int level, struct result *ret)
{
	struct fr_history_config config = {.size_bytes = 64 << 20, .level = level};
	struct fr_history_stats stats;
	struct fr_history *h;
	struct fr_diag d = {0};
	uint64_t start;
	int r;

	r = fr_history_new(&config, &h, &d);
	if (r < 0) {
		fr_diag_print("history-bench", &d, r);
		return r;
	}
	start = fr_monotonic_ns();
	for (unsigned round = 0; round < rounds; round++) {
		for (size_t i = 0; i < n; i += RUN_EVENTS) {
			size_t run = FR_MIN(RUN_EVENTS, n - i);

			fr_history_append(h, &events[i], run * sizeof(*events), (uint32_t)run,
				events[i].head.time, events[i + run - 1].head.time);
		}
	}
	fr_history_seal(h);
	start = fr_monotonic_ns() - start;
	fr_history_stats(h, &stats);
	*ret = (struct result){
		.append_ns = (double)start / (double)(n * rounds),
		.zstd_ns = (double)stats.compress_ns / (double)(n * rounds),
		.bytes = (double)(stats.used_bytes - 4096) / (double)stats.samples,
	};
	fr_history_free(h);
	return 0;
}

int main(int argc, char **argv)
{
	static const int levels[] = {-20, -10, -5, -3, -1, 1, 2, 3};
	static const struct {
		const char *name;
		void (*make)(struct sys_enter *events, size_t n);
	} streams[] = {{"loop", loop_stream}, {"mixed", mixed_stream}};
	size_t n = 50000, rounds = argc > 1 ? strtoul(argv[1], NULL, 10) / n : 40;
	_cleanup_free_ struct sys_enter *events = malloc(n * sizeof(*events));

	if (!events)
		return 1;
	printf("%-8s %6s %12s %12s %12s\n", "stream", "level", "ns/event", "zstd ns", "bytes/event");
	for (size_t s = 0; s < FR_ARRAY_SIZE(streams); s++) {
		streams[s].make(events, n);
		for (size_t l = 0; l < FR_ARRAY_SIZE(levels); l++) {
			struct result r;

			if (measure(events, n, (unsigned)FR_MAX(rounds, 1u), levels[l], &r) < 0)
				return 1;
			printf("%-8s %6d %12.1f %12.1f %12.2f\n", streams[s].name, levels[l], r.append_ns,
				r.zstd_ns, r.bytes);
		}
	}
	return 0;
}
