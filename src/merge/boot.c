// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Finds out whether all inputs come from one boot. Times of CLOCK_MONOTONIC, process ids and addresses have a
 * meaning only within one boot of one machine. The sidecar of a dump has the boot id. Without a sidecar, the
 * section CLOCK_DATA has the wall time at which the clock of the file was 0, and the sections HOSTNAME and
 * OSRELEASE identify the machine.
 */

#include "base/clock.h"
#include "merge/input.h"
#include "perfdata/features.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* In files of one boot, wall time minus monotonic time is almost the same. This difference changes a little
   if somebody sets the wall clock. If it changed by more than CLOCK_STEP_NS between two files, they count as
   files of different boots. */
#define CLOCK_STEP_NS (5 * (int64_t)FR_NSEC_PER_SEC)

void fr_input_read_boot(struct fr_input *in)
{
	const char *boot_id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(in->meta, "boot_id"));
	const struct fr_buf *b = &in->head.features[FR_FEATURE_CLOCK_DATA];
	struct {
		uint32_t version, clockid;
		uint64_t wall_ns, clock_ns;
	} c;

	if (!boot_id || sd_id128_from_string(boot_id, &in->boot_id) < 0)
		in->boot_id = SD_ID128_NULL;
	if (b->len < sizeof(c))
		return;
	memcpy(&c, b->data, sizeof(c));
	if (c.version != 1)
		return;
	in->has_clock = true;
	in->clock_ns = c.clock_ns;
	in->clock_offset_ns = (int64_t)(c.wall_ns - c.clock_ns);
}

static void describe_boot(const struct fr_input *in, char ret[static 256])
{
	const char *host = fr_feature_get_string(&in->head, FR_FEATURE_HOSTNAME);
	const char *release = fr_feature_get_string(&in->head, FR_FEATURE_OSRELEASE);
	char since[FR_STAMP_SIZE] = "?";

	if (in->has_clock)
		fr_rfc3339_format((uint64_t)in->clock_offset_ns, since);
	snprintf(ret, 256, "boot %s of %.64s (%.64s, up since %s)",
		sd_id128_is_null(in->boot_id) ? "(id unknown)" : SD_ID128_TO_STRING(in->boot_id),
		host ? host : "?", release ? release : "?", since);
}

/* Returns whether both inputs have the section F, with different texts. */
static bool differs(const struct fr_input *a, const struct fr_input *b, enum fr_feature f)
{
	const char *x = fr_feature_get_string(&a->head, f), *y = fr_feature_get_string(&b->head, f);

	return x && y && strcmp(x, y) != 0;
}

static bool is_same_boot(const struct fr_input *a, const struct fr_input *b)
{
	int64_t step;

	if (!sd_id128_is_null(a->boot_id) && !sd_id128_is_null(b->boot_id))
		return sd_id128_equal(a->boot_id, b->boot_id);
	if (differs(a, b, FR_FEATURE_HOSTNAME) || differs(a, b, FR_FEATURE_OSRELEASE))
		return false;
	if (!a->has_clock || !b->has_clock)
		return true;
	return !__builtin_sub_overflow(a->clock_offset_ns, b->clock_offset_ns, &step) &&
	       step <= CLOCK_STEP_NS && step >= -CLOCK_STEP_NS;
}

/* Returns an input of the running boot. If there is none, returns an input of the boot that began last; NULL
   if no input has a clock. */
static const struct fr_input *find_newest(const struct fr_inputs *in)
{
	const struct fr_input *newest = NULL;
	sd_id128_t running;

	if (sd_id128_get_boot(&running) < 0)
		running = SD_ID128_NULL;
	for (size_t i = 0; i < in->n; i++) {
		const struct fr_input *one = &in->v[i];

		if (!sd_id128_is_null(running) && sd_id128_equal(one->boot_id, running))
			return one;
		if (one->has_clock && (!newest || one->clock_offset_ns > newest->clock_offset_ns))
			newest = one;
	}
	return newest;
}

void fr_inputs_leave_older_boots(const struct fr_merge_options *o, struct fr_inputs *in)
{
	const struct fr_input *at = find_newest(in);
	const struct fr_input newest = at ? *at : (struct fr_input){0};
	size_t kept = 0;
	char boot[256];

	if (!at)
		return;
	for (size_t i = 0; i < in->n; i++) {
		if (!in->v[i].found || is_same_boot(&in->v[i], &newest)) {
			in->v[kept++] = in->v[i];
			continue;
		}
		describe_boot(&in->v[i], boot);
		fr_merge_warn(o, "%s is of another boot. The file is not merged, and not removed: %s",
			in->v[i].path, boot);
		in->bytes -= in->v[i].size;
		fr_input_deinit(&in->v[i]);
	}
	in->n = kept;
}

int fr_inputs_check_boot(const struct fr_inputs *in, struct fr_diag *d)
{
	for (size_t i = 0; i < in->n; i++)
		for (size_t k = i + 1; k < in->n; k++) {
			char a[256], b[256];

			if (is_same_boot(&in->v[i], &in->v[k]))
				continue;
			describe_boot(&in->v[i], a);
			describe_boot(&in->v[k], b);
			return fr_fail(d, -EXDEV,
				"merge the files of each boot separately, and name them on the command line",
				"files of different boots: %.100s is of %s, %.100s of %s", in->v[i].path, a,
				in->v[k].path, b);
		}
	return 0;
}
