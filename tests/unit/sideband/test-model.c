// SPDX-License-Identifier: GPL-2.0-or-later
/* Compares the process model (processes, threads and maps of one moment) with a plain model, which has an
   entry for each page of each process. */
#include "events.h"
#include "sideband/emit.h"
#include "sideband/model.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <string.h>

#define PIDS 12
#define TIDS 48 /* the tids 1 … PIDS - 1 are the leaders of processes */
#define PAGES 40
#define PAGE 4096ULL

struct plain_process {
	bool known, leader_dead;
	char comm[16];
	uint64_t page[PAGES]; /* what is mapped: (number of the file << 32 | page of the file) + 1; or 0 */
};

struct plain {
	struct plain_process p[PIDS];
	int thread_of[TIDS]; /* the pid of a thread that is not a leader; 0 if there is no such thread */
	char thread_comm[TIDS][16];
};

static struct fr_model *new_model(void)
{
	struct fr_model *m;

	assert_int_equal(fr_model_new(NULL, &m), 0);
	return m;
}

/* Apply the records of B to both models, and empty B. */
static void move_into(struct fr_model *m, struct fr_buf *b)
{
	const struct perf_event_header *h;
	size_t at = 0;

	while ((h = ev_next(b, &at)))
		assert_int_equal(fr_model_apply(m, h), 0);
	b->len = 0;
}

static void put_pages(struct plain_process *p, const struct fr_record_mmap2 *r)
{
	uint64_t file = strtoull(r->filename + 1, NULL, 10);

	for (uint64_t i = 0; i < r->len / PAGE; i++) {
		assert_int_equal(r->ino, strlen(r->filename) + 100);
		p->page[r->addr / PAGE + i] = file << 32 | (r->pgoff / PAGE + i + 1);
	}
}

/* Read records that the process model has written, and apply them to a plain model. Fails the test if two
   maps overlap, or if a record comes before the FORK of its task. */
static void read_back(const struct fr_buf *b, struct plain *ret)
{
	const struct perf_event_header *h;
	size_t at = 0;

	memset(ret, 0, sizeof(*ret));
	while ((h = ev_next(b, &at))) {
		const struct fr_record_task *task = (const void *)h;
		const struct fr_record_comm *comm = (const void *)h;
		const struct fr_record_mmap2 *map = (const void *)h;

		assert_int_equal(fr_record_time(h), 5);
		assert_int_equal(fr_record_id(h), EVENT_ID);
		if (h->type == PERF_RECORD_FORK && task->tid == task->pid) {
			assert_true(h->misc & PERF_RECORD_MISC_FORK_EXEC);
			assert_false(ret->p[task->pid].known);
			ret->p[task->pid].known = true;
		} else if (h->type == PERF_RECORD_FORK) {
			assert_true(ret->p[task->pid].known);
			ret->thread_of[task->tid] = (int)task->pid;
		} else if (h->type == PERF_RECORD_COMM && comm->tid == comm->pid) {
			strcpy(ret->p[comm->pid].comm, comm->comm);
		} else if (h->type == PERF_RECORD_COMM) {
			strcpy(ret->thread_comm[comm->tid], comm->comm);
		} else {
			assert_int_equal(h->type, PERF_RECORD_MMAP2);
			for (uint64_t i = 0; i < map->len / PAGE; i++)
				assert_int_equal(ret->p[map->pid].page[map->addr / PAGE + i], 0);
			put_pages(&ret->p[map->pid], map);
		}
	}
}

static int count_threads(const struct plain *s, int pid)
{
	int n = 0;

	for (int t = 0; t < TIDS; t++)
		n += s->thread_of[t] == pid;
	return n;
}

static void plain_remove(struct plain *s, int pid)
{
	for (int t = 0; t < TIDS; t++)
		if (s->thread_of[t] == pid) {
			s->thread_of[t] = 0;
			s->thread_comm[t][0] = '\0';
		}
	memset(&s->p[pid], 0, sizeof(s->p[pid]));
}

static void plain_thread_gone(struct plain *s, int tid)
{
	int pid = s->thread_of[tid];

	s->thread_of[tid] = 0;
	s->thread_comm[tid][0] = '\0';
	if (pid && s->p[pid].leader_dead && !count_threads(s, pid))
		plain_remove(s, pid);
}

static void step_fork(struct plain *s, struct fr_buf *b, uint64_t t)
{
	int pid = 1 + rand() % (PIDS - 1), ppid = 1 + rand() % (PIDS - 1);

	if (pid == ppid)
		return;
	ev_fork(b, t, pid, pid, ppid, ppid);
	plain_remove(s, pid);
	s->p[pid].known = true;
	if (s->p[ppid].known) {
		memcpy(s->p[pid].page, s->p[ppid].page, sizeof(s->p[pid].page));
		strcpy(s->p[pid].comm, s->p[ppid].comm);
	}
}

static void step_thread(struct plain *s, struct fr_buf *b, uint64_t t)
{
	int pid = 1 + rand() % (PIDS - 1), tid = PIDS + rand() % (TIDS - PIDS);

	ev_fork(b, t, pid, tid, pid, pid);
	if (s->thread_of[tid] != pid)
		plain_thread_gone(s, tid);
	s->p[pid].known = true;
	s->thread_of[tid] = pid;
	strcpy(s->thread_comm[tid], s->p[pid].comm);
}

static void step_comm(struct plain *s, struct fr_buf *b, uint64_t t)
{
	int pid = 1 + rand() % (PIDS - 1), exec = rand() % 2;
	char comm[16];

	snprintf(comm, sizeof(comm), "comm%d", rand() % 5);
	ev_comm(b, t, pid, pid, comm, exec);
	if (exec)
		plain_remove(s, pid);
	s->p[pid].known = true;
	strcpy(s->p[pid].comm, comm);
}

static void step_mmap(struct plain *s, struct fr_buf *b, uint64_t t)
{
	int pid = 1 + rand() % (PIDS - 1);
	uint64_t first = (uint64_t)rand() % PAGES, n = 1 + (uint64_t)rand() % 12;
	char name[16];
	size_t at = b->len;

	if (first + n > PAGES)
		n = PAGES - first;
	snprintf(name, sizeof(name), "/%d", rand() % 30);
	ev_mmap(b, t, pid, first * PAGE, n * PAGE, (uint64_t)(rand() % 100) * PAGE, name);
	s->p[pid].known = true;
	put_pages(&s->p[pid], (const void *)(b->data + at));
}

static void step_exit(struct plain *s, struct fr_buf *b, uint64_t t)
{
	int tid = 1 + rand() % (TIDS - 1), pid = tid < PIDS ? tid : s->thread_of[tid];

	if (!pid)
		return;
	ev_exit(b, t, pid, tid);
	if (tid >= PIDS) {
		plain_thread_gone(s, tid);
	} else if (s->p[pid].known) {
		s->p[pid].leader_dead = true;
		if (!count_threads(s, pid))
			plain_remove(s, pid);
	}
}

static void assert_same(const struct fr_model *m, const struct plain *s)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct plain got;

	assert_int_equal(fr_model_write(m, 5, EVENT_ID, &b), 0);
	read_back(&b, &got);
	for (int i = 0; i < PIDS; i++) {
		assert_int_equal(got.p[i].known, s->p[i].known);
		assert_string_equal(got.p[i].comm, s->p[i].comm);
		assert_memory_equal(got.p[i].page, s->p[i].page, sizeof(s->p[i].page));
	}
	assert_memory_equal(got.thread_of, s->thread_of, sizeof(s->thread_of));
	for (int t = 0; t < TIDS; t++)
		assert_string_equal(got.thread_comm[t], s->thread_comm[t]);
	for (int pid = 1; pid < PIDS; pid++) {
		const struct plain_process *p = &s->p[pid];

		assert_int_equal(fr_model_n_threads(m, (uint32_t)pid),
			p->known ? !p->leader_dead + count_threads(s, pid) : 0);
	}
}

TEST(random_records_have_the_effect_on_a_plain_model)
{
	static void (*const steps[])(struct plain *, struct fr_buf *, uint64_t) = {
		step_fork, step_thread, step_comm, step_mmap, step_mmap, step_mmap, step_exit};

	for (unsigned seed = 1; seed <= 20; seed++) {
		struct plain s = {0};
		struct fr_model *m;

		srand(seed);
		m = new_model();
		for (uint64_t t = 1; t <= 2000; t++) {
			_cleanup_buf_ struct fr_buf b = {0};

			steps[(size_t)rand() % FR_ARRAY_SIZE(steps)](&s, &b, t);
			move_into(m, &b);
			if (t % 7 == 0)
				assert_same(m, &s);
		}
		assert_null(fr_model_free(m));
	}
}

/* Returns how often S is in the records that the model writes. */
static int mentions(const struct fr_model *m, const char *s)
{
	_cleanup_buf_ struct fr_buf b = {0};
	int n = 0;

	assert_int_equal(fr_model_write(m, 1, 1, &b), 0);
	for (const uint8_t *p = b.data; p && (p = memmem(p, b.len - (size_t)(p - b.data), s, strlen(s))); p++)
		n++;
	return n;
}

/* Append records of all types, in the order in which a model writes them. */
static void add_every_type(struct fr_buf *b)
{
	uint64_t links[7][2] = {{4, 4026531840}, {4, 4026531838}};
	struct fr_emit e = {.to = b, .time_ns = 3, .id = EVENT_ID};
	struct fr_map_range kernel = {
		.addr = 0xffffffff81000000, .len = 0x1000000, .pgoff = 0xffffffff81000000};
	struct fr_map_range module = {.addr = 0xffffffffc0000000, .len = 0x5000};
	struct fr_map_range text = {0x1000, 0x2000, 0x3000, 5, 2};
	struct fr_backing id = {.has_build_id = true, .build_id = {.size = 20, .bytes = {1, 2, 3}}};

	fr_emit_kernel_mmap(&e, &kernel, "[kernel.kallsyms]_text", 22);
	fr_emit_kernel_mmap(&e, &module, "[fuse]", 6);
	fr_emit_ksymbol(&e, 0xffffffffc1000000, 100, 1, 0, "bpf_prog_1", 10);
	fr_emit_cgroup(&e, 42, "/a/b", 4);
	fr_emit_cgroup(&e, 43, "/c", 2);
	for (pid_t pid = 10; pid < 60; pid += 2) {
		fr_emit_task(&e, pid, pid, 1, 1);
		fr_emit_comm(&e, pid, pid, "ten", 3);
		fr_emit_namespaces(&e, pid, pid, links, 7);
		fr_emit_mmap2(&e, pid, &text, &id, "/bin/ten", 8);
		fr_emit_task(&e, pid, pid + 1, pid, pid);
		fr_emit_comm(&e, pid, pid + 1, "eleven", 6);
	}
}

TEST(written_model_has_every_record_in_pieces_or_whole)
{
	_cleanup_buf_ struct fr_buf in = {0}, whole = {0};
	struct fr_model *m = new_model();
	struct fr_model_stats stats;
	size_t len;

	add_every_type(&in);
	len = in.len;
	move_into(m, &in);
	assert_int_equal(fr_model_write(m, 3, EVENT_ID, &whole), 0);
	assert_int_equal(whole.len, len);
	assert_memory_equal(whole.data, in.data, len);
	for (size_t piece = 1; piece < 2 * whole.len; piece = piece * 3 + 1) {
		_cleanup_buf_ struct fr_buf pieces = {0};
		struct fr_model_cursor c = {0};
		int more;

		while ((more = fr_model_write_some(m, &c, 3, EVENT_ID, piece, &pieces)) == 1)
			;
		assert_int_equal(more, 0);
		assert_int_equal(pieces.len, whole.len);
		assert_memory_equal(pieces.data, whole.data, whole.len);
	}
	fr_model_stats(m, &stats);
	assert_int_equal(stats.processes, 25);
	assert_int_equal(stats.threads, 50);
	assert_int_equal(stats.maps, 25);
	fr_model_free(m);
}

/* If a thread calls exec, the leader and the other threads end, and the thread becomes the leader. */
TEST(exec_from_a_thread)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_model *m = new_model();

	ev_comm(&b, 1, 10, 10, "old", 1);
	ev_mmap(&b, 2, 10, 0x1000, 0x1000, 0, "/old");
	ev_fork(&b, 3, 10, 11, 10, 10);
	ev_fork(&b, 3, 10, 12, 10, 10);
	ev_exit(&b, 4, 10, 12);
	ev_exit(&b, 4, 10, 10);
	move_into(m, &b);
	assert_int_equal(mentions(m, "/old"), 1);
	ev_comm(&b, 5, 10, 10, "new", 1);
	ev_mmap(&b, 6, 10, 0x1000, 0x1000, 0, "/new");
	move_into(m, &b);
	assert_int_equal(mentions(m, "/old"), 0);
	assert_int_equal(mentions(m, "/new"), 1);
	ev_exit(&b, 7, 10, 10);
	move_into(m, &b);
	assert_int_equal(mentions(m, "/new"), 0);
	fr_model_free(m);
}

TEST(module_replaces_what_overlaps_and_its_old_place)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_emit e = {.to = &b, .time_ns = 10, .id = EVENT_ID};
	struct fr_map_range r = {.addr = 0xffffffffc0000000, .len = 0x5000};
	struct fr_model *m = new_model();

	fr_emit_kernel_mmap(&e, &r, "[gone]", 6);
	r.addr += 0x3000;
	fr_emit_kernel_mmap(&e, &r, "[one]", 5);
	r.addr += 0x10000;
	fr_emit_kernel_mmap(&e, &r, "[one]", 5);
	move_into(m, &b);
	assert_int_equal(mentions(m, "[gone]"), 0);
	assert_int_equal(mentions(m, "[one]"), 1);
	assert_true(fr_model_kernel_overlaps(m, r.addr + 0x4fff, r.addr + 0x6000, "[two]", 5));
	assert_false(fr_model_kernel_overlaps(m, r.addr, r.addr + 0x6000, "[one]", 5));
	assert_false(fr_model_kernel_overlaps(m, r.addr + 0x5000, r.addr + 0x6000, "[two]", 5));
	assert_false(fr_model_kernel_overlaps(m, r.addr - 0x10000, r.addr - 0xf000, "[two]", 5));
	fr_model_free(m);
}

/* Apply records that end everything that a scan at SCAN_NS did not see. */
static void apply_gone(struct fr_model *m, uint64_t scan_ns)
{
	_cleanup_buf_ struct fr_buf b = {0};

	assert_int_equal(fr_model_write_gone(m, scan_ns, EVENT_ID, &b), 0);
	move_into(m, &b);
}

TEST(what_a_scan_does_not_see_is_gone)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_emit e = {.to = &b, .time_ns = 10, .id = EVENT_ID};
	struct fr_model *m = new_model();

	ev_comm(&b, 10, 5, 5, "gone", 0);
	ev_comm(&b, 10, 5, 7, "gone-too", 0);
	ev_comm(&b, 10, 6, 6, "stays", 0);
	ev_comm(&b, 30, 6, 6, "stays", 0);
	fr_emit_ksymbol(&e, 0x1000, 10, 1, 0, "bpf_a", 5);
	fr_emit_ksymbol(&e, 0x2000, 10, 1, 0, "bpf_b", 5);
	fr_emit_ksymbol(&e, 0x1000, 10, 1, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER, "bpf_a", 5);
	fr_emit_cgroup(&e, 2, "/new", 4);
	fr_emit_cgroup(&e, 2, "/newer", 6);
	move_into(m, &b);
	assert_int_equal(mentions(m, "bpf_a"), 0);
	assert_int_equal(mentions(m, "/new"), 1);
	assert_int_equal(mentions(m, "/newer"), 1);
	apply_gone(m, 20);
	assert_int_equal(mentions(m, "gone"), 0);
	assert_int_equal(mentions(m, "stays"), 1);
	/* The scan saw no ksymbols at all, so it was not permitted to see ksymbols. The ksymbols are not
	   removed. */
	assert_int_equal(mentions(m, "bpf_b"), 1);
	e.time_ns = 30;
	fr_emit_ksymbol(&e, 0x3000, 10, 1, 0, "bpf_c", 5);
	move_into(m, &b);
	apply_gone(m, 30);
	assert_int_equal(mentions(m, "bpf_b"), 0);
	assert_int_equal(mentions(m, "bpf_c"), 1);
	fr_model_free(m);
}

TEST(processes_share_names_and_forks_share_maps)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_model_stats before, after;
	struct fr_model *m = new_model();

	for (int pid = 1; pid <= 1000; pid++) {
		ev_comm(&b, 1, pid, pid, "server", 1);
		for (int i = 0; i < 100; i++) {
			char name[64];

			snprintf(name, sizeof(name), "/usr/lib/x86_64-linux-gnu/library-%d.so.%d", i, i);
			ev_mmap(&b, 1, pid, 0x10000ULL * (unsigned)i, 0x8000, 0, name);
		}
		move_into(m, &b);
	}
	fr_model_stats(m, &before);
	assert_int_equal(before.processes, 1000);
	assert_int_equal(before.maps, 100000);
	print_message("1,000 processes with 100 maps each: %llu bytes\n", (unsigned long long)before.bytes);
	assert_true(before.bytes <= 10u << 20);
	for (pid_t pid = 2000; pid < 3000; pid++)
		ev_fork(&b, 2, pid, pid, 1, 1);
	move_into(m, &b);
	fr_model_stats(m, &after);
	assert_int_equal(after.maps, 2 * before.maps);
	assert_true(after.bytes - before.bytes < before.bytes / 10);
	fr_model_free(m);
}

TEST(random_bytes_do_no_harm)
{
	struct fr_model *m = new_model();

	srand(99);
	for (int i = 0; i < 200000; i++) {
		size_t size = 8 + 8 * ((size_t)rand() % 20);
		_cleanup_free_ uint8_t *p = malloc(size);
		struct perf_event_header *h = (void *)p;

		for (size_t k = 0; k < size; k++)
			p[k] = (uint8_t)(rand() % 4 ? rand() % 3 : rand());
		h->type = (uint32_t)rand() % 24;
		h->size = (uint16_t)size;
		assert_int_equal(fr_model_apply(m, h), 0);
	}
	assert_true(mentions(m, "x") >= 0);
	fr_model_free(m);
}
