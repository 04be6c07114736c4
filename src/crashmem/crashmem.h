/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The crash memory: a mapped file whose content survives a crash of the machine, such as /dev/flightrec_mem
 * (kmod/) or /dev/dax0.0. A file on tmpfs or hugetlbfs survives only the process.
 * include/flightrec/crashmem.h has the layout.
 *
 * What is in the memory when it is opened is not trusted: it can be torn, foreign, or forged. One thread at a
 * time may call the functions, except fr_crashmem_write_back().
 */

#include "base/diag.h"
#include "flightrec/crashmem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_CRASHMEM_BYTES_MIN (4ULL << 20)

struct fr_crashmem;

/* What the memory has. */
enum fr_crashmem_content {
	FR_CRASHMEM_EMPTY,   /* no header of ours: zeros, or the bytes of another program */
	FR_CRASHMEM_DAMAGED, /* our magic, but another version, a wrong crc, or areas that are not possible */
	FR_CRASHMEM_CLOSED,  /* the last recorder has not begun, or has ended as asked: nothing to rescue */
	FR_CRASHMEM_SAME_BOOT,	/* a recorder of this boot uses the memory, or was killed */
	FR_CRASHMEM_OTHER_BOOT, /* a recorder of another boot used it to the end: the machine crashed */
};

/* Opens and maps the file PATH as a whole, and takes its lock (flock), so that two recorders do not share it.
   If there is no such file, and its directory is on tmpfs or hugetlbfs and is not /dev, makes a file of BYTES
   bytes, rounded up to whole pages of the file system. Does not change what is in an existing file. Returns
   0; or a negative errno, with a message in D: -EBUSY if another process has the lock; -ENOTSUP for a file on
   a disk, because the kernel would write its pages to the disk all the time; -EMSGSIZE if the memory is
   smaller than FR_CRASHMEM_BYTES_MIN; -ENOSPC if its file system is full; or an error of the system. */
int fr_crashmem_open(const char *path, uint64_t bytes, struct fr_crashmem **ret, struct fr_diag *d);
/* Unmaps the memory, and does not change what is in it. M may be NULL. Returns NULL. */
struct fr_crashmem *fr_crashmem_free(struct fr_crashmem *m);
#define _cleanup_crashmem_ _cleanup_(fr_crashmem_freep)
static inline void fr_crashmem_freep(struct fr_crashmem **m)
{
	fr_crashmem_free(*m);
}

/* Checks the header, and compares its boot id with BOOT_ID. From here on, M uses the areas of a valid header,
   also if somebody changes the memory. */
enum fr_crashmem_content fr_crashmem_look(struct fr_crashmem *m, const char *boot_id);

/* Lays out the areas for the size of the memory, clears what recorders and the kernel module have left in
   them, and writes a new header for BOOT_ID, in which there is nothing to rescue yet. The old header becomes
   invalid first, and the magic of the new header is written last. */
void fr_crashmem_format(struct fr_crashmem *m, const char *boot_id);
/* Writes into the header that a recorder uses the memory. M has a valid header. */
void fr_crashmem_begin(struct fr_crashmem *m);

/* Writes into the header that there is nothing to rescue. M has a valid header. */
void fr_crashmem_close(struct fr_crashmem *m);

uint64_t fr_crashmem_bytes(const struct fr_crashmem *m);
/* Returns whether the memory can survive a crash of the machine. A file on tmpfs or hugetlbfs survives only
   the process. */
bool fr_crashmem_survives_crash(const struct fr_crashmem *m);
/* Returns the boot id in the header: 32 hexadecimal digits. M has a valid header. */
const char *fr_crashmem_boot_id(const struct fr_crashmem *m);
/* Returns an area of the memory, and its size in *RET_BYTES. An area of 0 bytes is not there. M has a valid
 * header. */
uint8_t *fr_crashmem_area(
	const struct fr_crashmem *m, enum flightrec_crashmem_area area, uint64_t *ret_bytes);

/* Writes DATA into the older of the two slots of AREA, which is STATE or SYMBOLS. A crash during the write
   leaves the newer slot valid. Returns 0, or -E2BIG if a slot is too small. */
int fr_crashmem_put(struct fr_crashmem *m, enum flightrec_crashmem_area area, const void *data, size_t len);
/* Copies the data of the newest valid slot of AREA to *RET, which the caller frees. Returns the number of
   bytes; -ENOENT if no slot is valid; or -ENOMEM. */
ssize_t fr_crashmem_get(const struct fr_crashmem *m, enum flightrec_crashmem_area area, void **ret);

/* Writes the cache lines of [P, P + LEN) back to the memory, because a reset of the machine may empty the
   caches of the processor. Returns after the write, so what the caller stores later cannot reach the memory
   earlier. Any thread. */
void fr_crashmem_write_back(const void *p, size_t len);
