// SPDX-License-Identifier: GPL-2.0-or-later

/* PMU_MAPPINGS and CPU_PMU_CAPS: what the kernel's event sources are called, and can do. */

#include "perfdata/features_private.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <string.h>

#define PMU_DIR "/sys/bus/event_source/devices"

static int append_pmu(struct fr_buf *b, const char *name)
{
	char text[32];
	int r;

	if (name[0] == '.' || fr_feature_line(text, sizeof(text), PMU_DIR "/%s/type", name) < 0)
		return 0;
	r = fr_buf_append_u32(b, (uint32_t)strtoul(text, NULL, 10));
	if (r == 0)
		r = fr_feature_append_string(b, name);
	return r < 0 ? r : 1;
}

static int append_cap(struct fr_buf *b, const char *pmu, const char *name)
{
	char text[128];
	int r;

	if (name[0] == '.' || fr_feature_line(text, sizeof(text), PMU_DIR "/%s/caps/%s", pmu, name) < 0)
		return 0;
	r = fr_feature_append_string(b, name);
	if (r == 0)
		r = fr_feature_append_string(b, text);
	return r < 0 ? r : 1;
}

/* A section that begins with the number of its items. PMU: NULL for the mappings. */
static int gather(struct fr_session *s, enum fr_feature f, const char *path, const char *pmu)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	_cleanup_buf_ struct fr_buf b = {0};
	const struct dirent *e;
	uint32_t n = 0;
	int r;

	if (!dir)
		return 0;
	r = fr_buf_append_u32(&b, 0);
	while (r >= 0 && (e = readdir(dir))) {
		r = pmu ? append_cap(&b, pmu, e->d_name) : append_pmu(&b, e->d_name);
		n += r > 0;
	}
	if (r < 0 || n == 0)
		return r < 0 ? r : 0;
	memcpy(b.data, &n, sizeof(n));
	fr_feature_take(s, f, &b);
	return 0;
}

int fr_features_gather_pmus(struct fr_session *s)
{
	int r = gather(s, FR_FEATURE_PMU_MAPPINGS, PMU_DIR, NULL);

	return r < 0 ? r : gather(s, FR_FEATURE_CPU_PMU_CAPS, PMU_DIR "/cpu/caps", "cpu");
}
