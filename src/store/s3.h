/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * An S3 object store, by libcurl and its AWS_SIGV4. All functions wait for the network, with time limits: a
 * transfer that makes no progress for 30 s fails with -ETIMEDOUT. So does a large content that comes slower
 * than 1 KiB/s for 60 s, a small request after 60 s, and fr_store_upload_finish() after 10 minutes. The store
 * can be hostile: answers are bounded, and a redirect is not followed. Only one thread may use a handle at a
 * time. libcurl uses the proxies of the environment.
 *
 * Errors, each with a message in D: -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT: not reachable; -EACCES: the
 * store refuses the key, the signature or the bucket (the text says which, and if the clock of this machine
 * is wrong); -ENOENT: no such object, bucket or upload; -ENOSPC: the store is full or a quota is reached
 * (507, QuotaExceeded …); -EAGAIN: the store asks to come later (503, 429, 5xx), or the connection broke;
 * -EBADMSG: an answer that makes no sense, or content with another hash; -EOPNOTSUPP: the store does not have
 * this request; -EINVAL: a key, an address or a bucket that cannot be; -ECANCELED: `cancel` was set;
 * -EKEYREJECTED: TLS.
 */

#include "base/diag.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_STORE_PARTS_MAX 10000u
#define FR_STORE_PART_MIN (5u << 20) /* all but the last */
#define FR_STORE_ETAG_SIZE 128
#define FR_STORE_UPLOAD_SIZE 512 /* the id of a multipart upload */

struct fr_store;

struct fr_store_config {      /* strings are copied */
	const char *endpoint; /* "https://s3.example.com:9000"; NULL: https://s3.REGION.amazonaws.com */
	const char *region;   /* NULL: "us-east-1" */
	const char *bucket;
	const char *access_key, *secret_key, *session_token; /* the token may be NULL */
	const char *ca;					     /* PEM file; NULL: that of the system */
	uint64_t limit_bytes;	   /* most bytes a second, sent or received; 0: no limit */
	unsigned stall_s;	   /* a transfer that makes no progress for so long fails; 0: 30 */
	const atomic_bool *cancel; /* borrowed; NULL or: when it becomes true, a transfer ends within 1 s */
	void (*on_progress)(
		void *ctx, uint64_t bytes); /* bytes sent or received since the last call; may be NULL */
	void *ctx;
};
int fr_store_new(const struct fr_store_config *config, struct fr_store **ret, struct fr_diag *d);
struct fr_store *fr_store_free(struct fr_store *s); /* NULL is allowed; returns NULL */

/* Reads keys in the format of ~/.aws/credentials (the profile PROFILE, or "default"). The strings of RET
   belong to the caller; fr_store_keys_deinit() clears and frees them. */
struct fr_store_keys {
	char *access_key, *secret_key, *session_token;
};
int fr_store_keys_read(const char *path, const char *profile, struct fr_store_keys *ret, struct fr_diag *d);
void fr_store_keys_deinit(struct fr_store_keys *k);

struct fr_store_object {
	uint64_t bytes;
	char etag[FR_STORE_ETAG_SIZE];
	char sha256[65]; /* of the metadata x-amz-meta-sha256; "": it has none */
};
/* Stores N bytes. SHA256 (hex, may be NULL) becomes metadata. The store checks the content by the signed hash
 * of the body. */
int fr_store_put(struct fr_store *s, const char *key, const void *data, size_t n, const char *sha256,
	struct fr_diag *d);
/* Looks at the object. */
int fr_store_head(struct fr_store *s, const char *key, struct fr_store_object *ret, struct fr_diag *d);
/* Appends the bytes of the object from OFFSET on to FD. At most MAX bytes are accepted. If OFFSET is the end
   of the object, nothing is appended. After an error, FD can have a part of the bytes. The caller checks the
   hash. */
int fr_store_get(
	struct fr_store *s, const char *key, int fd, uint64_t offset, uint64_t max, struct fr_diag *d);
/* Reads a small object, at most MAX bytes, into memory that the caller frees; it gets a NUL. */
int fr_store_get_small(
	struct fr_store *s, const char *key, size_t max, char **ret, size_t *ret_n, struct fr_diag *d);
int fr_store_remove(struct fr_store *s, const char *key, struct fr_diag *d); /* 0 also if it did not exist */
/* Lists the objects whose keys begin with PREFIX; ON_OBJECT returns whether to go on. The store can list a
   key twice. */
int fr_store_list(struct fr_store *s, const char *prefix,
	bool (*on_object)(void *ctx, const char *key, uint64_t bytes), void *ctx, struct fr_diag *d);

/* A multipart upload, which survives restarts of both sides: keep KEY and the id. */
int fr_store_upload_begin(struct fr_store *s, const char *key, const char *sha256,
	char ret_upload[FR_STORE_UPLOAD_SIZE], struct fr_diag *d);
/* Sends part NUMBER (from 1 on): N bytes of FD from OFFSET on. Compares the ETag with the MD5 of what was
 * sent, if it is one. */
int fr_store_upload_part(struct fr_store *s, const char *key, const char *upload, unsigned number, int fd,
	uint64_t offset, uint64_t n, char ret_etag[FR_STORE_ETAG_SIZE], struct fr_diag *d);
struct fr_store_part {
	unsigned number;
	uint64_t bytes;
	char etag[FR_STORE_ETAG_SIZE];
};
/* Lists the parts that the store has, into at most MAX entries of RET. -ENOENT: the store does not know the
 * upload. -EOPNOTSUPP: the store has no such list (s3rver), so the caller goes by what it remembers. */
int fr_store_upload_parts(struct fr_store *s, const char *key, const char *upload, struct fr_store_part *ret,
	size_t max, size_t *ret_n, struct fr_diag *d);
/* The store joins the parts. If the answer got lost, a second call fails with -ENOENT: then fr_store_head()
 * tells whether the object is there. */
int fr_store_upload_finish(struct fr_store *s, const char *key, const char *upload,
	const struct fr_store_part *parts, size_t n, struct fr_diag *d);
int fr_store_upload_abort(struct fr_store *s, const char *key, const char *upload, struct fr_diag *d);

/* Sets the rule "flightrec" of the bucket: objects with PREFIX are removed after DAYS, and unfinished uploads
   after 7 days. Other rules stay. */
int fr_store_expire(struct fr_store *s, const char *prefix, unsigned days, struct fr_diag *d);
/* Writes the SHA-256 of the first N bytes of FD, in hex. Stops with -ECANCELED if CANCEL (may be NULL)
 * becomes true. */
int fr_store_sha256(int fd, uint64_t n, const atomic_bool *cancel, char ret[65], struct fr_diag *d);
