// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/clock.h"
#include "control/interface.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint64_t last_ns, from_ns, to_ns, post_ns;
static bool no_wait, no_compression;
static const char *reason;

static int check_options(struct fr_diag *d)
{
	const char *hint = "give --last, --from and --to, or --post";
	const bool from = from_ns != CTL_NOT_GIVEN, to = to_ns != CTL_NOT_GIVEN;

	if (last_ns != CTL_NOT_GIVEN && from)
		return fr_fail(d, -EINVAL, hint, "--last and --from exclude each other");
	if (post_ns != CTL_NOT_GIVEN && (from || to))
		return fr_fail(d, -EINVAL, hint, "--post excludes --from and --to");
	if (ctl.output && no_wait)
		return fr_fail(d, -EINVAL, "give only one of the two options",
			"--output waits for the dump, and --no-wait does not");
	if (from && to && from_ns > to_ns)
		return fr_fail(d, -EINVAL, "give the earlier one with --from", "--from is later than --to");
	return 0;
}

static cJSON *make_parameters(void)
{
	cJSON *o = cJSON_CreateObject();

	ctl_add_number(o, "last_ns", last_ns, 1);
	ctl_add_number(o, "from_usec", from_ns, FR_NSEC_PER_USEC);
	ctl_add_number(o, "to_usec", to_ns, FR_NSEC_PER_USEC);
	ctl_add_number(o, "post_ns", post_ns, 1);
	if (reason)
		cJSON_AddStringToObject(o, "reason", reason);
	if (no_wait)
		cJSON_AddFalseToObject(o, "wait");
	if (no_compression)
		cJSON_AddTrueToObject(o, "no_compression");
	return o;
}

/* Prints only the path, so that $(flightrecctl dump) works. With --no-wait, prints the number of the dump. */
static void print_path(const cJSON *reply)
{
	const char *path = ctl.output ? ctl.output : ctl_string(reply, "path");

	if (ctl.output && !strcmp(ctl.output, "-"))
		return;
	if (ctl.json != FR_JSON_OFF)
		ctl_print_json(reply);
	else if (*path)
		puts(path);
	else
		printf("%.0f\n", ctl_number(reply, "id"));
}

static void warn_if_not_durable(const cJSON *reply)
{
	if (*ctl_string(reply, "not_durable"))
		fprintf(stderr,
			"flightrecctl: the dump is not durable: its directory could not be synced: %s\n"
			"  The file is complete, but a power cut may remove it: copy it elsewhere.\n",
			ctl_string(reply, "not_durable"));
}

static int run(void)
{
	struct fr_diag diag = {0};
	cJSON *reply;
	int code, r;

	if (check_options(&diag) < 0)
		return ctl_usage(&diag);
	r = ctl.output ? ctl_copy_check(ctl.output, &diag) : 0;
	if (r < 0)
		return ctl_fail(&diag, r);
	code = ctl_call(FR_METHOD(Dump), make_parameters(), &reply);
	if (code != FR_EXIT_OK)
		return code;
	if (ctl.output)
		r = ctl_copy(ctl_string(reply, "path"), ctl.output, &diag);
	if (ctl.output && r == 0)
		cJSON_AddStringToObject(reply, "copy", ctl.output);
	if (r == 0)
		print_path(reply);
	warn_if_not_durable(reply);
	cJSON_Delete(reply);
	return r < 0 ? ctl_fail(&diag, r) : FR_EXIT_OK;
}

static const struct ctl_option options[] = {
	{"output", 'o', "FILE", "make a copy of your own, and print its path; -: to standard output",
		CTL_TEXT, &ctl.output, 0, 0},
	{"last", 0, "SPAN", "only the last 30s, 5min …", CTL_SPAN, &last_ns, 1, 0},
	{"from", 0, "TIME", "from this time on: 23:11, -5min, \"2026-11-20 23:11:37\", @EPOCH", CTL_TIME,
		&from_ns, 1, 0},
	{"to", 0, "TIME", "up to this time, instead of now", CTL_TIME, &to_ns, 1, 0},
	{"post", 0, "SPAN", "record for this time after the call, then write the dump", CTL_SPAN, &post_ns, 0,
		0},
	{"reason", 0, "TEXT", "a text for the JSON of the dump", CTL_TEXT, &reason, 0, 0},
	{"no-wait", 0, NULL, "do not wait until the file is durable; print the dump's number", CTL_FLAG,
		&no_wait, 0, 0},
	{"no-compression", 0, NULL, "plain records, for readers that cannot read compressed ones", CTL_FLAG,
		&no_compression, 0, 0},
	{0},
};

CTL_VERB(dump, CTL_DUMPS, "dump", NULL,
	"write what the ring holds to a perf.data.sample.TIME, and print its path", .options = options,
	.run = run);
