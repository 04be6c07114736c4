// SPDX-License-Identifier: GPL-2.0-or-later
#include "bus/bus_private.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

int bus_errno_of(natsStatus status)
{
	switch (status) {
	case NATS_OK:
		return 0;
	case NATS_TIMEOUT:
		return -ETIMEDOUT;
	case NATS_NOT_PERMITTED:
	case NATS_CONNECTION_AUTH_FAILED:
		return -EACCES;
	case NATS_NO_SERVER:
	case NATS_SYS_ERROR:
	case NATS_IO_ERROR:
		return -ECONNREFUSED;
	case NATS_CONNECTION_CLOSED:
	case NATS_CONNECTION_DISCONNECTED:
	case NATS_STALE_CONNECTION:
	case NATS_INVALID_SUBSCRIPTION:
		return -ENOTCONN;
	case NATS_ADDRESS_MISSING:
	case NATS_INVALID_SUBJECT:
	case NATS_INVALID_ARG:
		return -EINVAL;
	case NATS_NO_MEMORY:
		return -ENOMEM;
	case NATS_NO_RESPONDERS:
	case NATS_NOT_FOUND:
		return -ENOENT;
	case NATS_MAX_PAYLOAD:
		return -EMSGSIZE;
	case NATS_NO_SERVER_SUPPORT:
		return -EOPNOTSUPP;
	default:
		return -EPROTO;
	}
}

void bus_text(char *ret, size_t size, const char *text, size_t n)
{
	size_t i;

	for (i = 0; i < n && i + 1 < size && text[i]; i++)
		ret[i] = (text[i] < ' ' || text[i] > '~') ? '?' : text[i];
	ret[i] = '\0';
}

static const char *hint_for(int code)
{
	switch (code) {
	case -EACCES:
		return "Look at the permissions of this user in the configuration of the broker, and at the "
		       "credentials.";
	case -EMSGSIZE:
		return "Raise max_payload in the configuration of the broker.";
	case -EOPNOTSUPP:
		return "The broker must be a nats-server of version 2.9.10 or later.";
	default:
		return NULL;
	}
}

int bus_fail_nats(struct fr_diag *d, natsStatus status, const char *fmt, ...)
{
	int code = bus_errno_of(status);
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return fr_fail(d, code, hint_for(code), "%s: %s", text, natsStatus_GetText(status));
}

int bus_api_error_code(const cJSON *error)
{
	const cJSON *code = cJSON_GetObjectItemCaseSensitive(error, "err_code");

	return cJSON_IsNumber(code) ? code->valueint : 0;
}

static int api_errno(const cJSON *error)
{
	const cJSON *code = cJSON_GetObjectItemCaseSensitive(error, "code");
	int status = cJSON_IsNumber(code) ? code->valueint : 0;

	switch (bus_api_error_code(error)) {
	case 10023: /* insufficient resources */
	case 10028: /* memory */
	case 10047: /* storage */
	case 10054: /* message size exceeds maximum allowed */
	case 10077: /* maximum bytes, messages */
	case 10122:
		return -ENOSPC;
	case 10039: /* JetStream not enabled for account */
	case 10076:
		return -EOPNOTSUPP;
	case 10014: /* consumer not found */
	case 10059: /* stream not found */
	case 10060: /* expected stream does not match */
		return -ENOENT;
	default:
		return status == 404 ? -ENOENT : status == 503 ? -EAGAIN : -EREMOTEIO;
	}
}

int bus_fail_api(struct fr_diag *d, const cJSON *error, const char *subject)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(error, "description"));
	int code = api_errno(error);
	char shown[160] = "no description";
	const char *hint = NULL;

	if (text)
		bus_text(shown, sizeof(shown), text, strlen(text));
	if (code == -ENOSPC)
		hint = "Raise the limits of the stream (flightrecctl fleet setup) or of the broker "
		       "(jetstream).";
	if (code == -ENOENT)
		hint = "Create the streams: flightrecctl fleet setup.";
	if (code == -EOPNOTSUPP)
		hint = "Enable JetStream in the configuration of the broker, for this account, too.";
	return fr_fail(d, code, hint, "the broker refuses %s: %s (error %d)", subject, shown,
		bus_api_error_code(error));
}
