// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Does this kernel let our wish for build-ids spoil the records of others?
 *
 * The kernel makes one MMAP2 and sends it to one listener after the other, the newest first. Up to 6.18 at
 * least, perf_event_mmap_output() sets PERF_RECORD_MISC_MMAP_BUILD_ID in the shared header for a listener
 * with attr.build_id, and does not take it back: an older listener without build_id gets the flag over a
 * record that has device and inode instead, and perf record stops with a failed assertion. So before we ask
 * for it, two listeners of our own are tried; and where it is so, it matters whether somebody listens
 * already. Who comes later is not touched.
 */
#include "capture/capture.h"
#include "capture/event_internal.h"
#include "capture/perf_open.h"
#include "perfdata/record.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

struct listener {
	int fd;
	size_t bytes;
	struct perf_event_mmap_page *page;
};

static void listener_close(struct listener *l)
{
	if (l->page)
		munmap(l->page, l->bytes);
	fr_closep(&l->fd);
}

/* Of this thread alone, so that nobody else is disturbed by the trial. */
static int listener_open(struct listener *l, bool build_id)
{
	struct perf_event_attr a;
	void *p;

	fr_event_attr_init(&a);
	a.type = PERF_TYPE_SOFTWARE;
	a.config = PERF_COUNT_SW_DUMMY;
	a.sample_period = 1;
	a.mmap = a.mmap2 = 1;
	a.build_id = build_id;
	a.disabled = 0;
	a.inherit = 0; /* goes with no ring of cpu -1 */
	l->fd = fr_perf_open(&a, 0, -1, 0);
	if (l->fd < 0)
		return l->fd;
	l->bytes = 2 * (size_t)sysconf(_SC_PAGESIZE);
	p = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	l->page = p;
	return 0;
}

/* The flag on the first MMAP2 in L. -ENODATA where there is none. */
static int first_has_flag(const struct listener *l)
{
	const uint64_t head = __atomic_load_n(&l->page->data_head, __ATOMIC_ACQUIRE);
	const uint8_t *data = (const uint8_t *)l->page + l->bytes / 2;

	for (uint64_t at = 0; at + sizeof(struct perf_event_header) <= head && head <= l->bytes / 2;) {
		const struct perf_event_header *h = (const void *)(data + at);

		if (h->type == PERF_RECORD_MMAP2)
			return !!(h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID);
		if (h->size < sizeof(*h))
			break;
		at += h->size;
	}
	return -ENODATA;
}

int fr_capture_build_ids_leak(void)
{
	_cleanup_(listener_close) struct listener older = {.fd = -1}, newer = {.fd = -1};
	/* A file that has a build-id, as every program of a distribution, and of ours, has. */
	_cleanup_close_ int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *text;
	int r = listener_open(&older, false);

	if (r == 0)
		r = listener_open(&newer, true);
	if (r < 0)
		return r;
	text = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, 0);
	if (text == MAP_FAILED)
		return -errno;
	munmap(text, page);
	return first_has_flag(&older);
}

static bool has_perf_event(int proc_fd, const char *pid)
{
	char path[64], target[64];
	_cleanup_closedir_ DIR *dir = NULL;
	const struct dirent *e;

	snprintf(path, sizeof(path), "%.16s/fd", pid);
	dir = fr_opendir_at(proc_fd, path);
	while (dir && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		target[FR_MAX(n, (ssize_t)0)] = '\0';
		if (!strcmp(target, "anon_inode:[perf_event]"))
			return true;
	}
	return false;
}

pid_t fr_capture_find_other_recorder(void)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc");
	const struct dirent *e;
	uint64_t pid;

	while (dir && (e = readdir(dir)))
		if (fr_u64_parse(e->d_name, &pid) == 0 && (pid_t)pid != getpid() &&
			has_perf_event(dirfd(dir), e->d_name))
			return (pid_t)pid;
	return 0;
}
