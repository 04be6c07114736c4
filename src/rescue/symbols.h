/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The symbols of the kernel in the crash memory: a copy of /proc/kallsyms, and the build-ids of the kernel
 * and of its modules. After a crash, another kernel can run, and each boot puts the kernel at other
 * addresses. So a dump of the crashed kernel gets its symbols in a file NAME.kallsyms beside it: `perf report
 * --kallsyms NAME.kallsyms -i NAME`.
 */

#include "base/buf.h"
#include "base/diag.h"
#include "crashmem/crashmem.h"

#include <sys/types.h>

/* How much fr_rescue_symbols_store() has stored. Each value except the first comes with a message. */
enum fr_rescue_stored {
	FR_RESCUE_STORED_ALL,
	FR_RESCUE_STORED_TEXT,	    /* the symbols of functions; those of data did not fit */
	FR_RESCUE_STORED_BUILD_IDS, /* no symbol: they do not fit, or the kernel hides their addresses */
};

/* Stores the symbols in KALLSYMS_PATH (NULL: /proc/kallsyms), and the build-ids of the running kernel and of
   its modules, in M, which is borrowed and has a valid header. Symbols that were stored before are replaced;
   a crash during the call leaves them. Takes some tenths of a second, and needs 40 MiB of memory. Any thread
   that may wait, one call at a time. Returns a value of enum fr_rescue_stored, with a message in D if it is
   not FR_RESCUE_STORED_ALL; or a negative errno, with a message in D: -E2BIG if not even the build-ids fit;
   -ENOMEM; or an error of the file. */
int fr_rescue_symbols_store(struct fr_crashmem *m, const char *kallsyms_path, struct fr_diag *d);

struct fr_rescue_symbols {
	struct fr_buf kallsyms; /* lines like those of /proc/kallsyms; empty: there are no symbols */
	/* Records of type 67 (perfdata/record.h) of the kernel, "[kernel.kallsyms]", and its modules,
	 * "[snd_pcm]". */
	struct fr_buf build_ids;
};

/* Reads the symbols in M, which is not trusted. Returns 0; -ENOENT if there are none; -EBADMSG if they are
   damaged; or -ENOMEM. The caller frees RET. */
int fr_rescue_symbols_read(const struct fr_crashmem *m, struct fr_rescue_symbols *ret);
void fr_rescue_symbols_deinit(struct fr_rescue_symbols *s);

/* Writes the symbols of S to the file DUMP_NAME.kallsyms (FR_DUMP_KALLSYMS), with the mode and the owner of a
   dump, and the group GID
   ((gid_t)-1: do not change the group). If S has no symbols, writes no file. Waits for the disk. Returns 0 or
   a negative errno. */
int fr_rescue_symbols_write(int dirfd, const char *dump_name, gid_t gid, const struct fr_rescue_symbols *s);
