// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "source/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Judges the result of one check. The parameter `code` is this result, and `one` has the message of the
   check. If `code` says that this user or this machine cannot do the check, prints a warning and returns 0.
   Otherwise returns `code`; if `code` is negative, also copies `one` to D. */
static int judge(int code, const struct fr_diag *one, struct fr_diag *d)
{
	if (code == -EACCES || code == -EPERM || code == -ENODEV) {
		fr_diag_print("flightrecctl: not checked", one, code);
		return 0;
	}
	if (code < 0)
		*d = *one;
	return code;
}

/* Checks that this machine has the events. */
static int check_events(const struct fr_config *c, struct fr_diag *d)
{
	struct fr_event_list list = {0};
	int r = c->n_events ? 0 : fr_event_add_default(&c->defaults, &list, d);

	for (size_t i = 0; r == 0 && i < c->n_events; i++) {
		struct fr_diag one = {0};

		r = judge(fr_config_parse_event(c, i, &list, &one), &one, d);
	}
	fr_event_list_deinit(&list);
	return r;
}

/* Lets each source check its thresholds, files and programs, without arming anything. If this kernel does not
   support a source, prints only a warning, because the configuration can be for another kernel. */
static int check_triggers(const struct fr_config *c, struct fr_diag *d)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_trigger; i++) {
		const struct fr_trigger_config *t = &c->trigger[i];
		const struct fr_source_class *class = fr_source_class_for_kind(t->kind);
		struct fr_diag one = {0};

		r = class && class->check ? class->check(t, &one) : 0;
		if (r < 0)
			fr_diag_prefix(&one, "%s", t->origin);
		r = judge(r == -EOPNOTSUPP ? -ENODEV : r, &one, d);
	}
	return r;
}

/* Prints the names of the files of the configuration. */
static int print_files(const char *path, struct fr_diag *d)
{
	char **files;
	int r = fr_config_files(path, &files, d);

	if (r < 0)
		return r;
	if (!ctl.no_legend && ctl.json == FR_JSON_OFF && !files[0])
		puts("no configuration file: the defaults");
	for (size_t i = 0; files[i]; i++) {
		if (ctl.json == FR_JSON_OFF)
			puts(files[i]);
		free(files[i]);
	}
	free(files);
	return 0;
}

static void print_result(const struct fr_diag *d, int code, const cJSON *not_armed)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddBoolToObject(o, "valid", code == 0);
	if (code < 0) {
		cJSON_AddStringToObject(o, "what", d->what);
		cJSON_AddStringToObject(o, "hint", d->hint);
	}
	if (not_armed)
		cJSON_AddItemToObject(o, "not_armed", cJSON_Duplicate(not_armed, true));
	ctl_print_json(o);
	cJSON_Delete(o);
}

/* Checks whether the triggers are armed. Only the kernel decides whether a trigger can be armed, and only the
   recorder has the capabilities to try. So this function asks the recorder, unless an argument names the file
   to check: the recorder can have another file. If the recorder was not asked, and there is a trigger that
   the recorder would have to arm, prints a note. Sets *RET, which is NULL before, to the triggers that are
   not armed; if the recorder was not asked, *RET stays NULL. Returns an exit code. */
static int check_armed(const struct fr_config *c, cJSON **ret)
{
	struct fr_client *client = NULL;

	if (ctl.n_args == 0 && ctl_try_connect(&client, NULL) == 0)
		*ret = ctl_not_armed(client, NULL);
	fr_client_free(client);
	if (*ret)
		return ctl_warn_not_armed(*ret);
	for (size_t i = 0; i < c->n_trigger; i++)
		if (c->trigger[i].enabled && fr_source_class_for_kind(c->trigger[i].kind)) {
			fputs("flightrecctl: only the recorder can tell whether the triggers can be armed: "
			      "`flightrecctl reload` names those that cannot\n",
				stderr);
			break;
		}
	return FR_EXIT_OK;
}

static int run(void)
{
	const char *path = ctl.n_args ? ctl.args[0] : NULL;
	struct fr_config config;
	struct fr_diag diag = {0};
	cJSON *not_armed = NULL;
	int r = print_files(path, &diag), code = FR_EXIT_OK;

	fr_config_init(&config);
	if (r == 0)
		r = fr_config_load(&config, path, &diag);
	if (r == 0)
		r = fr_config_check(&config, &diag);
	if (r == 0)
		r = check_events(&config, &diag);
	if (r == 0)
		r = check_triggers(&config, &diag);
	if (r == 0)
		code = check_armed(&config, &not_armed);
	fr_config_deinit(&config);
	if (ctl.json != FR_JSON_OFF)
		print_result(&diag, r, not_armed);
	cJSON_Delete(not_armed);
	return r < 0 ? ctl_fail(&diag, r) : code;
}

CTL_VERB(verify_config, CTL_RECORDER, "verify-config", "[FILE]", "check the configuration with its drop-ins",
	.most_args = 1, .run = run);
