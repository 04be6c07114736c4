/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Varlink's wire format without a socket: JSON objects, each ended by one NUL byte, over a stream of bytes
 * that may be cut anywhere. Everything that arrives is hostile until it came through here.
 */

#include "base/buf.h"
#include "base/diag.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#define FR_WIRE_MAX_CALL (64u << 10) /* bytes of one message to the server, without its NUL */
#define FR_WIRE_MAX_REPLY (4u << 20) /* of one message to the client */
#define FR_WIRE_MAX_DEPTH 16	     /* of arrays and objects */

/* Bytes that came, not yet whole messages. Zero-initialised but for max. */
struct fr_wire_reader {
	struct fr_buf in;
	size_t max;	/* FR_WIRE_MAX_… */
	size_t scanned; /* bytes of `in` known to hold no NUL */
};

void fr_wire_reader_deinit(struct fr_wire_reader *r);

/* 0 or -ENOMEM. */
int fr_wire_feed(struct fr_wire_reader *r, const void *data, size_t len);

/* Take the next whole message out. 1: *RET (to be freed) is NUL-terminated and *RET_LEN long; 0: none is
   whole yet; -EMSGSIZE: it is longer than max, the stream cannot be used any more; -ENOMEM. */
int fr_wire_next(struct fr_wire_reader *r, char **ret, size_t *ret_len);

/* Check the text before a parser sees it: nesting, UTF-8, no raw control characters and no \u0000 in strings
   (a C string would end there). 0; -EBADMSG with D. Not a JSON parser: what passes may still be no JSON. */
int fr_wire_scan(const char *text, size_t len, struct fr_diag *d);

/* fr_wire_scan() and parse; the result is an object. 0 with *RET the caller's; -EBADMSG with D. */
int fr_wire_parse(const char *text, size_t len, cJSON **ret, struct fr_diag *d);

/* A call, pointing into the message. */
struct fr_wire_call {
	const char *method;
	const cJSON *parameters; /* an object, or NULL: none */
	bool more, oneway;
};

/* Strict: known members, each once and of its type. 0, or -EBADMSG with D; RET is untouched then. */
int fr_wire_decode_call(const cJSON *message, struct fr_wire_call *ret, struct fr_diag *d);

struct fr_wire_reply {
	const char *error;	 /* NULL: none */
	const cJSON *parameters; /* an object, or NULL */
	bool continues;
};

int fr_wire_decode_reply(const cJSON *message, struct fr_wire_reply *ret, struct fr_diag *d);

/* Append MESSAGE and its NUL to OUT. 0; -EMSGSIZE: longer than MAX; -ENOMEM. OUT is as before on failure. */
int fr_wire_encode(const cJSON *message, size_t max, struct fr_buf *out);
