// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "report/fleet_page.h"
#include "report/json_out.h"
#include "report/page_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HEIGHT 100 /* of a lane, in its own units */
#define TICKS 5

static double per_bucket(const struct fr_fleet_page *x, uint64_t ns)
{
	return (double)ns / (double)x->bucket_ns;
}

/* --- the lanes --- */

/* Writes a line from bucket to bucket. FULL is the height of the lane. A value that repeats is not
   written. */
static void put_line(const struct fr_fleet_page *x, const uint64_t *row, double full, FILE *out)
{
	int last = -1;

	for (uint32_t i = 0; i < x->n_buckets; i++) {
		const double share = full > 0 ? per_bucket(x, row[i]) / full : 0;
		const int y = HEIGHT - (int)(FR_MIN(share, 1.0) * HEIGHT + 0.5);

		if (y != last)
			fprintf(out, "H%uV%d", i, y);
		last = y;
	}
	fprintf(out, "H%u", x->n_buckets);
}

static void put_vertical(
	const struct fr_fleet_page *x, const char *class, uint64_t ns, const char *title, FILE *out)
{
	const double at = (double)ns / (double)x->bucket_ns;

	fprintf(out, "<line class=\"%s\" x1=\"%.2f\" x2=\"%.2f\" y1=\"0\" y2=\"%d\">", class, at, at, HEIGHT);
	fputs("<title>", out);
	fr_page_html(out, title);
	fputs("</title></line>", out);
}

/* Marks the time of which the dump knows nothing. */
static void put_outside(const struct fr_fleet_page *x, const struct fr_fleet_machine *m, FILE *out)
{
	const double from = per_bucket(x, m->from_ns - x->folder->from_ns),
		     to = per_bucket(x, m->to_ns - x->folder->from_ns);

	fprintf(out,
		"<rect class=\"outside\" x=\"0\" y=\"0\" width=\"%.2f\" height=\"%d\"/>"
		"<rect class=\"outside\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"%d\"/>",
		from, HEIGHT, to, FR_MAX((double)x->n_buckets - to, 0.0), HEIGHT);
}

static double find_most_waiting(const struct fr_fleet_page *x)
{
	uint64_t most = x->bucket_ns;

	for (size_t i = 0; i < x->folder->n; i++)
		for (uint32_t k = 0; k < x->n_buckets && x->lanes[i].busy_ns; k++)
			most = FR_MAX(most, x->lanes[i].waiting_ns[k]);
	return per_bucket(x, most);
}

static void put_lane(const struct fr_fleet_page *x, size_t machine, double most_waiting, FILE *out)
{
	const struct fr_fleet_machine *m = &x->folder->v[machine];
	const struct fr_fleet_lane *lane = &x->lanes[machine];

	fprintf(out,
		"<svg viewBox=\"0 0 %u %d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"CPUs and "
		"waits "
		"of ",
		x->n_buckets, HEIGHT);
	fr_page_html(out, m->name);
	fputs("\">", out);
	put_outside(x, m, out);
	fprintf(out, "<path class=\"busy\" d=\"M0 %d", HEIGHT);
	put_line(x, lane->busy_ns, lane->n_cpus, out);
	fprintf(out, "V%dZ\"/><path class=\"waiting\" d=\"M0 %d", HEIGHT, HEIGHT);
	put_line(x, lane->waiting_ns, most_waiting, out);
	fputs("\"/>", out);
	put_vertical(x, "incident", lane->incident_ns, "begin of the incident", out);
	for (size_t i = 0; i < lane->n_marks; i++)
		put_vertical(x, "mark", lane->marks[i].ns, lane->marks[i].text, out);
	fputs("</svg>", out);
}

/* The best finding of the machine. Those of E are sorted. */
static const char *find_headline(const struct fr_fleet_explanation *e, size_t machine)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].machine == machine)
			return e->v[i].f.headline;
	return "";
}

static void put_row(const struct fr_fleet_page *x, const struct fr_fleet_explanation *e, size_t machine,
	double most_waiting, FILE *out)
{
	const struct fr_fleet_machine *m = &x->folder->v[machine];

	fputs("<tr><td><b>", out);
	fr_page_html(out, m->name);
	fputs("</b><br><span class=\"soft\">", out);
	fr_page_html(out, m->path ? find_headline(e, machine) : "no dump");
	fputs("</span></td><td>", out);
	if (m->path && x->lanes[machine].busy_ns)
		put_lane(x, machine, most_waiting, out);
	else
		fr_page_html(out, m->why);
	fputs("</td></tr>\n", out);
}

static void put_lanes(const struct fr_fleet_page *x, const struct fr_fleet_explanation *e, FILE *out)
{
	const double most = find_most_waiting(x);
	const double span = (double)(x->folder->to_ns - x->folder->from_ns) / FR_NSEC_PER_SEC;

	fprintf(out,
		"<h2>Machines</h2>\n<p class=\"soft\">All lanes are on the clock of the fleet, from 0 to "
		"%.3f s. "
		"The area shows the busy CPUs: its full height is all CPUs of the machine. The line shows "
		"the "
		"threads that wait, but not for work: its full height is %.1f threads on all machines. A "
		"dashed "
		"line is the begin of the incident, another line a trigger. A grey part is not in the dump. "
		"<code>flightrec-report report --html --machine=NAME</code> makes the page of one "
		"machine.</p>\n<table class=\"fleet\"><tbody>\n",
		span, most);
	for (size_t i = 0; i < x->folder->n; i++)
		put_row(x, e, i, most, out);
	fputs("<tr><td></td><td class=\"soft\">", out);
	for (int i = 0; i <= TICKS; i++)
		fprintf(out, "%s%.1f s", i ? " · " : "", span * i / TICKS);
	fputs("</td></tr>\n</tbody></table>\n", out);
}

/* --- the data --- */

/* Writes a row in thousandths of a CPU or a thread. */
static void put_numbers(const struct fr_fleet_page *x, const char *name, const uint64_t *row, FILE *out)
{
	fprintf(out, ",\"%s\":[", name);
	for (uint32_t i = 0; i < x->n_buckets; i++)
		fprintf(out, "%s%.0f", i ? "," : "", 1000 * per_bucket(x, row[i]));
	fputc(']', out);
}

static void put_machine(const struct fr_fleet_page *x, size_t machine, FILE *out)
{
	const struct fr_fleet_machine *m = &x->folder->v[machine];
	const struct fr_fleet_lane *lane = &x->lanes[machine];

	fputs("{\"machine\":", out);
	fr_json_out_text(out, m->name);
	if (!m->path) {
		fputs(",\"why\":", out);
		fr_json_out_text(out, m->why);
	}
	if (m->path && lane->busy_ns) {
		fprintf(out,
			",\"offset_ns\":\"%" PRId64 "\",\"error_ns\":\"%" PRIu64 "\",\"from_ns\":%" PRIu64
			",\"to_ns\":%" PRIu64 ",\"incident_ns\":%" PRIu64 ",\"cpus\":%u,\"marks\":[",
			m->clock.offset_ns, m->clock.error_ns, m->from_ns - x->folder->from_ns,
			m->to_ns - x->folder->from_ns, lane->incident_ns, lane->n_cpus);
		for (size_t i = 0; i < lane->n_marks; i++) {
			fprintf(out, "%s[%" PRIu64 ",", i ? "," : "", lane->marks[i].ns);
			fr_json_out_text(out, lane->marks[i].text);
			fputc(']', out);
		}
		fputc(']', out);
		put_numbers(x, "busy", lane->busy_ns, out);
		put_numbers(x, "waiting", lane->waiting_ns, out);
	}
	fputc('}', out);
}

static void put_data(const struct fr_fleet_page *x, FILE *out)
{
	fprintf(out,
		"<script type=\"application/json\" id=\"data\">\n{\"id\":\"%s\",\"from_ns\":\"%" PRIu64
		"\",\"to_ns\":\"%" PRIu64 "\",\"bucket_ns\":%" PRIu64 ",\"buckets\":%u,\"machines\":[",
		x->folder->id, x->folder->from_ns, x->folder->to_ns, x->bucket_ns, x->n_buckets);
	for (size_t i = 0; i < x->folder->n; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_machine(x, i, out);
	}
	fputs("]}\n</script>\n", out);
}

int fr_fleet_page_write(const struct fr_fleet_page *x, struct fr_fleet_explanation *e, FILE *out)
{
	_cleanup_free_ char *text = NULL;
	char title[FR_FLEET_ID_SIZE + 16];
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	int r;

	if (!memory)
		return -ENOMEM;
	r = fr_fleet_explanation_print(e, memory);
	if (fclose(memory) != 0 || r < 0)
		return -ENOMEM;
	snprintf(title, sizeof(title), "Fleet dump %s", x->folder->id);
	fr_page_head(out, title, false);
	fputs("</header>\n<main>\n<h2>What happened</h2>\n", out);
	fr_page_lines(out, text);
	put_lanes(x, e, out);
	fputs("</main>\n", out);
	put_data(x, out);
	fputs("</body>\n</html>\n", out);
	return 0;
}
