/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Writes large input files for flightrec-merge, with the same structure as dumps: runs of records of two CPUs
 * in turns, and for each MiB a side-band record and a FINISHED_ROUND. The records in the last OVERLAP-PERCENT
 * (default 0) of each file are also in the next file. Usage: bench-generate DIRECTORY FILES MIB-PER-FILE
 * [OVERLAP-PERCENT]
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "fileio/writer.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUND (1u << 20)
#define RUN (48u << 10) /* bytes of records of one CPU, before records of the other CPU follow */
#define STEP_NS 400	/* time between two records of a CPU */
#define CPUS 2

struct record { /* has the size of a record of raw_syscalls:sys_enter */
	struct fr_sample head;
	uint32_t cpu, reserved;
	uint64_t period;
	uint64_t n_frames, frames[3];
	uint32_t raw_size, raw_pad;
	uint64_t raw[5];
};

struct generator {
	struct fr_file_writer out;
	struct fr_writer *writer;
	struct fr_buf round;
	uint64_t t0_ns;
	uint64_t next[CPUS]; /* the number of the CPU's next record */
};

static int append_comm(struct generator *g, uint64_t time)
{
	struct {
		struct perf_event_header h;
		uint32_t pid, tid;
		char comm[8];
		struct fr_sample_id id;
	} r = {{PERF_RECORD_COMM, 0, sizeof(r)}, 4321, 4321, "load", {4321, 4321, time, 0, 0, 1}};

	return fr_buf_append(&g->round, &r, sizeof(r));
}

static int append_sample(struct generator *g, unsigned cpu)
{
	uint64_t n = g->next[cpu]++;
	struct record r = {.head = {{PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof(r)}, cpu + 1,
				   0x401000 + n % 64, 4321, 4321 + cpu, g->t0_ns + n * STEP_NS + cpu},
		.cpu = cpu,
		.period = 1,
		.n_frames = 3,
		.frames = {PERF_CONTEXT_USER, 0x401000 + n % 64, 0x402000},
		.raw_size = sizeof(r.raw) + sizeof(r.raw_pad),
		.raw = {n, n * 7, 8, 0, cpu}};

	return fr_buf_append(&g->round, &r, sizeof(r));
}

static int write_round(struct generator *g)
{
	int r = append_comm(g, g->t0_ns + g->next[0] * STEP_NS);

	while (r == 0 && g->round.len < ROUND) {
		unsigned cpu = g->next[0] <= g->next[1] ? 0 : 1;

		for (unsigned i = 0; r == 0 && i < RUN / sizeof(struct record); i++)
			r = append_sample(g, cpu);
	}
	if (r == 0)
		r = fr_buf_append(&g->round, &fr_finished_round, sizeof(fr_finished_round));
	if (r == 0)
		r = fr_file_write_records(&g->out, g->round.data, g->round.len);
	g->round.len = 0;
	return r;
}

static int write_file(struct generator *g, const struct fr_session *s, uint64_t bytes)
{
	const struct fr_sink sink = {fr_writer_append, g->writer};
	uint8_t header[FR_FILE_HEADER_SIZE];
	int r = fr_file_begin(&g->out, s, &sink);

	while (r == 0 && g->out.offset < bytes)
		r = write_round(g);
	if (r == 0)
		r = fr_file_end(&g->out, s, header);
	return r < 0 ? r : fr_writer_finish(g->writer, header, sizeof(header));
}

static int make_head(struct fr_session *s, char *argv[])
{
	const uint64_t ids[CPUS] = {1, 2};
	const struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1,
		.sample_type = FR_SAMPLE_TYPE | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
		.sample_id_all = 1,
		.comm = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC};
	struct fr_clock_pair pair = fr_clock_pair_now();
	int r = fr_session_add_event(s, &attr, "cpu-clock", ids, CPUS, NULL);

	return r < 0 ? r : fr_features_gather(s, 1, argv, &pair, NULL);
}

int main(int argc, char *argv[])
{
	_cleanup_session_ struct fr_session s = {0};
	struct generator g = {.t0_ns = 1000000000};
	unsigned files, overlap;
	uint64_t bytes, per_file;
	int r;

	if (argc < 4) {
		fprintf(stderr, "usage: %s DIRECTORY FILES MIB-PER-FILE [OVERLAP-PERCENT]\n", argv[0]);
		return 2;
	}
	files = (unsigned)atoi(argv[2]);
	bytes = strtoull(argv[3], NULL, 10) << 20;
	overlap = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	r = make_head(&s, argv);
	for (unsigned i = 0; i < files && r == 0; i++) {
		char path[4096];
		_cleanup_close_ int fd = -1;

		snprintf(path, sizeof(path), "%s/perf.data.sample.20260101T0000%02u.000000Z", argv[1], i);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
		r = fd < 0 ? -errno : fr_writer_new(fd, &(struct fr_file_writer_config){0}, &g.writer, NULL);
		if (r == 0)
			r = write_file(&g, &s, bytes);
		g.writer = fr_writer_free(g.writer);
		per_file = bytes / sizeof(struct record) / CPUS;
		for (unsigned cpu = 0; cpu < CPUS; cpu++)
			g.next[cpu] -= FR_MIN(g.next[cpu], per_file * overlap / 100);
	}
	fr_buf_deinit(&g.round);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
	return r < 0;
}
