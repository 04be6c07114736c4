// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/address.h"
#include "base/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

int fr_address_parse(const char *text, union fr_address *ret)
{
	const bool v6 = *text == '[';
	char host[INET6_ADDRSTRLEN];
	union fr_address a = {0};
	uint64_t port;
	int end = 0;

	_Static_assert(sizeof(host) == 46, "the formats allow 45 characters, and sscanf() adds a NUL");
	if (sscanf(text, v6 ? "[%45[^]]]:%n" : "%45[^:]:%n", host, &end) != 1 || !end ||
		fr_u64_parse(text + end, &port) < 0 || port < 1 || port > UINT16_MAX)
		return -EINVAL;
	if (v6)
		a.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	else
		a.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
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
