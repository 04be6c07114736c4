/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A fast look at a manifest, for lists of many. It checks less than fr_fleet_manifest_read(), and it knows
   only the form in which fr_fleet_manifest_json() writes. */

#include "fleet/message.h"

struct fr_json_slice {
	const char *s; /* borrowed from the message; not ended by NUL */
	size_t n;
};

struct fr_manifest_scan {
	uint64_t bytes;
	struct fr_json_slice trigger, cause, by; /* with the escapes of JSON; n 0: none */
};

/* Returns 0 or -EBADMSG. */
int fr_manifest_scan(const char *data, size_t n, struct fr_manifest_scan *ret);
/* Writes the text without escapes and control characters, cut to SIZE. A text that cannot be read is "". */
void fr_json_slice_text(struct fr_json_slice v, char *ret, size_t size);
