// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/location.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SCHEME "s3://"
#define HINT "write it as s3://BUCKET/PREFIX"
#define DUMP "perf.data.sample."
#define FILE_MAX 128
#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* The rules of S3 for new buckets, as far as they are about characters. */
static bool is_bucket(const char *s, size_t n)
{
	if (n < 3 || n > 63 || strspn(s, LETTERS DIGITS ".-") < n)
		return false;
	for (size_t i = 0; i + 1 < n; i++)
		if (s[i] == '.' && s[i + 1] == '.')
			return false;
	return strchr(".-", s[0]) == NULL && strchr(".-", s[n - 1]) == NULL;
}

/* No part of a prefix is empty, "." or "..", so programs that make paths of keys stay in their folder. */
static bool is_prefix(const char *s)
{
	if (!*s)
		return true;
	for (;; s++) {
		const size_t n = strcspn(s, "/");

		if (n == 0 || strspn(s, ".") == n || strspn(s, LETTERS CAPITALS DIGITS "-_.=+@") < n)
			return false;
		s += n;
		if (!*s)
			return true;
	}
}

int fr_fleet_location_parse(const char *text, struct fr_fleet_location *ret, struct fr_diag *d)
{
	struct fr_fleet_location l = {0};
	const char *prefix;
	size_t n;

	if (strncmp(text, SCHEME, strlen(SCHEME)) != 0)
		return fr_fail(d, -EINVAL, HINT, "the location does not begin with " SCHEME);
	text += strlen(SCHEME);
	n = strcspn(text, "/");
	if (!is_bucket(text, n))
		return fr_fail(d, -EINVAL, HINT,
			"the bucket must have 3 to 63 small letters, digits, dots and hyphens");
	memcpy(l.bucket, text, n);
	prefix = text + n;
	prefix += strspn(prefix, "/");
	n = strlen(prefix);
	while (n > 0 && prefix[n - 1] == '/')
		n--;
	if (n >= sizeof(l.prefix))
		return fr_fail(d, -EINVAL, NULL, "the prefix has more than %zu bytes", sizeof(l.prefix) - 1);
	memcpy(l.prefix, prefix, n);
	if (!is_prefix(l.prefix))
		return fr_fail(
			d, -EINVAL, HINT, "the parts of the prefix can have letters, digits and -_.=+@ only");
	*ret = l;
	return 0;
}

int fr_fleet_key(const struct fr_fleet_location *l, const char *id, const char *machine, const char *file,
	char *ret, size_t size)
{
	char token[FR_FLEET_TOKEN_SIZE];
	int n;

	fr_fleet_token(machine, token);
	n = snprintf(ret, size, "%s%s%s/%s/%s", l->prefix, *l->prefix ? "/" : "", id, token, file);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

bool fr_fleet_key_is_valid(
	const struct fr_fleet_location *l, const char *id, const char *machine, const char *key)
{
	char folder[512];
	size_t n;

	if (!fr_fleet_id_is_valid(id) || !fr_fleet_name_is_valid(machine) ||
		fr_fleet_key(l, id, machine, "", folder, sizeof(folder)) < 0)
		return false;
	n = strlen(folder);
	if (strncmp(key, folder, n) != 0 || strncmp(key + n, DUMP, strlen(DUMP)) != 0)
		return false;
	key += n + strlen(DUMP);
	n = strnlen(key, FILE_MAX);
	return n > 0 && n < FILE_MAX && strspn(key, LETTERS CAPITALS DIGITS "-_.") == n;
}
