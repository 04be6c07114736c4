/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Addresses to listen on, as the configuration writes them. */

#include <netinet/in.h>
#include <stdbool.h>

union fr_address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* "127.0.0.1:9752", "[::1]:9752". 0, or -EINVAL. No name service is asked. */
int fr_address_parse(const char *text, union fr_address *ret);
/* Whether nobody but this machine can reach it. */
bool fr_address_is_loopback(const union fr_address *a);
