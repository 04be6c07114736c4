// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the processes, their slots and objects, with records as the kernel makes them, and with slots as
   BPF programs write them. */
#include "../sideband/events.h"
#include "base/cleanup.h"
#include "chunks.h"
#include "unwind/processes.h"
#include "unwind/slots.h"

#include <string.h>
#include <sys/mman.h>

#define MIB (1u << 20)
#define PAGE 0x1000ULL

static struct fr_unwind_shared *shared;
static struct fr_unwind_memory *m;
static struct fr_unwind_objects *objects;
static struct fr_unwind_processes *p;
static struct fr_buf records;
static int chunks_fd;
static uint64_t now; /* the time of the next record */

static int set_up(void **state)
{
	now = 1;
	chunks_fd = chunks_new();
	shared = calloc(1, sizeof(*shared));
	assert_non_null(shared);
	assert_int_equal(fr_unwind_memory_new(chunks_fd, 2 * MIB, &m), 0);
	assert_int_equal(fr_unwind_objects_new(shared, m, &objects), 0);
	assert_int_equal(fr_unwind_processes_new(shared, m, objects, &p), 0);
	return 0;
}

static int tear_down(void **state)
{
	p = fr_unwind_processes_free(p);
	objects = fr_unwind_objects_free(objects);
	m = fr_unwind_memory_free(m);
	free(shared);
	fr_buf_deinit(&records);
	close(chunks_fd);
	return 0;
}
FIXTURE(set_up, tear_down)

/* Applies the records, and publishes. */
static void end_round(void)
{
	const struct perf_event_header *h;
	size_t at = 0;

	while ((h = ev_next(&records, &at)))
		assert_int_equal(fr_unwind_processes_apply(p, h), 0);
	records.len = 0;
	now++;
	fr_unwind_processes_publish(p, now, now);
}

static void reclaim(void)
{
	fr_unwind_processes_reclaim(p, now);
}

static void map(pid_t pid, uint64_t page, uint64_t pages, const char *name)
{
	ev_mmap(&records, now, pid, page * PAGE, pages * PAGE, PAGE, name);
}

/* Returns what a BPF program finds in the slot of PID; NULL if there is none. */
static const struct fr_unwind_process *process(uint32_t pid)
{
	const fr_unwind_at at = fr_unwind_slot_find(shared, pid);

	return at ? fr_unwind_memory_address(m, at) : NULL;
}

static void assert_map(const struct fr_unwind_process *v, uint32_t i, uint64_t page, uint64_t pages)
{
	assert_true(i < v->n);
	assert_int_equal(v->maps[i].start, page * PAGE);
	assert_int_equal(v->maps[i].end, (page + pages) * PAGE);
}

static unsigned count_slots(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < FR_UNWIND_SLOTS; i++)
		n += shared->slots[i].pid != 0;
	return n;
}

TEST(maps_are_sorted_and_have_the_bias_of_their_file)
{
	map(5, 30, 2, "/lib/bb");
	map(5, 10, 2, "/lib/a");
	end_round();
	assert_int_equal(process(5)->n, 2);
	assert_map(process(5), 0, 10, 2);
	assert_map(process(5), 1, 30, 2);
	assert_int_equal(process(5)->maps[0].bias, 9 * PAGE); /* the offset of the map is one page */
	assert_int_not_equal(process(5)->maps[0].object, process(5)->maps[1].object);
	assert_int_equal(shared->objects[process(5)->maps[0].object].state, FR_UNWIND_WANTED);
}

TEST(a_new_map_replaces_what_was_there)
{
	map(5, 10, 10, "/lib/a");
	map(5, 12, 2, "/lib/bb");
	end_round();
	assert_int_equal(process(5)->n, 3);
	assert_map(process(5), 0, 10, 2);
	assert_map(process(5), 1, 12, 2);
	assert_map(process(5), 2, 14, 6);
	assert_int_equal(process(5)->maps[0].bias, process(5)->maps[2].bias);
	map(5, 9, 12, "/lib/ccc");
	end_round();
	assert_int_equal(process(5)->n, 1);
	assert_map(process(5), 0, 9, 12);
}

TEST(run_time_code_is_one_map_without_a_file)
{
	for (uint64_t i = 0; i < 100; i++)
		map(5, 10 + (i * 37) % 100, 1, "//anon");
	map(5, 200, 1, "/memfd:code (deleted)");
	end_round();
	assert_int_equal(process(5)->n, 2);
	assert_map(process(5), 0, 10, 100);
	assert_int_equal(process(5)->maps[0].object, FR_UNWIND_OBJECT_BARE);
	assert_int_equal(process(5)->maps[1].object, FR_UNWIND_OBJECT_BARE);
	assert_int_equal(shared->objects[FR_UNWIND_OBJECT_BARE].state, FR_UNWIND_BARE);
}

TEST(a_forked_process_shares_the_maps_until_one_of_both_changes_them)
{
	fr_unwind_at at;

	map(5, 10, 2, "/lib/a");
	end_round();
	at = fr_unwind_slot_find(shared, 5);
	ev_fork(&records, now, 6, 6, 5, 5);
	end_round();
	assert_int_equal(fr_unwind_slot_find(shared, 6), at);
	map(5, 30, 2, "/lib/bb");
	end_round();
	assert_int_equal(fr_unwind_slot_find(shared, 6), at);
	assert_int_equal(process(5)->n, 2);
	assert_int_equal(process(6)->n, 1);
	reclaim();
	assert_map(process(6), 0, 10, 2);
}

TEST(an_exec_begins_with_no_maps)
{
	map(5, 10, 2, "/lib/a");
	end_round();
	ev_comm(&records, now, 5, 5, "x", 1);
	map(5, 50, 2, "/bin/x");
	end_round();
	assert_int_equal(process(5)->n, 1);
	assert_map(process(5), 0, 50, 2);
	ev_comm(&records, now, 5, 5, "name", 0); /* prctl(PR_SET_NAME) */
	end_round();
	assert_int_equal(process(5)->n, 1);
}

TEST(a_process_is_gone_when_its_last_thread_is)
{
	map(5, 10, 2, "/lib/a");
	ev_fork(&records, now, 5, 7, 5, 5);
	ev_fork(&records, now, 5, 8, 5, 7);
	ev_exit(&records, now, 5, 5);
	ev_exit(&records, now, 5, 8);
	end_round();
	assert_non_null(process(5));
	ev_exit(&records, now, 5, 7);
	end_round();
	assert_null(process(5));
	assert_int_equal(count_slots(), 0);
}

TEST(memory_of_an_exited_process_is_used_again)
{
	const uint64_t room = fr_unwind_memory_room(m);

	for (pid_t pid = 1; pid <= 5000; pid++) {
		ev_fork(&records, now, pid, pid, 1, 1);
		map(pid, 10, 2, "/lib/a");
		map(pid, 20, 2, "/lib/bb");
		end_round();
		ev_exit(&records, now, pid, pid);
		end_round();
		if (pid % 100 == 0)
			reclaim();
	}
	reclaim();
	assert_int_equal(fr_unwind_memory_room(m), room);
	assert_int_equal(count_slots(), 0);
	assert_int_equal(HASH_COUNT(objects->known), 2); /* still known, for the next process */
}

/* Does what a BPF program does at a fork. */
static void bpf_fork(uint32_t parent, uint32_t child)
{
	fr_unwind_slot_set(shared, child, 0, fr_unwind_slot_find(shared, parent));
}

TEST(maps_that_only_the_slot_of_a_new_child_has_stay)
{
	fr_unwind_at at;

	map(5, 10, 2, "/lib/a");
	end_round();
	at = fr_unwind_slot_find(shared, 5);
	bpf_fork(5, 6);
	ev_exit(&records, now, 5, 5); /* arrives before the fork */
	end_round();
	reclaim();
	assert_null(process(5));
	assert_map(process(6), 0, 10, 2);
	assert_int_not_equal(fr_unwind_memory_take(m, 56), at);
	ev_fork(&records, now - 2, 6, 6, 5, 5);
	map(6, 50, 2, "/bin/x");
	end_round();
	reclaim();
	assert_map(process(6), 0, 50, 2);
	assert_false(fr_unwind_processes_has_garbage(p));
}

TEST(a_slot_whose_fork_was_lost_is_freed)
{
	map(5, 10, 2, "/lib/a");
	end_round();
	bpf_fork(5, 6);
	ev_exit(&records, now, 5, 5);
	end_round();
	reclaim();
	assert_int_equal(count_slots(), 1);
	now += 6000000000;
	reclaim();
	reclaim();
	assert_int_equal(count_slots(), 0);
	assert_false(fr_unwind_processes_has_garbage(p));
}

TEST(a_pid_that_is_used_again_does_not_get_old_maps)
{
	map(1, 70, 2, "/sbin/init");
	map(5, 10, 2, "/lib/a");
	end_round();
	/* Process 5 changes its maps and exits, and a child of 1 gets its pid, before side-band comes. */
	bpf_fork(1, 5);
	map(5, 30, 2, "/lib/bb");
	end_round();
	assert_map(process(5), 0, 70, 2);
	ev_exit(&records, now, 5, 5);
	end_round();
	assert_map(process(5), 0, 70, 2);
	ev_fork(&records, now, 5, 5, 1, 1);
	end_round();
	assert_map(process(5), 0, 70, 2);
	assert_int_equal(process(5)->n, 1);
	reclaim();
	assert_false(fr_unwind_processes_has_garbage(p));
}

TEST(a_late_copy_of_the_parents_maps_is_corrected)
{
	map(1, 70, 2, "/sbin/init");
	end_round();
	ev_fork(&records, now, 5, 5, 1, 1);
	map(5, 10, 2, "/lib/a");
	end_round();
	bpf_fork(1, 5); /* the parent was preempted between its record and its tracepoint */
	map(5, 30, 2, "/lib/bb");
	end_round();
	end_round();
	end_round();
	assert_int_equal(process(5)->n, 3);
	assert_map(process(5), 0, 10, 2);
}

/* Appends records as those of a scan. */
static void scan_process(pid_t pid, pid_t ppid)
{
	const size_t at = records.len;

	ev_fork(&records, now, pid, pid, ppid, ppid);
	((struct perf_event_header *)(void *)(records.data + at))->misc = PERF_RECORD_MISC_FORK_EXEC;
}

TEST(a_scan_that_finds_no_change_changes_nothing)
{
	fr_unwind_at at;

	map(5, 10, 2, "/lib/a");
	map(5, 20, 2, "/lib/bb");
	end_round();
	at = fr_unwind_slot_find(shared, 5);
	scan_process(5, 1);
	map(5, 10, 2, "/lib/a");
	map(5, 20, 2, "/lib/bb");
	end_round();
	assert_int_equal(fr_unwind_slot_find(shared, 5), at);
	assert_false(fr_unwind_processes_has_garbage(p));
	scan_process(5, 1);
	map(5, 20, 2, "/lib/bb");
	end_round();
	assert_int_equal(process(5)->n, 1);
	reclaim();
	assert_int_equal(process(5)->n, 1);
}

/* Installs a table of BYTES for the object of the first map of PID. */
static struct fr_unwind_known *install(uint32_t pid, size_t bytes, uint64_t hit_ns)
{
	struct fr_unwind_known *k = objects->by_number[process(pid)->maps[0].object];
	struct fr_unwind_row *rows = calloc(16384, sizeof(*rows));
	struct fr_unwind_span spans[16];
	struct fr_unwind_rule rule = {0};
	struct fr_unwind_table t = {.pages = spans, .rows = rows, .rules = &rule, .n_rules = 1};

	for (; bytes > 0; bytes -= FR_MIN(bytes, 65536u))
		spans[t.n_pages++] = (struct fr_unwind_span){0, (uint32_t)FR_MIN(bytes, 65536u) / 4};
	assert_int_equal(fr_unwind_objects_install(objects, k, &t), 0);
	k->hit_ns = hit_ns;
	free(rows);
	return k;
}

static uint32_t state_of(const struct fr_unwind_known *k)
{
	return shared->objects[k->number].state;
}

TEST(the_table_that_was_not_needed_for_the_longest_time_is_evicted_first)
{
	static const char *const names[] = {"/a", "/bb", "/ccc"};
	struct fr_unwind_known *k[3];

	for (pid_t i = 0; i < 3; i++) {
		map(5 + i, 10, 2, names[i]);
		end_round();
		k[i] = install((uint32_t)(5 + i), 100000, (uint64_t)(i + 1) % 3); /* 1, 2, 0 */
	}
	assert_false(fr_unwind_objects_evict(objects, 0));
	assert_true(fr_unwind_objects_evict(objects, 10));
	assert_int_equal(state_of(k[2]), FR_UNWIND_WANTED);
	assert_true(fr_unwind_objects_evict(objects, 10));
	assert_int_equal(state_of(k[0]), FR_UNWIND_WANTED);
	assert_int_equal(state_of(k[1]), FR_UNWIND_READY);
	assert_int_equal(objects->n_evicted, 2);
}

TEST(maps_evict_tables_and_then_are_dropped)
{
	struct fr_unwind_processes_stats stats;
	struct fr_unwind_known *k;
	pid_t pid = 10;

	map(5, 10, 2, "/a");
	end_round();
	k = install(5, 900000, 100);
	for (; pid < 5000; pid++) {
		for (uint64_t i = 0; i < 50; i++)
			map(pid, 1000 + 2 * i, 1, "/lib/a");
		end_round();
		fr_unwind_processes_stats(p, &stats);
		if (stats.dropped)
			break;
		assert_int_equal(process((uint32_t)pid)->n, 50);
	}
	/* Each process has 50 * 32 + 8 bytes, so 652 fit into a chunk. */
	assert_in_range(pid - 10, 1300, 1304);
	assert_int_equal(state_of(k), FR_UNWIND_WANTED);
	assert_null(process((uint32_t)pid));
	assert_int_equal(fr_unwind_memory_bytes(m), 2 * MIB);
	/* When there is room again, an exec begins with maps. */
	ev_exit(&records, now, 10, 10);
	end_round();
	reclaim();
	ev_comm(&records, now, pid, pid, "x", 1);
	map(pid, 10, 2, "/a");
	end_round();
	assert_int_equal(process((uint32_t)pid)->n, 1);
}

TEST(a_smaller_bound_moves_the_maps)
{
	for (pid_t pid = 1; pid <= 200; pid++)
		for (uint64_t i = 0; i < 200; i++)
			map(pid, 1000 + 2 * i, 1, "/lib/a");
	end_round();
	assert_int_equal(fr_unwind_memory_bytes(m), 2 * MIB);
	for (pid_t pid = 1; pid <= 150; pid++)
		ev_exit(&records, now, pid, pid);
	end_round();
	reclaim();
	fr_unwind_memory_set_max(m, MIB);
	fr_unwind_processes_leave_excess(p);
	end_round();
	reclaim();
	fr_unwind_memory_trim(m);
	assert_int_equal(fr_unwind_memory_bytes(m), MIB);
	for (uint32_t pid = 151; pid <= 200; pid++)
		assert_map(process(pid), 199, 1398, 1);
}

TEST(a_process_with_too_many_maps_is_dropped)
{
	struct fr_unwind_processes_stats stats;

	for (uint64_t i = 0; i < FR_UNWIND_MAPS_MAX + 10; i++)
		map(5, 1000 + 2 * i, 1, "/lib/a");
	end_round();
	assert_null(process(5));
	fr_unwind_processes_stats(p, &stats);
	assert_int_equal(stats.dropped, 1);
	assert_int_equal(count_slots(), 0);
}

TEST(more_processes_than_the_limit_do_not_harm_the_others)
{
	const uint32_t limit = 2 * FR_UNWIND_SLOTS, beyond = limit + 5;
	struct fr_unwind_processes_stats stats;

	map(5, 10, 2, "/lib/a");
	end_round();
	for (uint32_t pid = 6; pid < 5 + limit; pid++)
		ev_fork(&records, now, (pid_t)pid, (pid_t)pid, 1, 1);
	end_round();
	fr_unwind_processes_stats(p, &stats);
	assert_int_equal(stats.dropped, 0);
	bpf_fork(5, beyond);
	ev_fork(&records, now, (pid_t)beyond, (pid_t)beyond, 5, 5);
	map((pid_t)beyond, 40, 2, "/lib/bb");
	map(5, 30, 2, "/lib/bb");
	end_round();
	fr_unwind_processes_stats(p, &stats);
	assert_int_equal(stats.dropped, 1);
	assert_null(process(beyond)); /* not with the maps of its parent, which it has changed */
	assert_int_equal(process(5)->n, 2);
	/* When another one has ended, an exec begins with maps. */
	ev_exit(&records, now, 7, 7);
	ev_comm(&records, now, (pid_t)beyond, (pid_t)beyond, "x", 1);
	map((pid_t)beyond, 40, 2, "/lib/bb");
	end_round();
	assert_int_equal(process(beyond)->n, 1);
}

/* Appends the map of a file with the build-id that has the number I. */
static void map_build_id(pid_t pid, uint64_t page, uint32_t i)
{
	const size_t at = records.len;
	struct fr_record_mmap2 *r;

	map(pid, page, 1, "/lib/x");
	r = (void *)(records.data + at);
	r->header.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
	memset(&r->maj, 0, 24);
	r->build_id_size = 20;
	memcpy(r->build_id, &i, sizeof(i));
}

TEST(a_missed_file_is_the_one_that_is_learned_next)
{
	const struct fr_unwind_known *k;

	shared->misses[fr_unwind_miss_hash(fr_unwind_miss_map(5, 30 * PAGE))] =
		(struct fr_unwind_miss){fr_unwind_miss_map(5, 30 * PAGE), 3};
	map(5, 10, 2, "/lib/a");
	end_round();
	assert_null(fr_unwind_objects_most_missed(objects, now));
	map(5, 30, 2, "/lib/bb");
	end_round();
	k = fr_unwind_objects_most_missed(objects, now);
	assert_non_null(k);
	assert_string_equal(k->source.path, "/lib/bb");
	assert_int_equal(k->misses, 3);
	/* It has no table, so that is wanted, too. */
	assert_ptr_equal(fr_unwind_objects_most_wanted(objects, now), k);
	map(6, 30, 2, "/lib/bb"); /* another process: nothing was missed */
	end_round();
	assert_int_equal(k->misses, 3);
}

TEST(numbers_of_objects_are_used_again_when_no_process_has_them)
{
	/* One process at a time has one of many objects. */
	for (uint32_t i = 0; i < 2 * FR_UNWIND_OBJECTS_MAX; i++) {
		ev_comm(&records, now, 5, 5, "x", 1);
		map_build_id(5, 10, i);
		end_round();
		if (i % 256 == 0)
			reclaim();
		assert_int_not_equal(process(5)->maps[0].object, FR_UNWIND_OBJECT_FAILED);
	}
	assert_true(shared->objects[process(5)->maps[0].object].stamp > 0);
	/* One process has all of them. */
	for (uint32_t i = 0; i < FR_UNWIND_MAPS_MAX - 10; i++)
		map_build_id(6, 1000 + i, i);
	for (uint32_t i = 0; i < 100; i++)
		map_build_id(7, 1000 + i, 100000 + i);
	end_round();
	assert_int_equal(process(7)->maps[process(7)->n - 1].object, FR_UNWIND_OBJECT_FAILED);
	assert_int_equal(shared->objects[FR_UNWIND_OBJECT_FAILED].state, FR_UNWIND_FAILED);
}
