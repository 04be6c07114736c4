// SPDX-License-Identifier: GPL-2.0-or-later

/* report --html: one file with all its data, for a browser without a network. src/report/page/ has its style
   and its program, which the build puts into page_assets.h. docs/design/95-the-page.md describes the data. */

#include "base/cleanup.h"
#include "base/clock.h"
#include "page_assets.h"
#include "perfdata/features.h"
#include "report/output.h"
#include "report/page_json.h"
#include "report/page_out.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Nothing may be loaded, and only the program and the style of the page itself may run: even if a name of a
   program got into the page as HTML, it could not run. */
static void put_policy(FILE *out, bool has_script)
{
	fputs("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
	      "base-uri 'none'; "
	      "form-action 'none'; style-src 'sha256-",
		out);
	fr_page_base64(out, page_css_sha256, sizeof(page_css_sha256));
	if (has_script) {
		fputs("'; script-src 'sha256-", out);
		fr_page_base64(out, page_js_sha256, sizeof(page_js_sha256));
	}
	/* Without an icon of its own, a browser asks the server of the page for one. */
	fputs("'\">\n<link rel=\"icon\" href=\"data:,\">\n", out);
}

void fr_page_head(FILE *out, const char *title, bool has_script)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", out);
	put_policy(out, has_script);
	fputs("<meta name=\"viewport\" content=\"width=device-width\">\n<title>", out);
	fr_page_html(out, title);
	fprintf(out, " - flightrec</title>\n<style>%s</style>\n</head>\n<body>\n<header><h1>", page_css);
	fr_page_html(out, title);
	fputs("</h1>\n", out);
}

static void put_time(const struct fr_page *x, uint64_t time, int64_t offset)
{
	char text[FR_STAMP_SIZE];

	fr_rfc3339_format(time + (uint64_t)offset, text);
	fprintf(x->out, "<time datetime=\"%s\">%.10s %.11s UTC</time>", text, text, text + 11);
}

/* The line below the title: the machine, and the time. */
static void put_origin(const struct fr_page *x)
{
	const struct fr_session *s = fr_recording_session(fr_profile_recording(x->profile));
	const char *host = fr_feature_get_string(s, FR_FEATURE_HOSTNAME),
		   *release = fr_feature_get_string(s, FR_FEATURE_OSRELEASE);
	const int64_t offset = fr_recording_wall_offset(fr_profile_recording(x->profile));
	const struct fr_page_data *d = x->data;

	fputs("<p class=\"soft\">", x->out);
	if (host) {
		fr_page_html(x->out, host);
		fputs(" · ", x->out);
	}
	if (release) {
		fputs("Linux ", x->out);
		fr_page_html(x->out, release);
		fputs(" · ", x->out);
	}
	if (offset) {
		put_time(x, d->from_ns, offset);
		fputs(" to ", x->out);
		put_time(x, d->to_ns, offset);
		fputs(" · ", x->out);
	}
	fprintf(x->out, "%.1f s</p></header>\n", (double)(d->to_ns - d->from_ns) / FR_NSEC_PER_SEC);
}

void fr_page_lines(FILE *out, char *text)
{
	char *rest = text, *line;

	fputs("<pre id=\"explanation\" tabindex=\"0\" aria-label=\"The explanation\">", out);
	while ((line = strsep(&rest, "\n")) && (*line || rest)) {
		const bool is_finding = line[0] >= '1' && line[0] <= '9' && line[1] == '.';

		fprintf(out, "<span%s>", is_finding ? " class=\"finding\"" : "");
		fr_page_html(out, line);
		fputs("\n</span>", out);
	}
	fputs("</pre>\n", out);
}

/* What can be read without the program of the page: the cause, and the explanation. */
static int put_explanation(const struct fr_page *x)
{
	const struct fr_findings *found = &x->explanation->findings;
	const bool is_known = x->explanation->facts.has_cpu || x->explanation->facts.has_waits;
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		return -ENOMEM;
	fr_explanation_print(x->explanation, memory);
	if (fclose(memory) != 0)
		return -ENOMEM;
	fprintf(x->out, "<main>\n<h2>What happened</h2>\n<p id=\"cause\"%s>",
		found->n   ? ""
		: is_known ? " class=\"quiet\""
			   : " class=\"unknown\"");
	if (found->n > 0) {
		fputs("<b>", x->out);
		fr_page_html(x->out, found->v[0].rule);
		fputs("</b> ", x->out);
		fr_page_html(x->out, found->v[0].headline);
	} else if (is_known) {
		fputs("Nothing unusual was found.", x->out);
	} else {
		fputs("Nothing can be said: there are no samples of CPU time or of waits.", x->out);
	}
	fputs("</p>\n", x->out);
	if (fr_profile_is_filtered(x->profile))
		fputs("<p class=\"note\">The samples were filtered: this page has only those of the threads, "
		      "CPUs or "
		      "events that the options of flightrec-report chose.</p>\n",
			x->out);
	fr_page_lines(x->out, text);
	fputs("<noscript><p class=\"note\">The rest of this page needs JavaScript. It makes no "
	      "request to any "
	      "server.</p></noscript>\n",
		x->out);
	return 0;
}

static int put_page(struct fr_page *x, const char *name)
{
	int r;

	fr_page_head(x->out, name, true);
	put_origin(x);
	r = put_explanation(x);
	fprintf(x->out, "%s</main>\n<script type=\"application/json\" id=\"data\">\n", page_html);
	if (r == 0)
		r = fr_page_json(x);
	fprintf(x->out, "\n</script>\n<script>%s</script>\n</body>\n</html>\n", page_js);
	return r;
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	return fr_page_data_add(ctx, p, s);
}

int fr_output_page(struct fr_profile *p, const cJSON *meta, const char *name, FILE *out, struct fr_diag *d)
{
	struct fr_page_data data;
	struct fr_explanation e = {0};
	struct fr_page x = {.profile = p, .data = &data, .explanation = &e, .out = out};
	const struct fr_view view = {.sample = add_sample, .ctx = &data};
	uint64_t from = 0, to = 0;
	int r = fr_recording_window(fr_profile_recording(p), &from, &to, d);

	if (r < 0)
		return r;
	fr_page_data_init(&data, from, fr_page_end(meta, from, to));
	data.cpus_min = fr_recording_n_cpus(fr_profile_recording(p));
	r = fr_explain(p, meta, 0, &view, &e, d);
	if (r == 0)
		r = put_page(&x, name);
	fr_explanation_deinit(&e);
	fr_page_data_deinit(&data);
	fr_page_deinit(&x);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot write the page") : 0;
}
