// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/address.h"
#include "base/cleanup.h"
#include "base/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int parse_port(const char *text, in_port_t *ret)
{
	uint64_t port;

	if (fr_u64_parse(text, &port) < 0 || port < 1 || port > 65535)
		return -EINVAL;
	*ret = htons((uint16_t)port);
	return 0;
}

int fr_address_parse(const char *text, union fr_address *ret)
{
	const char *colon = strrchr(text, ':');
	const bool v6 = text[0] == '[';
	union fr_address a = {0};
	char host[INET6_ADDRSTRLEN];
	size_t len;
	in_port_t port;

	if (!colon || parse_port(colon + 1, &port) < 0)
		return -EINVAL;
	len = (size_t)(colon - text);
	if (v6 && (len < 2 || text[len - 1] != ']'))
		return -EINVAL;
	text += v6;
	len -= v6 ? 2 : 0;
	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	a.sa.sa_family = v6 ? AF_INET6 : AF_INET;
	if (v6)
		a.in6.sin6_port = port;
	else
		a.in.sin_port = port;
	if (inet_pton(a.sa.sa_family, host, v6 ? (void *)&a.in6.sin6_addr : (void *)&a.in.sin_addr) != 1)
		return -EINVAL;
	*ret = a;
	return 0;
}

bool fr_address_is_loopback(const union fr_address *a)
{
	if (a->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
	return ntohl(a->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}
