// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/scan_bpf.h"
#include "base/cleanup.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define TEXTS_MAX 65536u
#define FUNCTIONS_MAX 1024u /* of one program */

static int grow(struct bpf_texts *t, size_t more, size_t *cap)
{
	struct bpf_text *grown;

	if (t->n + more <= *cap)
		return 0;
	*cap = FR_MAX(2 * *cap, t->n + more);
	grown = reallocarray(t->v, *cap, sizeof(*t->v));
	if (!grown)
		return -ENOMEM;
	t->v = grown;
	return 0;
}

/* The functions of the program behind FD, as far as the kernel tells them to us. */
static int add_program(struct bpf_texts *t, int fd, size_t *cap)
{
	uint64_t addrs[FUNCTIONS_MAX];
	uint32_t lens[FUNCTIONS_MAX], size, n;
	struct bpf_prog_info info = {.jited_ksyms = (uintptr_t)addrs,
		.jited_func_lens = (uintptr_t)lens,
		.nr_jited_ksyms = FUNCTIONS_MAX,
		.nr_jited_func_lens = FUNCTIONS_MAX};

	size = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return 0;
	n = FR_MIN(info.nr_jited_ksyms, info.nr_jited_func_lens);
	n = FR_MIN(n, FUNCTIONS_MAX);
	if (grow(t, n, cap) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (addrs[i] && lens[i])
			t->v[t->n++] = (struct bpf_text){addrs[i], lens[i]};
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct bpf_text *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int bpf_texts_gather(struct bpf_texts *ret)
{
	struct bpf_texts t = {0};
	size_t cap = 0;
	uint32_t id = 0;
	int r = 0;

	while (r == 0 && t.n < TEXTS_MAX && bpf_prog_get_next_id(id, &id) == 0) {
		_cleanup_close_ int fd = bpf_prog_get_fd_by_id(id);

		if (fd >= 0)
			r = add_program(&t, fd, &cap);
	}
	if (r < 0) {
		bpf_texts_deinit(&t);
		return r;
	}
	if (t.n)
		qsort(t.v, t.n, sizeof(*t.v), by_address);
	*ret = t;
	return 0;
}

void bpf_texts_deinit(struct bpf_texts *t)
{
	free(t->v);
	*t = (struct bpf_texts){0};
}

uint32_t bpf_texts_length(const struct bpf_texts *t, uint64_t addr)
{
	const struct bpf_text key = {.addr = addr},
			      *found = t->n ? bsearch(&key, t->v, t->n, sizeof(key), by_address) : NULL;

	return found ? found->len : 0;
}
