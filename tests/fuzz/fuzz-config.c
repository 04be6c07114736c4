// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input as a configuration file. The file is accepted, or is refused with the number of a line. */

#include "config/config_private.h"
#include "fuzz.h"

#include <errno.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *f = size > 0 && size <= 65536 ? fmemopen((void *)data, size, "r") : NULL;
	struct fr_diag d = {0};
	struct fr_config c;
	int r;

	if (!f)
		return 0;
	fr_config_init(&c);
	r = fr_config_read(&c, f, "fuzz", &d);
	check(r != -EINVAL || (strncmp(d.what, "fuzz:", 5) == 0 && d.what[5] >= '1' && d.what[5] <= '9'));
	if (r == 0)
		(void)fr_config_check(&c, &d);
	fr_config_deinit(&c);
	fclose(f);
	return 0;
}
