// SPDX-License-Identifier: GPL-2.0-or-later
#include "synthetic.h"
#include "base/cleanup.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/tracing_data.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void test_strings(void **state)
{
	_cleanup_session_ struct fr_session s = {0};
	char text[130];
	uint32_t len;

	for (size_t n = 0; n < sizeof(text); n++) {
		memset(text, 'x', n);
		text[n] = '\0';
		assert_int_equal(fr_feature_set_string(&s, FR_FEATURE_HOSTNAME, text), 0);
		memcpy(&len, s.features[FR_FEATURE_HOSTNAME].data, 4);
		assert_int_equal(len % 64, 0);
		assert_int_equal(len, (n / 64 + 1) * 64);
		assert_int_equal(s.features[FR_FEATURE_HOSTNAME].len, 4 + len);
		assert_string_equal(fr_feature_get_string(&s, FR_FEATURE_HOSTNAME), text);
	}
}

static void test_broken_strings(void **state)
{
	_cleanup_session_ struct fr_session s = {0};
	struct fr_buf *b = &s.features[FR_FEATURE_ARCH];

	assert_null(fr_feature_get_string(&s, FR_FEATURE_ARCH));
	assert_int_equal(fr_buf_append(b, "\4\0\0", 3), 0);
	assert_null(fr_feature_get_string(&s, FR_FEATURE_ARCH));
	assert_int_equal(fr_buf_append(b, "\0abc", 4), 0); /* four bytes promised, three there */
	assert_null(fr_feature_get_string(&s, FR_FEATURE_ARCH));
	assert_int_equal(fr_buf_append(b, "d", 1), 0); /* no NUL */
	assert_null(fr_feature_get_string(&s, FR_FEATURE_ARCH));
	b->data[7] = '\0';
	assert_string_equal(fr_feature_get_string(&s, FR_FEATURE_ARCH), "abc");
}

static void test_build_id_records(void **state)
{
	_cleanup_session_ struct fr_session s = {0};
	const struct fr_buf *b = &s.features[FR_FEATURE_BUILD_ID];
	uint8_t id[21] = {1, 2, 3};
	char path[5000];
	size_t at = 0, n = 0;

	memset(path, 'p', sizeof(path));
	for (size_t len = 0; len < 200; len += 7) {
		path[len] = '\0';
		assert_int_equal(fr_feature_add_build_id(&s, PERF_RECORD_MISC_USER, -1, id, 20, path), 0);
		path[len] = 'p';
	}
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
	path[4999] = '\0';
	assert_int_equal(fr_feature_add_build_id(&s, 1, -1, id, 20, path), -ENAMETOOLONG);
	assert_int_equal(fr_feature_add_build_id(&s, 1, -1, id, 21, "x"), -EINVAL);
	assert_int_equal(fr_feature_add_build_id(&s, 1, -1, id, 0, "x"), -EINVAL);
	assert_int_equal(b->len, at);
}

static void test_notes(void **state)
{
	/* Another owner's note of type 3 first, then the one that counts. */
	static const uint8_t notes[] = {4, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 'X', 'e', 'n', 0, 1, 2, 3, 4, 5,
		0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xaa, 0xbb, 0xcc, 0};
	uint8_t id[20];

	assert_int_equal(fr_build_id_from_notes(notes, sizeof(notes), 4, id), 3);
	assert_memory_equal(id, "\xaa\xbb\xcc", 3);
	for (size_t len = 0; len < sizeof(notes); len++) {
		_cleanup_free_ uint8_t *exact = malloc(len ? len : 1);

		memcpy(exact, notes, len);
		/* The last byte is padding. */
		assert_int_equal(
			fr_build_id_from_notes(exact, len, 4, id), len == sizeof(notes) - 1 ? 3 : -ENOENT);
	}
}

static void test_notes_aligned_to_8(void **state)
{
	/* A property, as linkers put one before it: of 9 bytes, and 7 of padding. */
	static const uint8_t notes[] = {4, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4, 5,
		6, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xaa,
		0xbb};
	uint8_t id[20];

	assert_int_equal(fr_build_id_from_notes(notes, sizeof(notes), 8, id), 2);
	assert_memory_equal(id, "\xaa\xbb", 2);
	assert_int_equal(fr_build_id_from_notes(notes, sizeof(notes) - 1, 8, id), -ENOENT);
}

static void test_session_copy(void **state)
{
	_cleanup_session_ struct fr_session s = {0}, copy = {0};

	assert_true(synthetic_session(&s, false));
	assert_int_equal(fr_session_copy(&s, &copy), 0);
	assert_int_equal(copy.n_events, 2);
	assert_string_equal(copy.events[1].name, "bpf-output");
	assert_int_equal(copy.events[1].n_ids, 2);
	assert_int_equal(copy.events[1].ids[1], synthetic_id(1, 1));
	assert_int_equal(fr_event_desc_add_id(&copy.events[1], 77), 0);
	assert_int_equal(s.events[1].n_ids, 2);
	for (int f = 0; f < _FR_FEATURE_MAX; f++) {
		assert_int_equal(s.features[f].len, copy.features[f].len);
		if (s.features[f].len)
			assert_memory_equal(s.features[f].data, copy.features[f].data, s.features[f].len);
	}
}

static void append_formats(struct fr_buf *b, const char *system, const char *const *formats, uint32_t n)
{
	assert_int_equal(fr_buf_append(b, system, strlen(system) + 1), 0);
	assert_int_equal(fr_buf_append_u32(b, n), 0);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(fr_buf_append_u64(b, strlen(formats[i])), 0);
		assert_int_equal(fr_buf_append(b, formats[i], strlen(formats[i])), 0);
	}
}

/* A blob of version 0.6, or 0.5, which ends before the command lines. */
static void make_blob(
	struct fr_buf *b, const char *version, const char *system, const char *const *formats, uint32_t n)
{
	assert_int_equal(fr_buf_append(b, "\27\10\104tracing", 10), 0);
	assert_int_equal(fr_buf_append(b, version, 4), 0);
	assert_int_equal(fr_buf_append(b, (uint8_t[]){0, sizeof(long)}, 2), 0);
	assert_int_equal(fr_buf_append_u32(b, (uint32_t)sysconf(_SC_PAGESIZE)), 0);
	assert_int_equal(fr_buf_append(b, "header_page\0\2\0\0\0\0\0\0\0hp", 22), 0);
	assert_int_equal(fr_buf_append(b, "header_event\0\2\0\0\0\0\0\0\0he", 23), 0);
	assert_int_equal(fr_buf_append_u32(b, 0), 0);
	assert_int_equal(fr_buf_append_u32(b, 1), 0);
	append_formats(b, system, formats, n);
	assert_int_equal(fr_buf_append(b, "\0\0\0\0\1\0\0\0p", 9), 0);
	if (version[2] == '6')
		assert_int_equal(fr_buf_append_u64(b, 0), 0);
}

static void test_unite(void **state)
{
	static const char *const a_formats[] = {"name: switch", "name: wakeup"};
	static const char *const b_formats[] = {"name: wakeup", "name: fork"};
	static const char *const c_formats[] = {"name: sys_enter"};
	_cleanup_buf_ struct fr_buf a = {0}, b = {0}, c = {0}, all = {0}, empty = {0};

	make_blob(&a, "0.6", "sched", a_formats, 2);
	make_blob(&b, "0.6", "sched", b_formats, 2);
	make_blob(&c, "0.5", "raw_syscalls", c_formats, 1);
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
	assert_int_equal(fr_tracing_data_unite(&all, &b), 0); /* nothing new */
	assert_non_null(memmem(all.data, all.len, "sched\0\3\0\0\0", 10));
}

static void test_unite_refuses_broken(void **state)
{
	static const char *const formats[] = {"name: switch", "name: wakeup"};
	_cleanup_buf_ struct fr_buf good = {0}, a = {0};

	make_blob(&good, "0.6", "sched", formats, 2);
	assert_int_equal(fr_buf_append(&a, good.data, good.len), 0);
	for (size_t len = 1; len < good.len; len++) {
		_cleanup_buf_ struct fr_buf cut = {0};
		_cleanup_free_ uint8_t *exact = malloc(len);

		memcpy(exact, good.data, len);
		cut = (struct fr_buf){TAKE_PTR(exact), len, len};
		assert_int_equal(fr_tracing_data_unite(&a, &cut), -EBADMSG);
	}
	for (size_t bit = 0; bit < good.len * 8; bit++) {
		_cleanup_buf_ struct fr_buf bad = {0}, into = {0};
		int r;

		assert_int_equal(fr_buf_append(&bad, good.data, good.len), 0);
		bad.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		r = fr_tracing_data_unite(&into, &bad);
		assert_true(r == 0 || r == -EBADMSG);
	}
	assert_int_equal(a.len, good.len);
	assert_memory_equal(a.data, good.data, a.len);
}

/* A format of one's own: beside those of a kernel, and where there are none. */
static void test_add(void **state)
{
	static const char *const formats[] = {"name: switch"};
	static const char own[] = "name: own";
	_cleanup_buf_ struct fr_buf section = {0}, alone = {0}, broken = {0}, all = {0};
	size_t len;

	make_blob(&section, "0.6", "sched", formats, 1);
	len = section.len;
	assert_int_equal(fr_tracing_data_add_format(&section, "mine", own, sizeof(own) - 1), 0);
	assert_int_equal(section.len, len + sizeof("mine") + 4 + 8 + sizeof(own) - 1);
	assert_non_null(memmem(section.data, section.len, "name: switch", 12));
	len = section.len;
	assert_int_equal(fr_tracing_data_add_format(&section, "mine", own, sizeof(own) - 1), 0);
	assert_int_equal(section.len, len); /* once */

	assert_int_equal(fr_tracing_data_add_format(&alone, "mine", own, sizeof(own) - 1), 0);
	assert_non_null(memmem(alone.data, alone.len, "field: local_t commit;", 22));
	assert_non_null(memmem(alone.data, alone.len, "mine\0\1\0\0\0\11\0\0\0\0\0\0\0name: own", 26));
	assert_int_equal(fr_tracing_data_unite(&all, &alone), 0);
	assert_int_equal(fr_tracing_data_unite(&all, &section), 0);
	assert_non_null(memmem(all.data, all.len, "name: switch", 12));

	assert_int_equal(fr_buf_append(&broken, section.data, section.len / 2), 0);
	assert_int_equal(fr_tracing_data_add_format(&broken, "mine", own, sizeof(own) - 1), -EBADMSG);
	assert_int_equal(broken.len, section.len / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_broken_strings),
		cmocka_unit_test(test_build_id_records),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_notes_aligned_to_8),
		cmocka_unit_test(test_session_copy),
		cmocka_unit_test(test_unite),
		cmocka_unit_test(test_unite_refuses_broken),
		cmocka_unit_test(test_add),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
