// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Writes a perf.data with AUX data of the PMU intel_bts, which perf can read on any machine:
 *
 *   frtest-auxfile FILE FIRST_ID SECOND THREAD:FROM:TO…
 *
 * The file has the events intel_bts (FIRST_ID and FIRST_ID + 1 for the threads 0 and 1) and dummy (the next
 * two ids). For each THREAD:FROM:TO, it has the branches FROM … TO - 1 of the thread as a piece of AUX data,
 * and the kernel's records ITRACE_START and AUX. The records have times from SECOND (of the monotonic clock)
 * on. The same branch has the same bytes in each file.
 */

#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/auxtrace.h"
#include "perfdata/features.h"
#include "perfdata/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PMU 9u
#define PID 4711u

struct branch {
	uint64_t from, to, misc;
};

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void make_session(struct fr_session *s, uint64_t first_id, struct perf_event_attr *ret_attr)
{
	const uint64_t ids[] = {first_id, first_id + 1, first_id + 2, first_id + 3};
	static char *const argv[] = {(char *)"frtest-auxfile"};
	const struct fr_clock_pair pair = {1000000000, 1700000000000000000};
	struct perf_event_attr a = {
		.type = PMU,
		.size = sizeof(a),
		.sample_period = 1,
		.sample_type = FR_SAMPLE_TYPE,
		.read_format = PERF_FORMAT_ID,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	*ret_attr = a;
	check(fr_session_add_event(s, &a, "intel_bts//", ids, 2, NULL) == 0);
	a.type = PERF_TYPE_SOFTWARE;
	a.config = PERF_COUNT_SW_DUMMY;
	a.comm = a.task = a.mmap = a.mmap2 = 1;
	check(fr_session_add_event(s, &a, "dummy:u", ids + 2, 2, NULL) == 0);
	check(fr_features_gather(s, 1, argv, &pair, NULL) == 0);
}

/* Appends the records about the whole file. */
static void add_head(struct fr_buf *b, const struct perf_event_attr *attr, uint64_t first_id, uint64_t time)
{
	const struct perf_event_mmap_page page = {.cap_user_time_zero = 1, .time_mult = 1}; /* TSC = ns */
	const struct fr_auxtrace_setup setup = {.page = &page};
	struct fr_id_index_entry entries[4];
	struct {
		struct fr_record_comm r;
		char comm[16];
		struct fr_sample_id id;
	} comm = {{{PERF_RECORD_COMM, 0, sizeof(comm)}, PID, PID}, "traced",
		{PID, PID, time, 0, 0, first_id + 2}};

	for (unsigned i = 0; i < 4; i++)
		entries[i] = (struct fr_id_index_entry){first_id + i, i % 2, -1, PID + i % 2};
	check(fr_id_index(b, entries, 4) == 0);
	check(fr_auxtrace_info(b, attr, "intel_bts", &setup) == 0);
	check(fr_buf_append(b, &comm, sizeof(comm)) == 0);
}

/* Appends the records of the kernel about a piece. */
static void add_kernel_records(struct fr_buf *b, const struct fr_auxtrace *t, uint64_t id, uint64_t time)
{
	const struct fr_sample_id tail = {PID, (uint32_t)t->tid, time, 0, 0, id};
	struct {
		struct fr_record_itrace_start r;
		struct fr_sample_id id;
	} start = {{{PERF_RECORD_ITRACE_START, 0, sizeof(start)}, PID, (uint32_t)t->tid}, tail};
	struct {
		struct fr_record_aux r;
		struct fr_sample_id id;
	} aux = {{{PERF_RECORD_AUX, 0, sizeof(aux)}, t->offset, t->len, 0}, tail};

	check(fr_buf_append(b, &start, sizeof(start)) == 0);
	check(fr_buf_append(b, &aux, sizeof(aux)) == 0);
}

/* Makes the piece THREAD:FROM:TO. DATA gets its bytes. */
static struct fr_auxtrace make_piece(const char *text, uint64_t time, struct fr_buf *data)
{
	unsigned long long from, to;
	unsigned thread;

	check(sscanf(text, "%u:%llu:%llu", &thread, &from, &to) == 3 && thread < 2 && from <= to);
	for (unsigned long long i = from; i < to; i++) {
		const struct branch x = {0x400000 + i * 16, 0x400008 + i * 16, 0};

		check(fr_buf_append(data, &x, sizeof(x)) == 0);
	}
	return (struct fr_auxtrace){.cpu = -1,
		.tid = (pid_t)(PID + thread),
		.idx = thread,
		.offset = from * sizeof(struct branch),
		.reference = time,
		.data = data->data,
		.len = data->len};
}

static int append(void *ctx, const void *data, size_t len)
{
	return fr_buf_append(ctx, data, len);
}

int main(int argc, char *argv[])
{
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf file = {0}, head = {0};
	const struct fr_sink sink = {append, &file};
	uint8_t header[FR_FILE_HEADER_SIZE];
	_cleanup_close_ int fd = -1;
	struct fr_file_writer w;
	struct perf_event_attr attr;
	uint64_t first_id, time;

	if (argc < 4) {
		fprintf(stderr, "Usage: frtest-auxfile FILE FIRST_ID SECOND THREAD:FROM:TO...\n");
		return 2;
	}
	first_id = strtoull(argv[2], NULL, 10);
	time = strtoull(argv[3], NULL, 10) * 1000000000;
	make_session(&s, first_id, &attr);
	add_head(&head, &attr, first_id, time);
	check(fr_file_begin(&w, &s, &sink) == 0);
	check(fr_file_write_records(&w, head.data, head.len) == 0);
	for (int i = 4; i < argc; i++) {
		_cleanup_buf_ struct fr_buf data = {0}, records = {0};
		const struct fr_auxtrace t = make_piece(argv[i], time, &data);

		add_kernel_records(&records, &t, first_id + t.idx, ++time);
		check(fr_file_write_records(&w, records.data, records.len) == 0);
		check(fr_file_write_auxtrace(&w, &t) == 0);
	}
	check(fr_file_end(&w, &s, header) == 0);
	memcpy(file.data, header, sizeof(header));
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(fd >= 0 && fr_write_all(fd, file.data, file.len) == 0);
	return 0;
}
