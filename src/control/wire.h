/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Encodes and decodes the wire format of Varlink, without a socket: JSON objects in a stream of bytes, each
 * followed by one NUL byte. Received bytes can come from a hostile client, so these functions check the
 * bytes. Any thread may call these functions.
 */

#include "base/buf.h"
#include "base/diag.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#define FR_WIRE_MAX_CALL (64u << 10) /* bytes of one message to the server, without its NUL */
#define FR_WIRE_MAX_REPLY (4u << 20) /* bytes of one message to the client, without its NUL */
#define FR_WIRE_MAX_DEPTH 16	     /* nested arrays and objects */

/* Received bytes that are not yet taken out as messages. Before its first use, set the struct to zeros, and
   then set `max`. */
struct fr_wire_reader {
	struct fr_buf in;
	size_t max;	/* the longest message: FR_WIRE_MAX_CALL or FR_WIRE_MAX_REPLY */
	size_t scanned; /* this many bytes at the start of `in` have no NUL */
};

void fr_wire_reader_deinit(struct fr_wire_reader *r);

/* Adds received bytes. Returns 0 or -ENOMEM. */
int fr_wire_feed(struct fr_wire_reader *r, const void *data, size_t len);

/* Takes out the next message. Returns 1 and sets *RET to the message, which has *RET_LEN bytes and a NUL, and
   which the caller frees. Returns 0 if there is no whole message yet; -EMSGSIZE if the message is longer than
   `max`; or -ENOMEM. After -EMSGSIZE, nothing more can be read from the stream. */
int fr_wire_next(struct fr_wire_reader *r, char **ret, size_t *ret_len);

/* Checks and parses a message of LEN bytes and a NUL. It must be an object, in UTF-8, without raw control
   characters and without \u0000 in its strings. Returns 0 and sets *RET, which the caller deletes; or returns
   -EBADMSG, with a message in D. */
int fr_wire_parse(const char *text, size_t len, cJSON **ret, struct fr_diag *d);

/* A call. Its pointers point into the message. */
struct fr_wire_call {
	const char *method;
	const cJSON *parameters; /* an object, or NULL */
	bool more, oneway;
};

/* Decodes MESSAGE, a call, into RET. Accepts only known members, each at most once and with the right type.
   Returns 0; or -EBADMSG, with a message in D and without a change of RET. fr_wire_decode_reply() decodes a
   reply in the same way. */
int fr_wire_decode_call(const cJSON *message, struct fr_wire_call *ret, struct fr_diag *d);

struct fr_wire_reply {
	const char *error;	 /* NULL: the reply is not an error */
	const cJSON *parameters; /* an object, or NULL */
	bool continues;
};

int fr_wire_decode_reply(const cJSON *message, struct fr_wire_reply *ret, struct fr_diag *d);

/* Appends the text of MESSAGE and a NUL to OUT. Returns 0; -EMSGSIZE if the text is longer than MAX bytes; or
   -ENOMEM. On failure, OUT does not change. */
int fr_wire_encode(const cJSON *message, size_t max, struct fr_buf *out);
