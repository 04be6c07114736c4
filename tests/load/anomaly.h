/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Functions that make anomalies, for frtest-provoke and the tests of the probes. A function that fails ends
 * its process; by fr_anomaly_skip(), if this machine cannot do what the function has to do.
 */

#include "load.h"

#include <stdbool.h>
#include <sys/types.h>

#define FR_ANOMALY_SKIP 77 /* the exit code of fr_anomaly_skip() */

/* Print a reason and end the process with FR_ANOMALY_SKIP. */
__attribute__((noreturn, format(printf, 1, 2))) void fr_anomaly_skip(const char *format, ...);

/* Write TEXT to the existing file NAME of DIRECTORY. Returns whether all of it was written. */
bool fr_anomaly_put(const char *directory, const char *name, const char *text);

/* Give the calling thread the lowest priority of SCHED_FIFO, on CPU. A thread that waits for a hog needs this
   priority, too. Otherwise the kernel may interrupt the hog for a thread of normal priority (since
   Linux 6.12), or run other threads after the hog. Such a thread may be one that a hypervisor hides, and then
   no tracepoint reports the switch to the next thread. */
void fr_anomaly_be_realtime(int cpu);

/* The main function of a thread that keeps a CPU busy with this priority, from FROM_NS (CLOCK_MONOTONIC) on
   for NS. The argument is a struct fr_anomaly_hog. */
struct fr_anomaly_hog {
	int cpu;
	uint64_t from_ns, ns;
};
void *fr_anomaly_hog(void *arg);

/* Wait uninterruptibly until a time of CLOCK_MONOTONIC, as a parent in vfork() does. Does not reap the child,
   because that may take long, too. */
void fr_anomaly_block(uint64_t until_ns);

/* Send datagrams over the loopback. They arrive by softirqs. */
void fr_anomaly_send_to_itself(void);

/* Write 64 KiB to a new file in the working directory, which must be on a disk, without the page cache. */
void fr_anomaly_write_through(void);
/* Write one MiB to the file FD on a disk, remove its pages from memory, map the file, and read it. */
void fr_anomaly_fault(int fd);
/* Open a file without a name in the working directory, which must be on a disk. Returns its fd. */
int fr_anomaly_open(int flags);

/* Make a cgroup (version 1 or 2) with 32 MiB of memory and without swap. RET gets its path. Returns false if
   there is no memory controller. */
bool fr_anomaly_group_new(char *ret, size_t size);
void fr_anomaly_group_free(const char *group);
/* Move into GROUP, and use more memory than it has; or read more of a file than fits into its memory. */
void fr_anomaly_exhaust(const char *group);
void fr_anomaly_reclaim(const char *group);

/* Die of a signal: "segv", "abort" or "bus". */
void fr_anomaly_die(const char *how);

/* Move into a new network namespace, and send on eight connections to port 7007 whose other ends drop
   everything, until each connection has retransmitted twice. With ACCEPTED, the ends that send are those that
   accept() returned, otherwise those that connected. */
void fr_anomaly_retransmit(int family, bool accepted);

/* Mount a FUSE file system on DIRECTORY that answers only the first request. Returns its fd, or -1 with
   errno. All requests end when the fd is closed. */
int fr_anomaly_mount_mute(const char *directory);
/* Wait until VICTIM has sent a request to this file system, read the request, and kill VICTIM. The kernel
   cannot cancel a request that was read, so VICTIM waits uninterruptibly. Returns false if no request came
   within a minute. */
bool fr_anomaly_hang(int fuse, pid_t victim);
