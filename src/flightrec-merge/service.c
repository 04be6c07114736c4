// SPDX-License-Identifier: GPL-2.0-or-later
#include "service.h"
#include "base/cleanup.h"
#include "base/service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

/* A recorder locks the auxiliary file for as long as it runs. Anything else is for the merge to explain. */
static bool is_recorded_to(const char *directory)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/perf.data.auxiliary", directory) >= sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

const char *service_why_not(const char *directory)
{
	const char *result = getenv("SERVICE_RESULT");
	enum fr_service_job job = FR_SERVICE_NO_JOB;

	if (is_recorded_to(directory))
		return "another flightrecd records to the directory";
	/* Without a bus there is but the result to go by. */
	(void)fr_service_get_job(&job);
	if (job == FR_SERVICE_RESTART)
		return "the recorder is about to be started again";
	/* Restart= follows a failure that no stop was asked for; where it has given up, the files wait for
	   the next stop, or for a person. */
	if (job != FR_SERVICE_STOP && result && strcmp(result, "success") != 0)
		return "the recorder failed, and Restart= may start it again";
	return NULL;
}
