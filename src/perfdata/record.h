/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Records of perf.data. Types below 64 are the kernel's (uapi linux/perf_event.h). Types from 64 on are
 * perf's own (perf.data-file-format.txt of perf). All events of flightrecd share one layout, called the
 * common layout below: the sample_type of each event contains FR_SAMPLE_TYPE, and sample_id_all is set. So:
 *   - a SAMPLE starts with   { header; u64 id; u64 ip; u32 pid, tid; u64 time; … }
 *   - any other kernel record ends with   { u32 pid, tid; u64 time; u32 cpu, res; u64 id; }
 * The events of other recorders can have other layouts: see struct fr_layout in reader.h.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_SAMPLE_TYPE                                                                                       \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* The largest record: header.size is a u16. */
#define FR_RECORD_MAX 65535u

/* The record types of perf that this program knows (tools/lib/perf/include/perf/event.h). */
enum fr_user_record {
	FR_RECORD_USER_START = 64,
	FR_RECORD_HEADER_ATTR = 64,
	FR_RECORD_HEADER_EVENT_TYPE = 65,
	FR_RECORD_HEADER_TRACING_DATA = 66,
	FR_RECORD_HEADER_BUILD_ID = 67,
	FR_RECORD_FINISHED_ROUND = 68,
	FR_RECORD_ID_INDEX = 69,
	FR_RECORD_AUXTRACE_INFO = 70,
	FR_RECORD_AUXTRACE = 71,
	FR_RECORD_THREAD_MAP = 73,
	FR_RECORD_CPU_MAP = 74,
	FR_RECORD_EVENT_UPDATE = 78,
	FR_RECORD_TIME_CONV = 79,
	FR_RECORD_HEADER_FEATURE = 80,
	FR_RECORD_COMPRESSED = 81,
	FR_RECORD_COMPRESSED2 = 83,
	FR_RECORD_USER_END = 96,
};

/* The tail of every kernel record that is not a sample. */
struct fr_sample_id {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

/* The head of every sample. */
struct fr_sample {
	struct perf_event_header header;
	uint64_t id;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
};

/* The fixed parts of records. The variable part of a record follows, and then a struct fr_sample_id. */
struct fr_record_mmap { /* PERF_RECORD_MMAP; filename, NUL, padded to 8 */
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	char filename[];
};

struct fr_record_mmap2 { /* PERF_RECORD_MMAP2 */
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	union {
		struct {
			uint32_t maj, min;
			uint64_t ino, ino_generation;
		};
		struct { /* with PERF_RECORD_MISC_MMAP_BUILD_ID */
			uint8_t build_id_size;
			uint8_t reserved_1;
			uint16_t reserved_2;
			uint8_t build_id[20];
		};
	};
	uint32_t prot, flags;
	char filename[];
};

struct fr_record_comm { /* PERF_RECORD_COMM; PERF_RECORD_MISC_COMM_EXEC in misc: because of an exec */
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};

struct fr_record_task { /* PERF_RECORD_FORK and EXIT */
	struct perf_event_header header;
	uint32_t pid, ppid;
	uint32_t tid, ptid;
	uint64_t time;
};

struct fr_record_lost { /* PERF_RECORD_LOST */
	struct perf_event_header header;
	uint64_t id;
	uint64_t lost;
};

struct fr_record_lost_samples {
	struct perf_event_header header;
	uint64_t lost;
};

struct fr_record_throttle { /* THROTTLE and UNTHROTTLE */
	struct perf_event_header header;
	uint64_t time, id, stream_id;
};

struct fr_record_namespaces {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t nr_namespaces;
	struct {
		uint64_t dev, inode;
	} link[];
};

struct fr_record_ksymbol {
	struct perf_event_header header;
	uint64_t addr;
	uint32_t len;
	uint16_t ksym_type, flags;
	char name[];
};

struct fr_record_bpf_event {
	struct perf_event_header header;
	uint16_t type, flags;
	uint32_t id;
	uint8_t tag[8];
};

struct fr_record_cgroup {
	struct perf_event_header header;
	uint64_t id;
	char path[];
};

struct fr_record_aux { /* PERF_RECORD_AUX: the kernel has added this piece to an AUX area */
	struct perf_event_header header;
	uint64_t aux_offset, aux_size, flags;
};

struct fr_record_itrace_start { /* PERF_RECORD_ITRACE_START */
	struct perf_event_header header;
	uint32_t pid, tid;
};

struct fr_record_aux_output_hw_id {
	struct perf_event_header header;
	uint64_t hw_id;
};

struct fr_record_id_index { /* ID_INDEX; then `nr` struct fr_id_index_entry (auxtrace.h) */
	struct perf_event_header header;
	uint64_t nr;
};

struct fr_record_auxtrace_info {
	struct perf_event_header header;
	uint32_t type; /* the decoder */
	uint32_t reserved;
	uint64_t priv[];
};

struct fr_record_auxtrace { /* AUXTRACE; `size` bytes of AUX data follow, which header.size does not count */
	struct perf_event_header header;
	uint64_t size, offset, reference;
	uint32_t idx, tid, cpu;
	uint32_t reserved;
};

struct fr_record_build_id { /* HEADER_BUILD_ID; misc has the bit FR_MISC_BUILD_ID_SIZE if `size` is set */
	struct perf_event_header header;
	int32_t pid;
	uint8_t id[20], size, reserved[3];
	char filename[]; /* NUL, padded */
};
#define FR_MISC_BUILD_ID_SIZE (1u << 15)

/* Returns whether P, which is aligned to 8, begins a whole record. The size of a whole record is at most
   LEFT, is a multiple of 8, and has room for the fixed part of its type. For kernel types, the fixed part is
   in the common layout and includes the sample id. The size of a COMPRESSED, HEADER_TRACING_DATA or
   HEADER_BUILD_ID record need not be a multiple of 8, because perf writes such records in any size. */
bool fr_record_is_whole(const void *p, size_t left);

/* A walk over records in memory. */
struct fr_record_iter {
	const uint8_t *at, *end;
};
static inline struct fr_record_iter fr_record_iter(const void *records, size_t len)
{
	const uint8_t *begin = records; /* NULL if there are no records, and NULL + 0 is not defined */

	return (struct fr_record_iter){begin, len ? begin + len : begin};
}

/* Returns the next record. Returns NULL at the end (it->at == it->end), and at bytes that are not a whole
   record with a size that is a multiple of 8 (it->at < it->end). */
const struct perf_event_header *fr_record_next(struct fr_record_iter *it);

/* Returns the next record of a section BUILD_ID. Returns NULL at the end (it->at == it->end), and at bytes
   that are not a whole build-id record with a size of the build-id and a name (it->at < it->end). */
const struct fr_record_build_id *fr_record_next_build_id(struct fr_record_iter *it);

/* TEXT is the last field before the sample id of H, a whole record in the common layout. Returns whether the
   NUL of TEXT is before the sample id. */
bool fr_record_has_text(const struct perf_event_header *h, const char *text);

/* Returns the time in ns of a whole record in the common layout; 0 for perf's own types. */
static inline uint64_t fr_record_time(const struct perf_event_header *h)
{
	if (h->type == PERF_RECORD_SAMPLE)
		return ((const struct fr_sample *)h)->time;
	if (h->type < FR_RECORD_USER_START)
		return *(const uint64_t *)((const char *)h + h->size - 24);
	return 0;
}

/* Returns the event id of a whole record in the common layout; 0 for perf's own types. */
static inline uint64_t fr_record_id(const struct perf_event_header *h)
{
	if (h->type == PERF_RECORD_SAMPLE)
		return ((const struct fr_sample *)h)->id;
	if (h->type < FR_RECORD_USER_START)
		return *(const uint64_t *)((const char *)h + h->size - 8);
	return 0;
}
