// SPDX-License-Identifier: GPL-2.0-or-later

/* Writes the seeds of fuzz-report into a directory: seed-report DIRECTORY. They are dumps as flightrecd makes
   them, with stacks, waits, wakers, switches and a trigger. */

#include "../unit/perfdata/synth.h"
#include "base/cleanup.h"
#include "perfdata/features.h"
#include "perfdata/tracing_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ID 10 /* of cpu-clock; the next three belong to the session of synth_session() */
#define FIRST_TYPE 65500
#define MS_NS 1000000ull
#define BEGIN_NS (1000 * MS_NS)
#define STEPS 100 /* of 10 ms */
#define KERNEL_IP 0xffffffff81000000ull
#define USER_IP 0x401000ull

/* The tracepoints of a dump, with the fields of their raw data after the common ones. */
static const struct event {
	const char *system, *name;
	const char *fields[10]; /* "TYPE NAME;OFFSET;SIZE" */
} events[] = {
	{"flightrec", "offcpu",
		{"unsigned int waker_context;8;4", "u64 duration;12;8", "u64 blocked;20;8",
			"u64 runqueue;28;8", "int waker_pid;36;4", "int waker_tid;40;4",
			"char waker_comm[16];44;16", "char state[8];60;8"}},
	{"flightrec", "waker",
		{"unsigned int context;8;4", "u64 slept;12;8", "int woken_pid;20;4", "int woken_tid;24;4",
			"char woken_comm[16];28;16"}},
	{"flightrec", "waiting",
		{"unsigned int waker_context;8;4", "u64 duration;12;8", "u64 blocked;20;8",
			"u64 runqueue;28;8", "int waker_pid;36;4", "int waker_tid;40;4",
			"char waker_comm[16];44;16", "char state[8];60;8"}},
	{"sched", "sched_switch",
		{"char prev_comm[16];8;16", "pid_t prev_pid;24;4", "int prev_prio;28;4",
			"long prev_state;32;8", "char next_comm[16];40;16", "pid_t next_pid;56;4",
			"int next_prio;60;4"}},
	{"sched", "sched_waking",
		{"char comm[16];8;16", "pid_t pid;24;4", "int prio;28;4", "int target_cpu;32;4"}},
	{"flightrec", "trigger",
		{"__data_loc char[] trigger;8;4", "__data_loc char[] reason;12;4",
			"__data_loc char[] detail;16;4", "__data_loc char[] unit;20;4", "u64 value;24;8",
			"u64 threshold;32;8"}},
};
enum { OFFCPU, WAKER, WAITING, SWITCH, WAKING, TRIGGER };

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void add_format(struct fr_session *s, const struct event *e, unsigned type)
{
	char text[2048];
	int n = snprintf(text, sizeof(text),
		"name: %s\nID: %u\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
		e->name, type);

	for (size_t i = 0; i < FR_ARRAY_SIZE(e->fields) && e->fields[i]; i++) {
		const char *offset = strchr(e->fields[i], ';'), *size = strrchr(e->fields[i], ';');

		n += snprintf(text + n, sizeof(text) - (size_t)n,
			"\tfield:%.*s;\toffset:%.*s;\tsize:%s;\tsigned:%d;\n", (int)(offset - e->fields[i]),
			e->fields[i], (int)(size - offset - 1), offset + 1, size + 1, e->fields[i][0] != 'u');
	}
	n += snprintf(text + n, sizeof(text) - (size_t)n, "\nprint fmt: \"\"\n");
	require(fr_tracing_data_add_format(
			&s->features[FR_FEATURE_TRACING_DATA], e->system, text, (size_t)n) == 0);
}

static uint64_t id_of(size_t event)
{
	return FIRST_ID + 4 + event;
}

static void make_session(struct fr_session *s)
{
	char name[64];

	synth_session(s, FIRST_ID, "host", 1000000000000ull);
	s->events[0].attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	s->events[0].attr.sample_period = 10 * MS_NS;
	for (size_t i = 0; i < FR_ARRAY_SIZE(events); i++) {
		struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
			.size = sizeof(attr),
			.config = FIRST_TYPE + i,
			.sample_type = FR_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
			.sample_id_all = 1};
		const uint64_t id = id_of(i);

		snprintf(name, sizeof(name), "%s:%s", events[i].system, events[i].name);
		require(fr_session_add_event(s, &attr, name, &id, 1, NULL) == 0);
		add_format(s, &events[i], FIRST_TYPE + (unsigned)i);
	}
	require(fr_feature_set_event_desc(s) == 0);
	require(fr_feature_set_sample_time(s, BEGIN_NS, BEGIN_NS + STEPS * 10 * MS_NS) == 0);
}

/* Appends a sample with a stack of kernel and program. RAW_BYTES of RAW are its raw data, if it has any. */
static void add_sample(
	struct fr_buf *b, uint64_t id, unsigned step, uint32_t pid, const void *raw, uint32_t raw_bytes)
{
	struct {
		struct fr_sample s;
		uint32_t cpu, reserved;
		uint64_t n, chain[6];
	} head = {.s = {.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, 0},
			  .id = id,
			  .ip = KERNEL_IP + step % 7,
			  .pid = pid,
			  .tid = pid,
			  .time = BEGIN_NS + step * 10 * MS_NS},
		.cpu = step % 2,
		.n = 6,
		.chain = {PERF_CONTEXT_KERNEL, KERNEL_IP + step % 7, KERNEL_IP + 0x1000, PERF_CONTEXT_USER,
			USER_IP + step % 11 * 16, USER_IP + 0x2000}};
	const uint32_t padded = (raw_bytes + 4 + 7) / 8 * 8 - 4;
	uint8_t zeros[8] = {0};

	head.s.header.size = (uint16_t)(sizeof(head) + (raw ? 4 + padded : 0));
	require(fr_buf_append(b, &head, sizeof(head)) == 0);
	if (raw)
		require(fr_buf_append(b, &padded, 4) == 0 && fr_buf_append(b, raw, raw_bytes) == 0 &&
			fr_buf_append(b, zeros, padded - raw_bytes) == 0);
}

/* Puts numbers and a name into the raw data of EVENT, and appends its sample. */
static void add_tracepoint(struct fr_buf *b, size_t event, unsigned step, uint32_t pid)
{
	uint8_t raw[68] = {0};
	const uint16_t type = (uint16_t)(FIRST_TYPE + event);

	memcpy(raw, &type, sizeof(type));
	for (size_t i = 0; i < FR_ARRAY_SIZE(events[event].fields) && events[event].fields[i]; i++) {
		const char *f = events[event].fields[i], *offset = strchr(f, ';') + 1,
			   *size = strchr(offset, ';') + 1;
		const uint64_t number =
			strstr(f, "pid") || strstr(f, "tid") ? 40 + (step + i) % 3 : step % 5 * MS_NS;

		if (strstr(f, "state[8]"))
			raw[atoi(offset)] = "SDR"[step % 3];
		else if (strstr(f, "comm["))
			memcpy(raw + atoi(offset), "worker", 6);
		else if (strchr(f, '[') == NULL)
			memcpy(raw + atoi(offset), &number, (size_t)atoi(size));
	}
	add_sample(b, id_of(event), step, pid, raw, sizeof(raw));
}

static void add_trigger(struct fr_buf *b, unsigned step)
{
	struct {
		uint16_t type;
		uint8_t flags, preempt;
		int32_t pid;
		uint16_t text[4][2]; /* offset and length */
		uint64_t value, threshold;
		char texts[40];
	} __attribute__((packed)) raw = {.type = FIRST_TYPE + TRIGGER,
		.text = {{40, 5}, {46, 7}, {54, 6}, {61, 3}},
		.value = 12 * MS_NS,
		.threshold = 10 * MS_NS,
		.texts = "queue\0waiting\0CPU 11\0ns"};

	add_sample(b, id_of(TRIGGER), step, 40, &raw, sizeof(raw));
}

static void add_map(struct fr_buf *b, uint32_t pid, uint64_t address, const char *path)
{
	struct {
		struct fr_record_mmap2 m;
		char path[32];
		struct fr_sample_id id;
	} r = {.m = {.header = {PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID,
			     sizeof(r)},
		       .pid = pid,
		       .tid = pid,
		       .addr = address,
		       .len = 0x10000,
		       .build_id_size = 20,
		       .build_id = {1, 2, 3},
		       .prot = 5},
		.id = {.pid = pid, .tid = pid, .time = BEGIN_NS, .id = FIRST_ID + 2}};

	snprintf(r.path, sizeof(r.path), "%s", path);
	require(fr_buf_append(b, &r, sizeof(r)) == 0);
}

static void add_task(struct fr_buf *b, uint32_t type, uint32_t pid, unsigned step)
{
	const uint64_t time = BEGIN_NS + step * 10 * MS_NS;
	struct {
		struct fr_record_task t;
		struct fr_sample_id id;
	} r = {.t = {{type, 0, sizeof(r)}, pid, 40, pid, 40, time},
		.id = {.pid = pid, .tid = pid, .time = time, .id = FIRST_ID + 2}};

	require(fr_buf_append(b, &r, sizeof(r)) == 0);
}

static void make_records(struct fr_buf *b)
{
	for (uint32_t pid = 40; pid < 43; pid++) {
		synth_comm(b, FIRST_ID + 2, BEGIN_NS, pid, "worker");
		add_map(b, pid, USER_IP - 0x1000, "/usr/bin/worker");
	}
	for (unsigned step = 0; step < STEPS; step++) {
		const uint32_t pid = 40 + step % 3;

		add_sample(b, FIRST_ID, step, pid, NULL, 0);
		if (step % 10 == 5)
			add_task(b, PERF_RECORD_FORK, 100 + step, step);
		add_tracepoint(b, step % TRIGGER, step, pid);
		if (step % 10 == 9)
			add_task(b, PERF_RECORD_EXIT, 96 + step, step);
		if (step == STEPS - 20)
			add_trigger(b, step);
		if (step % 50 == 49)
			synth_round(b);
	}
	synth_round(b);
}

int main(int argc, char *argv[])
{
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf b = {0};

	if (argc != 2 || chdir(argv[1]) < 0) {
		fprintf(stderr, "Usage: seed-report DIRECTORY\n");
		return 2;
	}
	make_session(&s);
	make_records(&b);
	synth_write_file("plain", &s, &b, 0, 0);
	synth_write_file("compressed", &s, &b, 400, 4000);
	synth_write_pipe("pipe", &s, &b);
	synth_write_file("cut", &s, &b, 0, 0);
	return truncate("cut", 20000) < 0;
}
