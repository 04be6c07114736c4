// SPDX-License-Identifier: GPL-2.0-or-later
/* The types of the values of [Fleet]. flightrec-agent and flightrec-fleet use these values. The recorder only
   checks them, so a mistake is found where the file is read first. */
#include "base/cleanup.h"
#include "config/values.h"
#include "fleet/labels.h"
#include "fleet/location.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define LIST_MAX 8192u /* bytes of all lines of a list */

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* Returns whether the N bytes of TEXT are letters, digits or in OTHERS. */
static bool has_only(const char *text, size_t n, const char *others)
{
	for (size_t i = 0; i < n; i++)
		if (!isascii((unsigned char)text[i]) ||
			(!isdigit((unsigned char)text[i]) && !strchr(letters, text[i]) &&
				!strchr(others, text[i])))
			return false;
	return !memchr(text, '\0', n);
}

/* Returns whether the N bytes of TEXT are a port, 1 to 65535. */
static bool is_port(const char *text, size_t n)
{
	unsigned long port;

	if (n < 1 || n > 5 || strspn(text, "0123456789") < n)
		return false;
	port = strtoul(text, NULL, 10);
	return port >= 1 && port <= UINT16_MAX;
}

/* Returns the length of the host at the begin of the N bytes of TEXT: a name, an address, or an address of
   IPv6 in brackets; 0: there is none. */
static size_t host_length(const char *text, size_t n)
{
	const char *end = memchr(text, *text == '[' ? ']' : ':', n);
	const size_t len = end ? (size_t)(end - text) : n;

	if (*text == '[')
		return end && len > 1 && has_only(text + 1, len - 1, ":.") ? len + 1 : 0;
	return has_only(text, len, "-._") ? len : 0;
}

/* Returns whether the N bytes of TEXT are "HOST" or "HOST:PORT". */
static bool is_host(const char *text, size_t n)
{
	const size_t host = host_length(text, n);

	return host && (host == n || (text[host] == ':' && is_port(text + host + 1, n - host - 1)));
}

/* Returns whether the N bytes of TEXT begin with SCHEME, and a host follows. */
static bool is_url(const char *text, size_t n, const char *scheme)
{
	const size_t len = strlen(scheme);

	return n > len && strncmp(text, scheme, len) == 0 && is_host(text + len, n - len);
}

static bool is_server(const char *text, size_t n)
{
	return is_url(text, n, "nats://") || is_url(text, n, "tls://");
}

static bool is_label(const char *text, size_t n)
{
	char label[2 * FR_LABEL_SIZE + 1];
	struct fr_labels l;

	if (n >= sizeof(label))
		return false;
	memcpy(label, text, n);
	label[n] = '\0';
	return fr_labels_parse(label, &l, NULL) == 0;
}

/* Takes the next item of a list: skips blanks and commas. Returns its length; 0: the list has ended. */
static size_t next_item(const char **text)
{
	static const char blanks[] = " \t,";
	size_t n;

	*text += strspn(*text, blanks);
	n = strcspn(*text, ",");
	while (n && strchr(blanks, (*text)[n - 1]))
		n--;
	return n;
}

/* Returns whether each item of TEXT is valid, and there is one. */
static bool has_valid_items(const char *text, bool (*is_valid)(const char *text, size_t n))
{
	bool some = false;
	size_t n;

	for (; (n = next_item(&text)); text += n, some = true)
		if (!is_valid(text, n))
			return false;
	return some;
}

/* Appends the items of the value to the list, without blanks. An empty value clears the list. */
static int add_items(const struct fr_assignment *a, bool (*is_valid)(const char *text, size_t n))
{
	char **member = (char **)((char *)a->object + a->key->offset), *list, *to;
	const size_t have = *member ? strlen(*member) : 0;
	const char *from = a->value;
	size_t n;

	if (!a->value || !*a->value)
		return fr_string_replace(member, "");
	if (!has_valid_items(a->value, is_valid))
		return fr_value_refuse(a);
	if (have + strlen(a->value) + 1 > LIST_MAX)
		return fr_fail(a->d, -EINVAL, "give fewer of them", "%s= has more than %u bytes",
			a->key->name, LIST_MAX);
	list = malloc(have + strlen(a->value) + 2);
	if (!list)
		return -ENOMEM;
	to = stpcpy(list, *member ? *member : "");
	for (; (n = next_item(&from)); from += n) {
		if (to != list)
			*to++ = ',';
		to = mempcpy(to, from, n);
		*to = '\0';
	}
	free(*member);
	*member = list;
	return 0;
}

static int add_servers(const struct fr_assignment *a)
{
	return add_items(a, is_server);
}
const struct fr_value_type fr_type_servers = {"a list of servers",
	"write it as nats://a:4222,tls://b:4222; user and password are in the file of Credentials=",
	.set = add_servers, .is_string = true};

static int add_labels(const struct fr_assignment *a)
{
	struct fr_labels l;
	int r = add_items(a, is_label);

	if (r < 0)
		return r;
	r = fr_labels_parse(*(char **)((char *)a->object + a->key->offset), &l, a->d);
	if (r < 0)
		fr_diag_prefix(a->d, "%s=", a->key->name);
	return r;
}
const struct fr_value_type fr_type_labels = {"a list of labels",
	"write it as role=db,zone=a, with letters, digits, '-', '_', '.' and '/'; the label name is Name=",
	.set = add_labels, .is_string = true};

static bool is_path_or_empty(const char *text)
{
	return !*text || *text == '/';
}
const struct fr_value_type fr_type_path_or_empty = {"an absolute path", "give a path that begins with /",
	.is_valid = is_path_or_empty, .is_string = true};

static bool is_machine_name(const char *text)
{
	return !*text || fr_fleet_name_is_valid(text);
}
const struct fr_value_type fr_type_machine_name = {"the name of a machine",
	"give at most 64 letters, digits and signs, without blanks and /", .is_valid = is_machine_name,
	.is_string = true};

static bool is_location(const char *text)
{
	struct fr_fleet_location l;

	return !*text || fr_fleet_location_parse(text, &l, NULL) == 0;
}
const struct fr_value_type fr_type_location = {"a place in an object store",
	"write it as s3://BUCKET/PREFIX, with letters, digits, '-', '_', '.' and '/'",
	.is_valid = is_location, .is_string = true};

static bool is_endpoint(const char *text)
{
	return !*text || is_url(text, strlen(text), "https://") || is_url(text, strlen(text), "http://");
}
const struct fr_value_type fr_type_endpoint = {"the address of an object store",
	"write it as https://HOST:PORT", .is_valid = is_endpoint, .is_string = true};

static bool is_region(const char *text)
{
	return *text && strlen(text) <= 63 && has_only(text, strlen(text), "-_");
}
const struct fr_value_type fr_type_region = {
	"a region of an object store", "write it as us-east-1", .is_valid = is_region, .is_string = true};

int fr_config_check_fleet(const struct fr_config *c, struct fr_diag *d)
{
	const struct fr_fleet_config *f = &c->fleet;

	if (f->enabled && !*f->servers)
		return fr_fail(d, -EINVAL, "name the broker with Servers=, or write Enabled=no",
			"Enabled=yes of [Fleet] needs Servers=");
	if (!*f->certificate != !*f->key)
		return fr_fail(d, -EINVAL, "set both or none",
			"%s= of [Fleet] needs %s=", *f->key ? "Key" : "Certificate",
			*f->key ? "Certificate" : "Key");
	if (*f->upload && !*f->upload_endpoint)
		return fr_fail(d, -EINVAL, "name the server with UploadEndpoint=https://HOST:PORT",
			"Upload= of [Fleet] needs UploadEndpoint=");
	return 0;
}
