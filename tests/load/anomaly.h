/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Causes of anomalies, which frtest-provoke and the tests of the probes share. A function that fails ends its
 * process: by fr_anomaly_skip() if this machine cannot do what it has to do.
 */

#include "load.h"

#include <stdbool.h>
#include <sys/types.h>

#define FR_ANOMALY_SKIP 77 /* an exit code */

/* Print a reason and end the process with FR_ANOMALY_SKIP. */
__attribute__((noreturn, format(printf, 1, 2))) void fr_anomaly_skip(const char *format, ...);

/* Write TEXT to the file NAME of DIRECTORY. */
bool fr_anomaly_put(const char *directory, const char *name, const char *text);

/* A thread that keeps CPU busy by SCHED_FIFO, for NS from a time of CLOCK_MONOTONIC on. The argument is a
   struct fr_anomaly_hog. */
struct fr_anomaly_hog {
	int cpu;
	uint64_t from_ns, ns;
};
void *fr_anomaly_hog(void *arg);

/* Wait uninterruptibly until a time of CLOCK_MONOTONIC, as the parent of a vfork(). Does not reap the child,
   because that may take long, too. */
void fr_anomaly_block(uint64_t until_ns);

/* Send datagrams over the loopback. They arrive by softirqs. */
void fr_anomaly_send_to_itself(void);

/* Write 64 KiB past all caches to a file of the working directory, which is on a disk. */
void fr_anomaly_write_through(void);
/* Map the file FD of a disk, of which no page is in memory then, and read one MiB of it. */
void fr_anomaly_fault(int fd);
/* Open a file without a name in the working directory, which is on a disk. */
int fr_anomaly_open(int flags);

/* Make a cgroup with 32 MiB of memory and without swap, of version 1 or 2. Returns false if there is no
   memory controller. */
bool fr_anomaly_group_new(char *ret, size_t size);
void fr_anomaly_group_free(const char *group);
/* Move into GROUP and use more memory than it has; read more of a file than fits into it. */
void fr_anomaly_exhaust(const char *group);
void fr_anomaly_reclaim(const char *group);

/* Die of a signal: "segv", "abort" or "bus". */
void fr_anomaly_die(const char *how);

/* Move into a network namespace and send on eight connections to port 7007 whose other ends drop everything,
   until each has retransmitted twice. ACCEPTED: send on the accepted ends. */
void fr_anomaly_retransmit(int family, bool accepted);

/* Mount a FUSE file system on DIRECTORY that answers only the first request. Returns its fd, which ends all
   requests when it is closed, or -1 with errno. */
int fr_anomaly_mount_mute(const char *directory);
/* Wait until VICTIM has sent a request to this file system, and kill it. A request that was read cannot be
   taken back, so VICTIM waits uninterruptibly. Returns false if no request came within a minute. */
bool fr_anomaly_hang(int fuse, pid_t victim);
