/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Side-band records, as the kernel makes them. Each function appends a record to a buffer, and aborts if
   there is no memory. */

#include "../unit.h"
#include "perfdata/record.h"
#include "base/buf.h"

#include <sys/types.h>

#define EVENT_ID 77

void ev_fork(struct fr_buf *b, uint64_t time, pid_t pid, pid_t tid, pid_t ppid, pid_t ptid);
void ev_exit(struct fr_buf *b, uint64_t time, pid_t pid, pid_t tid);
void ev_comm(struct fr_buf *b, uint64_t time, pid_t pid, pid_t tid, const char *comm, int exec);
void ev_mmap(struct fr_buf *b, uint64_t time, pid_t pid, uint64_t addr, uint64_t len, uint64_t pgoff,
	const char *name);

/* Returns the record at the offset *AT, and moves *AT to the end of the record. Returns NULL at the end. */
const struct perf_event_header *ev_next(const struct fr_buf *b, size_t *at);
