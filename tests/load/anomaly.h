/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Functions that cause anomalies, for frtest-provoke and the tests of the probes. If a function fails, it
 * ends the process. If this machine cannot do what the function has to do, it calls fr_anomaly_skip().
 */

#include "load.h"

#include <stdbool.h>
#include <sys/types.h>

#define FR_ANOMALY_SKIP 77 /* the exit code of fr_anomaly_skip() */

/* Print a reason and end the process with FR_ANOMALY_SKIP. */
__attribute__((noreturn, format(printf, 1, 2))) void fr_anomaly_skip(const char *format, ...);

/* Write TEXT to the existing file NAME in DIRECTORY. Returns whether all of TEXT was written. */
bool fr_anomaly_put(const char *directory, const char *name, const char *text);

/* Gives the calling thread the policy SCHED_FIFO with its lowest priority, on CPU. A thread that waits for a
   hog needs this priority, too. Otherwise, since Linux 6.12, the kernel can interrupt the hog for a thread of
   normal priority, or run other threads after the hog. If such a thread is one that a hypervisor hides, no
   tracepoint reports the switch to the next thread. */
void fr_anomaly_be_realtime(int cpu);

/* The main function of a thread that keeps a CPU busy with this priority. It begins at from_ns
   (CLOCK_MONOTONIC) and ends after ns nanoseconds. ARG is a struct fr_anomaly_hog. */
struct fr_anomaly_hog {
	int cpu;
	uint64_t from_ns, ns;
};
void *fr_anomaly_hog(void *arg);

/* Wait uninterruptibly until the time UNTIL_NS of CLOCK_MONOTONIC, as the parent in vfork() waits. Does not
   reap the child, because a reap can also take long. */
void fr_anomaly_block(uint64_t until_ns);

/* Send datagrams over the loopback. Softirqs deliver them. */
void fr_anomaly_send_to_itself(void);

/* Write 64 KiB to a new file in the working directory, which must be on a disk, without the page cache. */
void fr_anomaly_write_through(void);
/* Write one MiB to the file FD on a disk, remove its pages from memory, map the file, and read it. */
void fr_anomaly_fault(int fd);
/* Open a file without a name in the working directory, which must be on a disk. Returns its fd. */
int fr_anomaly_open(int flags);

/* Make a cgroup (version 1 or 2) with 32 MiB of memory and without swap, and write its path into RET. Returns
   false if there is no memory controller. */
bool fr_anomaly_group_new(char *ret, size_t size);
void fr_anomaly_group_free(const char *group);
/* Both move this process into GROUP. Then fr_anomaly_exhaust() uses more memory than the group has, and
   fr_anomaly_reclaim() reads more of a file than fits into the group's memory. */
void fr_anomaly_exhaust(const char *group);
void fr_anomaly_reclaim(const char *group);

/* Die of a signal: "segv", "abort" or "bus". */
void fr_anomaly_die(const char *how);

/* Move into a new network namespace, and make eight connections to port 7007. One end of each connection
   sends, and the other end drops all packets, until each connection has retransmitted twice. If ACCEPTED is
   true, the sockets that accept() returned send. Otherwise the sockets that connected send. */
void fr_anomaly_retransmit(int family, bool accepted);

/* On DIRECTORY, mount a FUSE file system that answers only the first request. Returns the file descriptor of
   the file system, or -1 with errno. All requests end when the descriptor is closed. */
int fr_anomaly_mount_mute(const char *directory);
/* Wait until the process VICTIM has sent a request to the file system FUSE. Then read the request and kill
   VICTIM. The kernel cannot cancel a request that has been read, so VICTIM waits uninterruptibly. Returns
   false if no request comes within a minute. */
bool fr_anomaly_hang(int fuse, pid_t victim);
