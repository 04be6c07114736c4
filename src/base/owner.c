// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/owner.h"
#include "base/cleanup.h"
#include "base/thread.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLAGS (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

static bool gives_to_root;

static int set_chown(capng_act_t action, capng_type_t sets)
{
	if (capng_get_caps_process() < 0 || capng_update(action, sets, CAP_CHOWN) < 0 ||
		capng_apply(CAPNG_SELECT_CAPS) < 0)
		return -EPERM;
	return 0;
}

bool fr_owner_init(void)
{
	gives_to_root = false;
	if (geteuid() == 0 || capng_get_caps_process() < 0 ||
		!capng_have_capability(CAPNG_PERMITTED, CAP_CHOWN))
		return false;
	/* A capability that is not inheritable is not ambient either, so programs that this process executes
	   do not get CAP_CHOWN. */
	gives_to_root = set_chown(CAPNG_DROP, CAPNG_EFFECTIVE | CAPNG_INHERITABLE) == 0;
	return gives_to_root;
}

/* Uses CAP_CHOWN only in this thread: each thread has its own effective capabilities. */
static int change_user(int fd, uid_t uid)
{
	int r = set_chown(CAPNG_ADD, CAPNG_EFFECTIVE);

	if (r < 0)
		return r;
	if (fchown(fd, uid, (gid_t)-1) < 0)
		r = -errno;
	(void)set_chown(CAPNG_DROP, CAPNG_EFFECTIVE);
	return r;
}

int fr_owner_give(int fd, gid_t gid)
{
	if (gid != (gid_t)-1 && fchown(fd, (uid_t)-1, gid) < 0)
		return -errno;
	return gives_to_root ? change_user(fd, 0) : 0;
}

/* Opens the file of FD again, for writing. During the open, the file belongs to this user. */
static int reopen_for_writing(int fd)
{
	char link[64];
	struct stat st;
	int again, r;

	if (fstat(fd, &st) < 0)
		return -errno;
	/* This service makes no hard links, so a file with a second link is not its own. */
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || st.st_nlink != 1)
		return -EACCES;
	r = change_user(fd, geteuid());
	if (r < 0)
		return r;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	again = open(link, O_RDWR | (FLAGS & ~O_NOFOLLOW));
	r = again < 0 ? -errno : again;
	(void)change_user(fd, 0);
	return r;
}

int fr_owner_open(int dirfd, const char *name)
{
	_cleanup_close_ int given = -1;
	int fd;

	fr_thread_assert_may_wait();
	fd = openat(dirfd, name, O_RDWR | FLAGS);
	if (fd >= 0 || errno != EACCES || !gives_to_root)
		return fd < 0 ? -errno : fd;
	given = openat(dirfd, name, O_RDONLY | FLAGS);
	return given < 0 ? -errno : reopen_for_writing(given);
}
