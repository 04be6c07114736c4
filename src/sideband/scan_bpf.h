/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* How long what BPF has compiled is, which /proc/kallsyms does not tell. */

#include <stddef.h>
#include <stdint.h>

struct bpf_text {
	uint64_t addr;
	uint32_t len;
};

struct bpf_texts {
	struct bpf_text *v; /* by address */
	size_t n;
};

/* Every function of every program that is loaded: 0, also where this is not permitted and there are none, or
   -ENOMEM. */
int bpf_texts_gather(struct bpf_texts *ret);
void bpf_texts_deinit(struct bpf_texts *t);

/* Of the function that begins at ADDR; 0: there is none. */
uint32_t bpf_texts_length(const struct bpf_texts *t, uint64_t addr);
