// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/wire.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>

void fr_wire_reader_deinit(struct fr_wire_reader *r)
{
	fr_buf_deinit(&r->in);
	r->scanned = 0;
}

int fr_wire_feed(struct fr_wire_reader *r, const void *data, size_t len)
{
	return fr_buf_append(&r->in, data, len);
}

int fr_wire_next(struct fr_wire_reader *r, char **ret, size_t *ret_len)
{
	const uint8_t *end;
	size_t len;
	char *text;

	if (r->in.len == 0)
		return 0;
	end = memchr(r->in.data + r->scanned, '\0', r->in.len - r->scanned);
	len = end ? (size_t)(end - r->in.data) : r->in.len;
	if (len > r->max)
		return -EMSGSIZE;
	if (!end) {
		r->scanned = len;
		return 0;
	}
	text = malloc(len + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, r->in.data, len + 1);
	r->in.len -= len + 1;
	memmove(r->in.data, r->in.data + len + 1, r->in.len);
	r->scanned = 0;
	*ret = text;
	*ret_len = len;
	return 1;
}

/* Checks the string that begins with the quote at S. LEN is the number of bytes from S to the end of the
   message. Sets *RET_LEN to the length of the string, with both quotes. Returns 0; or -EBADMSG, with a
   message in D. */
static int scan_string(const uint8_t *s, size_t len, size_t *ret_len, struct fr_diag *d)
{
	for (size_t i = 1, n; i < len; i += n) {
		if (s[i] == '"') {
			*ret_len = i + 1;
			return 0;
		}
		if (s[i] < 0x20)
			return fr_fail(d, -EBADMSG, NULL, "a string has a raw control character");
		if (len - i >= 6 && !memcmp(s + i, "\\u0000", 6))
			return fr_fail(d, -EBADMSG, NULL, "a string has \\u0000");
		if (s[i] == '\\' && ++i == len)
			break;
		n = fr_utf8_sequence(s + i, len - i);
		if (n == 0)
			return fr_fail(d, -EBADMSG, NULL, "a string is not UTF-8");
	}
	return fr_fail(d, -EBADMSG, NULL, "a string does not end");
}

/*
 * Checks a message before cJSON parses it. cJSON recurses with each level of nesting, so the depth is limited
 * here. cJSON also accepts any byte in a string, and ends a string at \u0000. The strings are checked because
 * they appear in logs, on terminals and in the JSON of other programs.
 */
static int scan(const char *text, size_t len, struct fr_diag *d)
{
	const uint8_t *s = (const uint8_t *)text;
	unsigned depth = 0;

	for (size_t i = 0, n; i < len; i += n) {
		n = 1;
		if (s[i] == '"') {
			int r = scan_string(s + i, len - i, &n, d);

			if (r < 0)
				return r;
		} else if (s[i] == '{' || s[i] == '[') {
			if (++depth > FR_WIRE_MAX_DEPTH)
				return fr_fail(d, -EBADMSG, NULL, "more than %u levels of nesting",
					FR_WIRE_MAX_DEPTH);
		} else if (s[i] == '}' || s[i] == ']') {
			if (depth-- == 0)
				return fr_fail(d, -EBADMSG, NULL, "a closing bracket has no opening bracket");
		} else if (s[i] >= 0x80 || s[i] == '\0') {
			return fr_fail(d, -EBADMSG, NULL, "byte 0x%02x is not allowed here", s[i]);
		}
	}
	return 0;
}

int fr_wire_parse(const char *text, size_t len, cJSON **ret, struct fr_diag *d)
{
	cJSON *json;
	int r = scan(text, len, d);

	if (r < 0)
		return r;
	json = cJSON_ParseWithLengthOpts(text, len + 1, NULL, true);
	if (!cJSON_IsObject(json)) {
		cJSON_Delete(json);
		return fr_fail(d, -EBADMSG, NULL, "the message is not a JSON object");
	}
	*ret = json;
	return 0;
}

/* A member that a message may have. Exactly one of the three pointers is set. decode_member() stores the
   value there, and the pointer says which type the value must have. */
struct member {
	const char *name;
	const char **string;
	const cJSON **object;
	bool *boolean;
	bool seen;
};

static int decode_member(const cJSON *item, struct member *m, struct fr_diag *d)
{
	if (m->seen)
		return fr_fail(d, -EBADMSG, NULL, "member '%s' appears twice", m->name);
	m->seen = true;
	if (m->string && cJSON_IsString(item))
		*m->string = item->valuestring;
	else if (m->object && cJSON_IsObject(item))
		*m->object = item;
	else if (m->boolean && cJSON_IsBool(item))
		*m->boolean = cJSON_IsTrue(item);
	else
		return fr_fail(d, -EBADMSG, NULL, "member '%s' has the wrong type", m->name);
	return 0;
}

static int decode(const cJSON *message, struct member *members, size_t n, struct fr_diag *d)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, message) {
		size_t i = 0;
		int r;

		while (i < n && strcmp(members[i].name, item->string))
			i++;
		if (i == n)
			return fr_fail(d, -EBADMSG, NULL, "unknown member '%.64s'", item->string);
		r = decode_member(item, &members[i], d);
		if (r < 0)
			return r;
	}
	return 0;
}

int fr_wire_decode_call(const cJSON *message, struct fr_wire_call *ret, struct fr_diag *d)
{
	struct fr_wire_call call = {0};
	bool upgrade = false;
	struct member members[] = {
		{.name = "method", .string = &call.method},
		{.name = "parameters", .object = &call.parameters},
		{.name = "more", .boolean = &call.more},
		{.name = "oneway", .boolean = &call.oneway},
		{.name = "upgrade", .boolean = &upgrade},
	};
	int r = decode(message, members, FR_ARRAY_SIZE(members), d);

	if (r < 0)
		return r;
	if (!call.method)
		return fr_fail(d, -EBADMSG, NULL, "the member 'method' is missing");
	if (upgrade)
		return fr_fail(d, -EBADMSG, NULL, "'upgrade' is not supported");
	if (call.more && call.oneway)
		return fr_fail(d, -EBADMSG, NULL, "'more' and 'oneway' exclude each other");
	*ret = call;
	return 0;
}

int fr_wire_decode_reply(const cJSON *message, struct fr_wire_reply *ret, struct fr_diag *d)
{
	struct fr_wire_reply reply = {0};
	struct member members[] = {
		{.name = "error", .string = &reply.error},
		{.name = "parameters", .object = &reply.parameters},
		{.name = "continues", .boolean = &reply.continues},
	};
	int r = decode(message, members, FR_ARRAY_SIZE(members), d);

	if (r < 0)
		return r;
	*ret = reply;
	return 0;
}

int fr_wire_encode(const cJSON *message, size_t max, struct fr_buf *out)
{
	_cleanup_free_ char *text = cJSON_PrintUnformatted(message);
	size_t len;

	if (!text)
		return -ENOMEM;
	len = strlen(text);
	if (len > max)
		return -EMSGSIZE;
	return fr_buf_append(out, text, len + 1);
}
