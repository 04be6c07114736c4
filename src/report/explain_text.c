// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/units.h"
#include "report/explain.h"

#include <string.h>

/* At most 30 lines: 10 of the first finding, 4 of each other one, and 12 others: 2 above and 10 below. */
#define FINDINGS_SHOWN 3
#define EVIDENCE_FIRST 7
#define EVIDENCE_OTHERS 2
#define CHANGES_SHOWN 2
#define WAITS_SHOWN_NS (20 * FR_NSEC_PER_MSEC) /* less waiting than this is not shown */
#define KERNEL_SHOWN 2			       /* frames of a stack */
#define USER_SHOWN 6

static const char *const wait_names[_FR_WAIT_N] = {[FR_WAIT_CPU] = "CPU",
	[FR_WAIT_LOCK] = "lock",
	[FR_WAIT_DISK] = "disk",
	[FR_WAIT_RECLAIM] = "memory",
	[FR_WAIT_SERVER] = "file server",
	[FR_WAIT_PEER] = "reader",
	[FR_WAIT_UNKNOWN] = "uninterruptible",
	[FR_WAIT_SLEEP] = "sleep",
	[FR_WAIT_IDLE] = "idle"};

void fr_explanation_print_stack(const struct fr_profile *p, uint32_t stack, FILE *out)
{
	const struct fr_stacks *stacks = fr_profile_stacks(p);
	const struct fr_frames *frames = fr_profile_frames(p);
	size_t kernel = 0, user = 0;

	if (stack == FR_STACK_NONE)
		return;
	fprintf(out, "   stack:");
	for (; stack != FR_STACK_NONE && user < USER_SHOWN; stack = stacks->nodes[stack].parent) {
		const struct fr_frame *f = fr_frames_get(frames, stacks->nodes[stack].frame);
		const bool is_user = fr_frames_object(frames, f->object)->kind == FR_OBJECT_FILE;

		kernel += !is_user;
		if (!is_user && kernel > KERNEL_SHOWN)
			continue;
		if (is_user && user == 0 && kernel > KERNEL_SHOWN)
			fprintf(out, " < …");
		fprintf(out, "%s%s", kernel + user > (is_user ? 0u : 1u) ? " < " : " ", f->name);
		user += is_user;
	}
	fputc('\n', out);
}

static void print_findings(const struct fr_explanation *e, FILE *out)
{
	for (size_t i = 0; i < FR_MIN(e->findings.n, (size_t)FINDINGS_SHOWN); i++) {
		const struct fr_finding *x = &e->findings.v[i];

		fprintf(out, "%zu. %s: %s\n", i + 1, x->rule, x->headline);
		for (size_t k = 0;
			k < FR_MIN(x->n_evidence, (size_t)(i == 0 ? EVIDENCE_FIRST : EVIDENCE_OTHERS)); k++)
			fprintf(out, "   %s\n", x->evidence[k]);
		if (i == 0)
			fr_explanation_print_stack(e->profile, x->stack, out);
		fprintf(out, "   how sure: %s, %s\n", fr_certainty_name(x->certainty), x->why);
	}
	if (e->findings.n > FINDINGS_SHOWN)
		fprintf(out, "%zu more findings, of less weight: see --json\n",
			e->findings.n - FINDINGS_SHOWN);
	if (e->findings.n == 0)
		fprintf(out, "%s\n",
			e->facts.has_cpu || e->facts.has_waits ? "Nothing unusual was found."
							       : "Nothing can be said: see below.");
}

static void print_trigger(const struct fr_explanation *e, FILE *out)
{
	const cJSON *cause = cJSON_GetObjectItemCaseSensitive(e->meta, "cause"),
		    *pid = cJSON_GetObjectItemCaseSensitive(cause, "pid");

	if (!cause)
		return;
	fprintf(out, "Trigger: %s", fr_json_text(cause, "trigger"));
	if (*fr_json_text(cause, "reason"))
		fprintf(out, ", %s", fr_json_text(cause, "reason"));
	if (*fr_json_text(cause, "comm"))
		fprintf(out, ", %s (pid %.0f)", fr_json_text(cause, "comm"), cJSON_GetNumberValue(pid));
	if (*fr_json_text(cause, "time"))
		fprintf(out, ", at %s", fr_json_text(cause, "time"));
	fputc('\n', out);
}

static double per_second(const struct fr_explanation *e, int part, uint64_t ns)
{
	const double s = fr_facts_seconds(&e->facts, part);

	return s > 0 ? (double)ns / s / FR_NSEC_PER_SEC : 0;
}

/* Prints the load of the machine in both parts. */
static void print_load(const struct fr_explanation *e, FILE *out)
{
	const struct fr_sums *before = &e->facts.all[FR_BEFORE], *now = &e->facts.all[FR_INCIDENT];
	const struct fr_steady *steady = &e->findings.steady;
	const char *separator = "";

	if (e->facts.has_cpu)
		fprintf(out, "Load: %.2f of %u CPUs (before: %.2f)\n",
			per_second(e, FR_INCIDENT, now->cpu_ns), e->facts.n_cpus,
			per_second(e, FR_BEFORE, before->cpu_ns));
	if (steady->comm)
		fprintf(out, "Steady: %s used %.2f CPUs (before: %.2f), most is pid %u\n", steady->comm,
			steady->cpus, steady->before, steady->pid);
	if (!e->facts.has_waits)
		return;
	fprintf(out, "Waiting threads, on average (before):");
	for (int i = 0; i < FR_WAIT_SLEEP; i++) {
		if (now->wait_ns[i] + before->wait_ns[i] < WAITS_SHOWN_NS && i != FR_WAIT_CPU)
			continue;
		fprintf(out, "%s %s %.2f (%.2f)", separator, wait_names[i],
			per_second(e, FR_INCIDENT, now->wait_ns[i]),
			per_second(e, FR_BEFORE, before->wait_ns[i]));
		separator = ",";
	}
	fputc('\n', out);
}

static void print_changes(const struct fr_explanation *e, FILE *out)
{
	const struct fr_frames *frames = fr_profile_frames(e->profile);
	struct fr_change changes[FR_CHANGES_MAX];
	const size_t n = fr_explanation_changes(e, changes);

	for (size_t i = 0; i < FR_MIN(n, (size_t)CHANGES_SHOWN); i++) {
		const struct fr_frame *f = fr_frames_get(frames, changes[i].frame);

		fprintf(out, "More CPU time: %s in %s, %.2f of a CPU (before: %.2f)\n", f->name,
			fr_frames_object(frames, f->object)->short_name, changes[i].incident,
			changes[i].before);
	}
}

static void print_sureness(const struct fr_explanation *e, FILE *out)
{
	const struct fr_facts *f = &e->facts;
	const struct fr_damage *damage = fr_recording_damage(fr_profile_recording(e->profile));

	if (!f->has_cpu)
		fprintf(out, "No samples of CPU time: nothing is known about what ran.\n");
	if (!f->has_waits)
		fprintf(out, "No samples of the event offcpu: nothing is known about waits.\n");
	if (fr_facts_seconds(f, FR_BEFORE) < 2)
		fprintf(out, "The time before is short: what is normal here is hardly known.\n");
	if (f->lost || f->left_out)
		fprintf(out, "Lost: %llu records; left out: %llu. Causes can be missing.\n",
			(unsigned long long)f->lost, (unsigned long long)f->left_out);
	else
		fprintf(out, "Lost: nothing\n");
	if (damage->damaged)
		fprintf(out, "The file is damaged: %s\n", damage->text);
}

/* Prints the command that shows more. */
static void print_next(const struct fr_explanation *e, FILE *out)
{
	const struct fr_finding *first = e->findings.n ? &e->findings.v[0] : NULL;

	if (!e->path)
		return;
	if (first && first->pid)
		fprintf(out, "Next: flightrec-report report --flame --pid=%u %s\n", first->pid, e->path);
	else
		fprintf(out, "Next: flightrec-report report --html -o page.html %s\n", e->path);
}

void fr_explanation_print(const struct fr_explanation *e, FILE *out)
{
	print_trigger(e, out);
	fprintf(out, "The last %.1f s, compared with the %.1f s before:\n",
		fr_facts_seconds(&e->facts, FR_INCIDENT), fr_facts_seconds(&e->facts, FR_BEFORE));
	print_findings(e, out);
	print_load(e, out);
	print_changes(e, out);
	print_sureness(e, out);
	print_next(e, out);
}
