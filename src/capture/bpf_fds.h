/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The descriptors that keep the BPF programs of a capture and their rings alive. If another process has them
 * (systemd's descriptor store), the programs go on making samples when the recorder has ended, and the next
 * instance takes the samples from the rings (docs/design/96).
 */

#include <stddef.h>

struct fr_capture;

enum fr_bpf_fd {
	FR_BPF_FD_SHARED, /* the map with struct fr_bpf_shared; one */
	FR_BPF_FD_RING,	  /* the ring maps */
	FR_BPF_FD_LINK,	  /* the links of the programs that make samples */
	FR_BPF_FD_GUARD,  /* the links of the unwinder's programs, without which user stacks could be wrong */
	_FR_BPF_FD_KINDS,
};

struct fr_bpf_fds {
	unsigned number; /* a capture with a larger number is younger */
	struct fr_bpf_fd_list {
		int *fds;
		size_t n;
	} of[_FR_BPF_FD_KINDS];
};

/* Sets RET to the descriptors of C, which stay C's. The caller calls fr_bpf_fds_free(). Returns 0; -ENOENT if
   no BPF program makes samples; or -ENOMEM. */
int fr_capture_bpf_fds(const struct fr_capture *c, struct fr_bpf_fds *ret);

/* Appends FD. Returns 0 or -ENOMEM. */
int fr_bpf_fds_add(struct fr_bpf_fds *f, enum fr_bpf_fd kind, int fd);
/* Returns the number of all descriptors. */
size_t fr_bpf_fds_count(const struct fr_bpf_fds *f);
/* Frees the lists, without closing the descriptors. */
void fr_bpf_fds_free(struct fr_bpf_fds *f);
/* Does the same, but first closes the descriptors. */
void fr_bpf_fds_close(struct fr_bpf_fds *f);
