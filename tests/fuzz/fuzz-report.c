// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Uses the input as a dump that a person opens: reads it, and shows it in the way that a checksum of the
 * input chooses, so that an input of libFuzzer takes the time of one view only. Without libFuzzer, all views
 * are shown. No object files are searched: fuzz-elf has them.
 */

#include "fuzz.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "report/explain.h"
#include "report/output.h"

#include <stdio.h>

static int show_table(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	return fr_output_table(p, out, 0.5, true, d);
}

static int show_flame(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	return fr_output_flame(p, out, 80, true, d);
}

static int show_page(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	return fr_output_page(p, NULL, "dump", out, d);
}

static int explain(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	struct fr_explanation e;
	int r = fr_explain(p, NULL, 0, NULL, &e, d);

	if (r == 0) {
		cJSON *json = fr_explanation_json(&e);
		char *text = cJSON_PrintUnformatted(json);

		check(text);
		fputs(text, out);
		free(text);
		cJSON_Delete(json);
		fr_explanation_print(&e, out);
	}
	fr_explanation_deinit(&e);
	return r;
}

static int show_folded(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	return fr_output_folded(p, out, FR_WEIGHT_PERIODS, d);
}

static int show_perfetto(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	return fr_output_perfetto(p, NULL, out, d);
}

static int (*const views[])(struct fr_profile *, FILE *, struct fr_diag *) = {show_table, show_flame,
	show_page, explain, show_folded, fr_output_pprof, show_perfetto, fr_output_speedscope,
	fr_output_firefox};

static void show(const char *path, size_t view, FILE *out)
{
	const struct fr_profile_config config = {.path = path, .places = {.only_folders = true}};
	struct fr_diag d = {0};
	struct fr_profile *p;
	int r = fr_profile_open(&config, &p, &d);

	if (r == 0) {
		r = views[view](p, out, &d);
		fr_profile_free(p);
	}
	check(r <= 0 && r == d.code && (r == 0 || d.what[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t n = sizeof(views) / sizeof(views[0]);
	static FILE *out;
	const int fd = make_memfd(data, size);
	char path[64];

	if (!out)
		out = fopen("/dev/null", "we");
	check(out);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
#ifdef FR_FUZZ
	show(path, fr_crc32c(0, data, size) % n, out);
#else
	for (size_t i = 0; i < n; i++)
		show(path, i, out);
#endif
	close(fd);
	return 0;
}
