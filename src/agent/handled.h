/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The commands and the decisions that the agent has handled, so that none has a second effect. A key is the
   id of a command, or the name of a decision. The file has one line for each key: "TIME KEY". No thread, no
   lock: the caller has one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_HANDLED_KEY_SIZE 160u
#define FR_HANDLED_MAX 10000u
#define FR_HANDLED_AGE_NS (2 * 86400 * 1000000000ULL)

struct fr_handled {
	struct fr_handled_key {
		uint64_t time_ns; /* fleet time */
		char key[FR_HANDLED_KEY_SIZE];
	} * v; /* in the order in which they were added */
	size_t n, size;
};

void fr_handled_deinit(struct fr_handled *h);
bool fr_handled_has(const struct fr_handled *h, const char *key);
/* Adds KEY, and forgets the keys that are older than FR_HANDLED_AGE_NS before TIME_NS; and the oldest key if
   there are FR_HANDLED_MAX. Returns 0; -EINVAL if KEY is empty, too long, or has a blank; or -ENOMEM. */
int fr_handled_add(struct fr_handled *h, const char *key, uint64_t time_ns);
/* Reads the text of a file: N bytes. Lines that are no keys are ignored. Returns the number of these lines,
   or -ENOMEM. */
int fr_handled_parse(struct fr_handled *h, const char *text, size_t n);
/* Returns the text, which the caller frees; or NULL if there is no memory. */
char *fr_handled_text(const struct fr_handled *h, size_t *ret_n);
