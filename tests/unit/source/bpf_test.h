/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that the tests of BPF objects share. */

#include "heard.h"

#define OBJECT(name) FR_TEST_BPF "/" name ".bpf.o"

/* Skips the test if BPF programs cannot be loaded here. */
static inline void need_bpf(void)
{
	if (geteuid() != 0)
		unit_skip("BPF programs need root");
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		unit_skip("this kernel has no BTF");
}

static inline void init_program(struct heard *h, const char *path)
{
	heard_init(h, FR_TRIGGER_PROGRAM);
	h->config.subject = (char *)path;
	h->config.cooldown_ns = 0;
}

static inline void end_well(struct child *c)
{
	child_end(c, true);
	assert_int_equal(c->status, 0);
}
