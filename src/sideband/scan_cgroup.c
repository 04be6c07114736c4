// SPDX-License-Identifier: GPL-2.0-or-later
/* The cgroup2 hierarchy: the path of each cgroup, and its id as samples carry it. */
#include "sideband/scan_internal.h"

#include <errno.h>
#include <fts.h>
#include <string.h>

#define CGROUPS_MAX 16384

int scan_cgroups(struct scan *s, const char *root)
{
	char *roots[] = {(char *)root, NULL};
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT | FTS_XDEV, NULL);
	const FTSENT *e;
	unsigned n = 0;
	int r = 0;

	if (!tree)
		return -errno;
	while (r == 0 && n < CGROUPS_MAX && (e = fts_read(tree))) {
		const char *path = e->fts_path + strlen(root);

		if (e->fts_info != FTS_D)
			continue;
		path = path[0] ? path : "/";
		/* The inode number of a cgroup is its id. */
		r = scan_put(s, fr_emit_cgroup(&s->emit, e->fts_ino, path, strlen(path)));
		n++;
	}
	fts_close(tree);
	return r;
}
