/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The build-ids in the head of a recording (section BUILD_ID), by path. A map record has a build-id of its
 * own only if the kernel was asked for it. Not thread-safe.
 */

#include "perfdata/session.h"

struct fr_head_ids;

/* Makes the table. It borrows the section of SESSION. Returns 0 or -ENOMEM. */
int fr_head_ids_new(const struct fr_session *session, struct fr_head_ids **ret);
/* Accepts NULL; returns NULL. */
struct fr_head_ids *fr_head_ids_free(struct fr_head_ids *ids);
/* Copies the build-id of PATH, which has LEN bytes, to RET. Returns its length, or 0 if the head has none. */
size_t fr_head_ids_find(const struct fr_head_ids *ids, const char *path, size_t len, uint8_t ret[static 20]);
