// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/emit.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Appends a record: the FIXED bytes at RECORD; the LEN bytes at REST, padded with zeros to ROOM bytes; and a
   sample id with PID and TID. Returns 0 or -ENOMEM. */
static int append(struct fr_emit *e, const void *record, size_t fixed, const void *rest, size_t len,
	size_t room, pid_t pid, pid_t tid)
{
	const struct fr_sample_id id = {
		.pid = (uint32_t)pid, .tid = (uint32_t)tid, .time = e->time_ns, .id = e->id};
	const size_t size = fixed + room + sizeof(id);
	uint8_t *to;

	if (fr_buf_append_zero(e->to, size) < 0)
		return -ENOMEM;
	to = e->to->data + e->to->len - size;
	memcpy(to, record, fixed);
	((struct perf_event_header *)to)->size = (uint16_t)size;
	if (len) /* REST may be NULL, which memcpy() does not allow */
		memcpy(to + fixed, rest, len);
	memcpy(to + fixed + room, &id, sizeof(id));
	return 0;
}

/* Appends a record whose last field before the sample id is the name. */
static int append_named(struct fr_emit *e, const void *record, size_t fixed, const char *name, size_t len,
	pid_t pid, pid_t tid)
{
	len = FR_MIN(len, FR_EMIT_NAME_MAX);
	return append(e, record, fixed, name, len, FR_ALIGN_UP(len + 1, 8), pid, tid);
}

int fr_emit_kernel_mmap(struct fr_emit *e, const struct fr_map_range *r, const char *name, size_t len)
{
	const struct fr_record_mmap m = {
		{PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, 0}, UINT32_MAX, 0, r->addr, r->len, r->pgoff};

	return append_named(e, &m, sizeof(m), name, len, 0, 0);
}

int fr_emit_mmap2(struct fr_emit *e, pid_t pid, const struct fr_map_range *r, const struct fr_backing *b,
	const char *name, size_t len)
{
	struct fr_record_mmap2 m = {.header = {PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 0},
		.pid = (uint32_t)pid,
		.tid = (uint32_t)pid,
		.addr = r->addr,
		.len = r->len,
		.pgoff = r->pgoff,
		.prot = r->prot,
		.flags = r->flags};

	if (b->has_build_id)
		m.header.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
	if (!(r->prot & PROT_EXEC))
		m.header.misc |= PERF_RECORD_MISC_MMAP_DATA;
	memcpy(&m.maj, b->raw, sizeof(b->raw));
	return append_named(e, &m, sizeof(m), name, len, pid, pid);
}

static int append_task(struct fr_emit *e, struct perf_event_header h, const pid_t ids[4])
{
	const struct fr_record_task t = {
		h, (uint32_t)ids[0], (uint32_t)ids[2], (uint32_t)ids[1], (uint32_t)ids[3], e->time_ns};

	return append(e, &t, sizeof(t), NULL, 0, 0, ids[0], ids[1]);
}

int fr_emit_task(struct fr_emit *e, pid_t pid, pid_t tid, pid_t ppid, pid_t ptid)
{
	const struct perf_event_header h = {PERF_RECORD_FORK, PERF_RECORD_MISC_FORK_EXEC, 0};

	return append_task(e, h, (const pid_t[]){pid, tid, ppid, ptid});
}

int fr_emit_exit(struct fr_emit *e, pid_t pid, pid_t tid)
{
	const struct perf_event_header h = {PERF_RECORD_EXIT, 0, 0};

	return append_task(e, h, (const pid_t[]){pid, tid, pid, pid});
}

int fr_emit_comm(struct fr_emit *e, pid_t pid, pid_t tid, const char *comm, size_t len)
{
	const struct fr_record_comm c = {{PERF_RECORD_COMM, 0, 0}, (uint32_t)pid, (uint32_t)tid};

	return append_named(e, &c, sizeof(c), comm, len, pid, tid);
}

int fr_emit_namespaces(struct fr_emit *e, pid_t pid, pid_t tid, const void *links, size_t n)
{
	const struct fr_record_namespaces ns = {
		{PERF_RECORD_NAMESPACES, 0, 0}, (uint32_t)pid, (uint32_t)tid, n};
	const size_t bytes = n * sizeof(ns.link[0]);

	return append(e, &ns, sizeof(ns), links, bytes, bytes, pid, tid);
}

int fr_emit_ksymbol(struct fr_emit *e, uint64_t addr, uint32_t size, uint16_t type, uint16_t flags,
	const char *name, size_t len)
{
	const struct fr_record_ksymbol k = {
		{PERF_RECORD_KSYMBOL, PERF_RECORD_MISC_KERNEL, 0}, addr, size, type, flags};

	return append_named(e, &k, sizeof(k), name, len, 0, 0);
}

int fr_emit_cgroup(struct fr_emit *e, uint64_t cgroup_id, const char *path, size_t len)
{
	const struct fr_record_cgroup c = {{PERF_RECORD_CGROUP, 0, 0}, cgroup_id};

	return append_named(e, &c, sizeof(c), path, len, 0, 0);
}
