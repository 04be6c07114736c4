/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Translates what goes wrong between this machine and a store into an errno of s3.h and a text for people. */

#include "base/diag.h"

#include <curl/curl.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Makes an error of an answer with STATUS (not 2xx, or 2xx with an error document) and its BODY of N bytes,
   which can be anything. WHAT is the request, like "PUT bucket/key"; STORE is the address of the store. DATE
   is the clock of the store, or 0; NOW is that of this machine. Always returns a negative errno. */
struct fr_store_error {
	const char *store, *what;
	const char *region; /* that the bucket is in, as the store says; "": it did not say */
	unsigned status;
	const char *body;
	size_t n;
	time_t date, now;
};
int fr_store_error(const struct fr_store_error *e, struct fr_diag *d);

/* The same for an error of libcurl. OS_ERRNO is CURLINFO_OS_ERRNO, TEXT is the buffer of CURLOPT_ERRORBUFFER.
 */
int fr_store_curl_error(const char *store, const char *what, CURLcode code, long os_errno, const char *text,
	struct fr_diag *d);
