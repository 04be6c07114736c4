/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Writes a jitdump (perf's Documentation/jitdump-specification.txt). If a function fails, it ends the
   program. */

#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct jitdump_header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};

struct jitdump_load {
	uint32_t id, total_size;
	uint64_t timestamp;
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

/* Create DIRECTORY/jit-PID.dump, and write this path into PATH. Map the file as executable, so that profilers
   notice it. Returns its file descriptor. */
static inline int jitdump_create(
	const char *directory, uint32_t machine, uint64_t now_ns, char path[static 4096])
{
	const struct jitdump_header h = {0x4A695444, 1, sizeof(h), machine, 0, (uint32_t)getpid(), now_ns, 0};
	int fd;

	snprintf(path, 4096, "%s/jit-%d.dump", directory, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, &h, sizeof(h)) < 0 ||
		/* cppcheck-suppress leakReturnValNotUsed ; perf looks for the mapping, nobody reads it */
		mmap(NULL, (size_t)getpagesize(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		err(1, "%s", path);
	return fd;
}

/* Append the function NAME, which is at CODE. Only the main thread may call jitdump_add(). */
static inline void jitdump_add(int fd, const char *name, const void *code, size_t len, uint64_t now_ns)
{
	static uint64_t index;
	const uint64_t at = (uintptr_t)code;
	const struct jitdump_load l = {0, (uint32_t)(sizeof(l) + strlen(name) + 1 + len), now_ns,
		(uint32_t)getpid(), (uint32_t)getpid(), at, at, len, index++};

	if (write(fd, &l, sizeof(l)) < 0 || write(fd, name, strlen(name) + 1) < 0 || write(fd, code, len) < 0)
		err(1, "jitdump");
}
