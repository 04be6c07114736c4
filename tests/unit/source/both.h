/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* For tests of probes: each with the kernel's BTF and without, which takes tracefs. */

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <unistd.h>
#include <cmocka.h>

/* False, with a word: it cannot be provoked here. */
typedef bool (*provocation)(bool classic);

static inline void play_with_btf(void **state)
{
	if (!(*(provocation *)state)(false))
		skip();
}

static inline void play_without_btf(void **state)
{
	if (!(*(provocation *)state)(true))
		skip();
}

/* clang-format off */
#define BOTH(f) {#f, play_with_btf, NULL, NULL, (void *)(f)}, {#f " without BTF", play_without_btf, NULL, NULL, (void *)(f)}
/* clang-format on */

/* What is mounted from now on goes with us, and the first is tracefs where every program looks for it. False:
   it is not there. */
static inline bool own_mounts(void)
{
	bool own = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;

	return access("/sys/kernel/tracing/events", R_OK) == 0 ||
	       (own && mount("nodev", "/sys/kernel/tracing", "tracefs", 0, NULL) == 0);
}
