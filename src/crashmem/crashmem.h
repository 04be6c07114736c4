/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The crash memory (RingMemory=): a mapped file whose content survives a crash of the machine, such as
 * /dev/flightrec_mem, /dev/pmem0, /dev/dax0.0; or a file on hugetlbfs or tmpfs, which survives the recorder only.
 * include/flightrec/crashmem.h has the layout. The content is not trusted when the memory is opened: it can be
 * torn, foreign, or forged.
 */

#include "base/diag.h"
#include "base/buf.h"
#include "flightrec/crashmem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_CRASHMEM_MIN (4ULL << 20)

struct fr_crashmem;

/* What the memory has when it is opened. */
enum fr_crashmem_content {
	FR_CRASHMEM_EMPTY,	/* no header of ours: zeros, or foreign bytes */
	FR_CRASHMEM_DAMAGED,	/* our magic, but another version, a wrong crc, or areas that are not possible */
	FR_CRASHMEM_CLOSED,	/* the last recorder ended as asked */
	FR_CRASHMEM_SAME_BOOT,	/* a recorder of this boot uses it, or was killed */
	FR_CRASHMEM_OTHER_BOOT, /* the machine crashed, or was reset */
};

/* Opens and maps the file PATH, with all of its size. A file that does not exist is made with BYTES bytes if its
   file system is hugetlbfs or tmpfs. Takes a lock of the file (flock), so that two recorders never share it. Changes
   nothing in an existing file. Returns 0; or a negative errno, with a message in D: -ENOENT, -EACCES, -EBUSY
   (another recorder has it), -ENOTSUP (a file on a disk: its pages would be written to the disk all the time),
   -EMSGSIZE (smaller than FR_CRASHMEM_MIN), … */
int fr_crashmem_open(const char *path, uint64_t bytes, struct fr_crashmem **ret, struct fr_diag *d);
struct fr_crashmem *fr_crashmem_free(struct fr_crashmem *m); /* does not change the content */

/* Returns what the memory has. BOOT_ID is the id of this boot. */
enum fr_crashmem_content fr_crashmem_look(const struct fr_crashmem *m, const char *boot_id);

/* Makes the memory empty and writes a new header, `use` is FLIGHTREC_CRASHMEM_IN_USE. The old header becomes invalid
   first, and the new magic is written last. Returns 0; or a negative errno, with a message in D. */
int fr_crashmem_format(struct fr_crashmem *m, const char *boot_id, struct fr_diag *d);
/* Says that nothing has to be rescued (FLIGHTREC_CRASHMEM_CLOSED). */
void fr_crashmem_close_clean(struct fr_crashmem *m);

int fr_crashmem_fd(const struct fr_crashmem *m); /* borrowed */
uint64_t fr_crashmem_bytes(const struct fr_crashmem *m);
const struct flightrec_crashmem_header *fr_crashmem_header(const struct fr_crashmem *m);
/* Returns the bytes of an area of a valid header, and their number in *RET_BYTES (0: there is no such area). */
uint8_t *fr_crashmem_area(
	const struct fr_crashmem *m, enum flightrec_crashmem_area area, uint64_t *ret_bytes);

/* Writes LEN bytes into the older of the two slots of the area STATE or SYMBOLS: generation, length, crc32c and bytes.
   Returns 0, or -E2BIG if a slot is smaller. */
int fr_crashmem_put(struct fr_crashmem *m, enum flightrec_crashmem_area area, const void *data, size_t len);
/* Returns the bytes of the newest valid slot (borrowed from the memory: check them, they may change) in *RET and their
   number, or -ENOENT if no slot is valid. */
ssize_t fr_crashmem_get(const struct fr_crashmem *m, enum flightrec_crashmem_area area, const void **ret);

/* Writes the cache lines of P … P + LEN back to memory, so that a reset that drops the caches keeps them: clwb,
   clflushopt or clflush; dc cvac on aarch64. */
void fr_crashmem_write_back(const void *p, size_t len);
