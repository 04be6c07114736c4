/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The descriptors that keep the BPF programs of a capture and their rings alive. If another process has them
 * (systemd's descriptor store), the programs go on making samples when the recorder has ended, and the next
 * instance takes the samples from the rings (docs/design/96).
 */

#include <stddef.h>

struct fr_buf;
struct fr_session;

enum fr_bpf_fd {
	FR_BPF_FD_SHARED, /* the map with struct fr_bpf_shared; one */
	FR_BPF_FD_RING,	  /* the ring maps */
	FR_BPF_FD_LINK,	  /* the links of the programs that make samples */
	FR_BPF_FD_GUARD,  /* the links of the unwinder's programs, without which user stacks could be wrong */
	FR_BPF_FD_LOST,	  /* the map with the losses of tracepoints (bpf_tracepoint.c) */
	FR_BPF_FD_SLEEPS, /* the table of sleeps of the event offcpu, which the next instance uses, too */
	_FR_BPF_FD_KINDS,
};

struct fr_bpf_fds {
	unsigned number; /* a capture with a larger number is younger */
	struct fr_bpf_fd_list {
		int *fds;
		size_t n;
	} of[_FR_BPF_FD_KINDS];
};

/* What an instance adopts from the previous one. */
struct fr_adoption {
	const struct fr_bpf_fds *sets; /* oldest first. The descriptors are duplicated */
	size_t n;
	const struct fr_session *session; /* the events of the previous instance */
	/* The newest samples of the history, at least FR_RUN_MAX bytes if there are so many. If the previous
	   instance was killed between the append of a run and the release of its records, the rings still
	   have records that are here, too. Such a record is not taken again. Borrowed until
	   fr_capture_end_adopted(). */
	const struct fr_buf *newest;
};

/* Appends FD. Returns 0 or -ENOMEM. */
int fr_bpf_fds_add(struct fr_bpf_fds *f, enum fr_bpf_fd kind, int fd);
/* Returns the number of all descriptors. */
size_t fr_bpf_fds_count(const struct fr_bpf_fds *f);
/* Frees the lists, without closing the descriptors. */
void fr_bpf_fds_free(struct fr_bpf_fds *f);
/* Does the same, but first closes the descriptors. */
void fr_bpf_fds_close(struct fr_bpf_fds *f);
