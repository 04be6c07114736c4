// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/bpf_fds.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

int fr_bpf_fds_add(struct fr_bpf_fds *f, enum fr_bpf_fd kind, int fd)
{
	struct fr_bpf_fd_list *l = &f->of[kind];
	int *more;

	if (l->n % 64 == 0) {
		more = realloc(l->fds, (l->n + 64) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		l->fds = more;
	}
	l->fds[l->n++] = fd;
	return 0;
}

size_t fr_bpf_fds_count(const struct fr_bpf_fds *f)
{
	size_t n = 0;

	for (int kind = 0; kind < _FR_BPF_FD_KINDS; kind++)
		n += f->of[kind].n;
	return n;
}

void fr_bpf_fds_free(struct fr_bpf_fds *f)
{
	for (int kind = 0; kind < _FR_BPF_FD_KINDS; kind++)
		free(f->of[kind].fds);
	*f = (struct fr_bpf_fds){0};
}

void fr_bpf_fds_close(struct fr_bpf_fds *f)
{
	for (int kind = 0; kind < _FR_BPF_FD_KINDS; kind++)
		for (size_t i = 0; i < f->of[kind].n; i++)
			close(f->of[kind].fds[i]);
	fr_bpf_fds_free(f);
}
