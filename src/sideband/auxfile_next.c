// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/auxfile_internal.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/owner.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>

int fr_auxfile_next_create(struct fr_auxfile *a, const void *head, size_t len)
{
	int r = fr_tmp_create(a->dirfd, FR_AUXFILE_NAME, 0640, a->next.tmp, sizeof(a->next.tmp));

	a->next.fd = FR_MAX(r, -1);
	if (r < 0)
		return r;
	a->next.bytes = 0;
	a->next.follows = false;
	a->next.failed = 0;
	a->next.syncing = false;
	/* The file is locked before it gets the name perf.data.auxiliary, so no other process can lock it
	   first. */
	r = auxfile_lock(a->dirfd, a->next.fd, NULL);
	return r < 0 ? r : fr_auxfile_next_append(a, head, len);
}

int fr_auxfile_next_append(struct fr_auxfile *a, const void *data, size_t len)
{
	int r = len ? fr_pwrite_all(a->next.fd, data, len, (off_t)a->next.bytes) : 0;

	if (r == 0)
		a->next.bytes += len;
	return r;
}

uint64_t fr_auxfile_next_bytes(const struct fr_auxfile *a)
{
	return a->next.bytes;
}

/* Lets the kernel sync the next file in the background. A sync can take seconds, and the queues of the
   tracker would overflow if the tracker waited that long. Returns whether the sync was started. */
static bool start_sync(struct fr_auxfile *a)
{
	struct iocb *list = &a->next.request;

	if (!a->next.aio && syscall(SYS_io_setup, 1, &a->next.aio) < 0) {
		a->next.aio = 0;
		return false;
	}
	a->next.request = (struct iocb){.aio_lio_opcode = IOCB_CMD_FSYNC, .aio_fildes = (uint32_t)a->next.fd};
	return syscall(SYS_io_submit, a->next.aio, 1, &list) == 1;
}

int fr_auxfile_next_follow(struct fr_auxfile *a)
{
	a->next.follows = true;
	a->next.syncing = start_sync(a);
	if (!a->next.syncing && fsync(a->next.fd) < 0)
		return -errno;
	return 0;
}

/* Returns 1 if the next file is synced; 0 if the sync is not over yet; or a negative errno. */
static int is_synced(struct fr_auxfile *a)
{
	struct timespec no_wait = {0};
	struct io_event done;
	long n;

	if (!a->next.syncing)
		return 1;
	n = syscall(SYS_io_getevents, a->next.aio, 1, 1, &done, &no_wait);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n == 0)
		return 0;
	a->next.syncing = false;
	return done.res < 0 ? (int)done.res : 1;
}

void auxfile_switch_to_next(struct fr_auxfile *a)
{
	/* Closing the old file also unlocks it. The next file has the name now, and was locked when it was
	   created. */
	if (a->fd >= 0)
		close(a->fd);
	a->fd = TAKE_FD(a->next.fd);
	a->bytes = a->next.bytes;
	a->next.follows = false;
}

int fr_auxfile_next_commit(struct fr_auxfile *a)
{
	int r = a->next.failed ? a->next.failed : is_synced(a);

	if (r <= 0)
		return r;
	if (fr_auxfile_is_displaced(a)) {
		r = auxfile_claim_name(a, NULL);
		if (r != 0)
			return FR_MIN(r, 0);
	} else {
		(void)fr_owner_give(a->next.fd, (gid_t)-1);
		/* After a power cut, either the old or the next file has the name. Both files are
		   complete. */
		if (renameat(a->dirfd, a->next.tmp, a->dirfd, FR_AUXFILE_NAME) < 0)
			return -errno;
	}
	auxfile_switch_to_next(a);
	return 1;
}

static void end_aio(struct fr_auxfile *a)
{
	/* io_destroy() waits until a running sync is over. */
	if (a->next.aio)
		(void)syscall(SYS_io_destroy, a->next.aio);
	a->next.aio = 0;
	a->next.syncing = false;
}

void fr_auxfile_next_abandon(struct fr_auxfile *a)
{
	end_aio(a);
	if (a->next.fd < 0)
		return;
	(void)unlinkat(a->dirfd, a->next.tmp, 0);
	close(TAKE_FD(a->next.fd));
	a->next.follows = false;
}
