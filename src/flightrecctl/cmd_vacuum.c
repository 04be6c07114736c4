// SPDX-License-Identifier: GPL-2.0-or-later
/* Removing dumps: through the recorder where one runs, so that it knows; else in the directory itself. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "control/interface.h"
#include "dump/vacuum.h"
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void add_limit(cJSON *o, const char *name, uint64_t value, uint64_t unit)
{
	const uint64_t units = value / unit;

	if (value != UINT64_MAX)
		cJSON_AddNumberToObject(o, name, (double)units);
}

static cJSON *vacuum_parameters(const struct ctl *ctl)
{
	cJSON *o = cJSON_CreateObject();

	add_limit(o, "max_use", ctl->limits.max_use, 1);
	add_limit(o, "keep_free", ctl->limits.keep_free, 1);
	add_limit(o, "max_files", ctl->limits.max_files, 1);
	add_limit(o, "max_age_usec", ctl->limits.max_age_ns, FR_NSEC_PER_USEC);
	return o;
}

static cJSON *rm_parameters(const struct ctl *ctl)
{
	cJSON *o = cJSON_CreateObject(), *files = cJSON_AddArrayToObject(o, "files");

	for (size_t i = 0; i < ctl->n_args; i++)
		cJSON_AddItemToArray(files, cJSON_CreateString(base_name(ctl->args[i])));
	return o;
}

/* What the recorder would have answered. */
static cJSON *reply_of(const struct fr_vacuum_report *report)
{
	cJSON *o = cJSON_CreateObject(), *removed = cJSON_AddArrayToObject(o, "removed");

	for (size_t i = 0; i < report->n_removed; i++)
		cJSON_AddItemToArray(removed, cJSON_CreateString(report->removed[i]));
	cJSON_AddNumberToObject(o, "freed", (double)report->freed_bytes);
	return o;
}

static int open_directory(const struct ctl *ctl, int *ret, struct fr_diag *d)
{
	_cleanup_free_ char *path = ctl_directory(ctl);
	int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (!path)
		return -ENOMEM;
	if (fd < 0)
		return fr_fail_errno(
			d, -errno, "give the recorder's directory with -D", "cannot open %s", path);
	*ret = fd;
	return 0;
}

static void given(uint64_t *limit, uint64_t value)
{
	if (value != UINT64_MAX)
		*limit = value;
}

static struct fr_retention limits(const struct ctl *ctl)
{
	struct fr_config config;
	struct fr_retention r;

	fr_config_init(&config);
	(void)fr_config_load(&config, NULL, NULL);
	r = config.retention;
	fr_config_deinit(&config);
	given(&r.max_use, ctl->limits.max_use);
	given(&r.keep_free, ctl->limits.keep_free);
	given(&r.max_files, ctl->limits.max_files);
	given(&r.max_age_ns, ctl->limits.max_age_ns);
	return r;
}

static int vacuum_here(const struct ctl *ctl, int dirfd, struct fr_vacuum_report *report, struct fr_diag *d)
{
	const struct fr_retention r = limits(ctl);

	return fr_vacuum(dirfd, &r, 0, UINT64_MAX, report, d);
}

static int rm_here(const struct ctl *ctl, int dirfd, struct fr_vacuum_report *report, struct fr_diag *d)
{
	int code = 0;

	for (size_t i = 0; i < ctl->n_args; i++) {
		int r = fr_vacuum_remove(dirfd, base_name(ctl->args[i]), report, d);

		code = code ? code : r;
	}
	return code;
}

/* Without a recorder. An exit code; *RET is set for FR_EXIT_OK. */
static int do_here(const struct ctl *ctl,
	int (*job)(const struct ctl *ctl, int dirfd, struct fr_vacuum_report *report, struct fr_diag *d),
	cJSON **ret)
{
	_cleanup_(fr_vacuum_report_deinit) struct fr_vacuum_report report = {0};
	_cleanup_close_ int fd = -1;
	struct fr_diag diag = {0};
	int r = open_directory(ctl, &fd, &diag);

	if (r == 0)
		r = job(ctl, fd, &report, &diag);
	if (r < 0)
		return ctl_fail(&diag, r);
	*ret = reply_of(&report);
	return FR_EXIT_OK;
}

static void print(const struct ctl *ctl, const cJSON *reply)
{
	char size[FR_UNIT_SIZE];
	const cJSON *name;
	double freed = ctl_number(reply, "freed");

	if (ctl->json != FR_JSON_OFF) {
		ctl_print_json(ctl, reply);
		return;
	}
	cJSON_ArrayForEach (name, ctl_get(reply, "removed"))
		if (cJSON_IsString(name)) {
			ctl_clean(name->valuestring);
			puts(name->valuestring);
		}
	if (!ctl->no_legend)
		printf("%d dumps removed, %s freed\n", cJSON_GetArraySize(ctl_get(reply, "removed")),
			fr_size_format(freed > 0 && freed < 0x1p63 ? (uint64_t)freed : 0, size));
}

static int run(const struct ctl *ctl, const char *method, cJSON *(*parameters)(const struct ctl *ctl),
	int (*job)(const struct ctl *ctl, int dirfd, struct fr_vacuum_report *report, struct fr_diag *d))
{
	cJSON *reply = NULL;
	bool runs;
	int code = ctl_reachable(ctl, &runs);

	if (code == FR_EXIT_OK)
		code = runs ? ctl_call(ctl, method, parameters(ctl), &reply) : do_here(ctl, job, &reply);
	if (code == FR_EXIT_OK)
		print(ctl, reply);
	cJSON_Delete(reply);
	return code;
}

int ctl_cmd_vacuum(const struct ctl *ctl)
{
	return run(ctl, FR_METHOD_VACUUM, vacuum_parameters, vacuum_here);
}

int ctl_cmd_rm(const struct ctl *ctl)
{
	return run(ctl, FR_METHOD_REMOVE, rm_parameters, rm_here);
}
