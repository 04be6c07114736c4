// SPDX-License-Identifier: GPL-2.0-or-later

/* Any bytes as an object file of any process: its build-id, none, or refused. */

#include "sideband/buildid.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t id[FR_BUILD_ID_MAX];
	int fd = memfd_create("object", MFD_CLOEXEC), r;

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size)) {
		close(fd);
		return 0;
	}
	r = fr_build_id_read(fd, id);
	if (r > FR_BUILD_ID_MAX || (r < 0 && r != -ENOEXEC))
		abort();
	close(fd);
	return 0;
}
