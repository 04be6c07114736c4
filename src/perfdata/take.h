/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A run of bytes that is consumed from its front and never past its end. Between the files of this folder. */

#include <stddef.h>
#include <stdint.h>

struct cursor {
	const uint8_t *p;
	size_t left;
};

/* LEN bytes, or NULL where there are fewer. */
static inline const void *take(struct cursor *c, uint64_t len)
{
	const uint8_t *p = c->p;

	if (len > c->left)
		return NULL;
	c->p += len;
	c->left -= len;
	return p;
}
