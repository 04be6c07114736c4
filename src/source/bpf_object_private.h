/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "source/bpf_object.h"

#include <bpf/libbpf.h>

#define FR_BPF_LINKS_MAX 128

struct fr_bpf_object {
	struct bpf_object *libbpf;
	char *label;
	struct bpf_link *links[FR_BPF_LINKS_MAX];
	size_t n_links;
	bool classic;
	int empty_btf; /* memfd, or -1 */
};

/* bpf_programs.c: there is a program, and each says what it is. */
int fr_bpf_check_programs(const struct fr_bpf_object *o, struct fr_diag *d);
/* The tracepoint of PROGRAM's SEC(): "sched_switch", "sched:sched_switch"; NULL: it is of another kind. Into
   RET of SIZE. */
const char *fr_bpf_tracepoint_of(const struct bpf_program *program, char *ret, size_t size);

/* bpf_return.c: programs of classic tracepoints that are to be loaded return 1, whatever they were written
   to: the events are others', too. Before load. -E2BIG: one is too long for that. */
int fr_bpf_return_one(struct fr_bpf_object *o, struct fr_diag *d);

/* bpf_explain.c: CODE of a failed step in words. TEXT is what libbpf said. Return a code of ours. */
int fr_bpf_explain_open(const char *label, int code, const char *text, struct fr_diag *d);
int fr_bpf_explain_load(const char *label, int code, const char *text, struct fr_diag *d);
int fr_bpf_explain_attach(
	const char *label, const struct bpf_program *program, int code, const char *text, struct fr_diag *d);
