// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Times of CLOCK_MONOTONIC, process ids and addresses mean something within one boot of one machine only. The
 * boot id stands in the JSON beside a dump; a file that comes alone tells by CLOCK_DATA when its clock
 * started, and by HOSTNAME and OSRELEASE where.
 */

#include "base/clock.h"
#include "merge/input.h"
#include "perfdata/features.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far wall time may be set while a machine runs, before it counts as another boot. */
#define CLOCK_STEP_NS (5 * (int64_t)FR_NSEC_PER_SEC)

static void read_boot_id(struct fr_input *in)
{
	const cJSON *id = in->meta ? cJSON_GetObjectItemCaseSensitive(in->meta, "boot_id") : NULL;
	char hex[33] = "";
	size_t n = 0;

	if (!id || !cJSON_IsString(id))
		return;
	for (const char *p = id->valuestring; *p; p++) {
		if (*p == '-')
			continue;
		if (!isxdigit((unsigned char)*p) || n == sizeof(hex) - 1)
			return;
		hex[n++] = (char)tolower((unsigned char)*p);
	}
	if (n == sizeof(hex) - 1)
		memcpy(in->boot_id, hex, sizeof(hex));
}

void fr_input_read_boot(struct fr_input *in)
{
	const struct fr_buf *b = &in->head.features[FR_FEATURE_CLOCK_DATA];
	struct {
		uint32_t version, clockid;
		uint64_t wall_ns, clock_ns;
	} c;

	read_boot_id(in);
	if (b->len < sizeof(c))
		return;
	memcpy(&c, b->data, sizeof(c));
	if (c.version != 1)
		return;
	in->has_clock = true;
	in->clock_ns = c.clock_ns;
	in->clock_offset_ns = (int64_t)(c.wall_ns - c.clock_ns);
}

static void describe(const struct fr_input *in, char ret[static 256])
{
	const char *host = fr_feature_get_string(&in->head, FR_FEATURE_HOSTNAME);
	const char *release = fr_feature_get_string(&in->head, FR_FEATURE_OSRELEASE);
	char since[FR_STAMP_SIZE] = "?";

	if (in->has_clock)
		fr_rfc3339_format((uint64_t)in->clock_offset_ns, since);
	snprintf(ret, 256, "boot %s of %.64s (%.64s, up since %s)",
		in->boot_id[0] ? in->boot_id : "(id unknown)", host ? host : "?", release ? release : "?",
		since);
}

/* Both have the section, and it is not the same. */
static bool differs(const struct fr_input *a, const struct fr_input *b, enum fr_feature f)
{
	const char *x = fr_feature_get_string(&a->head, f), *y = fr_feature_get_string(&b->head, f);

	return x && y && strcmp(x, y) != 0;
}

static bool same_boot(const struct fr_input *a, const struct fr_input *b)
{
	bool ids = a->boot_id[0] && b->boot_id[0];

	if (ids)
		return strcmp(a->boot_id, b->boot_id) == 0;
	if (differs(a, b, FR_FEATURE_HOSTNAME) || differs(a, b, FR_FEATURE_OSRELEASE))
		return false;
	if (a->has_clock && b->has_clock) {
		int64_t step;

		return !__builtin_sub_overflow(a->clock_offset_ns, b->clock_offset_ns, &step) &&
		       step <= CLOCK_STEP_NS && step >= -CLOCK_STEP_NS;
	}
	return true;
}

int fr_inputs_check_boot(const struct fr_inputs *in, struct fr_diag *d)
{
	for (size_t i = 0; i < in->n; i++)
		for (size_t k = i + 1; k < in->n; k++) {
			char a[256], b[256];

			if (same_boot(&in->v[i], &in->v[k]))
				continue;
			describe(&in->v[i], a);
			describe(&in->v[k], b);
			return fr_fail(d, -EXDEV, "Merge the files of each boot by themselves: name them.",
				"files of different boots: %.100s is of %s, %.100s of %s", in->v[i].path, a,
				in->v[k].path, b);
		}
	return 0;
}
