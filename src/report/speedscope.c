// SPDX-License-Identifier: GPL-2.0-or-later

/* The file format of speedscope (www.speedscope.app/file-format-schema.json): one sampled profile for each
   thread and event, with the samples in the order of time. */

#include "base/cleanup.h"
#include "report/json_out.h"
#include "report/output.h"
#include "report/samples.h"

#include <errno.h>
#include <inttypes.h>

static void put_frames(const struct fr_profile *p, FILE *out)
{
	const struct fr_frames *frames = fr_profile_frames(p);

	fprintf(out, "\"shared\":{\"frames\":[");
	for (size_t i = 0; i < fr_frames_n(frames); i++) {
		const struct fr_frame *f = fr_frames_get(frames, (uint32_t)i);

		fprintf(out, "%s{\"name\":", i ? ",\n" : "\n");
		fr_json_out_text(out, f->name);
		fprintf(out, ",\"file\":");
		fr_json_out_text(out, fr_frames_object(frames, f->object)->path);
		fputc('}', out);
	}
	fprintf(out, "]},\n");
}

static void put_stack(const struct fr_profile *p, uint32_t stack, FILE *out)
{
	uint32_t frames[FR_STACK_DEPTH_MAX];
	size_t n = fr_stacks_frames(fr_profile_stacks(p), stack, frames, FR_STACK_DEPTH_MAX);

	fputc('[', out);
	for (; n > 0; n--)
		fprintf(out, "%u%s", frames[n - 1], n > 1 ? "," : "");
	fputc(']', out);
}

static void put_part(const struct fr_profile *p, const struct fr_samples_part *part, FILE *out)
{
	const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(p), part->event);
	const struct fr_kept_sample *s;
	_cleanup_free_ char *name = NULL;
	const char *separator = "";

	if (asprintf(&name, "%s %u/%u, %s", part->comm, part->pid, part->tid, e->name) < 0)
		name = NULL;
	fprintf(out, "{\"type\":\"sampled\",\"name\":");
	fr_json_out_text(out, name ? name : "?");
	fprintf(out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\n\"samples\":[",
		fr_recording_event_is_time(e) ? "nanoseconds" : "none", part->period);
	for (struct fr_samples_place at = {0}; (s = fr_samples_get(part, &at)); separator = ",") {
		fputs(separator, out);
		put_stack(p, s->stack, out);
	}
	fprintf(out, "],\n\"weights\":[");
	separator = "";
	for (struct fr_samples_place at = {0}; (s = fr_samples_get(part, &at)); separator = ",")
		fprintf(out, "%s%" PRIu64, separator, s->period);
	fprintf(out, "]}");
}

int fr_output_speedscope(struct fr_profile *p, FILE *out, struct fr_diag *d)
{
	struct fr_samples samples;
	struct fr_samples_part part;
	int r = fr_samples_read(p, &samples, d);

	if (r == 0) {
		fprintf(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
			     "\"exporter\":\"flightrec " FR_VERSION "\",\n");
		put_frames(p, out);
		fprintf(out, "\"profiles\":[");
		for (bool first = true; fr_samples_next(p, &samples, &part); first = false) {
			fputs(first ? "\n" : ",\n", out);
			put_part(p, &part, out);
		}
		fprintf(out, "]}\n");
		r = fr_samples_check(&samples, d);
	}
	fr_samples_deinit(&samples);
	return r;
}
