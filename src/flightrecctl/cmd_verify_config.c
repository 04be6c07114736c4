// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "trigger/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What another user, or another machine, would know. */
static bool is_unknown(int code)
{
	return code == -EACCES || code == -EPERM || code == -ENODEV;
}

/* Events as this machine knows them. Where tracefs or a PMU is closed to this user, that says nothing about
 * the configuration: a note, and no error. */
static int check_event(const struct fr_config *c, size_t i, struct fr_event_list *list, struct fr_diag *d)
{
	int r = fr_event_parse(c->events[i].spec, &c->defaults, list, d);

	if (r == 0 && c->events[i].filter)
		r = fr_event_set_filter(list, c->events[i].filter, d);
	if (r < 0)
		fr_diag_prefix(d, "%s", c->events[i].origin);
	return r;
}

static int check_events(const struct fr_config *c, struct fr_diag *d)
{
	struct fr_event_list list = {0};
	int r = c->n_events ? 0 : fr_event_add_default(&c->defaults, &list, d);

	for (size_t i = 0; r == 0 && i < c->n_events; i++) {
		struct fr_diag one = {0};

		r = check_event(c, i, &list, &one);
		if (is_unknown(r)) {
			fr_diag_print("flightrecctl: not checked", &one, r);
			r = 0;
		} else if (r < 0) {
			*d = one;
		}
	}
	fr_event_list_deinit(&list);
	return r;
}

/* Sources look at their own thresholds, files and programs, without arming anything. What this kernel has
   not, the one that it is written for may have. */
static int check_triggers(const struct fr_config *c, struct fr_diag *d)
{
	for (size_t i = 0; i < c->n_trigger; i++) {
		const struct fr_trigger_config *t = &c->trigger[i];
		const struct fr_source_class *class = fr_source_class_of(t->kind);
		struct fr_diag one = {0};
		int r = class && class->check ? class->check(t, &one) : 0;

		if (r == 0)
			continue;
		fr_diag_prefix(&one, "%s", t->origin);
		if (!is_unknown(r) && r != -EOPNOTSUPP) {
			*d = one;
			return r;
		}
		fr_diag_print("flightrecctl: not checked", &one, r);
	}
	return 0;
}

static int print_files(const struct ctl *ctl, const char *path, struct fr_diag *d)
{
	char **files;
	int r = fr_config_files(path, &files, d);

	if (r < 0)
		return r;
	if (!ctl->no_legend && ctl->json == FR_JSON_OFF && !files[0])
		puts("no configuration file: the defaults");
	for (size_t i = 0; files[i]; i++) {
		if (ctl->json == FR_JSON_OFF)
			puts(files[i]);
		free(files[i]);
	}
	free(files);
	return 0;
}

static void print_result(const struct ctl *ctl, const struct fr_diag *d, int code, const cJSON *not_armed)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddBoolToObject(o, "valid", code == 0);
	if (code < 0) {
		cJSON_AddStringToObject(o, "what", d->what);
		cJSON_AddStringToObject(o, "hint", d->hint);
	}
	if (not_armed)
		cJSON_AddItemToObject(o, "not_armed", cJSON_Duplicate(not_armed, true));
	ctl_print_json(ctl, o);
	cJSON_Delete(o);
}

/* Whether a trigger can be armed is for the kernel to say, and to the recorder alone. Of the files that it
   reads, too, it is asked; else it is said that nobody was. */
static int check_armed(const struct ctl *ctl, const struct fr_config *c, cJSON **ret)
{
	_cleanup_free_ char *socket = ctl->n_args ? NULL : ctl_socket(ctl);
	struct fr_client *client = NULL;

	if (socket && fr_client_connect(socket, &client, NULL) == 0)
		*ret = ctl_not_armed(client, NULL);
	fr_client_free(client);
	if (*ret)
		return ctl_warn_not_armed(*ret);
	for (size_t i = 0; i < c->n_trigger; i++)
		if (c->trigger[i].enabled && fr_source_class_of(c->trigger[i].kind)) {
			fputs("flightrecctl: whether the triggers can be armed, the recorder alone can tell: "
			      "`flightrecctl reload` says which could not\n",
				stderr);
			break;
		}
	return FR_EXIT_OK;
}

int ctl_cmd_verify_config(const struct ctl *ctl)
{
	const char *path = ctl->n_args ? ctl->args[0] : NULL;
	struct fr_config config;
	struct fr_diag diag = {0};
	cJSON *not_armed = NULL;
	int r = print_files(ctl, path, &diag), code = FR_EXIT_OK;

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
		code = check_armed(ctl, &config, &not_armed);
	fr_config_deinit(&config);
	if (ctl->json != FR_JSON_OFF)
		print_result(ctl, &diag, r, not_armed);
	cJSON_Delete(not_armed);
	return r < 0 ? ctl_fail(&diag, r) : code;
}
