// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of perf maps and jitdumps, also hostile ones, and of the object files and records that the recorder
   makes from them. */

#include "../unit.h"
#include "jit/code.h"
#include "jit/open_files.h"
#include "jit/jit.h"
#include "jit/share.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "sideband/emit.h"
#include "sideband/buildid.h"
#include "../../load/jitdump.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void parse(const char *text, struct jit_code *ret)
{
	assert_int_equal(jit_perf_map_parse(text, strlen(text), ret), 0);
}

static const char *name_of(const struct jit_code *c, size_t i)
{
	return (const char *)c->names.data + c->v[i].name;
}

/* Checks the functions of C. EXPECTED has a line "ADDRESS SIZE TIME NAME" for each; address and size are
   hexadecimal. */
static void assert_code(const struct jit_code *c, const char *expected)
{
	char text[1024] = "", *at = text;

	for (size_t i = 0; i < c->n; i++)
		at += sprintf(at, "%llx %llx %llu %s\n", (unsigned long long)c->v[i].addr,
			(unsigned long long)c->v[i].size, (unsigned long long)c->v[i].time_ns, name_of(c, i));
	assert_string_equal(text, expected);
}

TEST(perf_map_lines_are_checked_and_later_lines_win)
{
	static const struct {
		const char *map, *expected;
	} cases[] = {
		{"7f0020 10 second one(int, char)\n0x7f0000 0x20 first\nnot a line\n7f0040 0 empty\n"
		 "ffffffffffffffff 10 kernel\n7f0080 ffffffffffffff00 wraps\n7f0060 8 unfinished",
			"7f0000 20 0 first\n7f0020 10 0 second one(int, char)\n"},
		{"1000 10 old\n1000 20 new\n", "1000 20 0 new\n"},
		{"1000 100 old\n1010 10 new\n", "1000 10 0 old\n1010 10 0 new\n1020 e0 0 old\n"},
		{"1010 20 old\n1000 18 new\n", "1000 18 0 new\n1018 18 0 old\n"},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		_cleanup_jit_code_ struct jit_code c = {0};

		parse(cases[i].map, &c);
		assert_code(&c, cases[i].expected);
	}
}

/* In the plain model, each byte belongs to the last line of the map that covers it. */
TEST(random_overlaps_are_resolved_as_in_a_plain_model)
{
	srand(4711);
	for (unsigned round = 0; round < 2000; round++) {
		_cleanup_jit_code_ struct jit_code c = {0};
		char text[40 * 16] = "", want[64] = "", have[64] = "", *at = text;

		for (char line = 'a'; line < 'a' + 12; line++) {
			unsigned from = (unsigned)rand() % 48, size = (unsigned)rand() % 16;

			at += sprintf(at, "%x %x %c\n", from + 0x1000, size, line);
			memset(want + from, line, size);
		}
		parse(text, &c);
		for (size_t i = 0; i < c.n; i++) {
			assert_true(c.v[i].size > 0);
			assert_true(i == 0 || c.v[i - 1].addr + c.v[i - 1].size <= c.v[i].addr);
			memset(have + c.v[i].addr - 0x1000, name_of(&c, i)[0], c.v[i].size);
		}
		assert_memory_equal(have, want, sizeof(have));
	}
}

struct jitdump_move {
	uint32_t id, total_size;
	uint64_t timestamp;
	uint32_t pid, tid;
	uint64_t vma, old, new, size, index;
};

static void add_header(struct fr_buf *b, uint64_t flags)
{
	const struct jitdump_header h = {0x4A695444, 1, sizeof(h), 62, 0, 1, 1, flags};

	assert_int_equal(fr_buf_append(b, &h, sizeof(h)), 0);
}

static void add_load(struct fr_buf *b, uint64_t time, uint64_t addr, const char *name, uint64_t claims)
{
	static const uint8_t code[16] = {0xc3};
	const struct jitdump_load l = {0, (uint32_t)(sizeof(l) + strlen(name) + 1 + sizeof(code)), time, 1, 1,
		addr, addr, claims, 0};

	assert_int_equal(fr_buf_append(b, &l, sizeof(l)), 0);
	assert_int_equal(fr_buf_append(b, name, strlen(name) + 1), 0);
	assert_int_equal(fr_buf_append(b, code, sizeof(code)), 0);
}

TEST(jitdump_functions_are_in_order_of_time)
{
	const struct jitdump_move m = {1, sizeof(m), 30, 1, 1, 0, 0x1000, 0x2000, 16, 0};
	_cleanup_jit_code_ struct jit_code c = {0};
	struct fr_buf b = {0};

	add_header(&b, 0);
	add_load(&b, 20, 0x1000, "second", 16);
	add_load(&b, 10, 0x1000, "first", 16);
	add_load(&b, 15, 0x1000, "longer than its record", 17);
	assert_int_equal(fr_buf_append(&b, &m, sizeof(m)), 0);
	assert_int_equal(fr_buf_append_zero(&b, 64), 0);
	assert_int_equal(jit_dump_parse(&b, &c), 0);
	assert_null(b.data);
	assert_false(c.truncated);
	assert_code(&c, "1000 10 10 first\n1000 10 20 second\n2000 10 30 first\n");
}

TEST(jitdump_with_another_clock_has_only_its_order)
{
	_cleanup_jit_code_ struct jit_code c = {0};
	struct fr_buf b = {0};

	add_header(&b, 1);
	add_load(&b, 99, 0x1000, "first", 16);
	add_load(&b, 98, 0x1000, "second", 16);
	assert_int_equal(jit_dump_parse(&b, &c), 0);
	assert_code(&c, "1000 10 0 first\n1000 10 0 second\n");
}

/* The file is truncated at each byte, and each of its bytes is changed. */
TEST(damaged_jitdump_is_read_within_bounds)
{
	_cleanup_buf_ struct fr_buf whole = {0};

	add_header(&whole, 0);
	add_load(&whole, 10, 0x1000, "first", 16);
	add_load(&whole, 20, 0x2000, "second", 16);
	for (size_t i = 0; i < 2 * whole.len; i++) {
		_cleanup_jit_code_ struct jit_code c = {0};
		_cleanup_buf_ struct fr_buf b = {0};
		int r;

		assert_int_equal(fr_buf_append(&b, whole.data, i < whole.len ? i : whole.len), 0);
		if (i >= whole.len)
			b.data[i - whole.len] ^= 0xff;
		r = jit_dump_parse(&b, &c);
		assert_true(r == 0 || r == -EBADMSG);
		assert_true(c.n <= 2);
		for (size_t k = 0; k < c.n; k++)
			assert_true(c.v[k].code + c.v[k].size <= c.file.len);
	}
}

/* Check that libelf can read the object, and that each symbol is at its offset. */
static void check_object(const struct fr_buf *b, const struct jit_code *c, const uint8_t *id)
{
	int fd = memfd_create("object", MFD_CLOEXEC);
	uint8_t have[FR_BUILD_ID_MAX];
	Elf_Scn *section = NULL;
	size_t found = 0;
	Elf *elf;

	assert_int_equal(write(fd, b->data, b->len), b->len);
	assert_int_equal(fr_build_id_read(fd, have), JIT_BUILD_ID_SIZE);
	assert_memory_equal(have, id, JIT_BUILD_ID_SIZE);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr h;
		GElf_Sym s;

		assert_non_null(gelf_getshdr(section, &h));
		if (h.sh_type == SHT_PROGBITS || h.sh_type == SHT_NOBITS)
			assert_int_equal(h.sh_addr, h.sh_offset);
		if (h.sh_type != SHT_SYMTAB)
			continue;
		for (; found < c->n; found++) {
			assert_non_null(gelf_getsym(elf_getdata(section, NULL), (int)found + 1, &s));
			assert_int_equal(s.st_value, c->v[found].offset);
			assert_int_equal(s.st_size, c->v[found].size);
			assert_string_equal(elf_strptr(elf, h.sh_link, s.st_name), name_of(c, found));
		}
	}
	assert_int_equal(found, c->n);
	elf_end(elf);
	close(fd);
}

TEST(object_has_each_function_at_its_offset)
{
	_cleanup_jit_code_ struct jit_code map = {0}, dump = {0};
	_cleanup_buf_ struct fr_buf a = {0}, b = {0};
	uint8_t id_a[JIT_BUILD_ID_SIZE], id_b[JIT_BUILD_ID_SIZE];
	struct fr_buf file = {0};
	uint64_t base;

	/* The functions are far apart, but the object is small. */
	parse("7f0000001010 10 low\n7fff00000000 20 high\n", &map);
	assert_int_equal(jit_object_make(&map, &a, &base, id_a), 0);
	assert_int_equal(base, 0x7f0000001000);
	assert_int_equal(map.v[0].offset, 0x1010);
	assert_true(a.len < 4096);
	check_object(&a, &map, id_a);

	add_header(&file, 0);
	add_load(&file, 10, 0x1000, "first", 16);
	add_load(&file, 20, 0x1000, "second", 3);
	assert_int_equal(jit_dump_parse(&file, &dump), 0);
	assert_int_equal(jit_object_make(&dump, &b, &base, id_b), 0);
	assert_int_equal(b.data[dump.v[1].offset], 0xc3);
	check_object(&b, &dump, id_b);
	assert_memory_not_equal(id_a, id_b, JIT_BUILD_ID_SIZE);
}

#define HOSTILE 65534u
#define HONEST 65533u

/* Six users use all of their shares of the cost of a dump. */
TEST(next_user_has_a_share_after_others_used_theirs_up)
{
	struct jit_shares s;
	struct jit_cost whole, left;
	struct jit_user *u;

	jit_shares_init(&s);
	whole = s.left;
	for (uid_t uid = 1000; uid < 1006; uid++) {
		u = jit_share_find(&s, uid);
		assert_ptr_equal(jit_share_find(&s, uid), u);
		left = jit_share_left(&s, u);
		assert_in_range(left.bytes, whole.bytes >> 6, whole.bytes / 4);
		assert_in_range(left.ns, whole.ns >> 6, whole.ns / 4);
		assert_in_range(left.records, whole.records >> 6, whole.records / 4);
		/* The last file is read to its end, so it may cost more than the rest of the share. */
		left.bytes += 1000;
		left.ns = 10 * whole.ns;
		jit_share_charge(&s, u, &left);
		assert_true(jit_share_is_used_up(&s, u));
	}
	assert_false(jit_share_is_used_up(&s, jit_share_find(&s, 2000)));
	assert_false(jit_share_is_used_up(&s, jit_share_find(&s, 0)));
	jit_shares_deinit(&s);
}

/* Start a process of UID that waits. */
static pid_t start_process(uid_t uid)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (setresuid(uid, uid, uid) < 0)
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_DUMPABLE, 1);
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int create_map(pid_t pid, uid_t uid, char ret_path[static 64])
{
	int fd;

	snprintf(ret_path, 64, "/tmp/perf-%d.map", pid);
	unlink(ret_path); /* an earlier test that failed may have left the file */
	fd = open(ret_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, uid, uid), 0);
	return fd;
}

/* Start a process of UID that waits and has a perf map of UID. */
static pid_t start_with_map(uid_t uid, char ret_path[static 64])
{
	pid_t pid = start_process(uid);

	close(create_map(pid, uid, ret_path));
	return pid;
}

/* Write the largest perf map that is read to its end. */
static void write_largest_map(int fd)
{
	_cleanup_buf_ struct fr_buf b = {0};

	for (unsigned i = 1; b.len < JIT_FILE_MAX; i++) {
		char line[80];
		int n = snprintf(line, sizeof(line), "%x 10 %050d\n", i * 16, 0);

		assert_int_equal(fr_buf_append(&b, line, (size_t)n), 0);
	}
	assert_int_equal(fr_write_all(fd, b.data, b.len), 0);
}

/* Append an MMAP2 record of executable anonymous memory that covers all addresses. */
static void add_code_map(struct fr_buf *b, pid_t pid, uint64_t time_ns)
{
	struct fr_emit e = {b, time_ns, 7};
	const struct fr_map_range range = {0, 1ULL << 40, 0, PROT_READ | PROT_EXEC, MAP_PRIVATE};

	assert_int_equal(fr_emit_mmap2(&e, pid, &range, &(struct fr_backing){0}, "//anon", 6), 0);
}

static void make_code(struct fr_jit_open_files *f, pid_t pid, uint64_t time_ns)
{
	_cleanup_buf_ struct fr_buf b = {0};

	add_code_map(&b, pid, time_ns);
	fr_jit_open_files_update(f, b.data, b.len, 0);
}

/* Returns the number of map records that the recorder makes for run-time code of PID. */
static unsigned count_our_maps(struct fr_jit *j, pid_t pid)
{
	_cleanup_buf_ struct fr_buf in = {0}, out = {0};
	unsigned n = 0;

	add_code_map(&in, pid, UINT64_MAX / 2);
	assert_int_equal(fr_jit_append_maps(j, in.data, in.len, &out), 0);
	for (size_t at = 0; at < out.len; n++)
		at += ((const struct perf_event_header *)(out.data + at))->size;
	return n;
}

/* One user has six files that cost as much as possible. A small file of another user, which comes after these
   files, is still read. */
TEST(expensive_files_of_one_user_leave_room_for_another)
{
	char directory[] = "/tmp/fr-test-jit-XXXXXX", paths[7][64];
	struct fr_jit_config config = {.directory = directory, .name = "x.jit", .gid = (gid_t)-1};
	struct fr_jit_stats stats;
	struct fr_jit *j;
	pid_t pids[7];
	int fd;

	if (geteuid() != 0)
		unit_skip("it needs root");
	assert_non_null(mkdtemp(directory));
	config.dirfd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fr_jit_new(&config, &j), 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(pids); i++) {
		pids[i] = start_process(i == 6 ? HONEST : HOSTILE);
		fd = create_map(pids[i], i == 6 ? HONEST : HOSTILE, paths[i]);
		if (i == 0) {
			assert_int_equal(unlink(paths[i]), 0);
			assert_int_equal(mkfifo(paths[i], 0666), 0);
		} else if (i == 1) {
			assert_int_equal(ftruncate(fd, 1LL << 42), 0);
		} else if (i < 6) {
			write_largest_map(fd);
		} else {
			assert_int_equal(write(fd, "1000 10 honest\n", 15), 15);
		}
		close(fd);
	}
	for (size_t i = 0; i < 6; i++)
		(void)count_our_maps(j, pids[i]);
	assert_int_equal(count_our_maps(j, pids[6]), 1);
	assert_int_equal(fr_jit_finish(j, &stats), 0);
	print_message("%llu objects, %llu bytes, %llu files cut or left out\n",
		(unsigned long long)stats.objects, (unsigned long long)stats.bytes,
		(unsigned long long)stats.truncated);
	assert_in_range(stats.bytes, 1, 128 << 20);
	assert_true(stats.truncated > 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(pids); i++) {
		end_process(pids[i]);
		unlink(paths[i]);
	}
	fr_jit_discard(j);
	fr_jit_free(j);
	close(config.dirfd);
	assert_int_equal(rmdir(directory), 0);
}

static void make_exit(struct fr_jit_open_files *f, pid_t pid, uint64_t time_ns, uint64_t low_watermark_ns)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_emit e = {&b, time_ns, 7};

	assert_int_equal(fr_emit_exit(&e, pid, pid), 0);
	fr_jit_open_files_update(f, b.data, b.len, low_watermark_ns);
}

/* Returns the inode of the perf map that is open for the process that had the pid PID at TIME_NS, or 0 if no
   perf map is open. RET_UNTIL_NS gets the time of the end of this process. */
static uint64_t find_open(struct fr_jit_open_files *f, pid_t pid, uint64_t time_ns, uint64_t *ret_until_ns)
{
	struct fr_jit_open_file file;
	struct stat st;
	int r = fr_jit_open_files_find(f, pid, time_ns, &file);

	if (r < 0) {
		assert_int_equal(r, -ENOENT);
		return 0;
	}
	assert_int_equal(fstat(file.fd, &st), 0);
	close(file.fd);
	if (ret_until_ns)
		*ret_until_ns = file.until_ns;
	return st.st_ino;
}

/* The map stays open until the ring no longer has a record of the process, although the file has been
   removed. */
TEST(perf_map_stays_open_after_exit)
{
	struct fr_jit_open_files *f = fr_jit_open_files_new();
	char path[64];
	pid_t pid = start_with_map(0, path);
	/* This time is after the start of the process, because code is never older than its process. */
	const uint64_t now = fr_monotonic_ns(), exit_ns = now + FR_NSEC_PER_SEC / 2;
	uint64_t until_ns = 0;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	make_code(f, pid, now);
	assert_int_equal(find_open(f, pid, now, &until_ns), st.st_ino);
	assert_int_equal(until_ns, UINT64_MAX);
	/* Records of several CPUs come out of order. This EXIT is older than the code, so it is the EXIT of
	   an earlier process with the same pid. */
	make_exit(f, pid, now - 1, 0);
	assert_int_equal(find_open(f, pid, now, &until_ns), st.st_ino);
	assert_int_equal(until_ns, UINT64_MAX);
	assert_int_equal(unlink(path), 0);
	end_process(pid);
	make_exit(f, pid, exit_ns, exit_ns);
	assert_int_equal(find_open(f, pid, now, &until_ns), st.st_ino);
	assert_int_equal(until_ns, exit_ns);
	assert_int_equal(find_open(f, pid, exit_ns + 1, NULL),
		0); /* after the exit, another process can have the pid */
	/* A kept dump (one that could not be written) has older records than a new dump, so the map stays
	   open for it. */
	fr_jit_open_files_keep_since(f, exit_ns);
	fr_jit_open_files_update(f, NULL, 0, exit_ns + 1);
	assert_int_equal(find_open(f, pid, now, NULL), st.st_ino);
	fr_jit_open_files_keep_since(f, UINT64_MAX);
	fr_jit_open_files_update(f, NULL, 0, exit_ns + 1);
	assert_int_equal(find_open(f, pid, now, NULL), 0);
	fr_jit_open_files_free(f);
}

/* The process has exited before its records are handled. A perf map of root with this pid counts as the file
   of the process, unless the file is older than the code. */
TEST(perf_map_of_a_process_that_was_too_fast)
{
	struct fr_jit_open_files *f = fr_jit_open_files_new();
	const uint64_t now = fr_monotonic_ns(), later = now + 60 * FR_NSEC_PER_SEC;
	pid_t pid = start_process(0);
	char path[64];

	end_process(pid);
	close(create_map(pid, 0, path));
	make_code(f, pid, later); /* the file is older than this code */
	assert_int_equal(find_open(f, pid, later, NULL), 0);
	make_code(f, pid, now);
	assert_int_not_equal(find_open(f, pid, now, NULL), 0);
	assert_int_equal(unlink(path), 0);
	fr_jit_open_files_free(f);
}

TEST(perf_map_of_another_user_is_not_opened)
{
	struct fr_jit_open_files *f;
	char path[64];
	uint64_t now;
	pid_t pid;

	if (geteuid() != 0)
		unit_skip("it needs root");
	f = fr_jit_open_files_new();
	pid = start_process(0);
	close(create_map(pid, HONEST, path));
	now = fr_monotonic_ns();
	make_code(f, pid, now);
	assert_int_equal(find_open(f, pid, now, NULL), 0);
	make_exit(f, pid, now + 1, 0);
	assert_int_equal(find_open(f, pid, now, NULL), 0);
	end_process(pid);
	unlink(path);
	fr_jit_open_files_free(f);
}

/* The number of open perf maps is bounded for each user, so one user does not take the places of others. */
TEST(open_perf_maps_are_bounded_for_each_user)
{
	enum { N = 80, USER_MAX = 64 };
	struct fr_jit_open_files *f = fr_jit_open_files_new();
	uint64_t seen_ns[N + 1];
	pid_t pids[N + 1];
	char path[64];
	size_t n = 0;

	if (geteuid() != 0)
		unit_skip("it needs root");
	for (size_t i = 0; i <= N; i++) {
		pids[i] = start_with_map(i < N ? HOSTILE : HONEST, path);
		seen_ns[i] = fr_monotonic_ns();
		make_code(f, pids[i], seen_ns[i]);
		unlink(path);
	}
	for (size_t i = 0; i < N; i++)
		n += find_open(f, pids[i], seen_ns[i], NULL) != 0;
	assert_int_equal(n, USER_MAX);
	assert_int_not_equal(find_open(f, pids[N], seen_ns[N], NULL), 0);
	/* If the EXIT of a process was lost, another process can take its place. */
	for (size_t i = 0; i < N; i++)
		end_process(pids[i]);
	pids[0] = start_with_map(HOSTILE, path);
	fr_jit_open_files_free(f);
	f = fr_jit_open_files_new();
	for (size_t i = 1; i <= USER_MAX; i++) {
		char lost[64];
		pid_t pid = start_with_map(HOSTILE, lost);

		make_code(f, pid, fr_monotonic_ns());
		end_process(pid);
		unlink(lost);
	}
	seen_ns[0] = fr_monotonic_ns();
	make_code(f, pids[0], seen_ns[0]);
	assert_int_not_equal(find_open(f, pids[0], seen_ns[0], NULL), 0);
	unlink(path);
	end_process(pids[0]);
	end_process(pids[N]);
	fr_jit_open_files_free(f);
}
