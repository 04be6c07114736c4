/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One request to the store, and its answer. Private to this folder. */

#include "base/buf.h"
#include "store/hash.h"
#include "store/s3.h"
#include "store/xml.h"

#include <curl/curl.h>
#include <time.h>

#define FR_STORE_KEY_MAX 1024
#define FR_STORE_SMALL_MAX (64u << 10) /* bytes of an answer that has no list */
#define FR_STORE_LIST_MAX (8u << 20)   /* bytes of one page of a list: 1000 keys of 1024 bytes, escaped */
#define FR_STORE_HEADERS_MAX (64u << 10)

struct fr_store {
	CURL *curl;	/* keeps connections between requests */
	char *endpoint; /* without "/" at the end */
	char *region, *bucket, *ca;
	char *access_key, *secret_key, *session_token;
	uint64_t limit_bytes;
	uint64_t stall_ns;
	const atomic_bool *cancel;
	void (*on_progress)(void *ctx, uint64_t bytes);
	void *ctx;
};

struct fr_store_query {
	const char *name, *value;
};

struct fr_store_request {
	const char *method;		    /* "GET", "HEAD", "PUT", "POST" or "DELETE" */
	const char *key;		    /* NULL: the bucket */
	const struct fr_store_query *query; /* sorted by name, as the signature needs it */
	size_t n_query;
	const char *meta_sha256;  /* becomes x-amz-meta-sha256; NULL: none */
	const char *content_type; /* NULL: none */
	bool has_md5;		  /* sends Content-MD5, which S3 demands for settings of buckets */
	const void *data;	  /* the body; NULL: N_DATA bytes of FD from FD_OFFSET on */
	uint64_t n_data;
	int fd;
	uint64_t fd_offset;
	bool is_slow; /* the store works for minutes before it answers */

	const int *sink;     /* the body of the answer is appended to this descriptor; NULL: kept in memory */
	uint64_t range_from; /* asks for the object from this byte on */
	uint64_t max;	     /* most bytes of the answer's body; without a sink, 0 is FR_STORE_SMALL_MAX */
};

struct fr_store_answer {
	unsigned status;
	char etag[FR_STORE_ETAG_SIZE]; /* without quotes; "": none or too long */
	char sha256[FR_SHA256_SIZE];   /* of x-amz-meta-sha256; "": none, or other text */
	char region[64];	       /* of x-amz-bucket-region */
	bool is_complete;	       /* all headers have arrived */
	bool is_chunked;	       /* Transfer-Encoding: chunked */
	bool has_length;
	uint64_t length; /* Content-Length */
	bool has_range;
	uint64_t range_from, range_total; /* Content-Range; range_from is UINT64_MAX for "*" */
	bool is_encrypted;		  /* so the ETag is no MD5 */
	time_t date;			  /* 0: none */
	uint64_t received;		  /* bytes of the body */
	char sent_md5[FR_MD5_SIZE];	  /* of the body that was sent; "": none */
	struct fr_buf body;		  /* has a NUL after its end */
};
void fr_store_answer_deinit(struct fr_store_answer *a);
#define _cleanup_answer_ _cleanup_(fr_store_answer_deinit)

/* Sends REQ, and waits for the answer. Returns 0 for a status of 2xx, or an errno of s3.h with a text in D. A
   also has to be freed after an error, and is all zeros or as the store answered then. */
int fr_store_perform(
	struct fr_store *s, const struct fr_store_request *req, struct fr_store_answer *a, struct fr_diag *d);
/* Writes "PUT bucket/key" for messages. */
void fr_store_what(const struct fr_store *s, const struct fr_store_request *req, char *ret, size_t size);
/* Makes the error of an answer that is none of 2xx, or has an error document. */
int fr_store_answer_error(const struct fr_store *s, const struct fr_store_request *req,
	const struct fr_store_answer *a, struct fr_diag *d);
/* Reads the document of an answer, whose outermost element must be ROOT. ON_END gets its elements, except
   ROOT. Fails with the error of the store if the document is an error, although the status was good; or as
   fr_xml_read() does; or with -EBADMSG if it is another document. */
int fr_store_answer_read(const struct fr_store *s, const struct fr_store_request *req,
	const struct fr_store_answer *a, const char *root,
	int (*on_end)(void *ctx, const struct fr_xml_element *e), void *ctx, struct fr_diag *d);
/* Compares the ETag of the answer with the MD5 of what was sent, if the ETag is an MD5. Returns 0 or
 * -EBADMSG. */
int fr_store_answer_check_md5(const struct fr_store *s, const struct fr_store_request *req,
	const struct fr_store_answer *a, struct fr_diag *d);
/* Checks that the body says where it ends: otherwise its end cannot be told from a broken connection. Returns
   0 or -EBADMSG. */
int fr_store_answer_check_end(const struct fr_store *s, const struct fr_store_request *req,
	const struct fr_store_answer *a, struct fr_diag *d);
/* Fails with -EBADMSG and the text "the answer of the store … to '…' makes no sense: WHY". */
int fr_store_answer_refuse(
	const struct fr_store *s, const struct fr_store_request *req, struct fr_diag *d, const char *why);
/* Checks that a key can be sent. Returns 0 or -EINVAL. */
int fr_store_key_check(const char *key, struct fr_diag *d);
/* Appends TEXT to B, with each byte as %XX except letters, digits, "-._~", and "/" if KEEP_SLASH. */
int fr_store_encode(struct fr_buf *b, const char *text, bool keep_slash);
/* Appends the canonical URL of a request, and a NUL. Returns 0 or -ENOMEM. */
int fr_store_url(const struct fr_store *s, const struct fr_store_request *req, struct fr_buf *b);
