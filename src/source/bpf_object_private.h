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
	int empty_btf; /* a memfd with a BTF without types; -1: libbpf uses the kernel's BTF */
};

/* bpf_btf.c: returns -ENOEXEC or -ENOMEM, with a message in D, if libbpf could crash on the BTF of the object
   file BYTES. Returns 0 if BYTES have no BTF that can be read: libbpf refuses such a file itself. */
int fr_bpf_btf_check(const void *bytes, size_t n, const char *label, struct fr_diag *d);

/* bpf_switch.c: checks the names of the events that the object switches. If there are none, the object gets
   no map of the switches. Returns 0; or -ENOEXEC, with a message in D. */
int fr_bpf_check_switches(const struct fr_bpf_object *o, struct fr_diag *d);

/* bpf_programs.c: checks that the object has at least one program, and that libbpf knows the SEC() of each
   program. */
int fr_bpf_check_programs(const struct fr_bpf_object *o, struct fr_diag *d);
/* Writes the tracepoint of PROGRAM's SEC() into RET: "sched_switch", or "sched:sched_switch" for a classic
   tracepoint. Returns RET; or NULL if PROGRAM is not for a tracepoint. */
const char *fr_bpf_tracepoint_of(const struct bpf_program *program, char *ret, size_t size);

/* bpf_return.c: makes the chosen programs of classic tracepoints return 1, so that the programs do not hide
   events from other users of the tracepoint. Returns -E2BIG if a program is too long for this change. */
int fr_bpf_return_one(struct fr_bpf_object *o, struct fr_diag *d);

/* bpf_explain.c: each of the next three functions fills D after the step in its name has failed with CODE.
   TEXT is libbpf's output, or NULL. The functions return a negative errno, which can differ from CODE. */
int fr_bpf_explain_open(const char *label, int code, const char *text, struct fr_diag *d);
int fr_bpf_explain_load(const char *label, int code, const char *text, struct fr_diag *d);
int fr_bpf_explain_attach(
	const char *label, const struct bpf_program *program, int code, const char *text, struct fr_diag *d);
