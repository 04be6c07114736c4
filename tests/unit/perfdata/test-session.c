// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the session (the content of the head of a perf.data file): its events and its feature sections. */

#include "../unit.h"
#include "base/cleanup.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/tracing_data.h"

#include <errno.h>
#include <string.h>

TEST(strings_are_padded_to_64)
{
	_cleanup_session_ struct fr_session s = {0};
	const struct fr_buf *section = &s.features[FR_FEATURE_HOSTNAME];
	char text[130];
	uint32_t len;

	for (size_t n = 0; n < sizeof(text); n++) {
		memset(text, 'x', n);
		text[n] = '\0';
		assert_int_equal(fr_feature_set_string(&s, FR_FEATURE_HOSTNAME, text), 0);
		memcpy(&len, section->data, 4);
		assert_int_equal(len, (n / 64 + 1) * 64);
		assert_int_equal(section->len, 4 + len);
		assert_string_equal(fr_feature_get_string(&s, FR_FEATURE_HOSTNAME), text);
	}
}

TEST(malformed_strings_are_not_given)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} sections[] = {
		{"", 0, NULL},
		{"\4\0\0", 3, NULL},
		{"\4\0\0\0abc", 7, NULL},  /* the string is too short */
		{"\4\0\0\0abcd", 8, NULL}, /* the string has no NUL */
		{"\4\0\0\0abc\0", 8, "abc"},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(sections); i++) {
		_cleanup_session_ struct fr_session s = {0};
		const char *text;

		assert_int_equal(
			fr_buf_append(&s.features[FR_FEATURE_ARCH], sections[i].bytes, sections[i].len), 0);
		text = fr_feature_get_string(&s, FR_FEATURE_ARCH);
		assert_int_equal(text != NULL, sections[i].text != NULL);
		if (text)
			assert_string_equal(text, sections[i].text);
	}
}

TEST(build_id_records_are_whole)
{
	_cleanup_session_ struct fr_session s = {0};
	const struct fr_buf *b = &s.features[FR_FEATURE_BUILD_ID];
	uint8_t id[21] = {1, 2, 3};
	char path[5000];
	size_t at = 0, n = 0;

	memset(path, 'p', sizeof(path));
	path[4999] = '\0';
	for (size_t len = 0; len < 200; len += 7)
		assert_int_equal(
			fr_feature_add_build_id(&s, PERF_RECORD_MISC_USER, -1, id, 20, path + 4999 - len), 0);
	for (; at < b->len; n++) {
		const struct perf_event_header *h = (const void *)(b->data + at);

		assert_true(fr_record_is_whole(h, b->len - at));
		assert_int_equal(h->type, FR_RECORD_HEADER_BUILD_ID);
		assert_int_equal(h->misc, PERF_RECORD_MISC_USER | 1 << 15);
		assert_int_equal(h->size % 8, 0);
		assert_int_equal(b->data[at + 12 + 20], 20);
		assert_int_equal(strlen((const char *)b->data + at + 36), n * 7);
		at += h->size;
	}
	assert_int_equal(n, 29);
	assert_int_equal(fr_feature_add_build_id(&s, 1, -1, id, 20, path), -ENAMETOOLONG);
	assert_int_equal(fr_feature_add_build_id(&s, 1, -1, id, 21, "x"), -EINVAL);
	assert_int_equal(fr_feature_add_build_id(&s, 1, -1, id, 0, "x"), -EINVAL);
	assert_int_equal(b->len, at);
}

/* Checks that all prefixes of the notes of at least NEEDED bytes have the build-id EXPECTED, and shorter ones
   have none. Each prefix is in memory of its exact size, so that a sanitizer finds a read behind its end. */
static void expect_build_id(
	const uint8_t *notes, size_t len, size_t align, const char *expected, size_t needed)
{
	uint8_t id[20];

	for (size_t n = 0; n <= len; n++) {
		_cleanup_free_ uint8_t *exact = malloc(n ? n : 1);
		int size = (int)strlen(expected);

		memcpy(exact, notes, n);
		assert_int_equal(fr_build_id_from_notes(exact, n, align, id), n < needed ? -ENOENT : size);
	}
	assert_memory_equal(id, expected, strlen(expected));
}

TEST(build_id_is_found_behind_other_notes)
{
	/* A note of type 3 of another owner, and then the build-id with one byte of padding. */
	static const uint8_t by_4[] = {4, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 'X', 'e', 'n', 0, 1, 2, 3, 4, 5, 0,
		0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xaa, 0xbb, 0xcc, 0};
	/* A property note, as linkers put it before the build-id, with 9 bytes and 7 bytes of padding. */
	static const uint8_t by_8[] = {4, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4, 5, 6,
		7, 8, 9, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xaa,
		0xbb};

	expect_build_id(by_4, sizeof(by_4), 4, "\xaa\xbb\xcc", sizeof(by_4) - 1);
	expect_build_id(by_8, sizeof(by_8), 8, "\xaa\xbb", sizeof(by_8));
}

static void append(struct fr_buf *b, const void *data, size_t len)
{
	assert_int_equal(fr_buf_append(b, data, len), 0);
}

/* Makes a section of tracing data of VERSION 0.6, or of 0.5, which ends before the saved command lines.
   FORMATS ends with NULL. */
static void make_section(
	struct fr_buf *b, const char *version, const char *system, const char *const *formats)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE), n = 0;
	uint64_t len = 0;

	while (formats[n])
		n++;
	append(b, "\27\10\104tracing", 10);
	append(b, version, 4);
	append(b, (uint8_t[]){0, sizeof(long)}, 2);
	append(b, &page, sizeof(page));
	append(b, "header_page\0\2\0\0\0\0\0\0\0hp", 22);
	append(b, "header_event\0\2\0\0\0\0\0\0\0he", 23);
	append(b, "\0\0\0\0\1\0\0\0", 8);
	append(b, system, strlen(system) + 1);
	append(b, &n, sizeof(n));
	for (uint32_t i = 0; i < n; i++) {
		len = strlen(formats[i]);
		append(b, &len, sizeof(len));
		append(b, formats[i], len);
	}
	append(b, "\0\0\0\0\1\0\0\0p\0\0\0\0\0\0\0\0", version[2] == '6' ? 17 : 9);
}

TEST(formats_are_united_without_duplicates)
{
	static const char *const a_formats[] = {"name: switch", "name: wakeup", NULL};
	static const char *const b_formats[] = {"name: wakeup", "name: fork", NULL};
	static const char *const c_formats[] = {"name: sys_enter", NULL};
	_cleanup_buf_ struct fr_buf a = {0}, b = {0}, c = {0}, all = {0}, empty = {0};

	make_section(&a, "0.6", "sched", a_formats);
	make_section(&b, "0.6", "sched", b_formats);
	make_section(&c, "0.5", "raw_syscalls", c_formats);
	assert_int_equal(fr_tracing_data_unite(&all, &a), 0);
	assert_int_equal(all.len, a.len);
	assert_memory_equal(all.data, a.data, a.len);
	assert_int_equal(fr_tracing_data_unite(&all, &empty), 0);
	assert_int_equal(fr_tracing_data_unite(&all, &b), 0);
	assert_int_equal(all.len, a.len + 8 + strlen("name: fork"));
	assert_int_equal(fr_tracing_data_unite(&all, &c), 0);
	assert_non_null(memmem(all.data, all.len, "sched\0\3\0\0\0", 10));
	assert_non_null(
		memmem(all.data, all.len, "raw_syscalls\0\1\0\0\0\17\0\0\0\0\0\0\0name: sys_enter", 40));
	assert_int_equal(fr_tracing_data_unite(&all, &b), 0); /* all formats of B are already in ALL */
	assert_non_null(memmem(all.data, all.len, "sched\0\3\0\0\0", 10));
}

TEST(malformed_formats_are_refused)
{
	static const char *const formats[] = {"name: switch", "name: wakeup", NULL};
	_cleanup_buf_ struct fr_buf good = {0}, a = {0};

	make_section(&good, "0.6", "sched", formats);
	append(&a, good.data, good.len);
	for (size_t len = 1; len < good.len; len++) {
		_cleanup_buf_ struct fr_buf part = {malloc(len), len, len};

		memcpy(part.data, good.data, len);
		assert_int_equal(fr_tracing_data_unite(&a, &part), -EBADMSG);
	}
	for (size_t bit = 0; bit < good.len * 8; bit++) {
		_cleanup_buf_ struct fr_buf bad = {0}, into = {0};
		int r;

		append(&bad, good.data, good.len);
		bad.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		r = fr_tracing_data_unite(&into, &bad);
		assert_true(r == 0 || r == -EBADMSG);
	}
	assert_int_equal(a.len, good.len);
	assert_memory_equal(a.data, good.data, a.len);
}

TEST(own_format_is_added_to_those_of_a_kernel_or_to_none)
{
	static const char *const formats[] = {"name: switch", NULL};
	static const char own[] = "name: own";
	_cleanup_buf_ struct fr_buf section = {0}, alone = {0}, broken = {0}, all = {0};
	size_t len;

	make_section(&section, "0.6", "sched", formats);
	len = section.len;
	assert_int_equal(fr_tracing_data_add_format(&section, "mine", own, sizeof(own) - 1), 0);
	assert_int_equal(section.len, len + sizeof("mine") + 4 + 8 + sizeof(own) - 1);
	assert_non_null(memmem(section.data, section.len, "name: switch", 12));
	len = section.len;
	assert_int_equal(fr_tracing_data_add_format(&section, "mine", own, sizeof(own) - 1), 0);
	assert_int_equal(section.len, len); /* a format is added only once */

	assert_int_equal(fr_tracing_data_add_format(&alone, "mine", own, sizeof(own) - 1), 0);
	assert_non_null(memmem(alone.data, alone.len, "field: local_t commit;", 22));
	assert_non_null(memmem(alone.data, alone.len, "mine\0\1\0\0\0\11\0\0\0\0\0\0\0name: own", 26));
	assert_int_equal(fr_tracing_data_unite(&all, &alone), 0);
	assert_int_equal(fr_tracing_data_unite(&all, &section), 0);
	assert_non_null(memmem(all.data, all.len, "name: switch", 12));

	append(&broken, section.data, section.len / 2);
	assert_int_equal(fr_tracing_data_add_format(&broken, "mine", own, sizeof(own) - 1), -EBADMSG);
	assert_int_equal(broken.len, section.len / 2);
}

static void add_event(struct fr_session *s, const char *name, uint64_t id, uint64_t until_ns)
{
	const struct perf_event_attr attr = {.config = id};
	struct fr_event_desc *e;

	assert_int_equal(fr_session_add_event(s, &attr, name, &id, 1, &e), 0);
	e->until_ns = until_ns;
}

static void expect_names(const struct fr_session *s, const char *names)
{
	char all[64] = "";

	for (size_t i = 0; i < s->n_events; i++)
		strcat(strcat(all, s->events[i].name), " ");
	assert_string_equal(all, names);
}

TEST(closed_event_is_dropped_after_its_last_record)
{
	_cleanup_session_ struct fr_session s = {0}, copy = {0};

	assert_int_equal(fr_buf_append(&s.features[FR_FEATURE_ARCH], "text", 5), 0);
	add_event(&s, "old", 1, 1000);
	add_event(&s, "closing", 2, UINT64_MAX);
	add_event(&s, "now", 3, 0);
	assert_int_equal(fr_session_copy(&s, &copy), 0);
	assert_memory_equal(copy.features[FR_FEATURE_ARCH].data, "text", 5);
	fr_session_drop_closed_events(&copy, 999);
	expect_names(&copy, "old closing now ");
	fr_session_drop_closed_events(&copy, 1000);
	expect_names(&copy, "closing now ");
	fr_session_drop_closed_events(&copy, UINT64_MAX - 1);
	expect_names(&copy, "closing now ");
	fr_session_close_events(&copy, 5000);
	fr_session_drop_closed_events(&copy, 4999);
	expect_names(&copy, "closing now ");
	fr_session_drop_closed_events(&copy, 5000);
	expect_names(&copy, "now ");
	assert_int_equal(copy.events[0].ids[0], 3);
	expect_names(&s, "old closing now ");
}

#define EVENTS 3 /* number of events without the side-band event */
#define CPUS 4
#define LAP 20 /* the number of openings that have records in the ring */

/* Makes the session of the opening with the number OPENING. Each opening has new ids, and each second opening
   has another frequency. */
static void describe_anew(struct fr_session *s, uint64_t opening)
{
	const char *const names[EVENTS + 1] = {"cycles", "sched", "faults", "dummy"};
	uint64_t ids[CPUS];

	for (unsigned e = 0; e <= EVENTS; e++) {
		struct perf_event_attr attr = {.config = e};

		if (e == 0)
			attr.sample_freq = 100 + opening / 2;
		for (unsigned cpu = 0; cpu < CPUS; cpu++)
			ids[cpu] = 1 + (opening * (EVENTS + 1) + e) * CPUS + cpu;
		assert_int_equal(fr_session_add_event(s, &attr, names[e], ids, CPUS, NULL), 0);
	}
}

static size_t count_ids(const struct fr_session *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++)
		n += s->events[i].n_ids;
	return n;
}

/* Checks the head of a dump after OPENING: it has all ids of the newest LAP openings, each id once, and the
 * newest first. */
static void expect_head(const struct fr_session *s, uint64_t opening, uint64_t low_watermark_ns)
{
	const uint64_t first = opening < LAP ? 0 : opening - LAP;
	_cleanup_session_ struct fr_session head = {0};
	const struct fr_event_desc *sideband;

	assert_int_equal(fr_session_copy(s, &head), 0);
	fr_session_drop_closed_events(&head, low_watermark_ns);
	assert_int_equal(fr_session_join_equal_events(&head), 0);
	sideband = &head.events[head.n_events - 1];
	assert_string_equal(sideband->name, "dummy");
	assert_int_equal(sideband->n_ids, (opening - first + 1) * CPUS);
	assert_int_equal(sideband->ids[0], 1 + (opening * (EVENTS + 1) + EVENTS) * CPUS);
	for (size_t i = 1; i < sideband->n_ids; i++)
		assert_true(i % CPUS || sideband->ids[i] < sideband->ids[i - 1]);
	assert_int_equal(count_ids(&head), (opening - first + 1) * CPUS * (EVENTS + 1));
	assert_int_equal(head.n_events, EVENTS + opening / 2 - first / 2 + 1);
}

TEST(ids_leave_with_the_last_frame_that_can_use_them)
{
	_cleanup_session_ struct fr_session s = {0};
	const uint64_t second = 1000000000;

	describe_anew(&s, 0);
	for (uint64_t i = 1; i <= 10000; i++) {
		const uint64_t low_watermark_ns = i > LAP ? (i - LAP) * second : 0;
		struct fr_session next = {0};

		describe_anew(&next, i);
		fr_session_drop_closed_events(&s, low_watermark_ns);
		assert_int_equal(fr_session_add_older_events(&next, &s), 0);
		fr_session_close_events(&next, i * second);
		fr_session_deinit(&s);
		s = next;
		assert_true(s.n_events <= (LAP + 1) * (EVENTS + 1));
		if (i % 1000 == 0 || i < 3 * LAP)
			expect_head(&s, i, low_watermark_ns);
	}
}

TEST(an_event_that_stays_open_is_there_once)
{
	const struct perf_event_attr aux = {.type = 77};
	const uint64_t old_ids[] = {9001, 9002, 9003}, new_ids[] = {9001, 9003, 9004};
	_cleanup_session_ struct fr_session a = {0}, b = {0};

	assert_int_equal(fr_session_add_event(&a, &aux, "intel_pt//", old_ids, 3, NULL), 0);
	describe_anew(&a, 1);
	assert_int_equal(fr_session_add_event(&b, &aux, "intel_pt//", new_ids, 3, NULL), 0);
	describe_anew(&b, 2);
	assert_int_equal(fr_session_add_older_events(&b, &a), 0);
	/* The CPU with the id 9002 has gone offline: the ring can have records of it. */
	assert_int_equal(b.n_events, 2 * (EVENTS + 2));
	assert_int_equal(count_ids(&b), 2 * (EVENTS + 1) * CPUS + 4);
	fr_session_close_events(&b, 5);
	assert_int_equal(b.events[0].until_ns, 0);
	fr_session_deinit(&a);
	a = b;
	b = (struct fr_session){0};
	/* All ids of the event stay. */
	assert_int_equal(fr_session_add_event(&b, &aux, "intel_pt//", new_ids, 3, NULL), 0);
	describe_anew(&b, 3);
	fr_session_drop_closed_events(&a, 5);
	assert_int_equal(fr_session_add_older_events(&b, &a), 0);
	assert_int_equal(count_ids(&b), 2 * (EVENTS + 1) * CPUS + 3);
	assert_int_equal(fr_session_join_equal_events(&b), 0);
	assert_int_equal(b.n_events, EVENTS + 2);
}

TEST(sessions_of_one_recording_share_an_id)
{
	_cleanup_session_ struct fr_session a = {0}, b = {0};

	describe_anew(&a, 1);
	describe_anew(&b, 2);
	assert_false(fr_session_shares_id(&a, &b));
	assert_int_equal(fr_session_add_older_events(&b, &a), 0);
	assert_true(fr_session_shares_id(&a, &b));
	assert_true(fr_session_shares_id(&b, &a));
}

TEST(sideband_has_stacks_if_another_event_has)
{
	for (uint64_t stacks = 0; stacks <= PERF_SAMPLE_CALLCHAIN; stacks += PERF_SAMPLE_CALLCHAIN) {
		const uint64_t type = PERF_SAMPLE_TIME | stacks;
		const struct perf_event_attr sideband = {.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_DUMMY,
			.sample_type = PERF_SAMPLE_TIME};
		const struct perf_event_attr sampled = {.type = PERF_TYPE_TRACEPOINT, .sample_type = type};
		const struct perf_event_attr plain = {.sample_type = PERF_SAMPLE_TIME};
		_cleanup_session_ struct fr_session s = {0};

		assert_int_equal(fr_session_add_event(&s, &sampled, "sampled", NULL, 0, NULL), 0);
		assert_int_equal(fr_session_add_event(&s, &sideband, "dummy", NULL, 0, NULL), 0);
		assert_int_equal(fr_session_add_event(&s, &plain, "plain", NULL, 0, NULL), 0);
		fr_session_set_sideband_stacks(&s);
		assert_int_equal(s.events[0].attr.sample_type, type);
		assert_int_equal(s.events[1].attr.sample_type, type);
	}
}
