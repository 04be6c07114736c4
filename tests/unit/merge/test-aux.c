// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the merge of AUX data: each byte is in the output once, and its queue and offset are right. */

#include "scene.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/reader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define A "perf.data.sample.a"
#define B "perf.data.sample.b"
#define C "perf.data.sample.c"
#define OTHER_ID 5000 /* the first event id of another recording */

FIXTURE(scene_setup, scene_teardown)

/* A piece of the AUX area of a CPU. Its byte at offset X is made from X and the SEED. */
struct piece {
	int cpu;
	uint32_t idx;
	uint64_t offset;
	size_t len;
	unsigned seed;
};

/* A file under construction. */
struct file {
	struct fr_buf records;
	uint64_t first_id;
};

static uint8_t make_byte(const struct piece *p, uint64_t offset)
{
	return (uint8_t)((offset * 2654435761u >> 11) + p->seed * 7 + p->idx) | 1;
}

static void add_piece(struct file *f, struct piece p)
{
	_cleanup_free_ uint8_t *data = malloc(p.len);
	const struct fr_auxtrace t = {
		.cpu = p.cpu, .tid = -1, .idx = p.idx, .offset = p.offset, .data = data, .len = p.len};

	assert_non_null(data);
	for (size_t i = 0; i < p.len; i++)
		data[i] = make_byte(&p, p.offset + i);
	synth_aux(&f->records, &t);
}

/* Appends ID_INDEX and AUXTRACE_INFO. The sampled event of the session stands for the AUX event. EXTRA is
   another word of AUXTRACE_INFO. */
static void add_head(struct file *f, uint32_t type, uint64_t extra)
{
	struct {
		struct fr_record_auxtrace_info r;
		uint64_t words[6];
	} info = {{{FR_RECORD_AUXTRACE_INFO, 0, sizeof(info)}, type, 0},
		{PERF_TYPE_SOFTWARE, 0, 0, 0, 0, extra}};
	const struct fr_id_index_entry entries[] = {
		{f->first_id, 0, 0, -1}, {f->first_id + 1, 1, 1, -1},
		{12345678, 1, 1, -1}, /* an id that no event has */
	};

	assert_int_equal(fr_id_index(&f->records, entries, 3), 0);
	assert_int_equal(fr_buf_append(&f->records, &info, sizeof(info)), 0);
}

static void write_and_free(const struct scene *s, const char *name, struct file *f)
{
	_cleanup_session_ struct fr_session session = {0};

	synth_sample(&f->records, f->first_id, 1000 + f->records.len, 7, 0x400000);
	synth_session(&session, f->first_id, "host", 1700000000ull * 1000000000);
	synth_write_file(scene_path(s, name), &session, &f->records, 0, 0);
	fr_buf_deinit(&f->records);
}

/* What is in a merged file. */
struct merged {
	unsigned n_pieces, n_infos, n_entries, n_kernel;
	struct fr_record_auxtrace pieces[64];
	uint64_t places[64]; /* of the data */
	struct fr_id_index_entry entries[16];
	uint64_t extra; /* of the AUXTRACE_INFO */
};

static struct merged read_merged(const struct scene *s, const char *name)
{
	const struct perf_event_header *h;
	struct fr_reader *r = NULL;
	struct merged m = {0};
	uint64_t at;

	assert_int_equal(fr_reader_open(scene_path(s, name), &r, NULL), 0);
	while (fr_reader_next(r, &h, &at) == 1) {
		if (h->type == FR_RECORD_AUXTRACE) {
			assert_true(m.n_pieces < FR_ARRAY_SIZE(m.pieces));
			m.places[m.n_pieces] = at + h->size;
			memcpy(&m.pieces[m.n_pieces++], h, sizeof(m.pieces[0]));
		} else if (h->type == FR_RECORD_AUXTRACE_INFO) {
			m.extra = ((const struct fr_record_auxtrace_info *)h)->priv[5];
			m.n_infos++;
		} else if (h->type == FR_RECORD_ID_INDEX) {
			assert_int_equal(m.n_infos, 0); /* ID_INDEX is before AUXTRACE_INFO */
			m.n_entries = (unsigned)((const struct fr_record_id_index *)h)->nr;
			assert_true(m.n_entries <= FR_ARRAY_SIZE(m.entries));
			memcpy(m.entries, (const struct fr_record_id_index *)h + 1,
				m.n_entries * sizeof(m.entries[0]));
		}
		m.n_kernel += h->type == PERF_RECORD_AUX || h->type == PERF_RECORD_ITRACE_START;
	}
	assert_false(fr_reader_damage(r)->damaged);
	fr_reader_free(r);
	return m;
}

/* Checks that piece I of the output is P: `p.idx` is the number of the queue in the input, and QUEUE its
   number in the output. */
static void check_piece(
	const struct scene *s, const struct merged *m, unsigned i, struct piece p, uint32_t queue)
{
	_cleanup_buf_ struct fr_buf file = {0};

	assert_true(i < m->n_pieces);
	assert_int_equal(m->pieces[i].idx, queue);
	assert_int_equal(m->pieces[i].cpu, p.cpu);
	assert_int_equal(m->pieces[i].offset, p.offset);
	assert_int_equal(m->pieces[i].size, FR_ALIGN_UP(p.len, 8));
	assert_int_equal(fr_read_file(AT_FDCWD, scene_path(s, "perf.data"), 64 << 20, &file), 0);
	for (size_t k = 0; k < p.len; k++)
		assert_int_equal(file.data[m->places[i] + k], make_byte(&p, p.offset + k));
}

TEST(overlapping_pieces_are_cut)
{
	static const struct piece same[] = {
		{0, 0, 0, 4096, 1}, {0, 0, 4096, 100000, 1}, {1, 1, 0, 80, 1}, {1, 1, 160, 80, 1}};
	struct scene *s = *state;
	struct file a = {.first_id = SCENE_ID}, b = a, c = a;
	struct merged m;

	for (unsigned i = 0; i < 4; i++)
		add_piece(&a, same[i]);
	write_and_free(s, A, &a);
	for (unsigned i = 0; i < 4; i++)
		add_piece(&b, same[i]);
	add_piece(&b, (struct piece){0, 0, 104000, 1000, 1}); /* 904 bytes are new */
	write_and_free(s, B, &b);
	add_piece(&c, (struct piece){1, 1, 40, 160, 1}); /* fills the gap between two pieces, and more */
	write_and_free(s, C, &c);
	s->options.keep = true;
	for (unsigned compress = 0; compress < 2; compress++) {
		s->options.compress = compress;
		assert_int_equal(scene_merge(s), 0);
		assert_non_null(strstr(s->warned, "--no-itrace")); /* there is no AUXTRACE_INFO */
		m = read_merged(s, "perf.data");
		assert_int_equal(m.n_pieces, 6);
		check_piece(s, &m, 0, same[0], 0);
		check_piece(s, &m, 1, same[1], 0);
		check_piece(s, &m, 2, (struct piece){0, 0, 104096, 904, 1}, 0);
		check_piece(s, &m, 3, same[2], 1);
		check_piece(s, &m, 4, (struct piece){1, 1, 80, 120, 1}, 1);
		check_piece(s, &m, 5, (struct piece){1, 1, 200, 40, 1}, 1);
		assert_int_equal(s->report.aux_bytes, 4096 + 100000 + 904 + 240);
		assert_int_equal(s->report.aux_duplicates, 4096 + 100000 + 80 + 80 + 96 + 40 + 40);
	}
	/* Merging the output again with an input changes nothing. */
	assert_int_equal(rename(scene_path(s, "perf.data"), scene_path(s, "perf.data.sample.d")), 0);
	assert_int_equal(scene_merge(s), 0);
	assert_int_equal(s->report.aux_bytes, 4096 + 100000 + 904 + 240);
}

/* The end of a piece is padded. The padding is no reason to cut off the start of the next piece. */
TEST(padding_is_not_an_overlap)
{
	static const struct piece pieces[] = {{0, 0, 0, 13, 1}, {0, 0, 13, 30, 1}, {0, 0, 43, 5, 1}};
	struct scene *s = *state;
	struct merged m;

	for (unsigned i = 0; i < 3; i++) {
		struct file f = {.first_id = SCENE_ID};
		char name[] = A;

		name[sizeof(name) - 2] = (char)('a' + i);
		add_piece(&f, pieces[i]);
		write_and_free(s, name, &f);
	}
	assert_int_equal(scene_merge(s), 0);
	m = read_merged(s, "perf.data");
	assert_int_equal(m.n_pieces, 3);
	for (unsigned i = 0; i < 3; i++)
		check_piece(s, &m, i, pieces[i], 0);
	assert_int_equal(s->report.aux_duplicates, 0);
}

/* The event was opened again: the offsets begin at 0 again. */
TEST(other_bytes_at_the_same_offset_are_kept)
{
	static const struct piece first = {0, 0, 0, 4096, 1}, second = {0, 0, 0, 8192, 2};
	struct scene *s = *state;
	struct file a = {.first_id = SCENE_ID}, b = a;
	struct merged m;

	add_piece(&a, first);
	write_and_free(s, A, &a);
	add_piece(&b, second);
	add_piece(&b, first);
	write_and_free(s, B, &b);
	assert_int_equal(scene_merge(s), 0);
	m = read_merged(s, "perf.data");
	assert_int_equal(m.n_pieces, 2);
	check_piece(s, &m, 0, second, 0);
	check_piece(s, &m, 1, first, 0);
	assert_int_equal(s->report.aux_duplicates, 4096);
}

/* ID_INDEX tells by the ids of the AUX event which of two pieces was recorded later. */
TEST(later_opening_of_an_event_comes_later)
{
	static const struct piece older = {0, 0, 4096, 4096, 1}, newer = {0, 0, 0, 80, 2};
	struct scene *s = *state;
	struct merged m;

	for (unsigned i = 0; i < 2; i++) {
		struct file f = {.first_id = SCENE_ID};
		/* The ids of the AUX event are SCENE_ID and, after the second opening, SCENE_ID + 1. */
		const struct fr_id_index_entry entry = {SCENE_ID + 1 - i, 0, 0, -1};
		const struct {
			struct fr_record_auxtrace_info r;
			uint64_t pmu;
		} info = {{{FR_RECORD_AUXTRACE_INFO, 0, sizeof(info)}, 2, 0}, PERF_TYPE_SOFTWARE};

		assert_int_equal(fr_id_index(&f.records, &entry, 1), 0);
		assert_int_equal(fr_buf_append(&f.records, &info, sizeof(info)), 0);
		add_piece(&f, i ? older : newer);
		write_and_free(s, i ? B : A, &f);
	}
	assert_int_equal(scene_merge(s), 0);
	m = read_merged(s, "perf.data");
	assert_int_equal(m.n_pieces, 2);
	check_piece(s, &m, 0, older, 0);
	check_piece(s, &m, 1, newer, 0);
}

TEST(queues_of_two_recordings_are_different)
{
	static const struct piece p = {0, 0, 0, 64, 1}, q = {1, 1, 0, 64, 1}, far = {1, 70000, 0, 64, 1},
				  conflict = {5, 1, 0, 64, 1};
	struct scene *s = *state;
	struct file a = {.first_id = SCENE_ID}, b = {.first_id = OTHER_ID};
	struct merged m;

	add_head(&a, 2, 1);
	add_piece(&a, p);
	add_piece(&a, q);
	write_and_free(s, A, &a);
	add_head(&b, 2, 1);
	add_piece(&b, q);
	add_piece(&b, p);
	add_piece(&b, conflict); /* another CPU has the same number */
	add_piece(&b, far);	 /* perf would make a table of 70,000 queues */
	write_and_free(s, B, &b);
	assert_int_equal(scene_merge(s), 0);
	assert_string_equal(s->warned, "");
	m = read_merged(s, "perf.data");
	assert_int_equal(m.n_infos, 1);
	assert_int_equal(m.n_entries, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(m.entries[i].id, (i < 2 ? SCENE_ID : OTHER_ID) + i % 2);
		assert_int_equal(m.entries[i].idx, i);
		assert_int_equal(m.entries[i].cpu, i % 2);
		assert_int_equal(m.entries[i].tid, -1);
	}
	assert_int_equal(m.n_pieces, 6);
	check_piece(s, &m, 0, p, 0);
	check_piece(s, &m, 1, q, 1);
	check_piece(s, &m, 2, p, 2);
	check_piece(s, &m, 3, q, 3);
	check_piece(s, &m, 4, conflict, 4);
	check_piece(s, &m, 5, far, 5);
}

/* perf can decode the AUX data of one PMU in a file. */
TEST(data_of_other_hardware_stays_in_its_file)
{
	static const struct piece p = {0, 0, 0, 64, 1};
	struct scene *s = *state;
	struct file a = {.first_id = SCENE_ID}, b = a, c = a;
	struct merged m;

	add_head(&a, 2, 1);
	add_piece(&a, p);
	write_and_free(s, A, &a);
	add_head(&b, 1, 1);
	add_piece(&b, (struct piece){0, 0, 64, 64, 1});
	write_and_free(s, B, &b);
	add_head(&c, 2, 2); /* the same hardware, described in another way */
	add_piece(&c, (struct piece){0, 0, 128, 64, 1});
	write_and_free(s, C, &c);
	assert_int_equal(scene_merge(s), 1);
	assert_int_equal(s->report.n_damaged, 1);
	assert_non_null(strstr(s->warned, "perf.data.sample.b: 64 bytes of AUX data are left out"));
	assert_non_null(strstr(s->warned, "perf.data.sample.c: it describes its AUX data"));
	m = read_merged(s, "perf.data");
	assert_int_equal(m.n_pieces, 2);
	assert_int_equal(m.n_infos, 1);
	assert_int_equal(m.extra, 1);
	assert_false(scene_has(s, A));
	assert_true(scene_has(s, B));
	assert_false(scene_has(s, C));
}

/* Each dump has a conversion of times of its own. */
TEST(another_conversion_of_times_is_no_other_description)
{
	struct scene *s = *state;
	static const char *const names[] = {A, B};
	struct merged m;

	for (unsigned i = 0; i < 2; i++) {
		struct file f = {.first_id = SCENE_ID};
		const struct {
			struct fr_record_auxtrace_info r;
			uint64_t words[6];
		} info = {{{FR_RECORD_AUXTRACE_INFO, 0, sizeof(info)}, 2, 0},
			{PERF_TYPE_SOFTWARE, 31, 700000000 + i, 5 * i, 1, 1}};
		const struct fr_id_index_entry entry = {f.first_id, 0, 0, -1};

		assert_int_equal(fr_id_index(&f.records, &entry, 1), 0);
		assert_int_equal(fr_buf_append(&f.records, &info, sizeof(info)), 0);
		add_piece(&f, (struct piece){0, 0, 64 * i, 64, 1});
		write_and_free(s, names[i], &f);
	}
	assert_int_equal(scene_merge(s), 0);
	assert_null(strstr(s->warned, "AUXTRACE_INFO"));
	m = read_merged(s, "perf.data");
	assert_int_equal(m.n_pieces, 2);
	assert_int_equal(m.n_infos, 1);
}

/* Appends ITRACE_START and AUX of the kernel. */
static void add_kernel_records(struct fr_buf *b, uint64_t time)
{
	const struct fr_sample_id tail = {7, 7, time, 0, 0, SCENE_ID};
	const struct {
		struct fr_record_itrace_start r;
		struct fr_sample_id id;
	} start = {{{PERF_RECORD_ITRACE_START, 0, sizeof(start)}, 7, 7}, tail};
	const struct {
		struct fr_record_aux r;
		struct fr_sample_id id;
	} aux = {{{PERF_RECORD_AUX, 0, sizeof(aux)}, 0, 64, 0}, tail};

	assert_int_equal(fr_buf_append(b, &start, sizeof(start)), 0);
	assert_int_equal(fr_buf_append(b, &aux, sizeof(aux)), 0);
}

/* A dump leaves out its initial state if the auxiliary file covers it. But the auxiliary file does not have
   the kernel's records about AUX data. Two dumps have the same ones, which are written once. */
TEST(kernel_records_are_kept_once)
{
	struct scene *s = *state;
	_cleanup_buf_ struct fr_buf auxiliary = {0};
	struct merged m;

	for (uint64_t t = 1; t <= 3000; t += 100)
		synth_comm(&auxiliary, SCENE_AUX_ID, t, 7, "worker");
	synth_write_pipe(scene_path(s, "perf.data.auxiliary"), &s->session, &auxiliary);
	for (unsigned i = 0; i < 2; i++) {
		struct file f = {.first_id = SCENE_ID};

		synth_comm(&f.records, SCENE_AUX_ID, 500, 7, "worker");
		add_kernel_records(&f.records, 600);
		synth_comm(&f.records, SCENE_AUX_ID, 700, 7, "worker");
		synth_round(&f.records);
		add_kernel_records(&f.records, 900);
		write_and_free(s, i ? B : A, &f);
	}
	assert_int_equal(scene_merge(s), 0);
	assert_int_equal(s->report.state, 4);
	m = read_merged(s, "perf.data");
	assert_int_equal(m.n_kernel, 4);
}

/* Files with random pieces of one AUX area: the output has each byte of the union once. */
TEST(random_pieces_are_united)
{
	enum { SIZE = 4000, UNIT = 8 };
	struct scene *s = *state;

	for (scene_seed = 1; scene_seed <= 40;) {
		const unsigned long long seed = scene_seed;
		unsigned wanted[SIZE / UNIT] = {0}, got[SIZE / UNIT] = {0};
		struct merged m;

		scene_clear(s);
		for (char name[] = A, *last = name + sizeof(name) - 2; *last < 'f'; ++*last) {
			struct file f = {.first_id = SCENE_ID};

			for (unsigned n = scene_random(5); n > 0; n--) {
				const unsigned from = scene_random(SIZE / UNIT),
					       len = 1 + scene_random(SIZE / UNIT - from);

				add_piece(&f, (struct piece){0, 0, from * UNIT, len * UNIT, 1});
				for (unsigned i = from; i < from + len; i++)
					wanted[i] = 1;
			}
			write_and_free(s, name, &f);
		}
		assert_int_equal(scene_merge(s), 0);
		m = read_merged(s, "perf.data");
		for (unsigned i = 0; i < m.n_pieces; i++) {
			const struct fr_record_auxtrace *t = &m.pieces[i];

			check_piece(s, &m, i, (struct piece){0, 0, t->offset, t->size, 1}, 0);
			assert_true(i == 0 || t->offset >= t[-1].offset + t[-1].size);
			for (uint64_t k = t->offset / UNIT; k < (t->offset + t->size) / UNIT; k++)
				got[k]++;
		}
		assert_memory_equal(got, wanted, sizeof(got));
		scene_seed = seed + 1;
	}
}

TEST(truncated_input_is_kept)
{
	struct scene *s = *state;
	struct file a = {.first_id = SCENE_ID};
	_cleanup_buf_ struct fr_buf bytes = {0};

	add_piece(&a, (struct piece){0, 0, 0, 4096, 1});
	write_and_free(s, A, &a);
	assert_int_equal(fr_read_file(AT_FDCWD, scene_path(s, A), 64 << 20, &bytes), 0);
	synth_write(scene_path(s, A), bytes.data, 3000);
	assert_int_equal(scene_merge(s), 1);
	assert_int_equal(s->report.aux_bytes, 0);
	assert_int_equal(s->report.n_damaged, 1);
	assert_true(scene_has(s, A));
}
