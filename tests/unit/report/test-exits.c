// SPDX-License-Identifier: GPL-2.0-or-later
/* The names of tasks after their EXIT records. */
#include "../unit.h"
#include "report/exits.h"
#include "sideband/blob.h"

#include <string.h>

struct fixture {
	struct fr_model *model;
	struct fr_exits exits;
};

static void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	assert_int_equal(fr_model_new(NULL, &f->model), 0);
}

static void fixture_deinit(struct fixture *f)
{
	fr_exits_deinit(&f->exits);
	fr_model_free(f->model);
}

static void apply(struct fixture *f, const void *record)
{
	assert_int_equal(fr_exits_apply(&f->exits, f->model, record, 0, 1), 0);
}

static void task(struct fixture *f, uint32_t type, uint32_t pid, uint32_t tid, uint32_t ppid)
{
	const struct fr_record_task r = {.header = {.type = type, .size = sizeof(r)},
		.pid = pid,
		.tid = tid,
		.ppid = ppid,
		.ptid = ppid};

	apply(f, &r);
}

static void comm(struct fixture *f, uint32_t pid, uint32_t tid, bool exec, const char *name)
{
	union {
		struct fr_record_comm r;
		uint8_t bytes[sizeof(struct fr_record_comm) + 16];
	} u = {0};

	u.r.header.type = PERF_RECORD_COMM;
	u.r.header.size = sizeof(u.bytes);
	u.r.header.misc = exec ? PERF_RECORD_MISC_COMM_EXEC : 0;
	u.r.pid = pid;
	u.r.tid = tid;
	strcpy((char *)u.bytes + offsetof(struct fr_record_comm, comm), name);
	apply(f, &u);
}

static void expect(struct fixture *f, uint32_t pid, uint32_t tid, const char *name)
{
	const struct fr_blob *b = fr_model_comm(f->model, pid, tid);

	if (!name) {
		assert_null(b);
		return;
	}
	assert_non_null(b);
	assert_int_equal(b->len, strlen(name));
	assert_memory_equal(b->data, name, b->len);
}

TEST(a_task_keeps_its_name_until_its_id_is_used_again)
{
	struct fixture f;

	fixture_init(&f);
	comm(&f, 10, 10, true, "shell");
	task(&f, PERF_RECORD_FORK, 20, 20, 10);
	expect(&f, 20, 20, "shell");
	comm(&f, 20, 20, true, "first");
	task(&f, PERF_RECORD_FORK, 20, 21, 20);
	comm(&f, 20, 21, false, "thread");
	task(&f, PERF_RECORD_EXIT, 20, 21, 20);
	task(&f, PERF_RECORD_EXIT, 20, 20, 10);
	expect(&f, 20, 20, "first");
	expect(&f, 20, 21, "thread");

	/* The id of the thread is that of a process now. */
	task(&f, PERF_RECORD_FORK, 21, 21, 10);
	expect(&f, 21, 21, "shell");
	expect(&f, 20, 20, "first");
	/* The EXIT of the old process does not remove the new one. */
	task(&f, PERF_RECORD_FORK, 20, 20, 10);
	comm(&f, 20, 20, true, "second");
	for (uint32_t i = 0; i < FR_EXITS_MAX + 1; i++)
		task(&f, PERF_RECORD_EXIT, 100000 + i, 100000 + i, 1);
	expect(&f, 20, 20, "second");
	fixture_deinit(&f);
}

TEST(a_thread_that_calls_exec_gets_the_id_of_the_leader)
{
	struct fixture f;

	fixture_init(&f);
	comm(&f, 20, 20, true, "first");
	task(&f, PERF_RECORD_FORK, 20, 21, 20);
	task(&f, PERF_RECORD_EXIT, 20, 20, 1);
	comm(&f, 20, 20, true, "second");
	for (uint32_t i = 0; i < FR_EXITS_MAX + 1; i++)
		task(&f, PERF_RECORD_EXIT, 100000 + i, 100000 + i, 1);
	expect(&f, 20, 20, "second");
	fixture_deinit(&f);
}

static void map(struct fixture *f, uint32_t pid, uint64_t addr, const char *path)
{
	union {
		struct fr_record_mmap2 r;
		uint8_t bytes[sizeof(struct fr_record_mmap2) + 16];
	} u = {0};

	u.r.header.type = PERF_RECORD_MMAP2;
	u.r.header.size = sizeof(u.bytes);
	u.r.header.misc = PERF_RECORD_MISC_USER;
	u.r.pid = u.r.tid = pid;
	u.r.addr = addr;
	u.r.len = 0x1000;
	strcpy((char *)u.bytes + offsetof(struct fr_record_mmap2, filename), path);
	apply(f, &u);
}

/* A sample with a call chain of one address in user space. */
static void sample(struct fixture *f, uint32_t pid, uint64_t address, bool is_user)
{
	const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000000, PERF_CONTEXT_USER, address};
	const struct fr_sample_fields s = {.pid = pid,
		.mode = is_user ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL,
		.chain = chain,
		.n_chain = sizeof(chain) / sizeof(chain[0])};

	assert_int_equal(fr_exits_run(&f->exits, f->model, &s), 0);
}

TEST(an_exec_has_its_effect_on_the_maps_when_the_new_program_runs)
{
	struct fr_model_map found;
	struct fixture f;

	fixture_init(&f);
	comm(&f, 10, 10, true, "shell");
	map(&f, 10, 0x1000, "/bin/shell");
	task(&f, PERF_RECORD_FORK, 20, 20, 10);
	comm(&f, 20, 20, true, "first");
	expect(&f, 20, 20, "first");
	assert_true(fr_model_find_map(f.model, 20, 0x1000, &found));
	map(&f, 20, 0x5000, "/bin/first");
	map(&f, 20, 0x6000, "/lib/ld.so");
	assert_true(fr_model_find_map(f.model, 20, 0x1000, &found));
	assert_false(fr_model_find_map(f.model, 20, 0x5000, &found));
	map(&f, 20, 0x7000, "[vdso]");
	sample(&f, 20, 0x1000, false); /* where the old program called exec */
	assert_true(fr_model_find_map(f.model, 20, 0x1000, &found));
	assert_false(fr_model_find_map(f.model, 20, 0x5000, &found));
	sample(&f, 20, 0x6fff, false); /* a call of the new program */
	assert_false(fr_model_find_map(f.model, 20, 0x1000, &found));
	for (uint64_t addr = 0x5000; addr <= 0x7000; addr += 0x1000)
		assert_true(fr_model_find_map(f.model, 20, addr, &found));
	assert_true(fr_model_find_map(f.model, 10, 0x1000, &found));
	/* Another name before the first map. */
	comm(&f, 20, 20, true, "second");
	comm(&f, 20, 20, false, "third");
	expect(&f, 20, 20, "third");
	assert_false(fr_model_find_map(f.model, 20, 0x5000, &found));
	/* In user space, the address is of the new program. */
	comm(&f, 20, 20, true, "fourth");
	map(&f, 20, 0x8000, "/bin/fourth");
	assert_false(fr_model_find_map(f.model, 20, 0x8000, &found));
	sample(&f, 20, 0x1000, true);
	assert_true(fr_model_find_map(f.model, 20, 0x8000, &found));
	/* The program itself makes the map after that of the vdso. */
	comm(&f, 20, 20, true, "dynamic");
	map(&f, 20, 0x8000, "/bin/dynamic");
	map(&f, 20, 0x9000, "[vdso]");
	assert_false(fr_model_find_map(f.model, 20, 0x9000, &found));
	map(&f, 20, 0xa000, "/lib/libc.so.6");
	for (uint64_t addr = 0x8000; addr <= 0xa000; addr += 0x1000)
		assert_true(fr_model_find_map(f.model, 20, addr, &found));
	comm(&f, 20, 20, true, "fifth");
	map(&f, 20, 0x9000, "/bin/fifth"); /* left until the end */
	assert_int_equal(f.exits.map_bytes, sizeof(struct fr_record_mmap2) + 16);
	fixture_deinit(&f);
}

TEST(the_memory_of_delayed_maps_is_bounded)
{
	const uint32_t execs = FR_EXEC_MAP_BYTES / sizeof(struct fr_record_mmap2) / FR_EXEC_MAPS_MAX + 1;
	struct fr_model_map found;
	struct fixture f;

	fixture_init(&f);
	for (uint32_t pid = 20; pid < 20 + execs; pid++) {
		comm(&f, pid, pid, true, "first");
		for (uint64_t i = 0; i < FR_EXEC_MAPS_MAX; i++) {
			map(&f, pid, i << 12, "/bin/first");
			assert_true(f.exits.map_bytes <= FR_EXEC_MAP_BYTES);
		}
	}
	assert_false(fr_model_find_map(f.model, 20, 0, &found));
	assert_true(fr_model_find_map(f.model, 20 + execs - 1, 0, &found)); /* there was no room */
	fixture_deinit(&f);
}

TEST(the_number_of_delayed_maps_of_an_exec_is_bounded)
{
	struct fr_model_map found;
	struct fixture f;

	fixture_init(&f);
	comm(&f, 20, 20, true, "first");
	for (uint64_t i = 0; i < FR_EXEC_MAPS_MAX; i++)
		map(&f, 20, i << 12, "/bin/first");
	assert_false(fr_model_find_map(f.model, 20, 0, &found));
	map(&f, 20, (uint64_t)FR_EXEC_MAPS_MAX << 12, "/bin/first");
	for (uint64_t i = 0; i <= FR_EXEC_MAPS_MAX; i++)
		assert_true(fr_model_find_map(f.model, 20, i << 12, &found));
	assert_int_equal(f.exits.map_bytes, 0);
	fixture_deinit(&f);
}

TEST(the_oldest_exit_is_applied_when_there_are_many)
{
	struct fixture f;

	fixture_init(&f);
	comm(&f, 20, 20, true, "first");
	task(&f, PERF_RECORD_EXIT, 20, 20, 1);
	for (uint32_t i = 1; i < FR_EXITS_MAX; i++)
		task(&f, PERF_RECORD_EXIT, 100000 + i, 100000 + i, 1);
	expect(&f, 20, 20, "first");
	task(&f, PERF_RECORD_EXIT, 100000, 100000, 1);
	expect(&f, 20, 20, NULL);
	assert_int_equal(f.exits.n, FR_EXITS_MAX);
	/* Malformed records have no effect. */
	apply(&f, &(struct perf_event_header){.type = PERF_RECORD_EXIT, .size = 8});
	apply(&f, &(struct perf_event_header){.type = PERF_RECORD_FORK, .size = 8});
	fixture_deinit(&f);
}
