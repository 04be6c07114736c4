/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The callbacks of libcurl: bodies, headers, progress. They enforce the bounds of a transfer. Private to this
   folder. */

#include "store/request.h"

struct fr_transfer {
	struct fr_store *store;
	const struct fr_store_request *req;
	struct fr_store_answer *answer;
	char sha256[FR_SHA256_SIZE]; /* of the body, as it was signed */
	int code;		     /* negative errno of a callback; 0: none */
	char why[160];		     /* its reason */
	uint64_t sent;		     /* position in the body */
	struct fr_hash hash;	     /* of what was sent */
	char md5[FR_MD5_SIZE];	     /* of the whole body, when it was sent */
	uint64_t header_bytes;
	uint64_t received; /* bytes of the answer's body */
	uint64_t moved, reported;
	uint64_t moved_ns; /* when MOVED changed last */
	uint64_t stall_ns;
};

/* Returns 0 or -ENOMEM. */
int fr_transfer_init(struct fr_transfer *t, struct fr_store *s, const struct fr_store_request *req,
	struct fr_store_answer *answer);
/* Sets the callbacks, the limits of time and of speed. */
void fr_transfer_set(struct fr_transfer *t);
void fr_transfer_deinit(struct fr_transfer *t);
