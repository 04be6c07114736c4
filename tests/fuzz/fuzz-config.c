// SPDX-License-Identifier: GPL-2.0-or-later

/* Reads a configuration file with any content. It is accepted, or refused with the number of a line. */

#include "base/cleanup.h"
#include "config/config_private.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fr_config c;
	struct fr_diag d = {0};
	FILE *f;
	int r;

	if (size == 0 || size > 65536)
		return 0;
	f = fmemopen((void *)data, size, "r");
	if (!f)
		return 0;
	fr_config_init(&c);
	r = fr_config_read(&c, f, "fuzz", &d);
	if (r == -EINVAL && (strncmp(d.what, "fuzz:", 5) || d.what[5] < '1' || d.what[5] > '9'))
		abort();
	if (r == 0)
		(void)fr_config_check(&c, &d);
	fr_config_deinit(&c);
	fclose(f);
	return 0;
}
