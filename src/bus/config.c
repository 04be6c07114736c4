// SPDX-License-Identifier: GPL-2.0-or-later
#include "bus/bus_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define CONNECT_MS 4000
#define PENDING_MESSAGES 65536

static int copy(char **to, const char *from, struct fr_diag *d)
{
	if (!from || !*from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : fr_fail_errno(d, -ENOMEM, NULL, "cannot copy the configuration of the bus");
}

int bus_server_address(const char *server, char *ret_host, size_t size)
{
	const char *start = strstr(server, "://"), *at, *end, *colon;

	start = start ? start + 3 : server;
	at = strrchr(start, '@');
	if (at)
		start = at + 1;
	end = start + strcspn(start, "/");
	if (*start == '[') {
		const char *close = memchr(start, ']', (size_t)(end - start));

		colon = close && close[1] == ':' ? close + 1 : NULL;
		snprintf(ret_host, size, "%.*s", close ? (int)(close - start - 1) : 0, start + 1);
	} else {
		colon = memchr(start, ':', (size_t)(end - start));
		snprintf(ret_host, size, "%.*s", (int)((colon ? colon : end) - start), start);
	}
	return colon ? atoi(colon + 1) : 4222;
}

static int add_server(struct fr_bus *b, const char *text, size_t n, struct fr_diag *d)
{
	_cleanup_free_ char *server = NULL;
	const char *scheme;
	char host[256];
	int port;

	while (n && (*text == ' ' || *text == '\t'))
		text++, n--;
	while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
		n--;
	if (!n)
		return 0;
	scheme = memmem(text, n, "://", 3) ? "" : "nats://";
	if (asprintf(&server, "%s%.*s", scheme, (int)n, text) < 0) {
		server = NULL;
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot copy the servers");
	}
	port = bus_server_address(server, host, sizeof(host));
	if ((strncmp(server, "nats://", 7) != 0 && strncmp(server, "tls://", 6) != 0) || !*host ||
		port <= 0 || port > 65535)
		return fr_fail(d, -EINVAL, "Write nats://HOST:PORT or tls://HOST:PORT.",
			"\"%s\" is not the address of a NATS server", server);
	if (b->n_servers == FR_BUS_SERVERS_MAX)
		return fr_fail(d, -EINVAL, NULL, "there are more than %u servers", FR_BUS_SERVERS_MAX);
	b->servers[b->n_servers++] = TAKE_PTR(server);
	return 0;
}

static int add_servers(struct fr_bus *b, const char *servers, struct fr_diag *d)
{
	while (servers && *servers) {
		size_t n = strcspn(servers, ",");
		int r = add_server(b, servers, n, d);

		if (r < 0)
			return r;
		servers += n + (servers[n] == ',');
	}
	return b->n_servers ? 0
			    : fr_fail(d, -EINVAL, "Write Servers=nats://HOST:PORT in [Fleet].",
				      "no NATS server is configured");
}

/* libnats would say only at the connect that it cannot use the file. */
static int check_credentials(const char *path, struct fr_diag *d)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char text[16384];
	size_t n;

	if (!f)
		return fr_fail(d, errno == EACCES ? -EACCES : -EINVAL,
			"Give the path of a NATS .creds file that this user can read.",
			"cannot open the credentials %s: %s", path, strerror(errno));
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	if (!strstr(text, "BEGIN NATS USER JWT") || !strstr(text, "SEED"))
		return fr_fail(d, -EINVAL, "Give a .creds file, which has a user's JWT and seed.",
			"%s has no NATS credentials", path);
	explicit_bzero(text, sizeof(text));
	return 0;
}

int bus_config_copy(struct fr_bus *b, const struct fr_bus_config *c, struct fr_diag *d)
{
	const char *inbox = c->inbox ? c->inbox : "_INBOX";
	int r;

	if ((r = add_servers(b, c->servers, d)) < 0 || (r = copy(&b->credentials, c->credentials, d)) < 0 ||
		(r = copy(&b->ca, c->ca, d)) < 0 || (r = copy(&b->certificate, c->certificate, d)) < 0 ||
		(r = copy(&b->key, c->key, d)) < 0 || (r = copy(&b->user, c->user, d)) < 0 ||
		(r = copy(&b->password, c->password, d)) < 0 || (r = copy(&b->name, c->name, d)) < 0 ||
		(r = copy(&b->inbox_prefix, inbox, d)) < 0)
		return r;
	if (!bus_subject_is_valid(inbox, false) || strlen(inbox) > 200)
		return fr_fail(d, -EINVAL, NULL, "\"%.100s\" cannot be the prefix of an inbox", inbox);
	if (!b->certificate != !b->key)
		return fr_fail(d, -EINVAL, "Give both or none.", "Certificate= and Key= belong together");
	b->on_link = c->on_link;
	b->ctx = c->ctx;
	return b->credentials ? check_credentials(b->credentials, d) : 0;
}

void bus_config_deinit(struct fr_bus *b)
{
	for (size_t i = 0; i < b->n_servers; i++)
		free(b->servers[i]);
	if (b->password)
		explicit_bzero(b->password, strlen(b->password));
	free(b->credentials);
	free(b->ca);
	free(b->certificate);
	free(b->key);
	free(b->user);
	free(b->password);
	free(b->name);
	free(b->inbox_prefix);
}

/* Checks the name of the server: it depends on the build of libnats whether it does this by itself. Without
   TLS, libnats must not be told anything of it: it would read all certificates of the system, for 40 ms. */
static natsStatus set_tls(struct fr_bus *b, const char *server, natsOptions *o)
{
	const bool is_tls = strncmp(server, "tls://", 6) == 0;
	char host[256];
	natsStatus s;

	if (!is_tls && !b->ca && !b->certificate)
		return NATS_OK;
	bus_server_address(server, host, sizeof(host));
	s = natsOptions_SetExpectedHostname(o, host);
	if (s == NATS_OK && is_tls)
		s = natsOptions_SetSecure(o, true);
	if (s == NATS_OK && b->ca)
		s = natsOptions_LoadCATrustedCertificates(o, b->ca);
	if (s == NATS_OK && b->certificate)
		s = natsOptions_LoadCertificatesChain(o, b->certificate, b->key);
	return s;
}

static natsStatus set_limits(natsOptions *o)
{
	natsStatus s = natsOptions_SetTimeout(o, CONNECT_MS);

	if (s == NATS_OK)
		s = natsOptions_SetAllowReconnect(o, false);
	if (s == NATS_OK)
		s = natsOptions_SetIgnoreDiscoveredServers(o, true);
	if (s == NATS_OK)
		s = natsOptions_SetIOBufSize(o, FR_BUS_READ_SIZE);
	if (s == NATS_OK)
		s = natsOptions_SetMaxPendingMsgs(o, PENDING_MESSAGES);
	if (s == NATS_OK)
		s = natsOptions_SetSendAsap(o, true);
	if (s == NATS_OK) /* events.c pings: the timer of libnats would close the socket on another thread */
		s = natsOptions_SetPingInterval(o, 0);
	if (s == NATS_OK) /* else each subscription has a thread */
		s = natsOptions_UseGlobalMessageDelivery(o, true);
	return s;
}

int bus_options(struct fr_bus *b, const char *server, natsOptions **ret, struct fr_diag *d)
{
	natsOptions *o = NULL;
	natsStatus s = natsOptions_Create(&o);

	if (s == NATS_OK)
		s = natsOptions_SetURL(o, server);
	if (s == NATS_OK)
		s = set_limits(o);
	if (s == NATS_OK)
		s = bus_events_set(b, o);
	if (s == NATS_OK)
		s = natsOptions_SetErrorHandler(o, bus_on_error, b);
	if (s == NATS_OK && b->name)
		s = natsOptions_SetName(o, b->name);
	if (s == NATS_OK && b->user)
		s = natsOptions_SetUserInfo(o, b->user, b->password ? b->password : "");
	if (s == NATS_OK && b->credentials)
		s = natsOptions_SetUserCredentialsFromFiles(o, b->credentials, NULL);
	if (s == NATS_OK)
		s = set_tls(b, server, o);
	if (s != NATS_OK) {
		const char *text = nats_GetLastError(NULL);
		char shown[192];

		bus_text(shown, sizeof(shown), text ? text : "", 190);
		natsOptions_Destroy(o);
		return fr_fail(d, s == NATS_NO_MEMORY ? -ENOMEM : -EINVAL,
			"Look at Servers=, CACertificate=, Certificate= and Key=.",
			"cannot use the configuration for %s: %s", server,
			*shown ? shown : natsStatus_GetText(s));
	}
	*ret = o;
	return 0;
}
