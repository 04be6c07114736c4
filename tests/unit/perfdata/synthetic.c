// SPDX-License-Identifier: GPL-2.0-or-later
#include "synthetic.h"
#include "base/clock.h"
#include "base/file.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/tracing_data.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void append(struct fr_buf *b, const void *data, size_t len)
{
	if (fr_buf_append(b, data, len) < 0)
		abort();
}

static uint64_t make_id(unsigned event, unsigned cpu)
{
	return 100 + event * 10 + cpu;
}

static void add_event(struct fr_session *s, uint32_t type, uint64_t config, const char *name)
{
	const unsigned event = (unsigned)s->n_events;
	const uint64_t ids[] = {make_id(event, 0), make_id(event, 1)};
	const struct perf_event_attr attr = {.type = type,
		.size = sizeof(attr),
		.config = config,
		.sample_period = 1,
		.sample_type = FR_SAMPLE_TYPE | PERF_SAMPLE_PERIOD |
			       (event == SYNTHETIC_CLOCK ? 0 : PERF_SAMPLE_RAW),
		.read_format = PERF_FORMAT_ID,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC};

	if (fr_session_add_event(s, &attr, name, ids, 2, NULL) < 0)
		abort();
}

/* Returns the id of the tracepoint sched:sched_switch, or 0 if tracefs is not mounted. */
static uint16_t read_switch_id(void)
{
	char text[32];

	if (fr_read_line("/sys/kernel/tracing/events/sched/sched_switch/id", text, sizeof(text)) < 0)
		return 0;
	return (uint16_t)strtoul(text, NULL, 10);
}

bool synthetic_session(struct fr_session *s, bool tracepoint)
{
	static char *const argv[] = {(char *)"flightrecd", (char *)"-e", (char *)"cpu-clock"};
	const struct fr_clock_pair pair = {SYNTHETIC_START_NS, SYNTHETIC_WALL_NS};

	if (tracepoint && !read_switch_id())
		return false;
	add_event(s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	add_event(s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT, "bpf-output");
	if (tracepoint)
		add_event(s, PERF_TYPE_TRACEPOINT, read_switch_id(), "sched:sched_switch");
	return fr_features_gather(s, 3, argv, &pair, NULL) == 0 && fr_tracing_data_gather(s, NULL) == 0;
}

void synthetic_state(struct fr_buf *b, uint64_t time)
{
	const struct fr_sample_id id = {
		.pid = SYNTHETIC_PID, .tid = SYNTHETIC_PID, .time = time, .id = make_id(0, 0)};
	struct {
		struct fr_record_comm r;
		char comm[16];
		struct fr_sample_id id;
	} comm = {{{PERF_RECORD_COMM, 0, sizeof(comm)}, SYNTHETIC_PID, SYNTHETIC_PID}, "synthetic", id};
	struct {
		struct fr_record_mmap2 r;
		char file[16];
		struct fr_sample_id id;
	} map = {.r = {.header = {PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID,
			       sizeof(map)},
			 .pid = SYNTHETIC_PID,
			 .tid = SYNTHETIC_PID,
			 .addr = 0x10000,
			 .len = 0x100000,
			 .build_id_size = 20,
			 .prot = 5},
		.file = "/bin/true",
		.id = id};

	memset(map.r.build_id, 0xab, sizeof(map.r.build_id));
	append(b, &comm, sizeof(comm));
	append(b, &map, sizeof(map));
}

/* Appends a sample and RAW_LEN bytes behind it. */
static void append_sample(
	struct fr_buf *b, unsigned event, unsigned cpu, uint64_t time, const void *raw, size_t raw_len)
{
	struct {
		struct fr_sample head;
		uint32_t cpu, reserved;
		uint64_t period;
	} s = {{{PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (uint16_t)(sizeof(s) + raw_len)},
		       make_id(event, cpu), 0x10000 + time % 0x1000, SYNTHETIC_PID, SYNTHETIC_PID, time},
		cpu, 0, 1};

	append(b, &s, sizeof(s));
	append(b, raw, raw_len);
}

void synthetic_samples(struct fr_buf *b, uint64_t time, unsigned n, unsigned fill, bool noise)
{
	struct {
		uint32_t size;
		uint8_t bytes[4096];
	} raw = {.size = (fill + 7) / 8 * 8 + 4}; /* together with the size field a multiple of 8 */
	uint64_t state = time | 1;

	for (unsigned i = 0; i < n; i++, time += 1000) {
		unsigned event = i % 2 ? SYNTHETIC_RAW : SYNTHETIC_CLOCK;

		for (unsigned k = 0; noise && event == SYNTHETIC_RAW && k < raw.size; k++) {
			state = state * 6364136223846793005ULL + 1442695040888963407ULL;
			raw.bytes[k] = (uint8_t)(state >> 56);
		}
		append_sample(b, event, i / 2 % 2, time, &raw, event == SYNTHETIC_RAW ? 4 + raw.size : 0);
	}
}

void synthetic_switch(struct fr_buf *b, uint64_t time)
{
	struct {
		uint32_t size;
		uint16_t type;
		uint8_t flags, preempt;
		int32_t pid;
		char prev[16];
		int32_t prev_pid, prev_prio;
		int64_t prev_state;
		char next[16];
		int32_t next_pid, next_prio;
		uint32_t end;
	} __attribute__((packed)) raw = {.size = sizeof(raw) - 4,
		.type = read_switch_id(),
		.prev = "before",
		.prev_pid = 7,
		.next = "after",
		.next_pid = 9};

	_Static_assert(sizeof(raw) % 8 == 0, "a record is a multiple of 8");
	append_sample(b, SYNTHETIC_SWITCH, 0, time, &raw, sizeof(raw));
}

/* Reads what a command has written to F into RET, unless RET is NULL. */
static void read_back(FILE *f, struct fr_buf *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(f));
	if (ret && fr_read_file(AT_FDCWD, path, 256u << 20, ret) < 0)
		abort();
	fclose(f);
}

int synthetic_run(const char *command, struct fr_buf *ret_out, struct fr_buf *ret_err)
{
	FILE *out = tmpfile(), *err = tmpfile();
	char line[1024];
	int n, status;

	if (!out || !err)
		abort();
	n = snprintf(line, sizeof(line), "( %s ) >&%d 2>&%d </dev/null", command, fileno(out), fileno(err));
	if (n < 0 || (size_t)n >= sizeof(line))
		abort();
	status = system(line);
	read_back(out, ret_out);
	read_back(err, ret_err);
	return status;
}
