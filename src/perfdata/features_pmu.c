// SPDX-License-Identifier: GPL-2.0-or-later

/* Gathers PMU_MAPPINGS and CPU_PMU_CAPS: the names, types and capabilities of the kernel's event sources. */

#include "perfdata/features_private.h"
#include "base/cleanup.h"

#define PMU_DIR "/sys/bus/event_source/devices"

/* Returns false if NAME is not an event source. */
static bool put_pmu(struct builder *b, const char *name)
{
	char text[32];

	if (fr_feature_read_line(text, sizeof(text), PMU_DIR "/%s/type", name) < 0)
		return false;
	put_u32(b, (uint32_t)strtoul(text, NULL, 10));
	fr_feature_put_string(b, name);
	return true;
}

static bool put_cpu_capability(struct builder *b, const char *name)
{
	char text[128];

	if (fr_feature_read_line(text, sizeof(text), PMU_DIR "/cpu/caps/%s", name) < 0)
		return false;
	fr_feature_put_string(b, name);
	fr_feature_put_string(b, text);
	return true;
}

/* Makes a section with the number of its items and the items. An entry of the directory PATH is an item if
 * PUT returns true for it.
 */
static int gather(struct fr_buf *section, const char *path, bool (*put)(struct builder *b, const char *name))
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	struct builder b = {0};
	const struct dirent *e;
	uint32_t n = 0;

	put_u32(&b, n);
	while (dir && (e = readdir(dir)))
		n += e->d_name[0] != '.' && put(&b, e->d_name);
	return fr_feature_finish_list(&b, n, section);
}

int fr_features_gather_pmus(struct fr_session *s)
{
	int r = gather(&s->features[FR_FEATURE_PMU_MAPPINGS], PMU_DIR, put_pmu);

	return r < 0 ? r
		     : gather(&s->features[FR_FEATURE_CPU_PMU_CAPS], PMU_DIR "/cpu/caps", put_cpu_capability);
}
