/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Feature sections: those of this machine, and the codecs of the ones that we make or unite. */

#include "perfdata/session.h"
#include "base/diag.h"
#include "base/clock.h"

/* Fill the sections that tell of this machine: HOSTNAME OSRELEASE VERSION ARCH NRCPUS CPUDESC CPUID TOTAL_MEM
   CMDLINE (ARGV), CPU_TOPOLOGY NUMA_TOPOLOGY CACHE MEM_TOPOLOGY PMU_MAPPINGS CPU_PMU_CAPS where the kernel
   tells, CLOCKID, CLOCK_DATA (PAIR), EVENT_DESC (from the session's events, so these first). What /proc or
   /sys does not tell is left out. 0 or a negative errno. Reads files: not on the recorder thread. */
int fr_features_gather(struct fr_session *s, int argc, char *const argv[], const struct fr_clock_pair *pair,
	struct fr_diag *d);

/* Each replaces the section. 0 or -ENOMEM. */
int fr_feature_set_string(struct fr_session *s, enum fr_feature f, const char *text);
int fr_feature_set_event_desc(struct fr_session *s);
int fr_feature_set_sample_time(struct fr_session *s, uint64_t first_ns, uint64_t last_ns);
/* MMAP_LEN: the largest decompressed size of one zstd frame. */
int fr_feature_set_compressed(struct fr_session *s, int level, uint32_t ratio, uint32_t mmap_len);

/* Append a build-id record (type 67) to BUILD_ID. CPUMODE: PERF_RECORD_MISC_KERNEL or _USER. PID -1:
   machine-wide. The caller keeps them unique. SIZE ≤ 20. 0, -ENOMEM, -EINVAL (size) or -ENAMETOOLONG. */
int fr_feature_add_build_id(struct fr_session *s, uint16_t cpumode, int32_t pid, const uint8_t *id,
	size_t size, const char *path);

/* The text of a string section (inside S), or NULL where it is missing or not well-formed. */
const char *fr_feature_get_string(const struct fr_session *s, enum fr_feature f);

/* The GNU build-id note in the bytes of an ELF note section (/sys/kernel/notes,
   /sys/module/X/notes/.note.gnu.build-id) or segment, which is ALIGN-ed to 4 or 8. Returns the size (≤ 20; a
   longer one is cut) or -ENOENT. */
int fr_build_id_from_notes(const void *notes, size_t len, size_t align, uint8_t ret[static 20]);
