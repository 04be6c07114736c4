// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of scans of /proc on this machine, and of texts that represent files of other machines. */
#include "events.h"
#include "sideband/scan.h"
#include "sideband/scan_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int collect(void *ctx, const struct perf_event_header *record)
{
	return fr_buf_append(ctx, record, record->size);
}

static void scan_all(struct fr_buf *b, bool kernel, const pid_t *pids, size_t n)
{
	struct fr_scan_config c = {.time_ns = 9, .id = EVENT_ID, .kernel = kernel, .pids = pids, .n_pids = n};
	struct fr_diag d = {0};

	assert_true(fr_scan(&c, collect, b, &d) >= 0);
	assert_int_equal(d.code, 0);
}

/* Returns the first record of TYPE of the task PID/TID that has NAME at OFFSET, or any name if NAME is NULL.
   Returns NULL if there is no such record. */
static const void *find(
	const struct fr_buf *b, uint32_t type, pid_t pid, pid_t tid, size_t offset, const char *name)
{
	const struct perf_event_header *h;
	size_t at = 0;

	while ((h = ev_next(b, &at))) {
		const uint32_t *ids = (const uint32_t *)(h + 1);

		if (h->type != type)
			continue;
		/* A FORK or EXIT has { pid, ppid, tid, ptid }, other records have { pid, tid }. */
		if (ids[0] != (uint32_t)pid || ids[type == PERF_RECORD_FORK ? 2 : 1] != (uint32_t)tid)
			continue;
		if (!name || !strcmp((const char *)h + offset, name))
			return h;
	}
	return NULL;
}

static size_t live_pids(pid_t *ret, size_t max)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc");
	struct dirent *e;
	uint64_t pid;
	size_t n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)) && n < max)
		if (fr_u64_parse(e->d_name, &pid) == 0)
			ret[n++] = (pid_t)pid;
	return n;
}

TEST(every_process_is_reported)
{
	_cleanup_buf_ struct fr_buf b = {0};
	const struct perf_event_header *h;
	pid_t before[4096];
	size_t n = live_pids(before, FR_ARRAY_SIZE(before)), at = 0;
	uint64_t t = fr_now_ns(CLOCK_THREAD_CPUTIME_ID);

	scan_all(&b, false, NULL, 0);
	t = fr_now_ns(CLOCK_THREAD_CPUTIME_ID) - t;
	print_message(
		"%zu processes: %.1f us of CPU each, %zu bytes\n", n, (double)t / 1e3 / (double)n, b.len);
	while ((h = ev_next(&b, &at))) {
		assert_int_equal(fr_record_time(h), 9);
		assert_int_equal(fr_record_id(h), EVENT_ID);
	}
	for (size_t i = 0; i < n; i++) {
		if (find(&b, PERF_RECORD_FORK, before[i], before[i], 0, NULL)) {
			assert_non_null(find(&b, PERF_RECORD_COMM, before[i], before[i], 0, NULL));
			continue;
		}
		/* If the scan has no records of a process, the process must have exited. */
		if (kill(before[i], 0) == 0)
			fail_msg("process %d is alive and was left out", before[i]);
	}
	assert_non_null(find(&b, PERF_RECORD_NAMESPACES, getpid(), getpid(), 0, NULL));
}

TEST(own_maps_are_those_of_proc)
{
	_cleanup_fclose_ FILE *maps = fopen("/proc/self/maps", "re");
	_cleanup_buf_ struct fr_buf b = {0};
	char line[PATH_MAX + 128];
	pid_t self = getpid();
	int n = 0;

	assert_non_null(maps);
	scan_all(&b, false, &self, 1);
	while (fgets(line, sizeof(line), maps)) {
		const struct fr_record_mmap2 *r = NULL;
		const struct perf_event_header *h;
		char perms[5], name[PATH_MAX] = "//anon";
		unsigned long start, end, offset;
		size_t at = 0;

		assert_true(sscanf(line, "%lx-%lx %4s %lx %*s %*s %4095[^\n]", &start, &end, perms, &offset,
				    name) >= 4);
		if (perms[2] != 'x' || !strcmp(name, "[vsyscall]"))
			continue;
		while ((h = ev_next(&b, &at)))
			if (h->type == PERF_RECORD_MMAP2 &&
				((const struct fr_record_mmap2 *)h)->addr == start)
				r = (const void *)h;
		assert_non_null(r);
		assert_int_equal(r->len, end - start);
		assert_int_equal(r->pgoff, offset);
		assert_int_equal(r->prot,
			PROT_EXEC | (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0));
		assert_int_equal(r->flags, perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE);
		assert_int_equal(r->pid, self);
		assert_string_equal(r->filename, name);
		n++;
	}
	assert_true(n >= 3); /* at least the program, the C library and the loader */
}

static const struct fr_record_mmap2 *find_map(const struct fr_buf *b, const char *name)
{
	const struct fr_record_mmap2 *m = find(
		b, PERF_RECORD_MMAP2, getpid(), getpid(), offsetof(struct fr_record_mmap2, filename), name);

	assert_non_null(m);
	return m;
}

/* The file is removed while the process has it mapped. Its name has a newline. */
TEST(map_has_the_build_id_also_of_a_removed_file)
{
	_cleanup_buf_ struct fr_buf b = {0}, elf = {0}, again = {0};
	char dir[] = "/tmp/fr-scan-XXXXXX", path[64], removed[128];
	const struct fr_record_mmap2 *before, *after;
	uint8_t id[FR_BUILD_ID_MAX];
	_cleanup_close_ int fd = -1;
	pid_t self = getpid();
	void *at, *anon;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a\nb c", dir);
	assert_int_equal(fr_read_file(AT_FDCWD, "/proc/self/exe", 64 << 20, &elf), 0);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_int_equal(fr_write_all(fd, elf.data, elf.len), 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	anon = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(at != MAP_FAILED && anon != MAP_FAILED);
	scan_all(&b, false, &self, 1);
	(void)find_map(&b, "//anon");
	before = find_map(&b, path);
	assert_true(before->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID);
	assert_int_equal(fr_build_id_read(fd, id), before->build_id_size);
	assert_memory_equal(before->build_id, id, before->build_id_size);
	unlink(path);
	rmdir(dir);
	scan_all(&again, false, &self, 1);
	snprintf(removed, sizeof(removed), "%s (deleted)", path);
	after = find_map(&again, removed);
	assert_int_equal(after->len, 4096);
	/* If the scan is not permitted to open files by /proc/PID/map_files, there is no build-id. */
	if (after->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		assert_memory_equal(after->build_id, before->build_id, sizeof(before->build_id));
	munmap(at, 4096);
	munmap(anon, 4096);
}

struct named_thread {
	pthread_barrier_t barrier;
	pid_t tid;
};

static void *wait_with_a_name(void *arg)
{
	struct named_thread *t = arg;

	pthread_setname_np(pthread_self(), "a (b) c");
	t->tid = gettid();
	pthread_barrier_wait(&t->barrier);
	pthread_barrier_wait(&t->barrier);
	return NULL;
}

TEST(threads_are_reported_with_their_names)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct named_thread t = {0};
	pid_t self = getpid();
	pthread_t thread;

	pthread_barrier_init(&t.barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, wait_with_a_name, &t), 0);
	pthread_barrier_wait(&t.barrier);
	scan_all(&b, false, &self, 1);
	assert_non_null(find(&b, PERF_RECORD_FORK, self, t.tid, 0, NULL));
	assert_non_null(
		find(&b, PERF_RECORD_COMM, self, t.tid, offsetof(struct fr_record_comm, comm), "a (b) c"));
	pthread_barrier_wait(&t.barrier);
	pthread_join(thread, NULL);
}

TEST(tasks_may_exit_during_a_scan)
{
	pid_t storm = fork();

	if (storm == 0) {
		for (;;) {
			pid_t child = fork();

			if (child == 0)
				_exit(0);
			waitpid(child, NULL, 0);
		}
	}
	for (int i = 0; i < 20; i++) {
		_cleanup_buf_ struct fr_buf b = {0};

		scan_all(&b, false, NULL, 0);
		assert_non_null(find(&b, PERF_RECORD_FORK, storm, storm, 0, NULL));
	}
	kill(storm, SIGKILL);
	waitpid(storm, NULL, 0);
}

static void scan_own_kernel(struct fr_buf *b)
{
	struct fr_scan_config c = {.id = EVENT_ID, .kernel = true, .pids = (pid_t[]){getpid()}, .n_pids = 1};
	int hidden = fr_scan(&c, collect, b, NULL);

	assert_true(hidden >= 0);
	if (hidden == 1)
		unit_skip("/proc/kallsyms has no addresses (kernel.kptr_restrict)");
}

TEST(kernel_of_this_machine)
{
	_cleanup_buf_ struct fr_buf b = {0};
	const struct fr_record_mmap *r;

	scan_own_kernel(&b);
	r = find(&b, PERF_RECORD_MMAP, -1, 0, offsetof(struct fr_record_mmap, filename),
		"[kernel.kallsyms]_text");
	assert_non_null(r);
	assert_int_equal(r->header.misc, PERF_RECORD_MISC_KERNEL);
	assert_int_equal(r->addr, r->pgoff);
	assert_true(r->len > 1 << 20);
}

/* The length must be exact. If it was too large, the record would also cover a program that is later loaded
   after this program in memory. */
TEST(bpf_program_has_its_length)
{
	const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
	_cleanup_close_ int fd =
		bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "frtest_scan", "GPL", nothing, 2, NULL);
	_cleanup_buf_ struct fr_buf b = {0};
	const struct perf_event_header *h;
	uint64_t addr = 0;
	struct bpf_prog_info info = {.jited_ksyms = (uintptr_t)&addr, .nr_jited_ksyms = 1};
	uint32_t size = sizeof(info);
	size_t at = 0;
	int found = 0;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) < 0 || !addr)
		unit_skip("BPF programs or their addresses are not permitted");
	scan_own_kernel(&b);
	while ((h = ev_next(&b, &at))) {
		const struct fr_record_ksymbol *k = (const void *)h;

		if (h->type != PERF_RECORD_KSYMBOL || k->addr != addr)
			continue;
		assert_int_equal(k->len, info.jited_prog_len);
		found++;
	}
	assert_int_equal(found, 1);
}

struct fake_scan {
	struct scan s;
	struct fr_buf got;
};

static void fake_init(struct fake_scan *f)
{
	*f = (struct fake_scan){.s = {.put = collect}};
	f->s.emit = (struct fr_emit){.to = &f->s.record, .id = EVENT_ID};
	f->s.ctx = &f->got;
}

static void fake_deinit(struct fake_scan *f)
{
	fr_buf_deinit(&f->s.record);
	fr_buf_deinit(&f->got);
}

static FILE *text_file(const char *text)
{
	return fmemopen((char *)text, strlen(text), "r");
}

TEST(kallsyms)
{
	_cleanup_fclose_ FILE *f = text_file("ffffffff81000000 T _stext\n"
					     "ffffffff81000000 T _text\n"
					     "ffffffff81e00000 T _etext\n"
					     "junk\n"
					     "ffffffffc0000100 t bpf_prog_2\t[bpf]\n"
					     "ffffffffc0000040 t bpf_prog_1\t[bpf]\n"
					     "ffffffffc0000080 t fuse_init\t[fuse]\n");
	_cleanup_fclose_ FILE *none = text_file("0000000000000000 T _text\n0000000000000000 T _etext\n");
	const struct fr_record_mmap *map;
	const struct fr_record_ksymbol *k;
	struct fake_scan s;
	size_t at = 0;

	fake_init(&s);
	assert_int_equal(scan_kallsyms(&s.s, f), 0);
	map = (const void *)ev_next(&s.got, &at);
	assert_int_equal(map->addr, 0xffffffff81000000);
	assert_int_equal(map->len, 0xe00000);
	assert_string_equal(map->filename, "[kernel.kallsyms]_text");
	k = (const void *)ev_next(&s.got, &at);
	assert_string_equal(k->name, "bpf_prog_1");
	assert_int_equal(k->len, 0xc0);
	k = (const void *)ev_next(&s.got, &at);
	assert_string_equal(k->name, "bpf_prog_2");
	assert_int_equal(k->len, 64 << 10);
	assert_null(ev_next(&s.got, &at));
	s.got.len = 0;
	assert_int_equal(scan_kallsyms(&s.s, none), 1);
	assert_int_equal(s.got.len, 0);
	fake_deinit(&s);
}

TEST(modules)
{
	_cleanup_fclose_ FILE *modules = text_file("snd_hda_core 184320 3 a,b, Live 0xffffffffc0a00000 (OE)\n"
						   "own 4096 0 - Live 0xffffffffc0b00000\n"
						   "hidden 4096 0 - Live 0x0000000000000000\n"
						   "not a module\n");
	_cleanup_fclose_ FILE *dep = text_file("kernel/sound/hda/snd-hda-core.ko.xz: kernel/sound/snd.ko.xz\n"
					       "kernel/no-colon.ko\n");
	const struct fr_record_mmap *map;
	struct fake_scan s;
	size_t at = 0;

	fake_init(&s);
	assert_int_equal(scan_modules(&s.s, modules, dep, "/lib/modules/6.1"), 0);
	map = (const void *)ev_next(&s.got, &at);
	assert_string_equal(map->filename, "/lib/modules/6.1/kernel/sound/hda/snd-hda-core.ko.xz");
	assert_int_equal(map->addr, 0xffffffffc0a00000);
	assert_int_equal(map->len, 184320);
	assert_int_equal(map->pid, UINT32_MAX);
	map = (const void *)ev_next(&s.got, &at);
	assert_string_equal(map->filename, "[own]");
	assert_null(ev_next(&s.got, &at));
	fake_deinit(&s);
}

TEST(cgroup_has_its_path_and_inode)
{
	static const char *const paths[] = {"/", "/a.slice", "/a.slice/b"};
	char root[] = "/tmp/fr-cgroup-XXXXXX", full[64];
	struct fake_scan s;
	size_t at = 0;

	assert_non_null(mkdtemp(root));
	for (size_t i = 1; i < FR_ARRAY_SIZE(paths); i++) {
		snprintf(full, sizeof(full), "%s%s", root, paths[i]);
		assert_int_equal(mkdir(full, 0700), 0);
	}
	fake_init(&s);
	assert_int_equal(scan_cgroups(&s.s, root), 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(paths); i++) {
		const struct fr_record_cgroup *c = (const void *)ev_next(&s.got, &at);
		struct stat st;

		assert_non_null(c);
		assert_string_equal(c->path, paths[i]);
		snprintf(full, sizeof(full), "%s%s", root, paths[i]);
		assert_int_equal(stat(full, &st), 0);
		assert_int_equal(c->id, st.st_ino);
	}
	assert_null(ev_next(&s.got, &at));
	fake_deinit(&s);
	for (size_t i = FR_ARRAY_SIZE(paths); i-- > 0;) {
		snprintf(full, sizeof(full), "%s%s", root, paths[i]);
		rmdir(full);
	}
}
