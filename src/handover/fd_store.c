// SPDX-License-Identifier: GPL-2.0-or-later
#include "handover/fd_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

/* All names of ours begin so. The names of sockets do not: that of flightrecd.socket is "control". */
#define NAME_PREFIX "flightrec-"
#define PART_NAME "flightrec-part-"

/* True: this process has closed the descriptors of ring and state that the service manager passed.
   LISTEN_FDS stays set, because other code looks for its own descriptors there. */
static bool passed_are_closed;

bool fr_fd_store_is_released(void)
{
	return passed_are_closed;
}

int fr_fd_store_dup(const char *name)
{
	char **names = NULL;
	int n = passed_are_closed ? 0 : sd_listen_fds_with_names(0, &names), fd = -1;

	for (int i = 0; i < n; i++) {
		if (!strcmp(names[i], name))
			fd = SD_LISTEN_FDS_START + i;
		free(names[i]);
	}
	free(names);
	if (fd < 0)
		return -ENOENT;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

void fr_fd_store_remove(const char *name)
{
	(void)sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}

int fr_fd_store_put(const char *name, int fd)
{
	char text[64 + FR_STATE_NAME_MAX];

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name);
	return sd_pid_notify_with_fds(0, 0, text, &fd, 1);
}

void fr_fd_store_name_ring(char ret[static FR_STATE_NAME_MAX], unsigned number)
{
	snprintf(ret, FR_STATE_NAME_MAX, FR_FD_STORE_RING "%u", number);
}

void fr_fd_store_name_part(char ret[static FR_STATE_NAME_MAX], unsigned number)
{
	snprintf(ret, FR_STATE_NAME_MAX, PART_NAME "%u", number);
}

unsigned fr_fd_store_release(fr_fd_store_used is_used, const void *ctx)
{
	char **names = NULL;
	int n = passed_are_closed ? 0 : sd_listen_fds_with_names(0, &names);
	unsigned removed = 0;

	passed_are_closed = true;
	for (int i = 0; i < n; i++) {
		if (!strncmp(names[i], NAME_PREFIX, strlen(NAME_PREFIX))) {
			close(SD_LISTEN_FDS_START + i);
			if (!is_used(ctx, names[i])) {
				fr_fd_store_remove(names[i]);
				removed++;
			}
		}
		free(names[i]);
	}
	free(names);
	return removed;
}
