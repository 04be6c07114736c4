/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Parses the address of MetricsListen=. */

#include <netinet/in.h>
#include <stdbool.h>

union fr_address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Parses an address like "127.0.0.1:9752" or "[::1]:9752". Host names are invalid. Returns 0; or -EINVAL,
   without a change of RET. */
int fr_address_parse(const char *text, union fr_address *ret);
/* Returns whether only this machine can reach the address. */
bool fr_address_is_loopback(const union fr_address *a);
