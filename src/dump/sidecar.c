// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/sidecar.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/utsname.h>

#define SIDECAR_VERSION 1

/* Adds the time from the first to the last sample. If the dump has no samples, adds the window of the
   request. */
static bool add_window(cJSON *meta, const struct fr_dump_params *p, const struct fr_dump_result *r)
{
	cJSON *o = cJSON_AddObjectToObject(meta, "window");
	uint64_t to = r->to_ns ? r->to_ns : FR_MIN(p->to_ns, p->trigger_ns);
	uint64_t from = r->to_ns ? r->from_ns : FR_MIN(p->from_ns ? p->from_ns : to, to);

	return o && fr_json_add_time(o, "from", fr_clock_to_realtime(&p->clock, from)) &&
	       fr_json_add_time(o, "to", fr_clock_to_realtime(&p->clock, to)) &&
	       fr_json_add_u64(o, "from_ns", from) && fr_json_add_u64(o, "to_ns", to) &&
	       cJSON_AddNumberToObject(o, "seconds", (double)(to - from) / (double)FR_NSEC_PER_SEC);
}

/* Adds the window of each ring. It can be shorter than the window of the dump. */
static bool add_rings(cJSON *meta, const struct fr_dump_params *p, const struct fr_dump_result *r)
{
	cJSON *rings = p->rings ? cJSON_AddObjectToObject(meta, "rings") : NULL;

	for (unsigned i = 0; rings && i < r->n_rings; i++) {
		const struct fr_dump_part *part = &r->parts[i];
		cJSON *o = cJSON_AddObjectToObject(rings, p->rings[i].name);

		if (!o || !FR_JSON_ADD_NUMBERS(o, {"samples", part->samples}, {"from_ns", part->from_ns},
				  {"to_ns", part->to_ns}))
			return false;
	}
	return rings || !p->rings;
}

static bool add_origin(cJSON *meta, const struct fr_dump_params *p)
{
	char boot_id[FR_BOOT_ID_SIZE] = "";
	struct utsname u;

	if (p->boot_id)
		snprintf(boot_id, sizeof(boot_id), "%s", p->boot_id);
	if ((p->boot_id || fr_boot_id_read(boot_id) == 0) &&
		!cJSON_AddStringToObject(meta, "boot_id", boot_id))
		return false;
	return uname(&u) < 0 || cJSON_AddStringToObject(meta, "host", u.nodename);
}

static bool add_jit(cJSON *meta, const struct fr_dump_result *r)
{
	cJSON *o;

	if (r->jit_objects == 0 && r->jit_cut == 0)
		return true;
	o = cJSON_AddObjectToObject(meta, "jit");
	return o && FR_JSON_ADD_NUMBERS(o, {"objects", r->jit_objects}, {"functions", r->jit_functions},
			    {"bytes", r->jit_bytes}, {"cut", r->jit_cut});
}

static bool add_members(cJSON *meta, const struct fr_dump_params *p, const struct fr_dump_result *r)
{
	/* If an earlier attempt to write this dump failed, META has these members already. */
	static const char *const ours[] = {"version", "file", "boot_id", "host", "time", "monotonic_ns",
		"window", "samples", "sideband", "bytes", "compressed", "write_seconds", "written_with",
		"damaged_sections", "jit", "marks", "waiting", "not_durable", "rings"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(ours); i++)
		cJSON_DeleteItemFromObjectCaseSensitive(meta, ours[i]);
	return cJSON_AddNumberToObject(meta, "version", SIDECAR_VERSION) &&
	       cJSON_AddStringToObject(meta, "file", r->name) && add_origin(meta, p) &&
	       fr_json_add_time(meta, "time", fr_clock_to_realtime(&p->clock, p->trigger_ns)) &&
	       fr_json_add_u64(meta, "monotonic_ns", p->trigger_ns) && add_window(meta, p, r) &&
	       add_rings(meta, p, r) &&
	       FR_JSON_ADD_NUMBERS(meta, {"samples", r->samples}, {"sideband", r->sideband},
		       {"waiting", r->waits}, {"marks", r->trigger_samples}, {"bytes", r->bytes}) &&
	       cJSON_AddBoolToObject(meta, "compressed", p->compress) &&
	       cJSON_AddNumberToObject(
		       meta, "write_seconds", (double)r->write_ns / (double)FR_NSEC_PER_SEC) &&
	       cJSON_AddStringToObject(meta, "written_with", r->how) &&
	       (r->damaged == 0 || fr_json_add_u64(meta, "damaged_sections", r->damaged)) &&
	       add_jit(meta, r) &&
	       (!r->not_durable || cJSON_AddStringToObject(meta, "not_durable", strerror(r->not_durable)));
}

int fr_sidecar_write(cJSON *meta, const struct fr_dump_params *params, const struct fr_dump_result *result)
{
	_cleanup_free_ char *text = NULL;
	char name[NAME_MAX];
	int r;

	if (!add_members(meta, params, result))
		return -ENOMEM;
	text = cJSON_Print(meta);
	if (!text)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%s.json", result->name);
	r = fr_file_replace(params->dirfd, name, 0640, params->gid, text, strlen(text));
	/* A positive value does not count: the sidecar is complete, but its directory could not be synced. */
	return FR_MIN(r, 0);
}
