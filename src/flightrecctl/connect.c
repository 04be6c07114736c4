// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "control/interface.h"
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL_TIMEOUT_NS (30 * FR_NSEC_PER_SEC)

int ctl_fail(const struct fr_diag *d, int code)
{
	fr_diag_print("flightrecctl", d, code);
	return fr_exit_code(code);
}

/* A configuration that cannot be read is the daemon's trouble, and verify-config's: here the defaults do. */
static void load_config(struct fr_config *c)
{
	fr_config_init(c);
	if (fr_config_load(c, NULL, NULL) < 0) {
		fr_config_deinit(c);
		fr_config_init(c);
	}
}

char *ctl_socket(const struct ctl *ctl)
{
	const char *given = ctl->socket ? ctl->socket : getenv("FLIGHTREC_SOCKET");
	struct fr_config config;
	char *ret;

	if (given && *given)
		return strdup(given);
	load_config(&config);
	ret = strdup(config.socket && *config.socket ? config.socket : FR_CONTROL_SOCKET);
	fr_config_deinit(&config);
	return ret;
}

static char *configured_directory(void)
{
	struct fr_config config;
	char *ret;

	load_config(&config);
	ret = config.directory ? strdup(config.directory) : NULL;
	fr_config_deinit(&config);
	return ret;
}

/* The directory that the running recorder uses, which -o may have set; else what the configuration says. Its
 * files tell the same as the daemon would, and also of dumps from before its start. */
char *ctl_directory(const struct ctl *ctl)
{
	_cleanup_free_ char *socket = NULL;
	struct fr_client *client;
	cJSON *reply = NULL;
	char *ret = NULL;

	if (ctl->directory)
		return strdup(ctl->directory);
	socket = ctl_socket(ctl);
	if (!socket || fr_client_connect(socket, &client, NULL) < 0)
		return configured_directory();
	if (fr_client_call(client, FR_METHOD_STATUS, NULL, 5 * FR_NSEC_PER_SEC, &reply, NULL) == 0 &&
		*ctl_string(reply, "status.directory"))
		ret = strdup(ctl_string(reply, "status.directory"));
	cJSON_Delete(reply);
	fr_client_free(client);
	return ret ? ret : configured_directory();
}

int ctl_connect(const struct ctl *ctl, struct fr_client **ret_client)
{
	struct fr_diag diag = {0};
	char *path = ctl_socket(ctl);
	int r = path ? fr_client_connect(path, ret_client, &diag) : -ENOMEM;

	free(path);
	if (r == 0)
		return FR_EXIT_OK;
	*ret_client = NULL;
	ctl_fail(&diag, r);
	return r == -ENOENT || r == -ECONNREFUSED || r == -EAGAIN ? FR_EXIT_UNREACHABLE : fr_exit_code(r);
}

int ctl_reachable(const struct ctl *ctl, bool *ret)
{
	_cleanup_free_ char *path = ctl_socket(ctl);
	struct fr_client *client = NULL;
	struct fr_diag diag = {0};
	int r;

	*ret = false;
	if (ctl->directory)
		return FR_EXIT_OK;
	r = path ? fr_client_connect(path, &client, &diag) : -ENOMEM;
	fr_client_free(client);
	if (r < 0 && r != -ENOENT && r != -ECONNREFUSED)
		return ctl_fail(&diag, r);
	*ret = r == 0;
	return FR_EXIT_OK;
}

/* Waiting shows on a terminal only: in a script standard error stays for what went wrong. */
static void dot(void *ctx)
{
	bool *dots = ctx;

	*dots = true;
	fputc('.', stderr);
}

int ctl_call(const struct ctl *ctl, const char *method, cJSON *parameters, cJSON **ret)
{
	const bool waits = (!strcmp(method, FR_METHOD_DUMP) && !ctl->no_wait) ||
			   !strcmp(method, FR_METHOD_VACUUM) || !strcmp(method, FR_METHOD_REMOVE);
	struct fr_client *client;
	struct fr_diag diag = {0};
	bool dots = false;
	int r, code = ctl_connect(ctl, &client);

	if (code != FR_EXIT_OK) {
		cJSON_Delete(parameters);
		return code;
	}
	if (waits && isatty(STDERR_FILENO))
		fr_client_on_wait(client, dot, &dots);
	r = fr_client_call(client, method, parameters, waits ? 0 : CALL_TIMEOUT_NS, ret, &diag);
	fr_client_free(client);
	if (dots)
		fputc('\n', stderr);
	if (r == 0)
		return FR_EXIT_OK;
	ctl_fail(&diag, r);
	return r == -EAGAIN ? FR_EXIT_SUPPRESSED : fr_exit_code(r);
}
