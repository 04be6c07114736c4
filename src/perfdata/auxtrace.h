/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * AUX data (hardware traces) in perf.data, as perf writes it and as the decoders of perf expect it:
 *
 *   TIME_CONV       how a decoder converts the times in AUX data to times of records
 *   ID_INDEX        the queue, CPU and thread of each event id
 *   AUXTRACE_INFO   what a decoder has to know about the PMU and its setup
 *   AUXTRACE        a piece of an AUX area: the record, then the bytes, which header.size does not count
 *   feature AUXTRACE  the file offsets of the AUXTRACE records; fr_file_end() writes this section
 *
 * TIME_CONV, ID_INDEX and AUXTRACE_INFO go to the start of the data, in this order. The AUX data of one AUX
 * area is a queue. Its AUXTRACE records have the same idx, CPU and thread, and are written in the order of
 * their offsets. The kernel's records of AUX events (AUX, ITRACE_START, AUX_OUTPUT_HW_ID) are ordinary
 * records. No AUX data is in COMPRESSED records or in the pipe format.
 */

#include "perfdata/writer.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <sys/types.h>

/* What fr_auxtrace_info() has to know besides the event. */
struct fr_auxtrace_setup {
	const char *sysfs; /* NULL: "/sys" */
	/* The first page of a ring of the event, for the conversion of times; NULL: no conversion. */
	const struct perf_event_mmap_page *page;
	bool per_cpu;	 /* true: the AUX areas belong to CPUs; false: to threads */
	const int *cpus; /* the CPUs that can write AUX data; only for cs_etm */
	size_t n_cpus;
	/* How a decoder of intel_pt finds out which thread runs on a CPU. 0: it cannot; 1: by samples of
	   sched:sched_switch; 2: by SWITCH records of the traced threads; 3: by SWITCH_CPU_WIDE records of
	   all CPUs. */
	unsigned sched_switch;
	const char *filter; /* the address filter of the event; NULL: none. Only for intel_pt. */
};

/* Appends the AUXTRACE_INFO record for an event of the PMU PMU_NAME. A decoder is told that the AUX areas are
   overwritten (snapshot mode). The function reads files below sysfs, so do not call it on the recorder
   thread. If perf has no decoder for the PMU, nothing is appended. PMUs with a decoder: intel_pt, intel_bts,
   cs_etm, and arm_spe_N. perf script and perf report refuse a file that has AUXTRACE records and no
   AUXTRACE_INFO, unless they get --no-itrace (docs/design/62). Returns 0, -ENOMEM, or -E2BIG if the record
   would be larger than 65,528 bytes. */
int fr_auxtrace_info(struct fr_buf *ret, const struct perf_event_attr *attr, const char *pmu_name,
	const struct fr_auxtrace_setup *setup);

/* Appends a TIME_CONV record with the conversion of times in PAGE, which may be NULL. If there is no
   conversion, nothing is appended. A file with AUX data of arm_spe or cs_etm must have this record: the
   decoder of arm_spe of perf 6.1 divides by the factor without a check, and dies. Returns 0 or -ENOMEM. */
int fr_time_conv(struct fr_buf *ret, const struct perf_event_mmap_page *page);

/* A piece of an AUX area. */
struct fr_auxtrace {
	int cpu;	    /* -1: the area belongs to a thread, and any CPU can have written the piece */
	pid_t tid;	    /* -1: the area belongs to a CPU */
	uint32_t idx;	    /* the number of the queue: one for each AUX area */
	uint64_t offset;    /* the position of the first byte: the bytes that were written before it */
	uint64_t reference; /* differs between snapshots, like a time */
	const void *data;
	size_t len; /* bytes */
};

/* Writes the AUXTRACE record of T and the bytes at T->data, padded with zeros to a multiple of 8. As perf
   does, the record states the padded size. If T->data is NULL, only the record is written: the caller then
   writes exactly FR_ALIGN_UP(T->len, 8) bytes by fr_file_write_records(). If T->len is 0, nothing is written.
   Returns 0, -ENOMEM or the errno of the sink. */
int fr_file_write_auxtrace(struct fr_file_writer *out, const struct fr_auxtrace *t);

/* An entry of ID_INDEX, as it is in the file. */
struct fr_id_index_entry {
	uint64_t id;
	uint64_t idx; /* the queue; for an event without AUX data, the index of its ring */
	int64_t cpu;  /* -1: all */
	int64_t tid;  /* -1: all */
};

/* Appends ID_INDEX records with the N entries. Each id must be in the session of the file: perf refuses a
   file with another id. Returns 0 or -ENOMEM. */
int fr_id_index(struct fr_buf *ret, const struct fr_id_index_entry *entries, size_t n);

/* The AUX data of a dump, and what perf has to know about it. */
struct fr_aux_data {
	struct fr_buf time_conv, info; /* TIME_CONV and AUXTRACE_INFO; empty: there is no such record */
	struct fr_buf ids;	       /* struct fr_id_index_entry, one after the other */
	/* Records that the kernel writes only when an event starts: ITRACE_START, AUX_OUTPUT_HW_ID. A
	   dump needs them even if the ring has evicted them. */
	struct fr_buf records;
	struct fr_auxtrace *pieces; /* their data is borrowed */
	size_t n;
};
/* Sets D to zeros. */
void fr_aux_data_deinit(struct fr_aux_data *d);
