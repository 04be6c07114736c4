// SPDX-License-Identifier: GPL-2.0-or-later
/* Removes dumps. If a recorder runs and --directory is not given, this program asks the recorder to remove
   the dumps, because after a removal the recorder tries to write its kept dump again (a dump that could not
   be written before). Otherwise, this program removes the dumps. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "control/interface.h"
#include "dump/vacuum.h"
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static uint64_t max_use, keep_free, max_files, max_age_ns;

static cJSON *make_vacuum_parameters(void)
{
	cJSON *o = cJSON_CreateObject();

	ctl_add_number(o, "max_use", max_use, 1);
	ctl_add_number(o, "keep_free", keep_free, 1);
	ctl_add_number(o, "max_files", max_files, 1);
	ctl_add_number(o, "max_age_usec", max_age_ns, FR_NSEC_PER_USEC);
	return o;
}

static cJSON *make_rm_parameters(void)
{
	cJSON *o = cJSON_CreateObject(), *files = cJSON_AddArrayToObject(o, "files");

	for (size_t i = 0; i < ctl.n_args; i++)
		cJSON_AddItemToArray(files, cJSON_CreateString(basename(ctl.args[i])));
	return o;
}

static void set_given(uint64_t *limit, uint64_t value)
{
	if (value != CTL_NOT_GIVEN)
		*limit = value;
}

static int vacuum_here(int dirfd, struct fr_vacuum_report *report, struct fr_diag *d)
{
	struct fr_config config;
	struct fr_retention limits;

	fr_config_init(&config);
	(void)fr_config_load(&config, NULL, NULL);
	limits = config.retention;
	fr_config_deinit(&config);
	set_given(&limits.max_use, max_use);
	set_given(&limits.keep_free, keep_free);
	set_given(&limits.max_files, max_files);
	set_given(&limits.max_age_ns, max_age_ns);
	return fr_vacuum(dirfd, &limits, 0, UINT64_MAX, report, d);
}

static int rm_here(int dirfd, struct fr_vacuum_report *report, struct fr_diag *d)
{
	int code = 0;

	for (size_t i = 0; i < ctl.n_args; i++) {
		int r = fr_vacuum_remove(dirfd, basename(ctl.args[i]), report, d);

		code = code ? code : r;
	}
	return code;
}

/* Does JOB without a recorder. Returns an exit code. If the exit code is FR_EXIT_OK, *RET is the report of
   JOB as JSON, to be freed. */
static int do_here(int (*job)(int dirfd, struct fr_vacuum_report *report, struct fr_diag *d), cJSON **ret)
{
	_cleanup_(fr_vacuum_report_deinit) struct fr_vacuum_report report = {0};
	_cleanup_free_ char *path = ctl_directory();
	_cleanup_close_ int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct fr_diag diag = {0};
	int r = -ENOMEM;

	if (fd >= 0)
		r = job(fd, &report, &diag);
	else if (path)
		r = fr_fail_errno(
			&diag, -errno, "give the recorder's directory with -D", "cannot open %s", path);
	if (r < 0)
		return ctl_fail(&diag, r);
	*ret = fr_vacuum_json(&report);
	return FR_EXIT_OK;
}

static void print_reply(const cJSON *reply)
{
	const cJSON *name, *removed = ctl_get(reply, "removed");
	const int n = cJSON_GetArraySize(removed);

	if (ctl.json != FR_JSON_OFF) {
		ctl_print_json(reply);
		return;
	}
	cJSON_ArrayForEach (name, removed)
		if (cJSON_IsString(name)) {
			ctl_replace_control_characters(name->valuestring);
			puts(name->valuestring);
		}
	if (!ctl.no_legend)
		printf("%d dump%s removed, %s freed\n", n, n == 1 ? "" : "s", ctl_size(reply, "freed"));
}

static int call_or_do_here(const char *method, cJSON *(*make_parameters)(void),
	int (*job)(int dirfd, struct fr_vacuum_report *report, struct fr_diag *d))
{
	cJSON *reply = NULL;
	bool runs;
	int code = ctl_reachable(&runs);

	if (code == FR_EXIT_OK)
		code = runs ? ctl_call(method, make_parameters(), &reply) : do_here(job, &reply);
	if (code == FR_EXIT_OK)
		print_reply(reply);
	cJSON_Delete(reply);
	return code;
}

static int run_vacuum(void)
{
	return call_or_do_here(FR_METHOD(Vacuum), make_vacuum_parameters, vacuum_here);
}

static int run_rm(void)
{
	return call_or_do_here(FR_METHOD(Remove), make_rm_parameters, rm_here);
}

static const struct ctl_option options[] = {
	{"max-use", 0, "SIZE", "bytes of all dumps", CTL_SIZE, &max_use, 0, 0},
	{"keep-free", 0, "SIZE", "bytes of the file system that stay free", CTL_SIZE, &keep_free, 0, 0},
	{"max-files", 0, "N", "number of dumps", CTL_COUNT, &max_files, 0, 0},
	{"max-age", 0, "SPAN", "age of the oldest dump", CTL_SPAN, &max_age_ns, 0, 0},
	{0},
};

CTL_VERB(vacuum, CTL_DUMPS, "vacuum", NULL, "remove the oldest dumps until the limits hold",
	.options = options, .run = run_vacuum);

CTL_VERB(rm, CTL_DUMPS, "rm", "FILE...", "remove these dumps", .least_args = 1, .most_args = SIZE_MAX,
	.run = run_rm);
