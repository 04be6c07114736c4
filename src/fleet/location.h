/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Upload=s3://BUCKET/PREFIX, and the keys of the objects: PREFIX/ID/MACHINE/perf.data.sample.TIME (MACHINE as
   a token), with .json, .kallsyms and .manifest.json beside it. */

#include "fleet/fleet.h"

struct fr_fleet_location {
	char bucket[64], prefix[256]; /* the prefix has no '/' at its ends; it may be "" */
};
/* Parses "s3://BUCKET/PREFIX". Returns 0; or -EINVAL with a message in D. */
int fr_fleet_location_parse(const char *text, struct fr_fleet_location *ret, struct fr_diag *d);
/* Makes the key of FILE. Returns 0; or -ENAMETOOLONG if it does not fit. */
int fr_fleet_key(const struct fr_fleet_location *l, const char *id, const char *machine, const char *file,
	char *ret, size_t size);
/* Returns whether KEY is a key of a file of the machine and id, as fr_fleet_key() makes it: the index can be
   hostile, so nobody follows a key that is not. */
bool fr_fleet_key_is_valid(
	const struct fr_fleet_location *l, const char *id, const char *machine, const char *key);
