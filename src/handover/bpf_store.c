// SPDX-License-Identifier: GPL-2.0-or-later
#include "handover/bpf_store.h"
#include "handover/fd_store.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <systemd/sd-daemon.h>

/* The kernel passes at most 253 descriptors with one message (SCM_MAX_FD). */
#define FDS_PER_MESSAGE 200u
#define SETS_MAX 64u
#define NAME_MAX_BYTES 64

static const char *const kinds[_FR_BPF_FD_KINDS] = {
	[FR_BPF_FD_SHARED] = "shared",
	[FR_BPF_FD_RING] = "ring",
	[FR_BPF_FD_LINK] = "link",
	[FR_BPF_FD_GUARD] = "guard",
	[FR_BPF_FD_LOST] = "lost",
	[FR_BPF_FD_SLEEPS] = "sleeps",
};

/* Returns the kind of the descriptor NAME, and its number in *RET_NUMBER; or -EINVAL. */
static int parse_name(const char *name, unsigned *ret_number)
{
	char kind[16];

	if (sscanf(name, FR_BPF_STORE_PREFIX "%u-%15s", ret_number, kind) == 2 && *ret_number)
		for (int i = 0; i < _FR_BPF_FD_KINDS; i++)
			if (!strcmp(kind, kinds[i]))
				return i;
	return -EINVAL;
}

bool fr_bpf_store_knows(const char *name)
{
	unsigned number;

	return parse_name(name, &number) >= 0;
}

/* Returns the set NUMBER, which is made if there is none; or NULL if there is no memory. */
static struct fr_bpf_fds *find_or_add_set(struct fr_bpf_store *s, unsigned number)
{
	size_t at = s->n_old;
	struct fr_bpf_fds *more;

	while (at > 0 && s->old[at - 1].number > number)
		at--;
	if (at > 0 && s->old[at - 1].number == number)
		return &s->old[at - 1];
	more = s->n_old < SETS_MAX ? realloc(s->old, (s->n_old + 1) * sizeof(*more)) : NULL;
	if (!more)
		return NULL;
	s->old = more;
	memmove(&more[at + 1], &more[at], (s->n_old - at) * sizeof(*more));
	s->n_old++;
	more[at] = (struct fr_bpf_fds){.number = number};
	return &more[at];
}

static int receive_one(struct fr_bpf_store *s, const char *name, int passed)
{
	_cleanup_close_ int fd = -1;
	struct fr_bpf_fds *set;
	unsigned number;
	int kind = parse_name(name, &number), r;

	if (kind < 0)
		return 0;
	s->newest = FR_MAX(s->newest, number);
	fd = fcntl(passed, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	set = find_or_add_set(s, number);
	r = set ? fr_bpf_fds_add(set, (enum fr_bpf_fd)kind, fd) : -ENOMEM;
	if (r == 0)
		TAKE_FD(fd);
	return r;
}

static void close_old(struct fr_bpf_store *s)
{
	for (size_t i = 0; i < s->n_old; i++)
		fr_bpf_fds_close(&s->old[i]);
	free(TAKE_PTR(s->old));
	s->n_old = 0;
}

int fr_bpf_store_receive(struct fr_bpf_store *s)
{
	char **names = NULL;
	const int n = sd_listen_fds_with_names(0, &names);
	int r = 0;

	for (int i = 0; i < n; i++) {
		const int one = receive_one(s, names[i], SD_LISTEN_FDS_START + i);

		r = FR_MIN(r, one);
		free(names[i]);
	}
	free(names);
	if (r < 0)
		close_old(s);
	return r;
}

int fr_bpf_store_sleeps(const struct fr_bpf_store *s)
{
	int fd = -1;

	for (size_t i = 0; i < s->n_old; i++)
		if (s->old[i].of[FR_BPF_FD_SLEEPS].n)
			fd = s->old[i].of[FR_BPF_FD_SLEEPS].fds[0];
	return fd;
}

static void make_name(char ret[static NAME_MAX_BYTES], unsigned number, enum fr_bpf_fd kind)
{
	snprintf(ret, NAME_MAX_BYTES, FR_BPF_STORE_PREFIX "%u-%s", number, kinds[kind]);
}

static void remove_kind(unsigned number, enum fr_bpf_fd kind)
{
	char name[NAME_MAX_BYTES];

	make_name(name, number, kind);
	fr_fd_store_remove(name);
}

/* FDPOLL=0: systemd polls a stored descriptor, and drops it on EPOLLERR, which is what the kernel returns for
   BPF maps that cannot be polled. */
static int put_kind(unsigned number, enum fr_bpf_fd kind, const struct fr_bpf_fd_list *l)
{
	char name[NAME_MAX_BYTES], text[NAME_MAX_BYTES + 32];
	int r = 0;

	make_name(name, number, kind);
	snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	for (size_t at = 0; r >= 0 && at < l->n; at += FDS_PER_MESSAGE)
		r = sd_pid_notify_with_fds(
			0, 0, text, &l->fds[at], (unsigned)FR_MIN(l->n - at, (size_t)FDS_PER_MESSAGE));
	return r;
}

/* Since version 254, systemd tells how many descriptors its store takes. */
static bool has_room(size_t n)
{
	const char *max = getenv("FDSTORE");

	return !max || n <= strtoul(max, NULL, 10);
}

int fr_bpf_store_put(struct fr_bpf_store *s, const struct fr_bpf_fds *fds, struct fr_diag *d)
{
	const unsigned number = s->newest + 1;
	int r = 0;

	if (!has_room(fr_bpf_fds_count(fds)))
		return fr_fail(d, -ENOSPC, "raise FileDescriptorStoreMax= in the unit file",
			"the descriptor store has no room for %zu descriptors", fr_bpf_fds_count(fds));
	s->newest = number;
	for (int kind = 0; r >= 0 && kind < _FR_BPF_FD_KINDS; kind++)
		if (kind != FR_BPF_FD_GUARD || !s->guards)
			r = put_kind(number, (enum fr_bpf_fd)kind, &fds->of[kind]);
	if (r < 0) {
		for (int kind = 0; kind < _FR_BPF_FD_KINDS; kind++)
			remove_kind(number, (enum fr_bpf_fd)kind);
		return fr_fail_errno(d, r, NULL, "cannot put BPF programs into the descriptor store");
	}
	if (!s->guards && fds->of[FR_BPF_FD_GUARD].n)
		s->guards = number;
	return (int)number;
}

void fr_bpf_store_remove(struct fr_bpf_store *s, unsigned number)
{
	for (int kind = 0; number && kind < _FR_BPF_FD_KINDS; kind++)
		if (kind != FR_BPF_FD_GUARD)
			remove_kind(number, (enum fr_bpf_fd)kind);
	if (s->current == number)
		s->current = 0;
}

void fr_bpf_store_remove_old(struct fr_bpf_store *s)
{
	for (size_t i = 0; i < s->n_old; i++)
		for (int kind = 0; kind < _FR_BPF_FD_KINDS; kind++)
			if (s->old[i].of[kind].n)
				remove_kind(s->old[i].number, (enum fr_bpf_fd)kind);
	close_old(s);
}

void fr_bpf_store_remove_own(struct fr_bpf_store *s)
{
	fr_bpf_store_remove(s, s->current);
	if (s->guards)
		remove_kind(s->guards, FR_BPF_FD_GUARD);
	s->guards = 0;
}

void fr_bpf_store_close(struct fr_bpf_store *s)
{
	close_old(s);
	*s = (struct fr_bpf_store){0};
}
