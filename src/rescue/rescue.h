/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Makes a dump of the ring that a recorder has left in the crash memory, because the machine has crashed, or
 * because the recorder was killed and no next instance has continued with the ring (docs/design/25). All that
 * the dump needs is in the crash memory: the ring, the state (handover/state.h), the process model at the
 * ring's tail, the symbols of the kernel, and the crash record of the kernel module.
 */

#include "base/diag.h"
#include "crashmem/crashmem.h"
#include "dump/dump.h"
#include "dump/vacuum.h"
#include "source/cause.h"

#include <sys/types.h>

/* The name of the trigger, and of the source of the cause. */
#define FR_RESCUE_TRIGGER "machine-crash"
#define FR_RESCUE_TRIGGER_KILLED "recorder-killed"

/* All pointers are borrowed for the call. */
struct fr_rescue_config {
	int dirfd; /* the directory for the dump */
	gid_t gid; /* as in struct fr_dump_params */
	const struct fr_retention *limits;
	const char *boot_id; /* of this boot */
	const char *path;    /* RingMemory= */
	bool compress;
	int level;
	struct fr_file_writer_config writer;
};

struct fr_rescued {
	struct fr_dump_result dump;
	struct fr_cause cause;
	int symbols_error; /* negative errno: the file of the symbols could not be written */
	struct fr_vacuum_report vacuum;
};

/* Makes the dump of what is in M, and describes it in RET, which the caller zeroes before and passes to
   fr_rescued_deinit() after the call. fr_crashmem_look() has returned FR_CRASHMEM_SAME_BOOT or
   FR_CRASHMEM_OTHER_BOOT. The content of M is not trusted. After a failure, another call can make the dump.
   Returns 0; 1 if the memory has nothing for a dump: if a ring cannot be read, the reason is in D; or a
   negative errno, with a message in D, if the dump could not be written. Any thread that may wait for a
   disk. */
int fr_rescue(struct fr_crashmem *m, const struct fr_rescue_config *config, struct fr_rescued *ret,
	struct fr_diag *d);
void fr_rescued_deinit(struct fr_rescued *r);
