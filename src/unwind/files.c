// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/files.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "unwind/object_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Twice the longest tick of the kernel, by which it counts the times of files. */
#define TICK_NS (20 * FR_NSEC_PER_MSEC)
#define AGAIN_NS (200 * FR_NSEC_PER_MSEC)
#define RETRY_NS (10 * FR_NSEC_PER_SEC)

/* Reads how the kernel knows the file FD. A map of data makes no side-band. */
static int ask(const struct fr_unwind_kernel *kernel, int fd, struct fr_unwind_file *ret)
{
	void *map = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	int r;

	if (map == MAP_FAILED)
		return -errno;
	r = fr_unwind_kernel_ask_file(kernel, map, ret);
	munmap(map, 1);
	return r;
}

/* Returns 0; -EAGAIN if FD has changed since a tick before SINCE_NS, so that a later change can have the same
   time of change; or another negative errno. */
static int check_age(int fd, uint64_t since_ns)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_ctim.tv_sec < 0 ||
		(uint64_t)st.st_ctim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_ctim.tv_nsec + TICK_NS >
			since_ns)
		return -EAGAIN;
	return 0;
}

/* The file must be the same from the check of its content to the answer of the kernel. */
static int learn(const struct fr_unwind_objects *o, const struct fr_unwind_kernel *kernel,
	const struct fr_unwind_known *k)
{
	const struct fr_unwind_file_object object = fr_unwind_objects_name(o, k);
	const uint64_t since_ns = fr_now_ns(CLOCK_REALTIME);
	struct fr_unwind_file file = {0};
	_cleanup_close_ int fd = -1;
	int r;

	if (k->key.is_vdso)
		return fr_unwind_kernel_add_file(kernel, &file, &object);
	fd = fr_unwind_object_file_open_missed(k);
	if (fd < 0)
		return fd;
	r = ask(kernel, fd, &file);
	if (r == 0)
		r = check_age(fd, since_ns);
	return r < 0 ? r : fr_unwind_kernel_add_file(kernel, &file, &object);
}

bool fr_unwind_files_learn_one(
	struct fr_unwind_objects *o, const struct fr_unwind_kernel *kernel, uint64_t now_ns)
{
	struct fr_unwind_known *k = fr_unwind_objects_most_missed(o, now_ns);
	int r;

	if (!k)
		return false;
	r = learn(o, kernel, k);
	if (r != -EAGAIN)
		k->misses = 0;
	k->learn_ns = fr_monotonic_ns() + (r == 0 || r == -EAGAIN ? AGAIN_NS : RETRY_NS);
	return true;
}
