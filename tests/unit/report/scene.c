// SPDX-License-Identifier: GPL-2.0-or-later
#include "scene.h"
#include "../perfdata/synth.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/tracing_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL 0xffffffff81000000ULL

/* The raw data of flightrec:offcpu, as its format says. */
#define TRACEPOINT 65500
#define WAITING_TRACEPOINT 65502
struct raw {
	uint32_t size;
	uint16_t common_type;
	uint8_t common_flags, common_preempt_count;
	int32_t common_pid;
	uint32_t waker_context;
	uint64_t duration, blocked, runqueue;
	int32_t waker_pid, waker_tid;
	char waker_comm[16], state[8];
};

static const char fields[] = "format:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			     "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			     "\tfield:unsigned int waker_context;\toffset:8;\tsize:4;\tsigned:0;\n"
			     "\tfield:u64 duration;\toffset:12;\tsize:8;\tsigned:0;\n"
			     "\tfield:u64 blocked;\toffset:20;\tsize:8;\tsigned:0;\n"
			     "\tfield:u64 runqueue;\toffset:28;\tsize:8;\tsigned:0;\n"
			     "\tfield:int waker_pid;\toffset:36;\tsize:4;\tsigned:1;\n"
			     "\tfield:int waker_tid;\toffset:40;\tsize:4;\tsigned:1;\n"
			     "\tfield:char waker_comm[16];\toffset:44;\tsize:16;\tsigned:1;\n"
			     "\tfield:char state[8];\toffset:60;\tsize:8;\tsigned:1;\n\nprint fmt: \"\"\n";

static void add_format(struct scene *s, const char *name, int id)
{
	char *text = NULL;
	const int len = asprintf(&text, "name: %s\nID: %d\n%s", name, id, fields);

	assert_true(len > 0);
	assert_int_equal(fr_tracing_data_add_format(&s->session.features[FR_FEATURE_TRACING_DATA],
				 "flightrec", text, (size_t)len),
		0);
	free(text);
}

/* The functions of the kernel in a recording, 4096 bytes each. */
static const char *const functions[] = {[SCENE_LOCK] = "__mutex_lock",
	[SCENE_DISK] = "folio_wait_bit",
	[SCENE_SLEEP] = "do_nanosleep",
	[SCENE_WRITE] = "pipe_write",
	[SCENE_FUTEX] = "futex_wait",
	[SCENE_FAULT] = "handle_mm_fault",
	[SCENE_TIMER] = "posix_timer_fn",
	[SCENE_RECLAIM] = "try_to_free_mem_cgroup_pages",
	[SCENE_THROTTLED] = "throttle_cfs_rq_work",
	[SCENE_KERNEL] = "kthread",
	[SCENE_VFORK] = "kernel_clone"};

/* Appends the map of the kernel, and writes its symbols. */
static void name_kernel(struct scene *s, const char *root)
{
	struct {
		struct fr_record_mmap r;
		char name[32];
		struct fr_sample_id id;
	} map = {.r = {.header = {PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, sizeof(map)},
			 .pid = UINT32_MAX,
			 .addr = KERNEL,
			 .len = sizeof(functions) / sizeof(*functions) * 4096,
			 .pgoff = KERNEL},
		.name = "[kernel.kallsyms]_text",
		.id = {.pid = UINT32_MAX, .tid = UINT32_MAX, .time = FROM_NS, .id = CLOCK_ID + 2}};
	FILE *f;

	assert_int_equal(fr_buf_append(&s->records, &map, sizeof(map)), 0);
	snprintf(s->kallsyms, sizeof(s->kallsyms), "%s/kallsyms", root);
	f = fopen(s->kallsyms, "w");
	assert_non_null(f);
	fprintf(f, "%llx T _text\n", KERNEL);
	for (unsigned i = 1; i < sizeof(functions) / sizeof(*functions); i++)
		fprintf(f, "%llx T %s\n", scene_address(i), functions[i]);
	fprintf(f, "%llx T _etext\n", scene_address(sizeof(functions) / sizeof(*functions)));
	assert_int_equal(fclose(f), 0);
	s->config.places.kallsyms = s->kallsyms;
}

unsigned long long scene_address(unsigned function)
{
	return function ? KERNEL + function * 4096ULL : 0x1000;
}

void scene_begin(struct scene *s, const char *root)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = TRACEPOINT,
		.sample_type = FR_SAMPLE_TYPE | PERF_SAMPLE_RAW,
		.sample_id_all = 1};
	struct perf_event_attr waiting = attr;
	const uint64_t id = WAIT_ID, waiting_id = WAITING_ID;

	*s = (struct scene){0};
	synth_session(&s->session, CLOCK_ID, "host", 0);
	s->session.events[0].attr.sample_period = SAMPLE_NS;
	waiting.config = WAITING_TRACEPOINT;
	assert_int_equal(fr_session_add_event(&s->session, &attr, "flightrec:offcpu", &id, 1, NULL), 0);
	assert_int_equal(
		fr_session_add_event(&s->session, &waiting, "flightrec:waiting", &waiting_id, 1, NULL), 0);
	assert_int_equal(fr_feature_set_event_desc(&s->session), 0);
	add_format(s, "offcpu", TRACEPOINT);
	add_format(s, "waiting", WAITING_TRACEPOINT);
	assert_int_equal(fr_feature_set_sample_time(&s->session, FROM_NS, TO_NS), 0);
	synth_comm(&s->records, CLOCK_ID + 2, FROM_NS, HOG, "hog");
	synth_comm(&s->records, CLOCK_ID + 2, FROM_NS, HOG + 1, "second");
	synth_comm(&s->records, CLOCK_ID + 2, FROM_NS, HOG + 2, "third");
	name_kernel(s, root);
	synth_round(&s->records);
}

void scene_run_in(struct scene *s, uint32_t pid, uint64_t time, unsigned n, unsigned function)
{
	for (unsigned i = 0; i < n; i++) {
		const size_t at = s->records.len;

		synth_sample(&s->records, CLOCK_ID, time + i * SAMPLE_NS, pid, scene_address(function));
		if (function)
			((struct perf_event_header *)(void *)(s->records.data + at))->misc =
				PERF_RECORD_MISC_KERNEL;
	}
}

void scene_run(struct scene *s, uint32_t pid, uint64_t time, unsigned n)
{
	scene_run_in(s, pid, time, n, 0);
}

static uint32_t pid_of(const struct scene *s, uint32_t tid)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(s->threads); i++)
		if (s->threads[i][1] == tid)
			return s->threads[i][0];
	return tid;
}

void scene_wait_in(struct scene *s, const struct wait *w, unsigned function, bool is_open)
{
	struct {
		struct fr_sample s;
		uint32_t cpu, res;
		struct raw raw;
	} x = {.s = {.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, sizeof(x)},
		       .id = is_open ? WAITING_ID : WAIT_ID,
		       .pid = pid_of(s, w->pid),
		       .tid = w->pid,
		       .ip = function ? scene_address(function) : 0,
		       .time = w->end_ns},
		.raw = {.size = sizeof(x.raw) - sizeof(x.raw.size),
			.common_type = is_open ? WAITING_TRACEPOINT : TRACEPOINT,
			.waker_context = w->waker ? 1 : 3,
			.duration = w->blocked_ns + w->runqueue_ns,
			.blocked = w->blocked_ns,
			.runqueue = w->runqueue_ns,
			.waker_pid = (int)w->waker,
			.waker_tid = (int)w->waker,
			.state = {w->state}}};

	assert_int_equal(fr_buf_append(&s->records, &x, sizeof(x)), 0);
}

void scene_wait(struct scene *s, const struct wait *w)
{
	scene_wait_in(s, w, 0, false);
}

static void add_task(struct scene *s, const struct fr_record_task *t)
{
	struct {
		struct fr_record_task t;
		struct fr_sample_id id;
	} x = {.t = *t, .id = {.pid = t->ppid, .tid = t->ptid, .time = t->time, .id = CLOCK_ID + 2}};

	x.t.header = (struct perf_event_header){PERF_RECORD_FORK, 0, sizeof(x)};
	assert_int_equal(fr_buf_append(&s->records, &x, sizeof(x)), 0);
}

void scene_fork(struct scene *s, uint32_t parent, uint32_t child, uint64_t time)
{
	add_task(s, &(struct fr_record_task){{0}, child, parent, child, parent, time});
}

void scene_thread(struct scene *s, uint32_t pid, uint32_t tid, uint64_t time)
{
	size_t i = 0;

	while (s->threads[i][1])
		i++;
	s->threads[i][0] = pid;
	s->threads[i][1] = tid;
	add_task(s, &(struct fr_record_task){{0}, pid, pid, tid, pid, time});
}

void scene_explain(struct scene *s, const char *root)
{
	struct fr_diag d = {0};

	synth_round(&s->records);
	snprintf(s->path, sizeof(s->path), "%s/perf.data", root);
	synth_write_file(s->path, &s->session, &s->records, 0, 0);
	s->config.path = s->path;
	assert_int_equal(fr_profile_open(&s->config, &s->profile, &d), 0);
	assert_int_equal(fr_explain(s->profile, NULL, 0, NULL, &s->e, &d), 0);
}

const struct fr_finding *scene_find(const struct scene *s, const char *rule)
{
	for (size_t i = 0; i < s->e.findings.n; i++)
		if (!strcmp(s->e.findings.v[i].rule, rule))
			return &s->e.findings.v[i];
	return NULL;
}

void scene_finish(struct scene *s)
{
	fr_explanation_deinit(&s->e);
	fr_profile_free(s->profile);
	fr_session_deinit(&s->session);
	fr_buf_deinit(&s->records);
}
