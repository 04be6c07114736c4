// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/exits.h"
#include "base/cleanup.h"
#include "sideband/hash.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

struct fr_delayed_exit {
	UT_hash_handle hh;
	struct fr_delayed_exit *prev, *next;
	uint32_t tid;
	struct fr_record_task record;
};

/* A COMM of the kernel, without its sample id. */
union exec_record {
	struct fr_record_comm comm;
	uint8_t bytes[sizeof(struct fr_record_comm) + 64];
};

struct exec_map {
	struct exec_map *prev, *next;
	uint64_t time_ns;
	struct fr_record_mmap2 *record; /* without its sample id */
};

struct fr_delayed_exec {
	UT_hash_handle hh;
	uint32_t pid;
	union exec_record record;
	uint64_t time_ns;
	struct exec_map *maps; /* of the new program, in the order of time */
	unsigned n_maps;
	bool is_mapped; /* these are all maps that the kernel makes for the program */
};

static void forget(struct fr_exits *e, struct fr_delayed_exit *exit)
{
	HASH_DEL(e->by_tid, exit);
	DL_DELETE(e->first, exit);
	free(exit);
	e->n--;
}

/* Applies an EXIT that was delayed. */
static int apply(struct fr_exits *e, struct fr_model *m, struct fr_delayed_exit *exit)
{
	const struct fr_record_task record = exit->record;

	forget(e, exit);
	return fr_model_apply_foreign(m, &record.header, 0, record.time);
}

static int delay(struct fr_exits *e, struct fr_model *m, const struct fr_record_task *record)
{
	struct fr_delayed_exit *exit = FR_HASH_FIND(e->by_tid, tid, record->tid);
	int r = 0;

	if (exit)
		r = apply(e, m, exit);
	else if (e->by_tid && e->n == FR_EXITS_MAX)
		r = apply(e, m, e->first);
	if (r < 0)
		return r;
	exit = FR_HASH_NEW(e->by_tid, tid, record->tid);
	if (!exit)
		return -ENOMEM;
	exit->record = *record;
	exit->record.header.size = sizeof(exit->record);
	DL_APPEND(e->first, exit);
	e->n++;
	return 0;
}

/* Gives the name of the new program to the process, and delays what else an exec does. */
static int delay_exec(struct fr_exits *e, struct fr_model *m, const struct perf_event_header *h,
	size_t tail_bytes, uint64_t time_ns)
{
	const size_t size = h->size - tail_bytes;
	struct fr_delayed_exec *exec;
	union exec_record comm;

	if (size > sizeof(comm) || HASH_COUNT(e->execs) >= FR_EXECS_MAX)
		return fr_model_apply_foreign(m, h, tail_bytes, time_ns);
	exec = FR_HASH_NEW(e->execs, pid, ((const struct fr_record_comm *)h)->pid);
	if (!exec)
		return -ENOMEM;
	memcpy(&exec->record, h, size);
	exec->record.comm.header.size = (uint16_t)size;
	exec->time_ns = time_ns;
	comm = exec->record;
	comm.comm.header.misc &= (uint16_t)~PERF_RECORD_MISC_COMM_EXEC;
	return fr_model_apply_foreign(m, &comm.comm.header, 0, time_ns);
}

static void free_map(struct fr_exits *e, struct fr_delayed_exec *exec, struct exec_map *map)
{
	DL_DELETE(exec->maps, map);
	e->map_bytes -= map->record->header.size;
	free(map->record);
	free(map);
}

static void free_exec(struct fr_exits *e, struct fr_delayed_exec *exec)
{
	HASH_DEL(e->execs, exec);
	while (exec->maps)
		free_map(e, exec, exec->maps);
	free(exec);
}

static struct fr_delayed_exec *find_exec(const struct fr_exits *e, uint32_t pid)
{
	return e->execs ? FR_HASH_FIND(e->execs, pid, pid) : NULL;
}

/* Applies the delayed exec of the process PID, if there is one. */
static int settle(struct fr_exits *e, struct fr_model *m, uint32_t pid)
{
	struct fr_delayed_exec *exec = find_exec(e, pid);
	int r;

	if (!exec)
		return 0;
	r = fr_model_apply_foreign(m, &exec->record.comm.header, 0, exec->time_ns);
	for (struct exec_map *map = exec->maps; r == 0 && map; map = map->next)
		r = fr_model_apply_foreign(m, &map->record->header, 0, map->time_ns);
	free_exec(e, exec);
	return r;
}

static bool has_map(const struct fr_delayed_exec *exec, uint64_t address)
{
	const struct exec_map *map;

	DL_FOREACH (exec->maps, map)
		if (address - map->record->addr < map->record->len)
			return true;
	return false;
}

/* Returns whether S is a sample of the new program. If it is in the kernel, the program must have called it.
 */
static bool is_of_new(const struct fr_delayed_exec *exec, const struct fr_sample_fields *s)
{
	uint16_t mode = s->mode;

	if (mode == PERF_RECORD_MISC_USER)
		return true;
	for (size_t i = 0; i < s->n_chain; i++)
		if (!fr_sample_is_marker(s->chain[i], &mode) && mode == PERF_RECORD_MISC_USER)
			return has_map(exec, s->chain[i]);
	return false;
}

int fr_exits_run(struct fr_exits *e, struct fr_model *m, const struct fr_sample_fields *s)
{
	const struct fr_delayed_exec *exec = find_exec(e, s->pid);

	return exec && is_of_new(exec, s) ? settle(e, m, s->pid) : 0;
}

static bool is_last_map(const struct fr_record_mmap2 *map, size_t tail_bytes)
{
	static const char last[] = "[vdso]";

	return map->header.size >= sizeof(*map) + tail_bytes + sizeof(last) &&
	       memcmp(map->filename, last, sizeof(last)) == 0;
}

/* Returns the delayed exec to which the map H belongs; or NULL if H is no map, the program itself makes it,
   or there is no room for it. The kernel maps a program and its interpreter, and the vdso last. */
static struct fr_delayed_exec *find_exec_of_map(
	const struct fr_exits *e, const struct perf_event_header *h, size_t tail_bytes)
{
	const struct fr_record_mmap2 *map = (const void *)h;
	struct fr_delayed_exec *exec;

	if (h->type != PERF_RECORD_MMAP2 || h->size < sizeof(*map) + tail_bytes ||
		e->map_bytes + h->size - tail_bytes > FR_EXEC_MAP_BYTES)
		return NULL;
	exec = find_exec(e, map->pid);
	return exec && !exec->is_mapped && exec->n_maps < FR_EXEC_MAPS_MAX ? exec : NULL;
}

static int delay_map(struct fr_exits *e, struct fr_delayed_exec *exec, const struct perf_event_header *h,
	size_t tail_bytes, uint64_t time_ns)
{
	const size_t size = h->size - tail_bytes;
	struct exec_map *map = calloc(1, sizeof(*map));

	if (map)
		map->record = malloc(size);
	if (!map || !map->record) {
		free(map);
		return -ENOMEM;
	}
	memcpy(map->record, h, size);
	map->record->header.size = (uint16_t)size;
	map->time_ns = time_ns;
	exec->is_mapped = is_last_map((const void *)h, tail_bytes);
	DL_APPEND(exec->maps, map);
	exec->n_maps++;
	e->map_bytes += size;
	return 0;
}

static bool is_exec(const struct perf_event_header *h, size_t tail_bytes)
{
	return h->type == PERF_RECORD_COMM && h->size >= sizeof(struct fr_record_comm) + tail_bytes &&
	       h->misc & PERF_RECORD_MISC_COMM_EXEC;
}

int fr_exits_apply(struct fr_exits *e, struct fr_model *m, const struct perf_event_header *h,
	size_t tail_bytes, uint64_t time_ns)
{
	const bool is_task = (h->type == PERF_RECORD_EXIT || h->type == PERF_RECORD_FORK) &&
			     h->size >= sizeof(struct fr_record_task) + tail_bytes;
	const struct fr_record_task *task = (const void *)h;
	const struct fr_record_comm *comm = (const void *)h;
	struct fr_delayed_exec *exec = find_exec_of_map(e, h, tail_bytes);
	struct fr_delayed_exit *exit = NULL;
	int r = 0;

	if (exec)
		return delay_map(e, exec, h, tail_bytes, time_ns);
	/* Records of processes begin with the pid. */
	if (h->size >= sizeof(*comm))
		r = settle(e, m, comm->pid);
	if (r == 0 && is_task && h->type == PERF_RECORD_FORK)
		r = settle(e, m, task->ppid); /* the child gets the maps of its parent */
	if (r == 0 && is_task && h->type == PERF_RECORD_EXIT)
		return delay(e, m, task);
	if (is_task)
		exit = FR_HASH_FIND(e->by_tid, tid, task->tid);
	/* When a thread calls exec, the leader of its process exits, and the thread gets the id of the
	   leader. */
	else if (is_exec(h, tail_bytes))
		exit = FR_HASH_FIND(e->by_tid, tid, comm->tid);
	if (r == 0 && exit)
		r = apply(e, m, exit);
	if (r < 0)
		return r;
	return is_exec(h, tail_bytes) ? delay_exec(e, m, h, tail_bytes, time_ns)
				      : fr_model_apply_foreign(m, h, tail_bytes, time_ns);
}

void fr_exits_deinit(struct fr_exits *e)
{
	FR_HASH_CLEAR(e->by_tid, free);
	while (e->execs)
		free_exec(e, e->execs);
	*e = (struct fr_exits){0};
}
