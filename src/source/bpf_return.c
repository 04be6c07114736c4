// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes programs of classic tracepoints return 1. If such a program returns 0, the kernel hides the event
 * from all perf users of the tracepoint. So each exit becomes a jump to two new instructions at the end:
 *
 *     … exit … exit      ─►      … goto end … goto end, end: r0 = 1, exit
 *
 * The other instructions stay in their places, so libbpf's relocations and line numbers stay valid.
 * Subprograms keep their results, because libbpf appends them later, when it loads the object.
 */
#include "base/cleanup.h"
#include "source/bpf_object_private.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

/* Redirects the exits in the N instructions at INSNS, and appends two instructions, for which INSNS has room.
   Returns 1 if there is an exit; 0 if not; or -E2BIG if an exit is too far from the end for a jump. */
static int redirect_exits(struct bpf_insn *insns, size_t n)
{
	bool has_exit = false;

	for (size_t i = 0; i < n; i++) {
		/* The second half of a 64-bit constant has code 0, so it is not an exit. */
		if (insns[i].code != (BPF_JMP | BPF_EXIT))
			continue;
		if (n - i - 1 > INT16_MAX)
			return -E2BIG;
		insns[i] = (struct bpf_insn){.code = BPF_JMP | BPF_JA, .off = (int16_t)(n - i - 1)};
		has_exit = true;
	}
	insns[n] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1};
	insns[n + 1] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
	return has_exit;
}

static int return_one(struct bpf_program *p)
{
	const size_t n = bpf_program__insn_cnt(p);
	_cleanup_free_ struct bpf_insn *insns = calloc(n + 2, sizeof(*insns));
	int r;

	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(p), n * sizeof(*insns));
	r = redirect_exits(insns, n);
	return r > 0 ? bpf_program__set_insns(p, insns, n + 2) : r;
}

int fr_bpf_return_one(struct fr_bpf_object *o, struct fr_diag *d)
{
	struct bpf_program *p;
	int r = 0;

	for (p = bpf_object__next_program(o->libbpf, NULL); p && r == 0;
		p = bpf_object__next_program(o->libbpf, p))
		if (bpf_program__autoload(p) && bpf_program__type(p) == BPF_PROG_TYPE_TRACEPOINT) {
			r = return_one(p);
			if (r == -E2BIG)
				fr_fail(d, r, "use SEC(\"tp_btf/...\") or SEC(\"raw_tp/...\")",
					"the program '%s' of %s is too long for a classic tracepoint",
					bpf_program__name(p), o->label);
		}
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot prepare %s", o->label) : 0;
}
