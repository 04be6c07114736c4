// SPDX-License-Identifier: GPL-2.0-or-later
#include "jit/open_files.h"
#include "jit/source.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utlist.h>

/* uthash's way out of an allocation that fails. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define HELD_MAX 256u		/* of each kind: alive, and exited */
#define USER_MAX (HELD_MAX / 4) /* of those, one user's who is not root */
/* Between two looks for a file that is not there: each time twice as long. */
#define LOOK_FIRST_NS (FR_NSEC_PER_SEC / 4)
#define LOOK_MAX_NS (60 * FR_NSEC_PER_SEC)
/* Between two sweeps, where there is no room. */
#define SWEEP_NS (10 * FR_NSEC_PER_SEC)
/* The start of a process is known to a tick of the kernel's clock. */
#define SAME_START_NS (FR_NSEC_PER_SEC / 10)

struct held {
	UT_hash_handle hh;	  /* alive, by pid */
	struct held *prev, *next; /* exited, in that order */
	pid_t pid;
	struct jit_who who;
	int root, fd; /* -1: not there */
	uint64_t from_ns, until_ns;
	uint64_t code_ns;	   /* when it was seen to make code */
	uint64_t look_ns, wait_ns; /* when to look next, and how long after that */
};

struct fr_jit_open_files {
	pthread_mutex_t lock;
	struct held *alive, *exited;
	size_t n_exited;
	uint64_t sweep_ns; /* when to look next for those whose EXIT was lost */
	uint64_t keep_ns;  /* what exited then or later stays */
};

struct fr_jit_open_files *fr_jit_open_files_new(void)
{
	struct fr_jit_open_files *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	pthread_mutex_init(&h->lock, NULL);
	h->keep_ns = UINT64_MAX;
	return h;
}

static void held_free(struct held *x)
{
	if (x->root >= 0)
		close(x->root);
	if (x->fd >= 0)
		close(x->fd);
	free(x);
}

static void drop_exited(struct fr_jit_open_files *h, struct held *x)
{
	DL_DELETE(h->exited, x);
	h->n_exited--;
	held_free(x);
}

struct fr_jit_open_files *fr_jit_open_files_free(struct fr_jit_open_files *h)
{
	struct held *x, *next;

	if (!h)
		return NULL;
	while (h->exited)
		drop_exited(h, h->exited);
	HASH_ITER (hh, h->alive, x, next) {
		HASH_DEL(h->alive, x);
		held_free(x);
	}
	pthread_mutex_destroy(&h->lock);
	free(h);
	return NULL;
}

static bool has_room(const struct fr_jit_open_files *h, uid_t uid)
{
	size_t n = 0;

	for (const struct held *x = h->alive; x; x = x->hh.next)
		n += x->who.uid == uid;
	return HASH_COUNT(h->alive) < HELD_MAX && (uid == 0 || n < USER_MAX);
}

/* The file that has the name now; one that is held stays where none has. */
static void look(struct held *x)
{
	int fd = jit_open_perf_map(x->root, &x->who);

	x->look_ns = fr_monotonic_ns() + x->wait_ns;
	x->wait_ns = FR_MIN(2 * x->wait_ns, LOOK_MAX_NS);
	if (fd < 0)
		return;
	if (x->fd >= 0)
		close(x->fd);
	x->fd = fd;
}

/* Make room for one more of its user, or of all: the oldest goes. */
static void make_room(struct fr_jit_open_files *h, uid_t uid)
{
	struct held *x, *oldest = NULL;
	size_t n = 0;

	DL_FOREACH (h->exited, x) {
		n += x->who.uid == uid;
		if (x->who.uid == uid && !oldest)
			oldest = x;
	}
	if (uid != 0 && n >= USER_MAX)
		drop_exited(h, oldest);
	else if (h->n_exited >= HELD_MAX)
		drop_exited(h, h->exited);
}

/* One that has no name any more and is large would take room on the disk for what is never read. */
static bool is_worth_it(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && (st.st_nlink > 0 || st.st_size <= (off_t)JIT_FILE_MAX);
}

/* Keep what X has for a dump, X being no more since TIME_NS. */
static void retire(struct fr_jit_open_files *h, struct held *x, uint64_t time_ns)
{
	HASH_DEL(h->alive, x);
	look(x);
	close(TAKE_FD(x->root));
	x->until_ns = time_ns;
	if (!is_worth_it(x->fd)) {
		held_free(x);
		return;
	}
	make_room(h, x->who.uid);
	DL_APPEND(h->exited, x);
	h->n_exited++;
}

static bool is_alive(const struct held *x)
{
	const uint64_t start = jit_start_time(x->pid);

	return start && start < x->from_ns + SAME_START_NS && x->from_ns < start + SAME_START_NS;
}

/* Side-band may be lost, and EXITs with it. */
static void sweep(struct fr_jit_open_files *h)
{
	const uint64_t now = fr_monotonic_ns();
	struct held *x, *next;

	if (now < h->sweep_ns)
		return;
	h->sweep_ns = now + SWEEP_NS;
	HASH_ITER (hh, h->alive, x, next)
		if (!is_alive(x))
			retire(h, x, now);
}

static bool has_room_swept(struct fr_jit_open_files *h, uid_t uid)
{
	sweep(h);
	return has_room(h, uid);
}

static int meet(struct held *x)
{
	int r = jit_find_who(x->pid, &x->who);

	if (r == 0)
		r = x->root = jit_open_root(x->pid);
	if (r < 0)
		return r;
	x->from_ns = jit_start_time(x->pid);
	look(x);
	return 0;
}

/* It lived for less time than its records took to get here, and whose it was is not known. A file that root
   has put here meanwhile, under the number of that process, is its own. */
static void meet_too_late(struct held *x)
{
	const uint64_t ahead = fr_now_ns(CLOCK_REALTIME) - fr_monotonic_ns();
	struct stat st;

	x->who = (struct jit_who){.nspid = x->pid, .uid = 0};
	x->from_ns = x->code_ns - FR_MIN(x->code_ns, FR_NSEC_PER_SEC);
	x->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (x->root >= 0)
		look(x);
	if (x->fd >= 0 && fstat(x->fd, &st) == 0 &&
		(uint64_t)st.st_mtim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec >=
			x->from_ns + ahead)
		return;
	if (x->root >= 0)
		close(TAKE_FD(x->root));
}

static void see_code(struct fr_jit_open_files *h, pid_t pid, uint64_t time_ns)
{
	struct held *x;

	HASH_FIND(hh, h->alive, &pid, sizeof(pid), x);
	if (x)
		return;
	x = calloc(1, sizeof(*x));
	if (!x)
		return;
	*x = (struct held){.pid = pid,
		.root = -1,
		.fd = -1,
		.until_ns = UINT64_MAX,
		.code_ns = time_ns,
		.wait_ns = LOOK_FIRST_NS};
	if (meet(x) < 0)
		meet_too_late(x);
	if (x->root >= 0 && (has_room(h, x->who.uid) || has_room_swept(h, x->who.uid)))
		HASH_ADD(hh, h->alive, pid, sizeof(x->pid), x);
	if (!x->hh.tbl)
		held_free(x);
}

static void see_exit(struct fr_jit_open_files *h, pid_t pid, uint64_t time_ns)
{
	struct held *x;

	HASH_FIND(hh, h->alive, &pid, sizeof(pid), x);
	/* CPUs' rings come one after the other: what is older is of who had that pid before, or is its FORK.
	 */
	if (!x || time_ns < x->code_ns)
		return;
	retire(h, x, time_ns);
}

static void see_one(struct fr_jit_open_files *h, const struct perf_event_header *record)
{
	const struct fr_record_mmap2 *m = (const void *)record;
	const struct fr_record_task *t = (const void *)record;

	if (record->type == PERF_RECORD_MMAP2 && jit_is_code_of_process(m))
		see_code(h, (pid_t)m->pid, fr_record_time(record));
	/* A FORK of a pid that is taken: its EXIT was lost. */
	else if (record->type == PERF_RECORD_EXIT && t->pid == t->tid)
		see_exit(h, (pid_t)t->pid, fr_record_time(record));
	else if (record->type == PERF_RECORD_FORK && t->pid == t->tid && t->pid != t->ppid)
		see_exit(h, (pid_t)t->pid, fr_record_time(record) - 1);
}

/* A file may come after the first code. */
static void look_again(struct fr_jit_open_files *h)
{
	const uint64_t now = fr_monotonic_ns();

	for (struct held *x = h->alive; x; x = x->hh.next)
		if (x->fd < 0 && now >= x->look_ns)
			look(x);
}

void fr_jit_open_files_update(
	struct fr_jit_open_files *h, const void *records, size_t len, uint64_t low_watermark_ns)
{
	pthread_mutex_lock(&h->lock);
	for (size_t at = 0; fr_record_is_whole((const char *)records + at, len - at);) {
		const struct perf_event_header *record = (const void *)((const char *)records + at);

		at += record->size;
		see_one(h, record);
	}
	look_again(h);
	while (h->exited && h->exited->until_ns < FR_MIN(low_watermark_ns, h->keep_ns))
		drop_exited(h, h->exited);
	pthread_mutex_unlock(&h->lock);
}

void fr_jit_open_files_keep_since(struct fr_jit_open_files *h, uint64_t since_ns)
{
	pthread_mutex_lock(&h->lock);
	h->keep_ns = since_ns;
	pthread_mutex_unlock(&h->lock);
}

static const struct held *find(const struct fr_jit_open_files *h, pid_t pid, uint64_t time_ns)
{
	const struct held *x;

	DL_FOREACH (h->exited, x)
		if (x->pid == pid && x->from_ns <= time_ns && time_ns <= x->until_ns)
			return x;
	HASH_FIND(hh, h->alive, &pid, sizeof(pid), x);
	return x && x->from_ns <= time_ns && x->fd >= 0 ? x : NULL;
}

int fr_jit_open_files_find(
	struct fr_jit_open_files *h, pid_t pid, uint64_t time_ns, struct fr_jit_open_file *ret)
{
	const struct held *x;
	int r = -ENOENT;

	pthread_mutex_lock(&h->lock);
	x = find(h, pid, time_ns);
	if (x) {
		*ret = (struct fr_jit_open_file){
			fcntl(x->fd, F_DUPFD_CLOEXEC, 0), x->who.uid, x->from_ns, x->until_ns};
		r = ret->fd < 0 ? -errno : 0;
	}
	pthread_mutex_unlock(&h->lock);
	return r;
}

size_t fr_jit_open_files_count(struct fr_jit_open_files *h)
{
	size_t n;

	pthread_mutex_lock(&h->lock);
	n = h->n_exited + HASH_COUNT(h->alive);
	pthread_mutex_unlock(&h->lock);
	return n;
}
