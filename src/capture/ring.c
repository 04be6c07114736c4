// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/ring.h"
#include "base/cleanup.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/mman.h>

int fr_ring_map(struct fr_ring *r, int fd, size_t bytes, bool overwrite)
{
	size_t page = sysconf(_SC_PAGESIZE);
	/* Without PROT_WRITE the kernel ignores data_tail, and overwrites the oldest records. */
	void *p = mmap(NULL, page + bytes, PROT_READ | (overwrite ? 0 : PROT_WRITE), MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	r->page = p;
	r->data = (const uint8_t *)p + page;
	r->size = bytes;
	r->tail = 0;
	return 0;
}

void fr_ring_unmap(struct fr_ring *r)
{
	if (r->page)
		munmap(r->page, (size_t)(r->data - (const uint8_t *)r->page) + r->size);
	r->page = NULL;
	free(r->fds);
	r->fds = NULL;
	r->n_fds = 0;
}

int fr_ring_add_fd(struct fr_ring *r, int fd)
{
	int *fds;

	/* The array grows when the number of fds is a power of two. */
	if (!(r->n_fds & (r->n_fds - 1))) {
		fds = reallocarray(r->fds, r->n_fds ? 2 * r->n_fds : 1, sizeof(*fds));
		if (!fds)
			return -ENOMEM;
		r->fds = fds;
	}
	r->fds[r->n_fds++] = fd;
	return 0;
}

int fr_ring_add_to_epoll(struct fr_ring *r)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = r};

	for (; r->polled < r->n_fds; r->polled++)
		if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->fds[r->polled], &e) == 0)
			return 0;
	return r->n_fds ? -errno : 0;
}

void fr_ring_handle_hang_up(struct fr_ring *r)
{
	if (r->polled >= r->n_fds)
		return;
	epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, r->fds[r->polled], NULL);
	r->polled++;
	if (r->polled < r->n_fds)
		fr_ring_add_to_epoll(r);
}
