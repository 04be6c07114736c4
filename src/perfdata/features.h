/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Gathers the feature sections of this machine, and encodes and decodes single sections. */

#include "perfdata/session.h"
#include "base/diag.h"
#include "base/clock.h"

/* Fills the sections that describe this machine and program: HOSTNAME OSRELEASE VERSION ARCH NRCPUS CPUDESC
   CPUID TOTAL_MEM CMDLINE (from ARGV) CLOCKID CLOCK_DATA (from PAIR) CPU_TOPOLOGY CACHE NUMA_TOPOLOGY
   MEM_TOPOLOGY PMU_MAPPINGS CPU_PMU_CAPS, and EVENT_DESC from the events of S. A section for which /proc and
   /sys have no data is left out. The function reads files, so do not call it on the recorder thread. Returns
   0; or a negative errno, with a message in D. */
int fr_features_gather(struct fr_session *s, int argc, char *const argv[], const struct fr_clock_pair *pair,
	struct fr_diag *d);

/* These functions replace a section of S. They return 0 or -ENOMEM. */
int fr_feature_set_string(struct fr_session *s, enum fr_feature f, const char *text);
int fr_feature_set_event_desc(struct fr_session *s);
int fr_feature_set_sample_time(struct fr_session *s, uint64_t first_ns, uint64_t last_ns);
/* RATIO is the raw size divided by the compressed size. MMAP_LEN is the largest raw size of one zstd frame,
   in bytes. */
int fr_feature_set_compressed(struct fr_session *s, int level, uint32_t ratio, uint32_t mmap_len);

/* Appends a build-id record (type 67) to the section BUILD_ID. CPUMODE is PERF_RECORD_MISC_KERNEL or
   PERF_RECORD_MISC_USER. If PID is -1, the build-id is for all processes. The function does not check for
   duplicates. Returns 0, -ENOMEM, -EINVAL if SIZE is 0 or above 20, or -ENAMETOOLONG if perf could not read
   PATH. */
int fr_feature_add_build_id(struct fr_session *s, uint16_t cpumode, int32_t pid, const uint8_t *id,
	size_t size, const char *path);

/* Returns the text of the section F, which has one string; NULL if the section is missing or malformed. S
   owns the text. */
const char *fr_feature_get_string(const struct fr_session *s, enum fr_feature f);

/* Finds the GNU build-id in LEN bytes of ELF notes (a note section or segment, /sys/kernel/notes,
   /sys/module/X/notes/.note.gnu.build-id). Each note is aligned to ALIGN, 4 or 8. Returns the size of the
   build-id (a build-id of more than 20 bytes is truncated to 20), or -ENOENT. */
int fr_build_id_from_notes(const void *notes, size_t len, size_t align, uint8_t ret[static 20]);
