// SPDX-License-Identifier: GPL-2.0-or-later

/* Writes the seeds of fuzz-perfdata into a directory: seed-perfdata DIRECTORY. Run it after a change of the
   file format. */

#include "../unit/perfdata/synth.h"
#include "base/cleanup.h"

#include <stdio.h>

static void add_records(struct fr_buf *b)
{
	synth_comm(b, 12, 0, 1, "init");
	for (uint64_t i = 1; i <= 60; i++) {
		synth_sample(b, 10 + i % 2, i * 1000, 40 + (uint32_t)(i % 3), 0x400000 + i);
		if (i % 20 == 0) {
			synth_comm(b, 12, i * 1000, 40, "worker");
			synth_round(b);
		}
	}
}

/* Appends pieces of AUX data of two queues, with records of the kernel between them. */
static void add_aux(struct fr_buf *b)
{
	static const uint8_t data[100] = "AUX data";

	for (unsigned i = 0; i < 4; i++) {
		const struct fr_auxtrace t = {.cpu = (int)(i % 2),
			.tid = -1,
			.idx = i % 2,
			.offset = i / 2 * 100,
			.reference = i,
			.data = data,
			.len = sizeof(data)};

		synth_aux(b, &t);
		synth_sample(b, 10, 70000 + i, 40, 0x400000);
	}
}

int main(int argc, char *argv[])
{
	_cleanup_session_ struct fr_session s = {0};
	_cleanup_buf_ struct fr_buf b = {0};

	if (argc != 2 || chdir(argv[1]) < 0) {
		fprintf(stderr, "Usage: seed-perfdata DIRECTORY\n");
		return 2;
	}
	synth_session(&s, 10, "host", 1000000000ULL);
	add_records(&b);
	synth_write_file("plain", &s, &b, 0, 0);
	synth_write_file("compressed", &s, &b, 64, 1000);
	synth_write_pipe("pipe", &s, &b);
	synth_write_file("cut", &s, &b, 0, 0);
	add_aux(&b);
	synth_write_file("aux", &s, &b, 0, 0);
	synth_write_file("aux-cut", &s, &b, 0, 0);
	if (truncate("aux-cut", 4100) < 0)
		return 1;
	return truncate("cut", 2000) < 0;
}
