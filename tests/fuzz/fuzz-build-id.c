// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input as an object file of a process. The file has a build-id, has none, or is refused by
   -ENOEXEC. */

#include "fuzz.h"
#include "sideband/buildid.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t id[FR_BUILD_ID_MAX];
	int fd = make_memfd(data, size), r = fr_build_id_read(fd, id);

	check(r <= FR_BUILD_ID_MAX && (r >= 0 || r == -ENOEXEC));
	close(fd);
	return 0;
}
