/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* SHA-256 and MD5 in hexadecimal digits, by libcrypto. MD5 is only for the ETags of the store. */

#include "base/diag.h"

#include <openssl/evp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define FR_SHA256_SIZE 65
#define FR_MD5_SIZE 33

struct fr_hash {
	EVP_MD_CTX *sha256;
	EVP_MD_CTX *md5; /* NULL if libcrypto refuses MD5, as in its FIPS mode */
};

/* Returns 0 or -ENOMEM. */
int fr_hash_init(struct fr_hash *h);
/* Returns 0 or -EIO. */
int fr_hash_update(struct fr_hash *h, const void *data, size_t n);
/* Ends the computation. If there is no MD5, RET_MD5 is "". */
int fr_hash_final(
	struct fr_hash *h, char ret_sha256[static FR_SHA256_SIZE], char ret_md5[static FR_MD5_SIZE]);
void fr_hash_deinit(struct fr_hash *h);
#define _cleanup_hash_ _cleanup_(fr_hash_deinit)

/* The hashes of N bytes of memory. */
int fr_hash_data(const void *data, size_t n, char ret_sha256[static FR_SHA256_SIZE],
	char ret_md5[static FR_MD5_SIZE], struct fr_diag *d);
/* The SHA-256 of N bytes of FD from OFFSET on. Fails with -EBADMSG if the file is shorter, and with
   -ECANCELED if CANCEL (may be NULL) becomes true. */
int fr_hash_range(int fd, uint64_t offset, uint64_t n, const atomic_bool *cancel,
	char ret_sha256[static FR_SHA256_SIZE], struct fr_diag *d);
