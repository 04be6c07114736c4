// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the AUX data in dumps: the reader and stock perf find it. */
#include "dumping.h"
#include "synthetic.h"
#include "perfdata/reader.h"
#include "perfdata/record.h"

#include <limits.h>
#include <unistd.h>

#define RUN 500u
#define RUNS 20u
#define OLD_NS (SYNTHETIC_START_NS - 1000000000)
#define IN_WINDOW_NS (SYNTHETIC_START_NS + 2000000000)

static uint8_t data[2][4096];
static struct fr_auxtrace pieces[] = {
	{.cpu = 0, .tid = -1, .idx = 3, .offset = 100000, .reference = 1, .data = data[0], .len = 4096},
	{.cpu = 1, .tid = -1, .idx = 4, .offset = 7, .reference = 2, .data = data[1], .len = 1001},
	{.cpu = 2, .tid = -1, .idx = 5, .offset = 9, .reference = 3, .data = NULL, .len = 0},
};

static void add_itrace_start(struct fr_buf *b, uint64_t id, uint64_t time_ns)
{
	const struct {
		struct fr_record_itrace_start r;
		struct fr_sample_id tail;
	} record = {{{PERF_RECORD_ITRACE_START, 0, sizeof(record)}, 7, 7}, {7, 7, time_ns, 0, 0, id}};

	assert_int_equal(fr_buf_append(b, &record, sizeof(record)), 0);
}

static void make_aux_data(const struct dumping *f, struct fr_aux_data *ret)
{
	const uint64_t id = f->session.events[0].ids[0];
	const struct fr_id_index_entry entries[] = {{id, 3, 0, -1}, {id + 1000000, 4, 1, -1}};
	const struct {
		struct fr_record_auxtrace_info r;
		uint64_t words[6];
	} info = {{{FR_RECORD_AUXTRACE_INFO, 0, sizeof(info)}, 2 /* intel_bts */, 0}, {0, 0, 1, 0, 0, 1}};

	assert_int_equal(fr_buf_append(&ret->ids, entries, sizeof(entries)), 0);
	assert_int_equal(fr_buf_append(&ret->info, &info, sizeof(info)), 0);
	add_itrace_start(&ret->records, id, OLD_NS);
	add_itrace_start(&ret->records, id, IN_WINDOW_NS);
	memset(data[0], 0x11, sizeof(data[0]));
	memset(data[1], 0x22, sizeof(data[1]));
	ret->pieces = malloc(sizeof(pieces));
	memcpy(ret->pieces, pieces, sizeof(pieces));
	ret->n = FR_ARRAY_SIZE(pieces);
}

struct aux_found {
	unsigned infos, id_records, ids, itrace_starts, records;
	unsigned n_pieces;
	struct fr_record_auxtrace pieces[4];
};

static void read_dump(const struct dumping *f, const char *name, struct aux_found *ret)
{
	const struct perf_event_header *h;
	char path[PATH_MAX];
	struct fr_reader *r;
	uint64_t at;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(fr_reader_open(path, &r, NULL), 0);
	for (; fr_reader_next(r, &h, &at) > 0; ret->records++) {
		if (h->type == FR_RECORD_ID_INDEX) {
			assert_int_equal(ret->records, 0); /* the head comes first */
			ret->ids += (unsigned)((const struct fr_record_id_index *)h)->nr;
		}
		ret->id_records += h->type == FR_RECORD_ID_INDEX;
		ret->infos += h->type == FR_RECORD_AUXTRACE_INFO && ret->records == 1;
		ret->itrace_starts += h->type == PERF_RECORD_ITRACE_START;
		if (h->type == FR_RECORD_AUXTRACE) {
			uint8_t byte;

			assert_true(ret->n_pieces < FR_ARRAY_SIZE(ret->pieces));
			ret->pieces[ret->n_pieces++] = *(const struct fr_record_auxtrace *)h;
			assert_int_equal(pread(fr_reader_fd(r), &byte, 1, (off_t)(at + h->size)), 1);
			assert_int_equal(byte, 0x11 * ret->n_pieces);
		}
	}
	assert_int_equal(fr_reader_damage(r)->lost_bytes, 0);
	fr_reader_free(r);
}

static int setup(void **state)
{
	return dumping_setup(state, "/var/tmp", RUNS, RUN, true);
}

FIXTURE(setup, dumping_teardown)

TEST(a_dump_has_the_aux_data)
{
	struct dumping *f = *state;
	_cleanup_(fr_aux_data_deinit) struct fr_aux_data aux = {0};
	struct fr_dump_result result, without;
	_cleanup_buf_ struct fr_buf out = {0};
	struct aux_found found = {0};

	make_aux_data(f, &aux);
	f->params.from_ns = SYNTHETIC_START_NS;
	assert_int_equal(dumping_dump(f, &without, NULL), 0);
	for (int compress = 0; compress < 2; compress++) {
		f->params.aux = &aux;
		f->params.compress = compress;
		assert_int_equal(dumping_dump(f, &result, NULL), 0);
		found = (struct aux_found){0};
		read_dump(f, result.name, &found);
		assert_int_equal(found.infos, 1);
		assert_int_equal(found.id_records, 1);
		assert_int_equal(
			found.ids, 1); /* the file does not have the other id, and perf would refuse it */
		assert_int_equal(found.itrace_starts, 1); /* the frames have the other one */
		assert_int_equal(found.n_pieces, 2);
		for (size_t i = 0; i < found.n_pieces; i++) {
			assert_int_equal(found.pieces[i].idx, pieces[i].idx);
			assert_int_equal(found.pieces[i].cpu, pieces[i].cpu);
			assert_int_equal(found.pieces[i].offset, pieces[i].offset);
			assert_int_equal(found.pieces[i].size, FR_ALIGN_UP(pieces[i].len, 8));
		}
		assert_int_equal(result.samples, without.samples);
	}
	dumping_perf(f, "script", result.name, "--no-itrace", &out);
}

static uint64_t estimate;

static void note_estimate(void *ctx, uint64_t bytes)
{
	estimate = bytes;
}

TEST(the_estimate_of_the_size_counts_the_aux_data)
{
	struct dumping *f = *state;
	_cleanup_(fr_aux_data_deinit) struct fr_aux_data aux = {0};
	struct fr_dump_result result;
	uint64_t without;

	f->params.make_room = note_estimate;
	assert_int_equal(dumping_dump(f, &result, NULL), 0);
	without = estimate;
	make_aux_data(f, &aux);
	f->params.aux = &aux;
	assert_int_equal(dumping_dump(f, &result, NULL), 0);
	assert_int_equal(estimate - without, 4096 + 1001 + 3 * sizeof(struct fr_record_auxtrace));
}
