/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Loads a slow BPF program that runs at every system call. Then makes system calls for SECONDS (its argument,
 * default 1), or until a SIGTERM. Exit code 77: BPF is not permitted.
 */

#include "load.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>

#define WORK 3000u /* instructions of the BPF program */

int main(int argc, char *argv[])
{
	uint64_t ns = argc > 1 ? fr_load_seconds(argv[1]) : 1000000000ULL, end, calls = 0;
	struct bpf_insn code[WORK + 2];
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	int prog;

	code[0] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K};
	for (unsigned i = 1; i <= WORK; i++)
		code[i] = (struct bpf_insn){.code = BPF_ALU64 | BPF_ADD | BPF_K, .imm = (int)i};
	code[WORK + 1] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
	prog = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "frtest_bpf", "GPL", code, WORK + 2, NULL);
	if (prog < 0 || bpf_raw_tracepoint_open("sys_enter", prog) < 0) {
		warn("BPF is not permitted");
		return 77;
	}
	if (bpf_obj_get_info_by_fd(prog, &info, &len) < 0)
		err(1, "bpf_obj_get_info_by_fd");
	fr_load_count_terms();
	end = fr_load_now_ns() + ns;
	while (!fr_load_terms && fr_load_now_ns() < end)
		for (int i = 0; i < 100; i++, calls++)
			(void)getppid();
	printf("{\"pid\":%d,\"prog\":%u,\"calls\":%" PRIu64 "}\n", getpid(), info.id, calls);
	return 0;
}
