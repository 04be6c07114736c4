// SPDX-License-Identifier: GPL-2.0-or-later
#include "store/hash.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "store/s3.h"

#include <errno.h>
#include <string.h>

#define CHUNK_BYTES (64u << 10)

int fr_hash_init(struct fr_hash *h)
{
	*h = (struct fr_hash){.sha256 = EVP_MD_CTX_new(), .md5 = EVP_MD_CTX_new()};
	if (!h->sha256 || !h->md5 || EVP_DigestInit_ex(h->sha256, EVP_sha256(), NULL) != 1) {
		fr_hash_deinit(h);
		return -ENOMEM;
	}
	if (EVP_DigestInit_ex(h->md5, EVP_md5(), NULL) != 1) {
		EVP_MD_CTX_free(h->md5);
		h->md5 = NULL;
	}
	return 0;
}

int fr_hash_update(struct fr_hash *h, const void *data, size_t n)
{
	if (EVP_DigestUpdate(h->sha256, data, n) != 1 || (h->md5 && EVP_DigestUpdate(h->md5, data, n) != 1))
		return -EIO;
	return 0;
}

/* RET gets SIZE bytes, with the NUL. */
static int final_hex(EVP_MD_CTX *ctx, char *ret, size_t size)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (EVP_DigestFinal_ex(ctx, digest, &n) != 1 || size != 2 * (size_t)n + 1)
		return -EIO;
	for (unsigned i = 0; i < n; i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

int fr_hash_final(struct fr_hash *h, char ret_sha256[static FR_SHA256_SIZE], char ret_md5[static FR_MD5_SIZE])
{
	int r = final_hex(h->sha256, ret_sha256, FR_SHA256_SIZE);

	ret_md5[0] = '\0';
	return r == 0 && h->md5 ? final_hex(h->md5, ret_md5, FR_MD5_SIZE) : r;
}

void fr_hash_deinit(struct fr_hash *h)
{
	EVP_MD_CTX_free(h->sha256);
	EVP_MD_CTX_free(h->md5);
	*h = (struct fr_hash){0};
}

int fr_hash_data(const void *data, size_t n, char ret_sha256[static FR_SHA256_SIZE],
	char ret_md5[static FR_MD5_SIZE], struct fr_diag *d)
{
	_cleanup_hash_ struct fr_hash h = {0};
	int r = fr_hash_init(&h);

	if (r == 0)
		r = fr_hash_update(&h, data, n);
	if (r == 0)
		r = fr_hash_final(&h, ret_sha256, ret_md5);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot compute a hash") : 0;
}

static int read_range(
	struct fr_hash *h, int fd, uint64_t offset, uint64_t n, const atomic_bool *cancel, struct fr_diag *d)
{
	_cleanup_free_ char *chunk = malloc(CHUNK_BYTES);

	if (!chunk)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot compute the hash of a file");
	while (n > 0) {
		const size_t want = FR_MIN(n, CHUNK_BYTES);
		ssize_t got;

		if (cancel && atomic_load(cancel))
			return fr_fail(d, -ECANCELED, NULL, "the hash of a file was canceled");
		got = fr_pread_all(fd, chunk, want, (off_t)offset);
		if (got < 0)
			return fr_fail_errno(d, (int)got, NULL, "cannot read a file for its hash");
		if ((size_t)got < want)
			return fr_fail(d, -EBADMSG, NULL, "the file ends %llu bytes early: it became shorter",
				(unsigned long long)(n - (size_t)got));
		if (fr_hash_update(h, chunk, want) < 0)
			return fr_fail_errno(d, -EIO, NULL, "cannot compute the hash of a file");
		offset += want;
		n -= want;
	}
	return 0;
}

int fr_hash_range(int fd, uint64_t offset, uint64_t n, const atomic_bool *cancel,
	char ret_sha256[static FR_SHA256_SIZE], struct fr_diag *d)
{
	_cleanup_hash_ struct fr_hash h = {0};
	char md5[FR_MD5_SIZE], sha256[FR_SHA256_SIZE];
	int r = fr_hash_init(&h);

	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot compute the hash of a file");
	EVP_MD_CTX_free(h.md5);
	h.md5 = NULL;
	r = read_range(&h, fd, offset, n, cancel, d);
	if (r < 0)
		return r;
	if (fr_hash_final(&h, sha256, md5) < 0)
		return fr_fail_errno(d, -EIO, NULL, "cannot compute the hash of a file");
	memcpy(ret_sha256, sha256, sizeof(sha256));
	return 0;
}

int fr_store_sha256(int fd, uint64_t n, const atomic_bool *cancel, char ret[65], struct fr_diag *d)
{
	return fr_hash_range(fd, 0, n, cancel, ret, d);
}
