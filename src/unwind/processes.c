// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The effect of each record is that on src/sideband/model.c, for executable maps only. A scan of /proc begins
 * the process again (FORK with misc FORK_EXEC); its slot keeps the old maps until the new ones are published.
 */
#include "unwind/processes_private.h"
#include "base/cleanup.h"
#include "unwind/bisect.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <utlist.h>

int fr_unwind_processes_new(struct fr_unwind_shared *shared, struct fr_unwind_memory *memory,
	struct fr_unwind_objects *objects, struct fr_unwind_processes **ret)
{
	struct fr_unwind_processes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->shared = shared;
	p->memory = memory;
	p->objects = objects;
	p->next_serial = 1;
	*ret = p;
	return 0;
}

void unwind_mark_dirty(struct fr_unwind_processes *p, struct unwind_process *process)
{
	if (process->is_dirty)
		return;
	process->is_dirty = true;
	DL_APPEND(p->dirty, process);
}

void unwind_unref_space(struct fr_unwind_processes *p, struct fr_unwind_space *s)
{
	if (!s || --s->refs > 0)
		return;
	if (!s->at)
		fr_unwind_space_free(p->objects, s);
	else
		(void)FR_HASH_ADD(p->retired, at, s); /* without memory, S stays for ever */
}

void unwind_hide(struct fr_unwind_processes *p, struct unwind_process *process)
{
	/* If the slot has another space, a BPF program has given it to a new process with this pid. */
	(void)fr_unwind_slot_set(p->shared, process->pid, process->shown ? process->shown->at : 0, 0);
	if (process->shown)
		p->n_shown--;
	unwind_unref_space(p, process->shown);
	process->shown = NULL;
	process->conflict_ns = 0;
}

static struct unwind_process *find(const struct fr_unwind_processes *p, uint32_t pid)
{
	return FR_HASH_FIND(p->processes, pid, pid);
}

/* Returns 0; 1 if there are too many processes: PID is not known, and BPF programs find no maps of it, also
   not those that a fork has given it; or -ENOMEM. */
static int find_or_add(struct fr_unwind_processes *p, uint32_t pid, struct unwind_process **ret)
{
	struct unwind_process *process = find(p, pid);

	if (!process && HASH_COUNT(p->processes) >= PROCESSES_MAX) {
		(void)fr_unwind_slot_set(p->shared, pid, 0, 0);
		return 1;
	}
	if (!process)
		process = FR_HASH_NEW(p->processes, pid, pid);
	if (!process)
		return -ENOMEM;
	if (!process->serial)
		process->serial = p->next_serial++;
	*ret = process;
	return 0;
}

static void free_process(struct fr_unwind_processes *p, struct unwind_process *process)
{
	unwind_unref_space(p, process->shown);
	unwind_unref_space(p, process->space);
	if (process->is_dirty)
		DL_DELETE(p->dirty, process);
	HASH_DEL(p->processes, process);
	free(process->tids);
	free(process);
}

static void remove_process(struct fr_unwind_processes *p, struct unwind_process *process)
{
	unwind_hide(p, process);
	free_process(p, process);
}

struct fr_unwind_processes *fr_unwind_processes_free(struct fr_unwind_processes *p)
{
	if (!p)
		return NULL;
	while (p->processes)
		free_process(p, p->processes);
	while (p->retired) {
		struct fr_unwind_space *s = p->retired;

		HASH_DEL(p->retired, s);
		fr_unwind_space_free(p->objects, s);
	}
	free(p);
	return NULL;
}

/* Gives PROCESS the maps of S, or none, and no threads. */
static void begin_again(
	struct fr_unwind_processes *p, struct unwind_process *process, struct fr_unwind_space *s)
{
	if (s)
		s->refs++;
	unwind_unref_space(p, process->space);
	process->space = s;
	process->n_tids = 0;
	process->leader_dead = false;
	process->is_dropped = false;
	unwind_mark_dirty(p, process);
}

/* Returns the index of TID, or of the first thread behind it. */
static size_t find_tid(const struct unwind_process *process, uint32_t tid)
{
	return UNWIND_BISECT(i, process->n_tids, process->tids[i] >= tid);
}

static bool has_tid(const struct unwind_process *process, size_t at, uint32_t tid)
{
	return at < process->n_tids && process->tids[at] == tid;
}

static int add_thread(struct unwind_process *process, uint32_t tid)
{
	const size_t at = find_tid(process, tid), cap = FR_MAX(process->cap_tids * 2, (size_t)8);

	if (tid == process->pid || has_tid(process, at, tid))
		return 0;
	if (process->n_tids == process->cap_tids) {
		uint32_t *more = realloc(process->tids, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		process->tids = more;
		process->cap_tids = cap;
	}
	memmove(&process->tids[at + 1], &process->tids[at], (process->n_tids - at) * sizeof(tid));
	process->tids[at] = tid;
	process->n_tids++;
	return 0;
}

static int apply_fork(struct fr_unwind_processes *p, const struct fr_record_task *r)
{
	const bool is_scan = r->header.misc & PERF_RECORD_MISC_FORK_EXEC;
	struct unwind_process *process, *parent;
	int s;

	if ((int32_t)r->pid <= 0 || (int32_t)r->tid <= 0)
		return 0;
	s = find_or_add(p, r->pid, &process);
	if (s != 0) {
		p->n_dropped += s > 0 && r->pid != r->ppid;
		return FR_MIN(s, 0);
	}
	if (r->pid == r->ppid || r->tid != r->pid)
		return add_thread(process, r->tid);
	parent = is_scan ? NULL : find(p, r->ppid);
	if (!is_scan && process->shown)
		unwind_hide(p, process); /* an earlier process, whose EXIT was lost */
	begin_again(p, process, parent ? parent->space : NULL);
	if (parent)
		process->is_dropped = parent->is_dropped;
	return 0;
}

static int apply_exit(struct fr_unwind_processes *p, const struct fr_record_task *r)
{
	struct unwind_process *process = find(p, r->pid);
	size_t at;

	if (!process) {
		if (r->tid == r->pid)
			(void)fr_unwind_slot_set(p->shared, r->pid, 0, 0);
		return 0;
	}
	at = find_tid(process, r->tid);
	if (r->tid == r->pid) {
		process->leader_dead = true;
	} else if (has_tid(process, at, r->tid)) {
		process->n_tids--;
		memmove(&process->tids[at], &process->tids[at + 1],
			(process->n_tids - at) * sizeof(process->tids[0]));
	}
	if (process->leader_dead && !process->n_tids)
		remove_process(p, process);
	return 0;
}

static int apply_exec(struct fr_unwind_processes *p, const struct fr_record_comm *r)
{
	struct unwind_process *process;
	const int s = (int32_t)r->pid > 0 ? find_or_add(p, r->pid, &process) : 1;

	if (s == 0)
		begin_again(p, process, NULL);
	return FR_MIN(s, 0);
}

/* Makes sure that PROCESS has a space that can change, and that no other process has. */
static int own_space(struct fr_unwind_processes *p, struct unwind_process *process)
{
	struct fr_unwind_space *old = process->space, *new;

	if (old && old->refs == 1 && !old->at)
		return 0;
	new = old ? fr_unwind_space_copy(p->objects, old) : fr_unwind_space_new();
	if (!new)
		return -ENOMEM;
	unwind_unref_space(p, old);
	process->space = new;
	return 0;
}

void unwind_drop(struct fr_unwind_processes *p, struct unwind_process *process)
{
	unwind_unref_space(p, process->space);
	process->space = NULL;
	process->is_dropped = true;
	p->n_dropped++;
	unwind_mark_dirty(p, process);
}

static int apply_map(struct fr_unwind_processes *p, const struct fr_record_mmap2 *r)
{
	struct fr_unwind_map map = {.start = r->addr, .end = r->addr + r->len};
	struct unwind_process *process;
	int s;

	if ((int32_t)r->pid <= 0 || map.end <= map.start)
		return 0;
	s = find_or_add(p, r->pid, &process);
	if (s != 0)
		return FR_MIN(s, 0);
	if (process->is_dropped)
		return 0;
	unwind_mark_dirty(p, process);
	s = own_space(p, process);
	if (s < 0)
		return s;
	/* Tables have offsets in the file in place of addresses (offsets.h), so the record alone gives the
	   bias. The vdso is the whole of its object, whatever offset the kernel gives it. */
	map.object = fr_unwind_objects_get(p->objects, r);
	if (map.object != FR_UNWIND_OBJECT_BARE)
		map.bias = strcmp(r->filename, "[vdso]") == 0 ? r->addr : r->addr - r->pgoff;
	s = fr_unwind_space_insert(p->objects, process->space, &map);
	if (s == -E2BIG)
		unwind_drop(p, process);
	return s == -ENOMEM ? s : 0;
}

bool fr_unwind_processes_need(const struct perf_event_header *h)
{
	const uint16_t mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	const struct fr_record_mmap2 *m = (const void *)h;

	switch (h->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return true;
	case PERF_RECORD_COMM:
		return h->misc & PERF_RECORD_MISC_COMM_EXEC;
	case PERF_RECORD_MMAP2:
		return m->prot & PROT_EXEC && fr_record_has_text(h, m->filename) &&
		       (mode == PERF_RECORD_MISC_USER || mode == PERF_RECORD_MISC_CPUMODE_UNKNOWN);
	default:
		return false;
	}
}

int fr_unwind_processes_apply(struct fr_unwind_processes *p, const struct perf_event_header *h)
{
	if (!fr_unwind_processes_need(h))
		return 0;
	switch (h->type) {
	case PERF_RECORD_FORK:
		return apply_fork(p, (const void *)h);
	case PERF_RECORD_EXIT:
		return apply_exit(p, (const void *)h);
	case PERF_RECORD_COMM:
		return apply_exec(p, (const void *)h);
	default:
		return apply_map(p, (const void *)h);
	}
}

static const struct fr_unwind_map *find_map(const struct unwind_process *process, uint32_t number)
{
	const struct fr_unwind_space *s = process->space;

	for (size_t i = 0; s && i < s->n; i++)
		if (s->maps[i].object == number)
			return &s->maps[i];
	return NULL;
}

size_t fr_unwind_processes_find_maps(const struct fr_unwind_processes *p, uint32_t number, uint64_t from,
	struct fr_unwind_found *ret, size_t max)
{
	size_t n = 0;

	for (const struct unwind_process *i = p->processes; i && n < max; i = i->hh.next) {
		const struct fr_unwind_map *map = i->serial < from ? NULL : find_map(i, number);

		if (map)
			ret[n++] = (struct fr_unwind_found){i->serial, (pid_t)i->pid, map->start, map->end};
	}
	return n;
}

uint64_t fr_unwind_processes_next_serial(const struct fr_unwind_processes *p)
{
	return p->next_serial;
}

void fr_unwind_processes_stats(const struct fr_unwind_processes *p, struct fr_unwind_processes_stats *ret)
{
	*ret = (struct fr_unwind_processes_stats){.processes = p->n_shown, .dropped = p->n_dropped};
}
