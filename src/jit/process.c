// SPDX-License-Identifier: GPL-2.0-or-later
#include "jit/process.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROC_FILE_MAX (64u << 10)

/* Reads /proc/PID/FILE into RET. Returns 0 or a negative errno. */
static int read_proc(pid_t pid, const char *file, struct fr_buf *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return fr_read_file(AT_FDCWD, path, PROC_FILE_MAX, ret);
}

/* Reads a number in the line KEY of /proc/PID/status. If LAST is true, reads the last number, else the first
   number. Returns -1 if there is no such number. */
static long read_status(pid_t pid, const char *key, bool last)
{
	_cleanup_buf_ struct fr_buf b = {0};
	char *at, *end;
	long v = -1;

	if (read_proc(pid, "status", &b) < 0)
		return -1;
	at = strstr((char *)b.data, key);
	if (!at)
		return -1;
	at += strlen(key);
	at[strcspn(at, "\n")] = '\0';
	do {
		long number = strtol(at, &end, 10);

		if (end == at)
			break;
		v = number;
		at = end;
	} while (last);
	return v;
}

int jit_find_identity(pid_t pid, struct jit_identity *ret)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st) < 0)
		return -errno;
	/* The last number is the pid in the innermost namespace. */
	*ret = (struct jit_identity){read_status(pid, "\nNSpid:", true), st.st_uid};
	return ret->nspid > 0 ? 0 : -ESRCH;
}

int jit_open_root(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int jit_open_perf_map(int root, const struct jit_identity *identity)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%ld.map", identity->nspid);
	fd = fr_foreign_open_below(root, path, &st);
	/* Any user can create a file with that name, and so give wrong names to the functions of other
	   users. */
	if (fd >= 0 && st.st_uid != identity->uid && st.st_uid != 0) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* Returns for how long the machine was suspended: the boot clock counts this time, and the monotonic clock
   does not. The thread may lose the processor between two reads of the clocks, so the smallest of several
   differences is taken. */
static uint64_t find_suspended_ns(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		const uint64_t monotonic = fr_monotonic_ns(), boot = fr_now_ns(CLOCK_BOOTTIME);

		least = FR_MIN(least, boot - monotonic);
	}
	return least;
}

uint64_t jit_start_time(pid_t pid)
{
	uint64_t ahead = find_suspended_ns(), start;
	const uint64_t tick = FR_NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	_cleanup_buf_ struct fr_buf b = {0};
	const char *at;

	if (read_proc(pid, "stat", &b) < 0)
		return 0;
	/* The start time is field 22. Field 2, in parentheses, can contain anything. */
	at = strrchr((const char *)b.data, ')');
	for (int field = 2; at && field < 22; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	start = at ? strtoull(at, NULL, 10) * tick : 0;
	return start > ahead + tick ? start - ahead - tick : 0;
}

uid_t jit_user_of(pid_t pid)
{
	return (uid_t)read_status(pid, "\nUid:", false);
}

bool jit_is_anonymous(const char *name)
{
	static const char *const prefixes[] = {
		"//anon", "/anon_hugepage", "/dev/zero", "/memfd:", "/SYSV", "[heap]", "[stack", "[anon"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

bool jit_is_executable(const struct fr_record_mmap2 *m)
{
	return m->header.type == PERF_RECORD_MMAP2 && m->prot & PROT_EXEC &&
	       (m->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER &&
	       fr_record_has_text(&m->header, m->filename);
}

bool jit_is_code_of_process(const struct fr_record_mmap2 *m)
{
	return jit_is_executable(m) && jit_is_anonymous(m->filename);
}
