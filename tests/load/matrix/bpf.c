/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A BPF program, run by BPF_PROG_TEST_RUN: the kernel's own code grows by a function, which is gone when this
 * ends. Exits with 77 where BPF or its compiler is not to be had.
 */

#include "phase.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXIT_SKIP 77
#define INSNS 4000
#define NAME "frtest_bpf"

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* r0 = 1; r0 *= 3, again and again; return r0. */
static int load_program(void)
{
	static struct bpf_insn insns[INSNS];
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uintptr_t)insns,
		.insn_cnt = INSNS,
		.license = (uintptr_t) "GPL"};

	insns[0] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1};
	for (size_t i = 1; i < INSNS - 1; i++)
		insns[i] = (struct bpf_insn){
			.code = BPF_ALU64 | BPF_MUL | BPF_K, .dst_reg = BPF_REG_0, .imm = 3};
	insns[INSNS - 1] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
	memcpy(attr.prog_name, NAME, sizeof(NAME));
	int fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0 && (errno == EPERM || errno == ENOSYS)) {
		warn("BPF");
		exit(EXIT_SKIP);
	}
	if (fd < 0)
		err(EXIT_FAILURE, "BPF_PROG_LOAD");
	return fd;
}

/* The name that the kernel gives it: bpf_prog_TAG_NAME. */
static void name_of(int fd, char *ret, size_t size)
{
	struct bpf_prog_info info = {0};
	union bpf_attr attr = {
		.info = {.bpf_fd = (uint32_t)fd, .info_len = sizeof(info), .info = (uintptr_t)&info}};
	char tag[2 * BPF_TAG_SIZE + 1];

	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) < 0)
		err(EXIT_FAILURE, "BPF_OBJ_GET_INFO_BY_FD");
	if (!info.jited_prog_len) {
		warnx("BPF programs are interpreted here");
		exit(EXIT_SKIP);
	}
	for (size_t i = 0; i < BPF_TAG_SIZE; i++)
		snprintf(tag + 2 * i, 3, "%02x", info.tag[i]);
	snprintf(ret, size, "bpf_prog_%s_%s", tag, NAME);
}

static void run(int fd)
{
	static char packet[64];
	union bpf_attr attr = {.test = {.prog_fd = (uint32_t)fd,
				       .data_in = (uintptr_t)packet,
				       .data_size_in = sizeof(packet),
				       .repeat = 1000}};
	uint64_t end = fr_phase_cpu_ns() + 2 * fr_phase_ms() * 1000000;

	do {
		if (bpf(BPF_PROG_TEST_RUN, &attr) < 0)
			err(EXIT_FAILURE, "BPF_PROG_TEST_RUN");
	} while (fr_phase_cpu_ns() < end);
}

int main(void)
{
	char name[64];
	int fd = load_program();

	name_of(fd, name, sizeof(name));
	uint64_t begin = fr_phase_now_ns();
	run(fd);
	fr_phase_tell(begin, name, "kernel");
	return EXIT_SUCCESS;
}
