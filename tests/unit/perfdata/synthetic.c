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

uint64_t synthetic_id(unsigned event, unsigned cpu)
{
	return 100 + event * 10 + cpu;
}

static struct perf_event_attr make_attr(uint32_t type, uint64_t config, uint64_t more)
{
	return (struct perf_event_attr){.type = type,
		.size = sizeof(struct perf_event_attr),
		.config = config,
		.sample_period = 1,
		.sample_type = FR_SAMPLE_TYPE | PERF_SAMPLE_PERIOD | more,
		.read_format = PERF_FORMAT_ID,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC};
}

static void add_event(struct fr_session *s, const struct perf_event_attr *attr, const char *name)
{
	uint64_t ids[] = {synthetic_id((unsigned)s->n_events, 0), synthetic_id((unsigned)s->n_events, 1)};

	if (fr_session_add_event(s, attr, name, ids, 2, NULL) < 0)
		abort();
}

bool synthetic_session(struct fr_session *s, bool tracepoint)
{
	static char *const argv[] = {(char *)"flightrecd", (char *)"-e", (char *)"cpu-clock"};
	const struct fr_clock_pair pair = {SYNTHETIC_START_NS, SYNTHETIC_WALL_NS};
	struct perf_event_attr clock = make_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0);
	struct perf_event_attr raw = make_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT, PERF_SAMPLE_RAW);
	char text[32];

	add_event(s, &clock, "cpu-clock");
	add_event(s, &raw, "bpf-output");
	if (tracepoint) {
		struct perf_event_attr attr = make_attr(PERF_TYPE_TRACEPOINT, 0, PERF_SAMPLE_RAW);

		if (fr_read_line("/sys/kernel/tracing/events/sched/sched_switch/id", text, sizeof(text)) < 0)
			return false;
		attr.config = strtoull(text, NULL, 10);
		add_event(s, &attr, "sched:sched_switch");
	}
	return fr_features_gather(s, 3, argv, &pair, NULL) == 0 && fr_tracing_data_gather(s, NULL) == 0;
}

static void finish(struct fr_buf *b, size_t start, uint64_t time)
{
	struct fr_sample_id id = {.pid = SYNTHETIC_PID, .tid = SYNTHETIC_PID, .time = time, .id = 100};
	uint16_t size;

	append(b, &id, sizeof(id));
	size = (uint16_t)(b->len - start);
	memcpy(b->data + start + offsetof(struct perf_event_header, size), &size, sizeof(size));
}

void synthetic_state(struct fr_buf *b, uint64_t time)
{
	static const char comm[16] = "synthetic", file[16] = "/bin/true";
	struct fr_record_comm c = {
		.header = {.type = PERF_RECORD_COMM}, .pid = SYNTHETIC_PID, .tid = SYNTHETIC_PID};
	struct fr_record_mmap2 m = {
		.header = {.type = PERF_RECORD_MMAP2,
			.misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID},
		.pid = SYNTHETIC_PID,
		.tid = SYNTHETIC_PID,
		.addr = 0x10000,
		.len = 0x100000,
		.build_id_size = 20,
		.prot = 5,
	};
	size_t start = b->len;

	append(b, &c, sizeof(c));
	append(b, comm, sizeof(comm));
	finish(b, start, time);
	start = b->len;
	memset(m.build_id, 0xab, sizeof(m.build_id));
	append(b, &m, sizeof(m));
	append(b, file, sizeof(file));
	finish(b, start, time);
}

struct sample {
	struct fr_sample head;
	uint32_t cpu, reserved;
	uint64_t period;
};

static struct sample make_sample(unsigned event, unsigned cpu, uint64_t time, size_t more)
{
	return (struct sample){.head = {.header = {.type = PERF_RECORD_SAMPLE,
						.misc = PERF_RECORD_MISC_USER,
						.size = (uint16_t)(sizeof(struct sample) + more)},
				       .id = synthetic_id(event, cpu),
				       .ip = 0x10000 + time % 0x1000,
				       .pid = SYNTHETIC_PID,
				       .tid = SYNTHETIC_PID,
				       .time = time},
		.cpu = cpu,
		.period = 1};
}

void synthetic_samples(struct fr_buf *b, uint64_t time, unsigned n, unsigned fill, bool noise)
{
	uint64_t state = time | 1;

	fill = (fill + 7) / 8 * 8 + 4; /* with its size, the raw part is a multiple of 8 */
	for (unsigned i = 0; i < n; i++, time += 1000) {
		unsigned event = i % 2 ? SYNTHETIC_RAW : SYNTHETIC_CLOCK;
		struct sample s = make_sample(event, i / 2 % 2, time, event ? 4 + fill : 0);

		append(b, &s, sizeof(s));
		if (event != SYNTHETIC_RAW)
			continue;
		append(b, &fill, sizeof(fill));
		for (unsigned k = 0; k < fill; k++) {
			uint8_t byte;

			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			byte = noise ? (uint8_t)(state >> 24) : 0;
			append(b, &byte, 1);
		}
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
	} __attribute__((packed))
	raw = {.size = sizeof(raw) - 4, .prev = "before", .prev_pid = 7, .next = "after", .next_pid = 9};
	char text[32];
	struct sample s = make_sample(SYNTHETIC_SWITCH, 0, time, sizeof(raw));

	_Static_assert(sizeof(raw) % 8 == 0, "a record is a multiple of 8");
	if (fr_read_line("/sys/kernel/tracing/events/sched/sched_switch/id", text, sizeof(text)) < 0)
		abort();
	raw.type = (uint16_t)strtoul(text, NULL, 10);
	append(b, &s, sizeof(s));
	append(b, &raw, sizeof(raw));
}

/* The bytes that a command wrote to F, if RET is wanted. */
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

bool synthetic_have_perf(void)
{
	return system("perf version >/dev/null 2>&1") == 0;
}
