// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the records about AUX data: what the writer writes, and what the reader makes of damaged ones. */

#include "../files.h"
#include "base/file.h"
#include "perfdata/auxtrace.h"
#include "perfdata/reader.h"
#include "synth.h"

#include <fcntl.h>
#include <unistd.h>

#define ID 700
#define DEVICES "bus/event_source/devices/"

GROUP_FIXTURE(make_root, remove_root)

static char path[80];

/* Returns the words of the AUXTRACE_INFO for a PMU whose type is 9. *RET_N gets their number. */
static const uint64_t *make_info(
	struct fr_buf *b, const char *pmu, uint64_t config, struct fr_auxtrace_setup setup, size_t *ret_n)
{
	const struct perf_event_attr attr = {.type = 9, .config = config};
	const struct fr_record_auxtrace_info *info;

	setup.sysfs = root;
	b->len = 0;
	assert_int_equal(fr_auxtrace_info(b, &attr, pmu, &setup), 0);
	info = (const void *)b->data;
	assert_int_equal(info->header.type, 70);
	assert_int_equal(info->header.size, b->len);
	assert_int_equal(b->len % 8, 0);
	*ret_n = (b->len - sizeof(*info)) / 8;
	return info->priv;
}

TEST(info_of_intel_has_times_and_options)
{
	static const uint64_t pt[] = {
		9, 10, 1000, 77, 1, 1 << 10, 1 << 11, 3, 1, 1, 1 << 9, 15 << 14, 176, 2, 1 << 1, 24, 3};
	static const uint64_t bts[] = {9, 10, 1000, 77, 1, 1};
	const struct perf_event_mmap_page page = {
		.cap_user_time_zero = 1, .time_shift = 10, .time_mult = 1000, .time_zero = 77};
	const struct perf_event_mmap_page locked = {.lock = 1, .cap_user_time_zero = 1, .time_mult = 1000};
	const struct fr_auxtrace_setup setup = {
		.page = &page, .per_cpu = true, .sched_switch = 3, .filter = "f@x"};
	_cleanup_buf_ struct fr_buf b = {0};
	const uint64_t *words;
	size_t n;

	write_file(DEVICES "intel_pt/format/tsc", "config:10\n");
	write_file(DEVICES "intel_pt/format/noretcomp", "config:11\n");
	write_file(DEVICES "intel_pt/format/mtc", "config:9\n");
	write_file(DEVICES "intel_pt/format/mtc_period", "config:14-17\n");
	write_file(DEVICES "intel_pt/format/cyc", "config:1\n");
	write_file(DEVICES "intel_pt/tsc_art_ratio", "176:2\n");
	write_file(DEVICES "intel_pt/max_nonturbo_ratio", "24\n");
	write_file(DEVICES "intel_pt/caps/event_trace", "1\n");
	words = make_info(&b, "intel_pt", 0, setup, &n);
	assert_int_equal(((const struct fr_record_auxtrace_info *)(const void *)b.data)->type, 1);
	assert_int_equal(n, FR_ARRAY_SIZE(pt) + 2); /* the filter, event_trace */
	assert_memory_equal(words, pt, sizeof(pt));
	assert_memory_equal(words + FR_ARRAY_SIZE(pt), "f@x\0\0\0\0\0", 8);
	assert_int_equal(words[n - 1], 1);

	words = make_info(&b, "intel_bts", 0, setup, &n);
	assert_int_equal(((const struct fr_record_auxtrace_info *)(const void *)b.data)->type, 2);
	assert_int_equal(n, FR_ARRAY_SIZE(bts));
	assert_memory_equal(words, bts, sizeof(bts));

	/* The kernel changes the page all the time: there is no conversion. */
	words = make_info(&b, "intel_bts", 0, (struct fr_auxtrace_setup){.page = &locked}, &n);
	assert_int_equal(words[2], 1); /* perf 6.1 divides by it */
	assert_int_equal(words[4], 0);
}

TEST(conversion_of_times_is_a_record)
{
	const struct perf_event_mmap_page pages[] = {
		{.cap_user_time_zero = 1, .time_shift = 10, .time_mult = 1000, .time_zero = 77},
		{.cap_user_time_zero = 1,
			.cap_user_time_short = 1,
			.time_shift = 10,
			.time_mult = 1000,
			.time_zero = 77,
			.time_cycles = 5,
			.time_mask = 0xff},
		{.time_shift = 10, .time_mult = 1000},
	};
	static const uint64_t words[][6] = {{10, 1000, 77, 0, 0, 1}, {10, 1000, 77, 5, 0xff, 1 | 1 << 8}};
	_cleanup_buf_ struct fr_buf b = {0};

	for (size_t i = 0; i < 2; i++) {
		const struct perf_event_header *h;

		b.len = 0;
		assert_int_equal(fr_time_conv(&b, &pages[i]), 0);
		h = (const void *)b.data;
		assert_int_equal(h->type, 79);
		assert_int_equal(h->size, 56);
		assert_int_equal(b.len, 56);
		assert_memory_equal(h + 1, words[i], sizeof(words[i]));
	}
	b.len = 0;
	assert_int_equal(fr_time_conv(&b, &pages[2]), 0);
	assert_int_equal(fr_time_conv(&b, NULL), 0);
	assert_int_equal(b.len, 0);
}

TEST(info_of_arm_has_the_trace_units)
{
	static const uint64_t etm[] = {1, 9ull << 32 | 2, 1, 0x4040404040404040, 0, 7, 1 << 4 | 1 << 11, 0x10,
		0x28000ea1, 0x4100f403, 0x488, 0, 0xcc, 0x5050505050505050, 2, 8, 1 << 4 | 1 << 11, 0x14,
		0x28000ea1, 0, 0, 0, 0, 0x47705a13};
	static const int cpus[] = {0, 1, 2}; /* CPU 1 has no files: its trace unit is unknown */
	const struct fr_auxtrace_setup setup = {.per_cpu = true, .cpus = cpus, .n_cpus = 3};
	_cleanup_buf_ struct fr_buf b = {0};
	const uint64_t *words;
	size_t n;

	write_file(DEVICES "cs_etm/format/cycacc", "config:12\n");
	write_file(DEVICES "cs_etm/format/timestamp", "config:28\n");
	write_file(DEVICES "cs_etm/format/retstack", "config:29\n");
	write_file(DEVICES "cs_etm/cpu0/trcidr/trcidr0", "0x28000ea1\n");
	write_file(DEVICES "cs_etm/cpu0/trcidr/trcidr1", "0x4100f403\n");
	write_file(DEVICES "cs_etm/cpu0/trcidr/trcidr2", "0x488\n");
	write_file(DEVICES "cs_etm/cpu0/trcidr/trcidr8", "0x0\n");
	write_file(DEVICES "cs_etm/cpu0/mgmt/trcauthstatus", "0xcc\n");
	write_file(DEVICES "cs_etm/cpu2/trcidr/trcidr0", "0x28000ea1\n");
	write_file(DEVICES "cs_etm/cpu2/mgmt/trcdevarch", "0x47705a13\n");
	words = make_info(&b, "cs_etm", 1 << 12 | 1 << 28, setup, &n);
	assert_int_equal(((const struct fr_record_auxtrace_info *)(const void *)b.data)->type, 3);
	assert_int_equal(n, FR_ARRAY_SIZE(etm));
	assert_memory_equal(words, etm, sizeof(etm));

	words = make_info(&b, "arm_spe_0", 0, setup, &n);
	assert_int_equal(((const struct fr_record_auxtrace_info *)(const void *)b.data)->type, 4);
	assert_int_equal(n, 2);
	assert_int_equal(words[0], 9);
	assert_int_equal(words[1], 1);
}

TEST(other_pmus_have_no_info)
{
	static const char *const names[] = {"cpu", "intel_pt2", "cs_etm_x", "arm_spe", ""};
	static char filter[70000];
	const struct perf_event_attr attr = {.type = 9};
	const struct fr_auxtrace_setup setup = {.sysfs = root, .filter = filter};
	_cleanup_buf_ struct fr_buf b = {0};

	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++) {
		assert_int_equal(fr_auxtrace_info(&b, &attr, names[i], &setup), 0);
		assert_int_equal(b.len, 0);
	}
	memset(filter, 'x', sizeof(filter) - 1);
	assert_int_equal(fr_auxtrace_info(&b, &attr, "intel_pt", &setup), -E2BIG);
	assert_int_equal(b.len, 0);
}

TEST(long_id_index_becomes_several_records)
{
	static struct fr_id_index_entry entries[5000];
	_cleanup_buf_ struct fr_buf b = {0};
	const struct perf_event_header *h;
	struct fr_record_iter it;
	size_t n = 0, records = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(entries); i++)
		entries[i] = (struct fr_id_index_entry){i + 1, i % 8, (int64_t)(i % 8), -1};
	assert_int_equal(fr_id_index(&b, entries, FR_ARRAY_SIZE(entries)), 0);
	it = fr_record_iter(b.data, b.len);
	for (; (h = fr_record_next(&it)); records++) {
		const struct fr_record_id_index *r = (const void *)h;

		assert_int_equal(h->type, FR_RECORD_ID_INDEX);
		assert_int_equal(h->size, sizeof(*r) + r->nr * sizeof(entries[0]));
		assert_memory_equal(r + 1, entries + n, r->nr * sizeof(entries[0]));
		n += r->nr;
	}
	assert_ptr_equal(it.at, it.end);
	assert_int_equal(n, FR_ARRAY_SIZE(entries));
	assert_int_equal(records, 3);
}

#define PIECES 6

/* Returns piece I: its bytes are 'a' + I, and no length is a multiple of 8. */
static struct fr_auxtrace make_piece(unsigned i)
{
	static uint8_t data[PIECES][4096];

	memset(data[i], 'a' + (int)i, sizeof(data[i]));
	return (struct fr_auxtrace){.cpu = (int)i,
		.tid = -1,
		.idx = i,
		.offset = 1ull << 40 | i,
		.reference = i,
		.data = data[i],
		.len = 100 + i * 501};
}

/* Puts 10 samples, then a piece, and so on. RET_PLACES gets the offset in B of each piece. */
static void put_records(struct fr_buf *b, size_t ret_places[static PIECES])
{
	for (unsigned i = 0; i < PIECES; i++) {
		const struct fr_auxtrace t = make_piece(i);

		for (uint64_t k = 1; k <= 10; k++)
			synth_sample(b, ID, i * 100 + k, 7, 0x400000);
		ret_places[i] = b->len;
		synth_aux(b, &t);
	}
	for (uint64_t k = 1; k <= 10; k++)
		synth_sample(b, ID, PIECES * 100 + k, 7, 0x400000);
}

struct seen {
	uint64_t samples, pieces;
	struct fr_damage damage;
};

/* Reads the file. The bytes of each piece that the reader returns must be those of make_piece(). */
static struct seen read_all(void)
{
	const struct perf_event_header *h;
	struct fr_reader *r = NULL;
	struct fr_diag d = {0};
	struct seen s = {0};
	uint64_t at;
	int x;

	if (fr_reader_open(path, &r, &d) != 0)
		fail_msg("%s", d.what);
	while ((x = fr_reader_next(r, &h, &at)) == 1) {
		const struct fr_record_auxtrace *t = (const void *)h;
		uint8_t bytes[4096] = {0};
		struct fr_auxtrace piece;

		s.samples += h->type == PERF_RECORD_SAMPLE;
		if (h->type != FR_RECORD_AUXTRACE)
			continue;
		s.pieces++;
		assert_true(t->idx < PIECES);
		piece = make_piece(t->idx);
		assert_int_equal(t->size, FR_ALIGN_UP(piece.len, 8));
		assert_int_equal(t->offset, piece.offset);
		assert_int_equal(t->reference, piece.reference);
		assert_int_equal(t->cpu, piece.cpu);
		assert_int_equal((int32_t)t->tid, -1);
		assert_int_equal(fr_reader_time(r, h), 0);
		assert_int_equal(
			fr_pread_all(fr_reader_fd(r), bytes, t->size, (off_t)(at + h->size)), t->size);
		assert_memory_equal(bytes, piece.data, piece.len);
		for (size_t i = piece.len; i < t->size; i++)
			assert_int_equal(bytes[i], 0);
	}
	assert_int_equal(x, 0);
	s.damage = *fr_reader_damage(r);
	fr_reader_free(r);
	return s;
}

static void write_bytes(const struct fr_buf *b)
{
	_cleanup_session_ struct fr_session s = {0};

	snprintf(path, sizeof(path), "%s/f", root);
	synth_session(&s, ID, "host", 0);
	synth_write_file(path, &s, b, 0, 0);
}

TEST(reader_finds_the_data_of_each_record)
{
	_cleanup_session_ struct fr_session session = {0};
	_cleanup_buf_ struct fr_buf b = {0};
	size_t places[PIECES];
	struct seen s;

	put_records(&b, places);
	for (int pipe = 0; pipe < 2; pipe++) {
		if (!pipe) {
			write_bytes(&b);
		} else {
			synth_session(&session, ID, "host", 0);
			synth_write_pipe(path, &session, &b);
		}
		s = read_all();
		assert_false(s.damage.damaged);
		assert_int_equal(s.samples, 10 * (PIECES + 1));
		assert_int_equal(s.pieces, PIECES);
	}
}

static int append(void *ctx, const void *data, size_t len)
{
	return fr_buf_append(ctx, data, len);
}

TEST(section_has_the_place_of_each_record)
{
	_cleanup_session_ struct fr_session session = {0};
	_cleanup_buf_ struct fr_buf file = {0};
	const struct fr_sink sink = {append, &file};
	uint8_t header[FR_FILE_HEADER_SIZE];
	struct fr_reader *r = NULL;
	const struct fr_buf *section;
	struct fr_file_writer w;
	uint64_t words[1 + 2 * PIECES];

	synth_session(&session, ID, "host", 0);
	assert_int_equal(fr_buf_append_u64(&session.features[FR_FEATURE_AUXTRACE], 1), 0); /* ignored */
	assert_int_equal(fr_file_begin(&w, &session, &sink), 0);
	for (unsigned i = 0; i < PIECES; i++) {
		struct fr_auxtrace t = make_piece(i);
		_cleanup_buf_ struct fr_buf padded = {0};

		if (i % 2) { /* the record first, and the data by the caller */
			assert_int_equal(fr_buf_append(&padded, t.data, t.len), 0);
			assert_int_equal(fr_buf_append_zero(&padded, FR_ALIGN_UP(t.len, 8) - t.len), 0);
			t.data = NULL;
		}
		assert_int_equal(fr_file_write_auxtrace(&w, &t), 0);
		assert_int_equal(fr_file_write_records(&w, padded.data, padded.len), 0);
		t.len = 0;
		assert_int_equal(fr_file_write_auxtrace(&w, &t), 0); /* writes nothing */
	}
	assert_int_equal(fr_file_end(&w, &session, header), 0);
	assert_null(w.aux_index.data);
	memcpy(file.data, header, sizeof(header));
	synth_write(path, file.data, file.len);
	assert_int_equal(read_all().pieces, PIECES);

	assert_int_equal(fr_reader_open(path, &r, NULL), 0);
	section = &fr_reader_session(r)->features[FR_FEATURE_AUXTRACE];
	assert_int_equal(section->len, sizeof(words));
	memcpy(words, section->data, sizeof(words));
	fr_reader_free(r);
	assert_int_equal(words[0], PIECES);
	for (unsigned i = 0; i < PIECES; i++) {
		struct fr_record_auxtrace t;

		memcpy(&t, file.data + words[1 + 2 * i], sizeof(t));
		assert_int_equal(t.header.type, FR_RECORD_AUXTRACE);
		assert_int_equal(t.header.size, words[2 + 2 * i]);
		assert_int_equal(t.idx, i);
	}
}

/* The size in an AUXTRACE record is wrong. Only this piece is lost. */
TEST(wrong_size_loses_only_its_piece)
{
	static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 47, 1ull << 63, 1ull << 40};

	for (size_t i = 0; i < FR_ARRAY_SIZE(sizes); i++) {
		_cleanup_buf_ struct fr_buf b = {0};
		size_t places[PIECES];
		struct seen s;

		put_records(&b, places);
		memcpy(b.data + places[2] + offsetof(struct fr_record_auxtrace, size), &sizes[i], 8);
		write_bytes(&b);
		s = read_all();
		assert_true(s.damage.damaged);
		assert_int_equal(s.samples, 10 * (PIECES + 1));
		assert_int_equal(s.pieces, PIECES - 1);
	}
}

TEST(damage_before_a_piece_does_not_lose_it)
{
	_cleanup_buf_ struct fr_buf b = {0};
	size_t places[PIECES];
	struct seen s;

	put_records(&b, places);
	/* Two samples are left between the damage and the piece. Together with it, they are proven. */
	memset(b.data + places[3] - 3 * 48, 0xff, 8);
	write_bytes(&b);
	s = read_all();
	assert_true(s.damage.damaged);
	assert_int_equal(s.pieces, PIECES);
	assert_int_equal(s.samples, 10 * (PIECES + 1) - 1);
}

/* A size that covers the following records is not visible as damage: their bytes count as AUX data. The
   reader must stay inside the file. A record with a header that is too small for its fields is damage. */
TEST(overlapping_and_short_records_stay_inside_the_file)
{
	_cleanup_buf_ struct fr_buf b = {0};
	const struct perf_event_header *h;
	struct fr_reader *r = NULL;
	uint64_t at, end, size, pieces = 0, samples = 0;
	size_t places[PIECES];
	struct seen s;

	put_records(&b, places);
	size = places[4] - places[2] - sizeof(struct fr_record_auxtrace);
	memcpy(b.data + places[2] + offsetof(struct fr_record_auxtrace, size), &size, sizeof(size));
	write_bytes(&b);
	assert_int_equal(fr_reader_open(path, &r, NULL), 0);
	while (fr_reader_next(r, &h, &at) == 1) {
		fr_reader_progress(r, &at, &end);
		assert_true(at <= end);
		samples += h->type == PERF_RECORD_SAMPLE;
		pieces += h->type == FR_RECORD_AUXTRACE;
	}
	fr_reader_free(r);
	assert_int_equal(samples, 50);
	assert_int_equal(pieces, 5);

	b.len = 0;
	put_records(&b, places);
	((struct perf_event_header *)(void *)(b.data + places[2]))->size = 40;
	write_bytes(&b);
	s = read_all();
	assert_true(s.damage.damaged);
	assert_int_equal(s.pieces, PIECES - 1);
	assert_int_equal(s.samples, 70);
}

TEST(truncated_file_has_the_pieces_before_the_end)
{
	_cleanup_buf_ struct fr_buf b = {0}, file = {0};
	size_t places[PIECES], data_start;

	put_records(&b, places);
	write_bytes(&b);
	assert_int_equal(fr_read_file(AT_FDCWD, path, 1 << 20, &file), 0);
	memcpy(&data_start, file.data + 40, 8);
	for (unsigned i = 0; i < PIECES; i++) {
		const size_t size = sizeof(struct fr_record_auxtrace) + FR_ALIGN_UP(make_piece(i).len, 8);

		for (int k = -1; k <= 1; k++) {
			struct seen s;

			synth_write(path, file.data, data_start + places[i] + size + (size_t)k);
			s = read_all();
			assert_true(s.damage.damaged);
			assert_int_equal(s.samples, 10 * (i + 1));
			assert_int_equal(s.pieces, i + (k >= 0));
		}
	}
}

/* The AUX data of a compressed record could not be found. */
TEST(compressed_record_is_damage)
{
	_cleanup_session_ struct fr_session session = {0};
	_cleanup_buf_ struct fr_buf b = {0};
	const struct fr_record_auxtrace t = {
		.header = {.type = FR_RECORD_AUXTRACE, .size = sizeof(t)}, .size = 4096};
	struct seen s;

	for (uint64_t k = 1; k <= 20; k++) {
		synth_sample(&b, ID, k, 7, 0x400000);
		if (k == 10)
			assert_int_equal(fr_buf_append(&b, &t, sizeof(t)), 0);
	}
	synth_session(&session, ID, "host", 0);
	synth_write_file(path, &session, &b, 0, 1 << 20);
	s = read_all();
	assert_true(s.damage.damaged);
	assert_int_equal(s.damage.lost_bytes, sizeof(t) + 480);
	assert_int_equal(s.pieces, 0);
	assert_int_equal(s.samples, 10);
}
