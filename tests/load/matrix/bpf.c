/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Runs a BPF program by BPF_PROG_TEST_RUN. The kernel compiles the BPF program to a function, which no longer
 * exists when this process has ended. Exit code 77: this machine has no BPF, or interprets BPF programs.
 */

#include "phase.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>

#define EXIT_SKIP 77
#define INSNS 4000
#define NAME "frtest_bpf"

/* Load a BPF program that does "r0 = 1", then many times "r0 *= 3", and returns r0. Returns the program's
   file descriptor. */
static int load_program(void)
{
	static struct bpf_insn insns[INSNS];
	int fd;

	insns[0] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1};
	for (size_t i = 1; i < INSNS - 1; i++)
		insns[i] = (struct bpf_insn){
			.code = BPF_ALU64 | BPF_MUL | BPF_K, .dst_reg = BPF_REG_0, .imm = 3};
	insns[INSNS - 1] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
	fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, NAME, "GPL", insns, INSNS, NULL);
	if (fd < 0)
		err(errno == EPERM || errno == ENOSYS ? EXIT_SKIP : EXIT_FAILURE, "BPF_PROG_LOAD");
	return fd;
}

/* Write into RET the name that the kernel gives to the function: bpf_prog_TAG_NAME. */
static void get_name(int fd, char *ret, size_t size)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	char tag[2 * BPF_TAG_SIZE + 1];

	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		err(EXIT_FAILURE, "BPF_OBJ_GET_INFO_BY_FD");
	if (!info.jited_prog_len)
		errx(EXIT_SKIP, "BPF programs are interpreted here");
	for (size_t i = 0; i < BPF_TAG_SIZE; i++)
		snprintf(tag + 2 * i, 3, "%02x", info.tag[i]);
	snprintf(ret, size, "bpf_prog_%s_%s", tag, NAME);
}

static void run(int fd)
{
	static char packet[64];
	uint64_t end = fr_phase_cpu_ns() + 2 * fr_phase_ms() * 1000000;

	do {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
			.repeat = 1000);

		if (bpf_prog_test_run_opts(fd, &opts) < 0)
			err(EXIT_FAILURE, "BPF_PROG_TEST_RUN");
	} while (fr_phase_cpu_ns() < end);
}

int main(void)
{
	char name[64];
	int fd = load_program();

	get_name(fd, name, sizeof(name));
	uint64_t begin = fr_phase_now_ns();
	run(fd);
	fr_phase_report(begin, name, "kernel");
	return EXIT_SUCCESS;
}
