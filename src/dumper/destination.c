// SPDX-License-Identifier: GPL-2.0-or-later
#include "dumper/destination.h"
#include "base/cleanup.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <unistd.h>

int fr_destination_open(const char *path, int *ret, struct fr_diag *d)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return fr_fail_errno(d, -ENOENT,
			"make it with mkdir -p, or name another directory with -o or Directory=",
			"cannot record to %s", path);
	if (fd < 0)
		return fr_fail_errno(d, -errno,
			"name another directory with -o or Directory=", "cannot record to %s", path);
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return fr_fail_errno(d, -errno,
			"run as a user who may write there, or name another directory with -o or Directory=",
			"cannot write to %s", path);
	*ret = TAKE_FD(fd);
	return 0;
}

/* Returns whether this process may give files to GID. Without CAP_CHOWN, its user has to be a member of the
   group. */
static bool may_give_to(gid_t gid)
{
	capng_get_caps_process();
	return capng_have_capability(CAPNG_EFFECTIVE, CAP_CHOWN) || gid == getegid() || group_member(gid);
}

gid_t fr_destination_group(const char *name)
{
	struct group *g = *name ? getgrnam(name) : NULL;

	return g && may_give_to(g->gr_gid) ? g->gr_gid : (gid_t)-1;
}
