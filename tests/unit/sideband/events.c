// SPDX-License-Identifier: GPL-2.0-or-later
#include "events.h"
#include "sideband/emit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct fr_emit emit(struct fr_buf *b, uint64_t time)
{
	return (struct fr_emit){.to = b, .time_ns = time, .id = EVENT_ID};
}

static void check(int r)
{
	if (r < 0)
		abort();
}

static struct perf_event_header *last(struct fr_buf *b, size_t before)
{
	return (struct perf_event_header *)(b->data + before);
}

void ev_fork(struct fr_buf *b, uint64_t time, pid_t pid, pid_t tid, pid_t ppid, pid_t ptid)
{
	struct fr_emit e = emit(b, time);
	size_t before = b->len;

	check(fr_emit_task(&e, pid, tid, ppid, ptid));
	last(b, before)->misc = 0;
}

void ev_exit(struct fr_buf *b, uint64_t time, pid_t pid, pid_t tid)
{
	size_t before = b->len;

	ev_fork(b, time, pid, tid, pid, pid);
	last(b, before)->type = PERF_RECORD_EXIT;
}

void ev_comm(struct fr_buf *b, uint64_t time, pid_t pid, pid_t tid, const char *comm, int exec)
{
	struct fr_emit e = emit(b, time);
	size_t before = b->len;

	check(fr_emit_comm(&e, pid, tid, comm, strlen(comm)));
	last(b, before)->misc = exec ? PERF_RECORD_MISC_COMM_EXEC : 0;
}

void ev_mmap(struct fr_buf *b, uint64_t time, pid_t pid, uint64_t addr, uint64_t len, uint64_t pgoff,
	const char *name)
{
	struct fr_emit e = emit(b, time);
	struct fr_map_range r = {addr, len, pgoff, PROT_READ | PROT_EXEC, MAP_PRIVATE};
	struct fr_backing backing = {.file = {8, 1, strlen(name) + 100, 0}};

	check(fr_emit_mmap2(&e, pid, &r, &backing, name, strlen(name)));
}

const struct perf_event_header *ev_next(const struct fr_buf *b, size_t *at)
{
	const struct perf_event_header *h = (const void *)(b->data + *at);

	if (*at == b->len)
		return NULL;
	if (!fr_record_is_whole(h, b->len - *at))
		abort();
	*at += h->size;
	return h;
}
