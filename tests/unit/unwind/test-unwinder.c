// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the unwinder with real processes and with its BPF programs in the kernel. */
#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "live.h"
#include "unwind/slots.h"
#include "unwind/unwinder_private.h"
#include "unwind-maps.skel.h"

#include <bpf/bpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fr_unwinder *u;
static struct live *live;

static void start(uint64_t memory_bytes)
{
	const struct fr_unwinder_config c = {.memory_bytes = memory_bytes};
	struct fr_diag d = {0};
	int r = fr_unwinder_start(&c, &u, &d);

	if (r == -EPERM || r == -EOPNOTSUPP)
		unit_skip("%s", d.what);
	assert_int_equal(r, 0);
	live = live_new(u, true);
}

static int tear_down(void **state)
{
	live = live_free(live);
	u = fr_unwinder_stop(u);
	return 0;
}
FIXTURE(NULL, tear_down)

static const struct fr_unwind_process *process(pid_t pid)
{
	const fr_unwind_at at = fr_unwind_slot_find(u->kernel.shared, (uint32_t)pid);

	return at ? fr_unwind_memory_address(u->memory, at) : NULL;
}

static const struct fr_unwind_map *find_map(pid_t pid, const void *address)
{
	const struct fr_unwind_process *p = process(pid);

	for (uint32_t i = 0; p && i < p->n; i++)
		if ((uintptr_t)address >= p->maps[i].start && (uintptr_t)address < p->maps[i].end)
			return &p->maps[i];
	return NULL;
}

static struct fr_unwind_object *object_of(const struct fr_unwind_map *map)
{
	return &u->kernel.shared->objects[map->object];
}

static struct fr_unwind_change *change_of(pid_t pid)
{
	return &u->kernel.shared->changes[fr_unwind_hash((uint32_t)pid) % FR_UNWIND_CHANGES];
}

/* Counts as a BPF program does. */
static void hit(struct fr_unwind_object *o)
{
	__atomic_fetch_add(&o->hits, 1, __ATOMIC_RELAXED);
}

/* Waits until CONDITION is true. The limit is far above what a loaded machine needs. */
#define WAIT_UNTIL(condition)                                                                                \
	for (const uint64_t until_ns = fr_monotonic_ns() + 60 * FR_NSEC_PER_SEC; !(condition); usleep(1000)) \
	assert_true(fr_monotonic_ns() < until_ns)

/* Waits until O has the state STATE. */
static void wait_for_state(const struct fr_unwind_object *o, enum fr_unwind_object_state state)
{
	WAIT_UNTIL(__atomic_load_n(&o->state, __ATOMIC_ACQUIRE) == state);
}

/* Reads the statistics for WAIT_UNTIL(). */
static const struct fr_unwinder_stats *read_stats(struct fr_unwinder_stats *ret)
{
	fr_unwinder_stats(u, ret);
	return ret;
}

/* Finds the rule of ADDRESS in the memory of BPF programs, as they do. */
static const struct fr_unwind_rule *find_rule(const struct fr_unwind_map *map, const void *address)
{
	const struct fr_unwind_object *o = object_of(map);
	const uint64_t pc = (uintptr_t)address - map->bias,
		       page = (pc >> FR_UNWIND_PAGE_BITS) - o->first_page;
	const struct fr_unwind_page *pages = fr_unwind_memory_address(u->memory, o->pages);
	const struct fr_unwind_rule *rules = fr_unwind_memory_address(u->memory, o->rules);
	const struct fr_unwind_row *rows, *found;

	assert_true(page < o->n_pages);
	found = rows = fr_unwind_memory_address(u->memory, pages[page].rows);
	assert_true(pages[page].n > 0);
	for (uint32_t i = 0; i < pages[page].n && rows[i].pc <= (pc & 0xffff); i++)
		found = &rows[i];
	assert_true(found->rule < o->n_rules);
	return &rules[found->rule];
}

/* Compares the maps of this process with /proc/self/maps. */
static unsigned compare_maps(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/maps", "re");
	const struct fr_unwind_process *p = process(getpid());
	unsigned long long start, end, offset;
	char line[4096], x;
	unsigned n = 0;

	assert_non_null(p);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx %*c%*c%c%*c %llx", &start, &end, &x, &offset) != 4 || x != 'x' ||
			strstr(line, "[vsyscall]"))
			continue;
		assert_true(n < p->n);
		assert_int_equal(p->maps[n].start, start);
		assert_int_equal(p->maps[n].end, end);
		if (!strstr(line, "[vdso]"))
			assert_int_equal(p->maps[n].bias, start - offset);
		n++;
	}
	assert_int_equal(p->n, n);
	return n;
}

TEST(all_processes_are_known_after_a_scan)
{
	struct fr_unwinder_stats stats;
	const struct fr_unwind_map *map;

	start(0);
	assert_true(compare_maps() >= 4);
	map = find_map(getpid(), (const void *)getauxval(AT_SYSINFO_EHDR));
	assert_non_null(map);
	assert_int_equal(object_of(map)->state, FR_UNWIND_WANTED);
	WAIT_UNTIL(read_stats(&stats)->processes > 2); /* the thread can still be at the others */
	assert_true(stats.objects > 4);
	assert_int_equal(stats.tables, 0); /* no BPF program has needed one yet */
	assert_int_equal(stats.queue_drops, 0);
	assert_int_equal(stats.memory_max_bytes, 64 << 20);
	print_message("%llu processes, %llu objects, %llu MiB; changes of maps are %s\n",
		(unsigned long long)stats.processes, (unsigned long long)stats.objects,
		(unsigned long long)stats.memory_bytes >> 20, stats.notes_changes ? "noted" : "not noted");
}

TEST(a_table_is_made_when_programs_need_it)
{
	const void *const addresses[] = {
		(const void *)(uintptr_t)&qsort, (const void *)(uintptr_t)&compare_maps};
	struct fr_unwinder_stats stats;

	start(0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(addresses); i++) {
		const struct fr_unwind_map *map = find_map(getpid(), addresses[i]);

		assert_non_null(map);
		hit(object_of(map));
		wait_for_state(object_of(map), FR_UNWIND_READY);
		/* At its first instruction, a function has only the return address on the stack. */
		assert_int_equal(find_rule(map, addresses[i])->kind, FR_UNWIND_REGISTER);
		assert_int_equal(find_rule(map, addresses[i])->reg, 7);
		assert_int_equal(find_rule(map, addresses[i])->cfa_offset, 8);
		assert_int_equal(find_rule(map, addresses[i])->ra, -8);
	}
	live_round(live);
	WAIT_UNTIL(read_stats(&stats)->tables_made >= 2); /* the thread counts once a second */
	assert_int_equal(stats.tables, 2);
	assert_int_equal(stats.tables_made, 2);
	assert_int_equal(stats.tables_failed, 0);
}

TEST(the_vdso_has_a_table)
{
	const struct fr_unwind_map *map;
	const uint8_t *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *e = (const void *)vdso;

	start(0);
	map = find_map(getpid(), vdso);
	hit(object_of(map));
	wait_for_state(object_of(map), FR_UNWIND_READY);
	assert_int_equal(object_of(map)->first_page, 0);
	assert_true(e->e_shoff < 65536);
	assert_true(object_of(map)->n_rules > 1);
}

/* Does rounds until PID has N maps of its own. */
static void wait_for_maps(pid_t pid, unsigned n)
{
	const uint64_t until_ns = fr_monotonic_ns() + 60 * FR_NSEC_PER_SEC;

	do {
		live_round(live);
		assert_true(fr_monotonic_ns() < until_ns);
	} while (!process(pid) || process(pid) == process(getpid()) || process(pid)->n < n);
}

/* Returns a child that waits, and has not done an exec. Its maps are those of this process. */
static pid_t fork_child(void)
{
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(a_forked_process_has_maps_at_once)
{
	pid_t pid;

	start(0);
	pid = fork_child();
	assert_ptr_equal(process(pid), process(getpid())); /* no side-band yet: a BPF program did it */
	live_round(live);
	assert_ptr_equal(process(pid), process(getpid()));
	kill_child(pid);
	live_round(live);
	assert_null(process(pid));
}

/* Returns whether PID, which is sleep, sleeps. The kernel tells the new name of the program before it has
   mapped all of its files, so the name alone does not tell that the exec is done. */
static bool is_asleep(pid_t pid)
{
	char path[64];
	long call = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	if (fscanf(f, "%ld", &call) != 1) /* "running" */
		call = -1;
	fclose(f);
	return call == SYS_clock_nanosleep || call == SYS_nanosleep;
}

/* Returns a child that has done an exec of PROGRAM, which is sleep or a copy of it. */
static pid_t exec_program(const char *program)
{
	char path[64], name[256] = "";
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		execl(program, "sleep", "100", (char *)NULL);
		_exit(1);
	}
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	while (!strstr(name, "sleep") || !is_asleep(pid)) {
		assert_true(readlink(path, name, sizeof(name) - 1) > 0);
		usleep(1000);
	}
	return pid;
}

static pid_t exec_child(void)
{
	return exec_program("/bin/sleep");
}

TEST(after_an_exec_no_old_map_is_trusted)
{
	const volatile struct fr_unwind_change *c;
	const struct fr_unwind_map *map;
	uint32_t own;
	pid_t pid;

	start(0);
	own = find_map(getpid(), (const void *)(uintptr_t)&compare_maps)->object;
	pid = exec_child();
	c = change_of(pid);
	WAIT_UNTIL(c->end == UINT64_MAX); /* the exec goes on after the kernel has the new name */
	assert_true(c->ns > u->kernel.shared->synced_ns);
	assert_int_equal(c->start, 0);
	wait_for_maps(pid, 4); /* sleep, libc, ld.so, vdso */
	live_round(live);
	assert_true(c->ns < u->kernel.shared->synced_ns);
	assert_ptr_not_equal(process(pid), process(getpid()));
	/* Without randomised addresses, the new program is where this program is. */
	map = find_map(pid, (const void *)(uintptr_t)&compare_maps);
	assert_true(!map || map->object != own);
	kill_child(pid);
	live_round(live);
	assert_null(process(pid));
}

/* Returns the entry of a young process; NULL if it has none. */
static const struct fr_unwind_young *young_of(pid_t pid)
{
	for (uint32_t i = 0; i < FR_UNWIND_YOUNG; i++)
		if ((uint32_t)u->kernel.shared->young_owners[i] == (uint32_t)pid)
			return &u->kernel.shared->young[i];
	return NULL;
}

/* Returns the map of a young process that has the code of the file NAME, as /proc says. */
static const struct fr_unwind_map *young_map(pid_t pid, const char *name)
{
	const struct fr_unwind_young *young = young_of(pid);
	const struct fr_unwind_map *found = NULL;
	unsigned long long start, end, offset;
	char path[64], line[4096], x;
	FILE *f;

	assert_non_null(young);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx %*c%*c%c%*c %llx", &start, &end, &x, &offset) == 4 && x == 'x' &&
			strstr(line, name))
			for (uint64_t i = 0; i < young->n; i++)
				if (young->maps[i].start == start && young->maps[i].end == end)
					found = &young->maps[i];
	fclose(f);
	return found;
}

TEST(after_an_exec_a_young_process_has_the_maps_of_the_kernel)
{
	static const char *const names[] = {"sleep", "ld-linux", "[vdso]"};
	const uint64_t begin_ns = fr_monotonic_ns();
	pid_t pid;

	start(0);
	pid = exec_child();
	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++) {
		const struct fr_unwind_map *map = young_map(pid, names[i]);

		print_message("%s\n", names[i]);
		assert_non_null(map);
		assert_int_equal(map->object, FR_UNWIND_OBJECT_FAILED); /* no walk has missed it yet */
	}
	assert_true(young_of(pid)->begin_ns > begin_ns && young_of(pid)->ns < fr_monotonic_ns());
	kill_child(pid);
	WAIT_UNTIL(!young_of(pid)); /* the kernel frees a task after a grace period */
}

/* A walk in a process that runs PROGRAM misses the file NAME, and the unwinder gets the record of the map. */
static uint32_t miss(const char *program, const char *name)
{
	const pid_t pid = exec_program(program);
	const uint64_t map = fr_unwind_miss_map((uint32_t)pid, young_map(pid, name)->start);
	const void *start = (const void *)(uintptr_t)young_map(pid, name)->start;
	uint32_t number;

	u->kernel.shared->misses[fr_unwind_miss_hash(map)] = (struct fr_unwind_miss){map, 1};
	live_round(live);
	assert_int_equal(u->kernel.shared->misses[fr_unwind_miss_hash(map)].map, 0);
	number = find_map(pid, start)->object;
	kill_child(pid);
	return number;
}

/* Returns the object of the file NAME in the young entry of a new process. */
static uint32_t object_in_new_process(const char *program, const char *name)
{
	const pid_t pid = exec_program(program);
	const uint32_t number = young_map(pid, name)->object;

	kill_child(pid);
	return number;
}

TEST(a_file_that_was_missed_is_known_in_the_next_process)
{
	static const char *const names[] = {"sleep", "ld-linux", "[vdso]"};

	start(0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++) {
		const uint32_t number = miss("/bin/sleep", names[i]);

		print_message("%s\n", names[i]);
		WAIT_UNTIL(object_in_new_process("/bin/sleep", names[i]) == number);
		wait_for_state(&u->kernel.shared->objects[number], FR_UNWIND_READY);
	}
}

TEST(a_file_that_has_changed_is_not_known)
{
	char path[] = "/tmp/unwinder-sleep-XXXXXX";
	_cleanup_close_ int from = open("/bin/sleep", O_RDONLY | O_CLOEXEC);
	int to = mkostemp(path, O_CLOEXEC);
	uint32_t number;

	start(0);
	assert_true(from >= 0 && to >= 0);
	assert_true(sendfile(to, from, NULL, 1 << 20) > 1000);
	assert_int_equal(fchmod(to, 0755), 0);
	close(to);
	number = miss(path, path);
	WAIT_UNTIL(object_in_new_process(path, path) == number);
	assert_int_equal(chmod(path, 0700), 0); /* changes the time, as each write does */
	assert_int_equal(object_in_new_process(path, path), FR_UNWIND_OBJECT_FAILED);
	unlink(path);
}

TEST(a_new_map_is_noted_and_then_known)
{
	const size_t size = 64 << 10;
	const struct fr_unwind_change *c = NULL;
	void *code;

	start(0);
	if (!u->kernel.notes_changes)
		unit_skip("this kernel cannot run BPF programs at the exit of its functions");
	c = change_of(getpid());
	code = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(code, MAP_FAILED);
	assert_true(c->ns > u->kernel.shared->synced_ns);
	assert_true(c->start <= (uintptr_t)code && c->end >= (uintptr_t)code + size);
	live_round(live);
	assert_true(c->ns < u->kernel.shared->synced_ns);
	assert_int_equal(find_map(getpid(), code)->object, FR_UNWIND_OBJECT_BARE);
	munmap(code, size);
}

TEST(a_library_that_is_loaded_later_is_known_after_a_round)
{
	void *library, *function;

	start(0);
	library = dlopen("libz.so.1", RTLD_NOW);
	if (!library)
		library = dlopen("libzstd.so.1", RTLD_NOW);
	if (!library)
		unit_skip("no library to load");
	function = dlsym(library, "zlibVersion");
	if (!function)
		function = dlsym(library, "ZSTD_versionNumber");
	live_round(live);
	assert_non_null(find_map(getpid(), function));
	compare_maps();
	dlclose(library);
}

/* Copies /bin/sleep to TO, with a build-id that no other file has. */
static void copy_sleep(int to)
{
	_cleanup_close_ int from = open("/bin/sleep", O_RDONLY | O_CLOEXEC);
	_cleanup_buf_ struct fr_buf b = {0};
	uint8_t id[FR_BUILD_ID_MAX], *found;
	const int n = fr_build_id_read(from, id);

	assert_true(n > 0);
	assert_int_equal(fr_read_file(AT_FDCWD, "/bin/sleep", 1 << 20, &b), 0);
	found = memmem(b.data, b.len, id, (size_t)n);
	assert_non_null(found);
	found[0] ^= 0xff;
	assert_int_equal(fr_write_all(to, b.data, b.len), 0);
	assert_int_equal(fchmod(to, 0755), 0);
}

/* Runs a copy of sleep, and removes its file. */
static pid_t run_deleted_file(void)
{
	char path[] = "/tmp/unwinder-XXXXXX";
	const int fd = mkostemp(path, O_CLOEXEC);
	pid_t pid;

	assert_true(fd >= 0);
	copy_sleep(fd);
	close(fd); /* a program that is open for writing cannot run */
	pid = vfork();
	if (pid == 0) {
		execl(path, "sleep", "100", (char *)NULL);
		_exit(1);
	}
	unlink(path);
	return pid;
}

TEST(a_deleted_file_has_a_table)
{
#ifdef __SANITIZE_THREAD__
	unit_skip("thread sanitizer does not permit this vfork()");
#endif
	struct fr_unwind_known *k;
	pid_t pid;

	start(0);
	pid = run_deleted_file();
	wait_for_maps(pid, 4);
	k = u->objects->by_number[process(pid)->maps[0].object];
	assert_non_null(strstr(k->source.path, "/tmp/unwinder-"));
	hit(&u->kernel.shared->objects[k->number]);
	wait_for_state(&u->kernel.shared->objects[k->number], FR_UNWIND_READY);
	kill_child(pid);
}

/* Maps up to MAX libraries of the machine, which have large tables. */
static unsigned map_libraries(unsigned max)
{
	unsigned n = 0;
	glob_t g;

	if (glob("/usr/lib/x86_64-linux-gnu/lib*.so.*", 0, NULL, &g) != 0)
		return 0;
	for (size_t i = 0; i < g.gl_pathc && n < max; i++) {
		_cleanup_close_ int fd = open(g.gl_pathv[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < 300 << 10 || st.st_size > 3 << 20)
			continue;
		n += mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED;
	}
	globfree(&g);
	return n;
}

TEST(memory_stays_in_its_bound_and_the_needed_table_stays)
{
	struct fr_unwinder_stats stats = {0};
	struct fr_unwind_object *needed;
	uint64_t until_ns, hit_ns;

	if (map_libraries(40) < 20)
		unit_skip("this machine has too few libraries");
	start(1 << 20);
	until_ns = fr_monotonic_ns() + 120 * FR_NSEC_PER_SEC;
	needed = object_of(find_map(getpid(), (const void *)(uintptr_t)&compare_maps));
	hit(needed);
	wait_for_state(needed, FR_UNWIND_READY);
	for (unsigned round = 0; stats.tables_evicted < 5 && fr_monotonic_ns() < until_ns; round++) {
		hit(needed);
		hit_ns = fr_monotonic_ns();
		/* Each object is needed in one of three looks. */
		for (uint32_t i = 2; i < u->objects->n_numbers; i++)
			if (i % 3 == round / 30 % 3)
				hit(&u->kernel.shared->objects[i]);
		fr_unwinder_stats(u, &stats);
		assert_true(stats.memory_bytes <= 1 << 20);
		assert_int_equal(needed->state, FR_UNWIND_READY);
		usleep(10000);
		/* If this thread did not run for the time of a look, nothing needed the table in that look.
		 */
		if (fr_monotonic_ns() - hit_ns > FR_NSEC_PER_SEC / 2) {
			hit(needed);
			wait_for_state(needed, FR_UNWIND_READY);
		}
	}
	assert_true(stats.tables_evicted >= 5);
	print_message("%llu tables made in %llu ms, %llu evicted, %llu fit\n",
		(unsigned long long)stats.tables_made, (unsigned long long)stats.tables_ns / 1000000,
		(unsigned long long)stats.tables_evicted, (unsigned long long)stats.tables);
}

TEST(new_tables_wait_when_their_cpu_time_is_used_up)
{
	struct fr_unwinder_stats stats;
	struct fr_unwind_object *needed;

#ifdef __SANITIZE_THREAD__
	unit_skip("the test writes a member of the thread");
#endif
	start(0);
	u->throttle.credit_ns = -200 * (int64_t)FR_NSEC_PER_MSEC; /* four seconds */
	needed = object_of(find_map(getpid(), (const void *)(uintptr_t)&compare_maps));
	hit(needed);
	WAIT_UNTIL(read_stats(&stats)->holds_back);
	assert_int_equal(needed->state, FR_UNWIND_WANTED);
	assert_true(stats.tables_held_back > 0);
	wait_for_state(needed, FR_UNWIND_READY);
	WAIT_UNTIL(!read_stats(&stats)->holds_back);
}

TEST(the_bound_can_be_changed)
{
	struct fr_unwinder_stats stats;

	if (map_libraries(40) < 20)
		unit_skip("this machine has too few libraries");
	start(0);
	for (uint32_t i = 2; i < u->objects->n_numbers; i++)
		hit(&u->kernel.shared->objects[i]);
	WAIT_UNTIL(read_stats(&stats)->memory_bytes > 2 << 20);
	fr_unwinder_set(u, &(struct fr_unwinder_config){.memory_bytes = (1 << 20) + 12345});
	WAIT_UNTIL(read_stats(&stats)->memory_bytes <= 1 << 20);
	assert_int_equal(stats.memory_bytes, 1 << 20);
	live_round(live);
	compare_maps();
}

TEST(after_a_loss_nothing_is_trusted_until_a_scan)
{
	const volatile uint64_t *synced_ns;
	uint64_t now_ns;

	start(0);
	synced_ns = &u->kernel.shared->synced_ns;
	fr_unwinder_distrust(u);
	assert_int_equal(*synced_ns, 0);
	fr_unwinder_end_round(u, fr_monotonic_ns());
	usleep(100000);
	assert_int_equal(*synced_ns, 0);
	fr_unwinder_trust(u, 1); /* a scan that began before the loss */
	fr_unwinder_end_round(u, fr_monotonic_ns());
	usleep(100000);
	assert_int_equal(*synced_ns, 0);
	now_ns = fr_monotonic_ns();
	fr_unwinder_trust(u, now_ns);
	fr_unwinder_end_round(u, now_ns); /* the records of the scan have this time: not applied yet */
	usleep(100000);
	assert_int_equal(*synced_ns, 0);
	live_round(live);
}

TEST(after_too_many_records_a_scan_is_wanted_once)
{
	static struct {
		struct fr_record_task task;
		uint64_t tids, time, cpu, id;
	} forks[1 << 19]; /* three times these are more than the queue takes */
	const volatile uint64_t *synced_ns;
	uint64_t now_ns;

	start(0);
	/* Later than the last round, so that the thread applies none of them, and all stay in the queue. */
	now_ns = fr_monotonic_ns();
	synced_ns = &u->kernel.shared->synced_ns;
	for (size_t i = 0; i < FR_ARRAY_SIZE(forks); i++) {
		forks[i].task.header = (struct perf_event_header){PERF_RECORD_FORK, 0, sizeof(forks[i])};
		forks[i].task.pid = forks[i].task.tid = 1;
		forks[i].time = now_ns;
	}
	for (int i = 0; i < 3; i++)
		fr_unwinder_update(u, forks, sizeof(forks));
	assert_true(fr_unwinder_end_round(u, now_ns));
	assert_int_equal(*synced_ns, 0);
	assert_false(fr_unwinder_end_round(u, now_ns));
}

TEST(a_scan_can_have_more_records_than_the_queue)
{
	static struct {
		struct fr_record_task task;
		uint64_t tids, time, cpu, id;
	} forks[1 << 14];
	const uint64_t until_ns = fr_monotonic_ns() + 60 * FR_NSEC_PER_SEC;
	const volatile uint64_t *synced_ns;
	struct fr_unwinder_stats stats;
	uint64_t bytes = 0, scan_ns;

	start(0);
	synced_ns = &u->kernel.shared->synced_ns;
	fr_unwinder_distrust(u);
	scan_ns = fr_monotonic_ns();
	for (size_t i = 0; i < FR_ARRAY_SIZE(forks); i++) {
		forks[i].task.header = (struct perf_event_header){
			PERF_RECORD_FORK, PERF_RECORD_MISC_FORK_EXEC, sizeof(forks[i])};
		forks[i].task.pid = forks[i].task.tid = (uint32_t)(100000 + i);
		forks[i].time = scan_ns;
	}
	for (; bytes < 3ULL * UNWIND_QUEUE_BYTES; bytes += sizeof(forks)) {
		while (fr_unwinder_is_behind(u)) {
			assert_true(fr_monotonic_ns() < until_ns);
			/* as long as the scan goes on, rounds stop at its begin */
			fr_unwinder_end_round(u, scan_ns);
			usleep(1000);
		}
		fr_unwinder_update(u, forks, sizeof(forks));
	}
	fr_unwinder_trust(u, scan_ns);
	fr_unwinder_end_round(u, scan_ns + 1);
	while (__atomic_load_n(synced_ns, __ATOMIC_ACQUIRE) != scan_ns + 1)
		assert_true(fr_monotonic_ns() < until_ns);
	fr_unwinder_stats(u, &stats);
	assert_int_equal(stats.queue_drops, 0);
}

TEST(other_objects_share_the_maps)
{
	struct unwind_maps *other;
	struct bpf_map_info a = {0}, b = {0};
	uint32_t len = sizeof(a);

	start(0);
	other = unwind_maps__open();
	assert_non_null(other);
	bpf_program__set_autoload(other->progs.note_map, false);
	assert_int_equal(fr_unwinder_share_maps(u, other->obj), 0);
	assert_int_equal(unwind_maps__load(other), 0);
	assert_int_equal(bpf_obj_get_info_by_fd(bpf_map__fd(other->maps.fr_unwind_chunks), &a, &len), 0);
	assert_int_equal(bpf_obj_get_info_by_fd(u->kernel.chunks_fd, &b, &len), 0);
	assert_int_equal(a.id, b.id);
	unwind_maps__destroy(other);
}

TEST(a_missing_capability_is_named)
{
	const struct fr_unwinder_config c = {0};
	int status;
	pid_t pid;

	if (geteuid() != 0)
		unit_skip("needs root, to give up its capabilities");
	pid = fork();
	if (pid == 0) {
		struct fr_diag d = {0};
		int r;

		if (setresuid(65534, 65534, 65534) < 0)
			_exit(1);
		r = fr_unwinder_start(&c, &u, &d);
		if (r != -EPERM || !strstr(d.hint, "CAP_BPF"))
			print_message("%d: %s (%s)\n", r, d.what, d.hint);
		_exit(r == -EPERM && strstr(d.hint, "CAP_BPF") ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}
