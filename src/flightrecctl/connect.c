// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "control/interface.h"
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CALL_TIMEOUT_NS (30 * FR_NSEC_PER_SEC)
#define STATUS_TIMEOUT_NS (5 * FR_NSEC_PER_SEC)

int ctl_fail(const struct fr_diag *d, int code)
{
	fr_diag_print("flightrecctl", d, code);
	return fr_exit_code(code);
}

int ctl_usage(const struct fr_diag *d)
{
	(void)ctl_fail(d, -EINVAL);
	return FR_EXIT_USAGE;
}

/* Loads the configuration. If it has an error, uses the defaults: only verify-config reports errors of the
   configuration. */
static void load_config(struct fr_config *c)
{
	fr_config_init(c);
	if (fr_config_load(c, NULL, NULL) < 0) {
		fr_config_deinit(c);
		fr_config_init(c);
	}
}

static char *find_socket(void)
{
	const char *given = ctl.socket ? ctl.socket : getenv("FLIGHTREC_SOCKET");
	struct fr_config config;
	char *ret;

	if (given && *given)
		return strdup(given);
	load_config(&config);
	ret = strdup(config.socket && *config.socket ? config.socket : FR_CONTROL_SOCKET);
	fr_config_deinit(&config);
	return ret;
}

int ctl_try_connect(struct fr_client **ret, struct fr_diag *d)
{
	_cleanup_free_ char *path = find_socket();
	int r = path ? fr_client_connect(path, ret, d) : -ENOMEM;

	if (r < 0)
		*ret = NULL;
	return r;
}

int ctl_connect(struct fr_client **ret)
{
	struct fr_diag diag = {0};
	int r = ctl_try_connect(ret, &diag);

	if (r == 0)
		return FR_EXIT_OK;
	(void)ctl_fail(&diag, r);
	return r == -ENOENT || r == -ECONNREFUSED || r == -EAGAIN ? FR_EXIT_UNREACHABLE : fr_exit_code(r);
}

int ctl_reachable(bool *ret)
{
	struct fr_client *client;
	struct fr_diag diag = {0};
	int r;

	*ret = false;
	if (ctl.directory)
		return FR_EXIT_OK;
	r = ctl_try_connect(&client, &diag);
	fr_client_free(client);
	if (r < 0 && r != -ENOENT && r != -ECONNREFUSED)
		return ctl_fail(&diag, r);
	*ret = r == 0;
	return FR_EXIT_OK;
}

cJSON *ctl_status(void)
{
	struct fr_client *client;
	cJSON *reply = NULL, *status;

	if (ctl_try_connect(&client, NULL) == 0)
		(void)fr_client_call(client, FR_METHOD(Status), NULL, STATUS_TIMEOUT_NS, &reply, NULL);
	fr_client_free(client);
	status = cJSON_DetachItemFromObjectCaseSensitive(reply, "status");
	cJSON_Delete(reply);
	return status;
}

/* The running recorder is asked first, because a recorder that was started with the option -o uses another
   directory than the directory in the configuration. */
char *ctl_directory(void)
{
	struct fr_config config;
	const char *directory;
	cJSON *status;
	char *ret;

	if (ctl.directory)
		return strdup(ctl.directory);
	status = ctl_status();
	load_config(&config);
	directory = *ctl_string(status, "directory") ? ctl_string(status, "directory") : config.directory;
	ret = directory ? strdup(directory) : NULL;
	fr_config_deinit(&config);
	cJSON_Delete(status);
	return ret;
}

/* Prints a dot while a call waits. ctl_call() uses this function only if standard error is a terminal,
   because a script expects only errors on standard error. */
static void print_dot(void *ctx)
{
	bool *dots = ctx;

	*dots = true;
	fputc('.', stderr);
}

/* Returns whether the recorder replies to this call only when it has written or removed a file. */
static bool may_take_long(const char *method, const cJSON *parameters)
{
	return (!strcmp(method, FR_METHOD(Dump)) && !cJSON_IsFalse(ctl_get(parameters, "wait"))) ||
	       !strcmp(method, FR_METHOD(Vacuum)) || !strcmp(method, FR_METHOD(Remove));
}

int ctl_call(const char *method, cJSON *parameters, cJSON **ret)
{
	const bool waits = may_take_long(method, parameters);
	struct fr_client *client;
	struct fr_diag diag = {0};
	bool dots = false;
	int r, code = ctl_connect(&client);

	if (code != FR_EXIT_OK) {
		cJSON_Delete(parameters);
		return code;
	}
	if (waits && isatty(STDERR_FILENO))
		fr_client_on_wait(client, print_dot, &dots);
	r = fr_client_call(client, method, parameters, waits ? 0 : CALL_TIMEOUT_NS, ret, &diag);
	fr_client_free(client);
	if (dots)
		fputc('\n', stderr);
	if (r == 0)
		return FR_EXIT_OK;
	(void)ctl_fail(&diag, r);
	return r == -EAGAIN ? FR_EXIT_SUPPRESSED : fr_exit_code(r);
}

void ctl_add_number(cJSON *o, const char *name, uint64_t value, uint64_t unit)
{
	const uint64_t units = value / unit;

	if (value != CTL_NOT_GIVEN)
		cJSON_AddNumberToObject(o, name, (double)units);
}

int ctl_call_and_print(const char *method, cJSON *parameters, const char *path, void (*print)(const cJSON *o))
{
	cJSON *reply;
	int code = ctl_call(method, parameters, &reply);

	if (code != FR_EXIT_OK)
		return code;
	if (ctl.json != FR_JSON_OFF)
		ctl_print_json(ctl_get(reply, path));
	else
		print(ctl_get(reply, path));
	cJSON_Delete(reply);
	return FR_EXIT_OK;
}
