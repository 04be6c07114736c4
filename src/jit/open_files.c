// SPDX-License-Identifier: GPL-2.0-or-later
#include "jit/open_files.h"
#include "jit/code.h"
#include "jit/process.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "sideband/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <utlist.h>

#define FILES_MAX 256u		 /* files of running processes; the same bound holds for exited processes */
#define USER_MAX (FILES_MAX / 4) /* files of one user, except root */
/* The pause between two attempts to open a file that does not exist yet. It is doubled after each attempt. */
#define LOOK_FIRST_NS (FR_NSEC_PER_SEC / 4)
#define LOOK_MAX_NS (60 * FR_NSEC_PER_SEC)
/* The time between two searches for processes whose EXIT was lost. */
#define SWEEP_NS (10 * FR_NSEC_PER_SEC)
/* Two start times that differ by less than this are of the same process: a start time is exact only to a tick
   of the kernel's clock. */
#define SAME_START_NS (FR_NSEC_PER_SEC / 10)

/* A process that makes code. */
struct process {
	UT_hash_handle hh;	     /* table of running processes, by pid */
	struct process *prev, *next; /* list of exited processes, in the order of their exits */
	pid_t pid;
	struct jit_identity identity;
	int root, fd; /* -1: not open */
	uint64_t from_ns, until_ns;
	uint64_t code_ns; /* time of the first record of its code */
	uint64_t look_ns; /* time of the next attempt to open its file */
	uint64_t wait_ns; /* pause after the next attempt */
};

struct fr_jit_open_files {
	struct fr_lock lock;
	struct process *running, *exited;
	size_t n_exited;
	uint64_t sweep_ns; /* time of the next search for processes whose EXIT was lost */
	uint64_t keep_ns;  /* the parameter since_ns of the last fr_jit_open_files_keep_since() */
};

struct fr_jit_open_files *fr_jit_open_files_new(void)
{
	struct fr_jit_open_files *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	fr_lock_init(&f->lock);
	f->keep_ns = UINT64_MAX;
	return f;
}

static void free_process(struct process *p)
{
	fr_closep(&p->root);
	fr_closep(&p->fd);
	free(p);
}

static void drop_exited(struct fr_jit_open_files *f, struct process *p)
{
	DL_DELETE(f->exited, p);
	f->n_exited--;
	free_process(p);
}

struct fr_jit_open_files *fr_jit_open_files_free(struct fr_jit_open_files *f)
{
	if (!f)
		return NULL;
	while (f->exited)
		drop_exited(f, f->exited);
	FR_HASH_CLEAR(f->running, free_process);
	fr_lock_deinit(&f->lock);
	free(f);
	return NULL;
}

static bool has_room(const struct fr_jit_open_files *f, uid_t uid)
{
	size_t n = 0;

	for (const struct process *p = f->running; p; p = p->hh.next)
		n += p->identity.uid == uid;
	return HASH_COUNT(f->running) < FILES_MAX && (uid == 0 || n < USER_MAX);
}

/* Opens the file that has the name of P's perf map now. If there is no such file, the file that P already has
   open stays open. */
static void look_for_file(struct process *p)
{
	int fd = jit_open_perf_map(p->root, &p->identity);

	p->look_ns = fr_monotonic_ns() + p->wait_ns;
	p->wait_ns = FR_MIN(2 * p->wait_ns, LOOK_MAX_NS);
	if (fd < 0)
		return;
	fr_closep(&p->fd);
	p->fd = fd;
}

/* If exited processes of the user have too many files, closes the oldest of these files. Otherwise, if there
   are too many files in all, closes the oldest file of all. */
static void make_room_for_exited(struct fr_jit_open_files *f, uid_t uid)
{
	struct process *p, *oldest = NULL;
	size_t n = 0;

	DL_FOREACH (f->exited, p) {
		n += p->identity.uid == uid;
		if (p->identity.uid == uid && !oldest)
			oldest = p;
	}
	if (uid != 0 && n >= USER_MAX)
		drop_exited(f, oldest);
	else if (f->n_exited >= FILES_MAX)
		drop_exited(f, f->exited);
}

/* Returns whether to keep the file FD of a process that has exited. A file that was removed occupies the disk
   as long as it is open, and a dump does not read more than JIT_FILE_MAX of it. So a larger file is not kept
   after its removal. */
static bool is_worth_keeping(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && (st.st_nlink > 0 || st.st_size <= (off_t)JIT_FILE_MAX);
}

/* P exited at TIME_NS. Tries to open its perf map once more. After that, P becomes one of the exited
   processes. If P has no file worth keeping, it is freed. */
static void retire(struct fr_jit_open_files *f, struct process *p, uint64_t time_ns)
{
	HASH_DEL(f->running, p);
	look_for_file(p);
	close(TAKE_FD(p->root));
	p->until_ns = time_ns;
	if (!is_worth_keeping(p->fd)) {
		free_process(p);
		return;
	}
	make_room_for_exited(f, p->identity.uid);
	DL_APPEND(f->exited, p);
	f->n_exited++;
}

static bool is_running(const struct process *p)
{
	const uint64_t start = jit_start_time(p->pid);

	return start && start < p->from_ns + SAME_START_NS && p->from_ns < start + SAME_START_NS;
}

/* Retires processes whose EXIT was lost. */
static void retire_lost(struct fr_jit_open_files *f)
{
	const uint64_t now = fr_monotonic_ns();
	struct process *p, *next;

	if (now < f->sweep_ns)
		return;
	f->sweep_ns = now + SWEEP_NS;
	HASH_ITER (hh, f->running, p, next)
		if (!is_running(p))
			retire(f, p, now);
}

static bool make_room(struct fr_jit_open_files *f, uid_t uid)
{
	if (!has_room(f, uid))
		retire_lost(f);
	return has_room(f, uid);
}

/* Returns 0; or a negative errno if the process has exited. */
static int open_root_and_file(struct process *p)
{
	int r = jit_find_identity(p->pid, &p->identity);

	if (r == 0)
		r = p->root = jit_open_root(p->pid);
	if (r < 0)
		return r;
	p->from_ns = jit_start_time(p->pid);
	look_for_file(p);
	return 0;
}

/* P exited before its records came here, so its user is not known. Opens the perf map with the pid of P in
   our root directory. The file belongs to P if root owns it, and if it was last written at most a second
   before P began to make code, or later. */
static void open_file_of_exited(struct process *p)
{
	const struct fr_clock_pair clocks = fr_clock_pair_now();
	struct stat st;

	p->identity = (struct jit_identity){.nspid = p->pid, .uid = 0};
	p->from_ns = p->code_ns - FR_MIN(p->code_ns, FR_NSEC_PER_SEC);
	p->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->root >= 0)
		look_for_file(p);
	if (p->fd >= 0 && fstat(p->fd, &st) == 0 &&
		(uint64_t)st.st_mtim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec >=
			fr_clock_to_realtime(&clocks, p->from_ns))
		return;
	fr_closep(&p->root);
	p->root = -1;
}

static void add_process(struct fr_jit_open_files *f, pid_t pid, uint64_t time_ns)
{
	struct process *p = FR_HASH_FIND(f->running, pid, pid);

	if (p)
		return;
	p = calloc(1, sizeof(*p));
	if (!p)
		return;
	*p = (struct process){.pid = pid,
		.root = -1,
		.fd = -1,
		.until_ns = UINT64_MAX,
		.code_ns = time_ns,
		.wait_ns = LOOK_FIRST_NS};
	if (open_root_and_file(p) < 0)
		open_file_of_exited(p);
	if (p->root < 0 || !make_room(f, p->identity.uid) || !FR_HASH_ADD(f->running, pid, p))
		free_process(p);
}

static void retire_pid(struct fr_jit_open_files *f, pid_t pid, uint64_t time_ns)
{
	struct process *p = FR_HASH_FIND(f->running, pid, pid);

	/* Records of several CPUs are not in order. A record that is older than the first code of P is the
	   FORK of P, or belongs to an earlier process with this pid. */
	if (p && time_ns >= p->code_ns)
		retire(f, p, time_ns);
}

static void apply_record(struct fr_jit_open_files *f, const struct perf_event_header *record)
{
	const struct fr_record_mmap2 *m = (const void *)record;
	const struct fr_record_task *t = (const void *)record;

	if (record->type == PERF_RECORD_MMAP2 && jit_is_code_of_process(m))
		add_process(f, (pid_t)m->pid, fr_record_time(record));
	else if (record->type == PERF_RECORD_EXIT && t->pid == t->tid)
		retire_pid(f, (pid_t)t->pid, fr_record_time(record));
	/* A new process has the pid of a process that is in the table, so the EXIT of the old process was
	   lost. */
	else if (record->type == PERF_RECORD_FORK && t->pid == t->tid && t->pid != t->ppid)
		retire_pid(f, (pid_t)t->pid, fr_record_time(record) - 1);
}

/* Processes can create their perf map after their first code. */
static void look_for_missing_files(struct fr_jit_open_files *f)
{
	const uint64_t now = fr_monotonic_ns();

	for (struct process *p = f->running; p; p = p->hh.next)
		if (p->fd < 0 && now >= p->look_ns)
			look_for_file(p);
}

void fr_jit_open_files_update(
	struct fr_jit_open_files *f, const void *records, size_t len, uint64_t low_watermark_ns)
{
	struct fr_record_iter it = fr_record_iter(records, len);
	const struct perf_event_header *record;

	fr_thread_assert_may_wait();
	fr_lock(&f->lock);
	while ((record = fr_record_next(&it)))
		apply_record(f, record);
	look_for_missing_files(f);
	while (f->exited && f->exited->until_ns < FR_MIN(low_watermark_ns, f->keep_ns))
		drop_exited(f, f->exited);
	fr_unlock(&f->lock);
}

void fr_jit_open_files_keep_since(struct fr_jit_open_files *f, uint64_t since_ns)
{
	fr_lock(&f->lock);
	f->keep_ns = since_ns;
	fr_unlock(&f->lock);
}

static const struct process *find(const struct fr_jit_open_files *f, pid_t pid, uint64_t time_ns)
{
	const struct process *p;

	DL_FOREACH (f->exited, p)
		if (p->pid == pid && p->from_ns <= time_ns && time_ns <= p->until_ns)
			return p;
	p = FR_HASH_FIND(f->running, pid, pid);
	return p && p->from_ns <= time_ns && p->fd >= 0 ? p : NULL;
}

int fr_jit_open_files_find(
	struct fr_jit_open_files *f, pid_t pid, uint64_t time_ns, struct fr_jit_open_file *ret)
{
	const struct process *p;
	int r = -ENOENT;

	fr_lock(&f->lock);
	p = find(f, pid, time_ns);
	if (p) {
		*ret = (struct fr_jit_open_file){
			fcntl(p->fd, F_DUPFD_CLOEXEC, 0), p->identity.uid, p->from_ns, p->until_ns};
		r = ret->fd < 0 ? -errno : 0;
	}
	fr_unlock(&f->lock);
	return r;
}
