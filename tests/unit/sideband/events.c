// SPDX-License-Identifier: GPL-2.0-or-later
#include "events.h"
#include "sideband/emit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define AT(b, time) (&(struct fr_emit){.to = (b), .time_ns = (time), .id = EVENT_ID})

/* Returns the record at the offset BEFORE of B, which has just been appended. R is the result of the append.
   If it is an error, aborts. */
static struct perf_event_header *emitted(struct fr_buf *b, size_t before, int r)
{
	if (r < 0)
		abort();
	return (struct perf_event_header *)(b->data + before);
}

void ev_fork(struct fr_buf *b, uint64_t time, pid_t pid, pid_t tid, pid_t ppid, pid_t ptid)
{
	const size_t before = b->len;
	int r = fr_emit_task(AT(b, time), pid, tid, ppid, ptid);

	emitted(b, before, r)->misc = 0;
}

void ev_exit(struct fr_buf *b, uint64_t time, pid_t pid, pid_t tid)
{
	emitted(b, 0, fr_emit_exit(AT(b, time), pid, tid));
}

void ev_comm(struct fr_buf *b, uint64_t time, pid_t pid, pid_t tid, const char *comm, int exec)
{
	const size_t before = b->len;
	int r = fr_emit_comm(AT(b, time), pid, tid, comm, strlen(comm));

	emitted(b, before, r)->misc = exec ? PERF_RECORD_MISC_COMM_EXEC : 0;
}

void ev_mmap(struct fr_buf *b, uint64_t time, pid_t pid, uint64_t addr, uint64_t len, uint64_t pgoff,
	const char *name)
{
	const struct fr_map_range r = {addr, len, pgoff, PROT_READ | PROT_EXEC, MAP_PRIVATE};
	const struct fr_backing backing = {.file = {8, 1, strlen(name) + 100, 0}};

	emitted(b, 0, fr_emit_mmap2(AT(b, time), pid, &r, &backing, name, strlen(name)));
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
