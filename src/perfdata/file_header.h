/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to perfdata/: the start of a perf.data file (perf.data-file-format.txt of perf). */

#include <stdint.h>

#define FILE_MAGIC 0x32454c4946524550ULL /* "PERFILE2" in the byte order of the machine */

/* The type PERF_EVENT_UPDATE__NAME of perf: an EVENT_UPDATE record with the name of an event. */
#define EVENT_UPDATE_NAME 2u

struct file_section {
	uint64_t offset, size;
};

/* perf's struct perf_file_header. The pipe format has only the first two members. */
struct file_header {
	uint64_t magic, size, attr_size;
	struct file_section attrs, data, event_types;
	uint64_t features[4];
};
