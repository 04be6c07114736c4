// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the formats of tracepoints, and of filters that are compiled for BPF programs. The integration
   tests compare the results of filters with those of the kernel. */
#include "../unit.h"
#include "base/cleanup.h"
#include "capture/bpf_filter.h"
#include "perfdata/tracepoint_format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMON                                                                                               \
	"name: test\nID: 372\nformat:\n"                                                                     \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                       \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define SWITCH                                                                                               \
	COMMON "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"                               \
	       "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"                                   \
	       "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"                                    \
	       "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"                                  \
	       "\tfield:const char * text;\toffset:40;\tsize:8;\tsigned:0;\n"                                \
	       "\tfield:unsigned char small;\toffset:48;\tsize:1;\tsigned:0;\n\nprint fmt: \"\"\n"

static int parse(const char *text, struct fr_tracepoint_format *ret)
{
	_cleanup_free_ char *copy = strdup(text);

	assert_non_null(copy);
	return fr_tracepoint_format_parse(copy, ret);
}

TEST(format_has_fields_and_sizes)
{
	struct fr_tracepoint_format f;

	assert_int_equal(parse(SWITCH, &f), 0);
	assert_int_equal(f.id, 372);
	assert_int_equal(f.n_fields, 6);
	assert_int_equal(f.data_bytes, 49);
	assert_int_equal(f.entry_bytes, 56); /* padded to the alignment of long */
	assert_int_equal(f.dynamic, 0);
	assert_int_equal(fr_tracepoint_format_find(&f, "prev_comm")->kind, FR_FIELD_TEXT);
	assert_int_equal(fr_tracepoint_format_find(&f, "prev_state")->kind, FR_FIELD_NUMBER);
	assert_true(fr_tracepoint_format_find(&f, "prev_state")->is_signed);
	assert_int_equal(fr_tracepoint_format_find(&f, "text")->kind, FR_FIELD_OTHER);
	assert_null(fr_tracepoint_format_find(&f, "common_pid"));
}

TEST(format_with_dynamic_data)
{
	struct fr_tracepoint_format f;

	assert_int_equal(parse(COMMON "\tfield:__data_loc char[] a;\toffset:8;\tsize:4;\tsigned:0;\n"
				      "\tfield:__data_loc char[] b;\toffset:12;\tsize:4;\tsigned:0;\n"
				      "\tfield:int c;\toffset:16;\tsize:4;\tsigned:1;\n",
				 &f),
		0);
	assert_int_equal(f.dynamic, 12);
	assert_int_equal(f.entry_bytes, 20);
	assert_false(f.is_relative);
}

TEST(damaged_formats)
{
	static const char *const bad[] = {"", "name: x\n", "ID: 5\n\tfield:int a;\n",
		"ID: 5\n\tfield:int a;\toffset:-1;\tsize:4;\tsigned:0;\n",
		"ID: 5\n\tfield:int a;\toffset:8;\tsize:0;\tsigned:0;\n",
		"ID: 5\n\tfield:int a;\toffset:99999999;\tsize:4;\tsigned:0;\n",
		"ID: 5\n\tfield:a;\toffset:8;\tsize:4;\tsigned:0;\n"};
	struct fr_tracepoint_format f;

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		assert_int_equal(parse(bad[i], &f), -EINVAL);
}

TEST(format_with_too_many_fields)
{
	char text[16384] = "ID: 5\n";
	struct fr_tracepoint_format f;
	size_t len = strlen(text);

	for (unsigned i = 0; i <= FR_FIELDS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"\tfield:int f%u;\toffset:%u;\tsize:4;\tsigned:1;\n", i, 8 + 4 * i);
	assert_int_equal(parse(text, &f), -E2BIG);
}

static int compile(const char *text, struct fr_bpf_filter *ret, char *why, size_t why_size)
{
	struct fr_tracepoint_format f;

	assert_int_equal(parse(SWITCH, &f), 0);
	return fr_bpf_filter_compile(text, &f, ret, why, why_size);
}

/* Follow the predicates of the filter of "A && (B || !C)", which compares prev_pid with 1, prev_prio with 2
   and prev_state with 3. The bits of VALUES are the results of A, B and C. */
static bool follow(const struct fr_bpf_filter *f, unsigned values)
{
	uint32_t at = f->first, steps = 0;

	while (at < f->n) {
		const struct fr_bpf_predicate *p = &f->predicates[at];

		assert_int_equal(p->op, FR_BPF_EQ);
		assert_in_range(p->value[0], 1, 3);
		at = values >> (p->value[0] - 1) & 1 ? p->on_true : p->on_false;
		assert_true(++steps <= f->n);
	}
	assert_true(at == FR_BPF_ACCEPT || at == FR_BPF_REJECT);
	return at == FR_BPF_ACCEPT;
}

TEST(logic)
{
	struct fr_bpf_filter f;
	char why[128];

	assert_int_equal(
		compile("prev_pid == 1 && (prev_prio==2 || !(prev_state == 3))", &f, why, sizeof(why)), 0);
	assert_int_equal(f.n, 3);
	for (unsigned v = 0; v < 8; v++)
		assert_int_equal(follow(&f, v), (v & 1) && ((v & 2) || !(v & 4)));
	assert_int_equal(
		compile("prev_pid == 1 || prev_prio != 2 && prev_state == 3", &f, why, sizeof(why)), 0);
	for (unsigned v = 0; v < 8; v++)
		assert_int_equal(follow(&f, v), (v & 1) || (!(v & 2) && (v & 4)));
}

TEST(numbers_have_the_size_and_the_sign_of_their_field)
{
	struct fr_bpf_filter f;
	char why[128];

	assert_int_equal(compile("prev_pid < -1", &f, why, sizeof(why)), 0);
	assert_true(f.predicates[0].is_signed);
	assert_int_equal(f.predicates[0].shift, 32);
	assert_int_equal(f.predicates[0].offset, 24);
	assert_true(f.predicates[0].value[0] == UINT64_MAX);
	assert_int_equal(compile("small == 0x1ff", &f, why, sizeof(why)), 0);
	assert_int_equal(f.predicates[0].shift, 56);
	assert_true(f.predicates[0].value[0] == 0xff); /* as the kernel */
}

TEST(texts)
{
	struct fr_bpf_filter f;
	char why[128];

	assert_int_equal(compile("prev_comm == \"bash\"", &f, why, sizeof(why)), 0);
	assert_int_equal(f.predicates[0].op, FR_BPF_TEXT);
	assert_memory_equal(f.predicates[0].value, "bash", 5);
	assert_true(
		f.predicates[0].mask[0] == 0xffffffffffULL && !f.predicates[0].mask[1]); /* with the NUL */
	assert_int_equal(compile("comm ~ 'ba*'", &f, why, sizeof(why)), 0);
	assert_int_equal(f.predicates[0].source, FR_BPF_COMM);
	assert_true(f.predicates[0].mask[0] == 0xffff);
	assert_int_equal(compile("CPU == 3", &f, why, sizeof(why)), 0);
	assert_int_equal(f.predicates[0].source, FR_BPF_CPU);
}

TEST(filters_that_programs_cannot_evaluate)
{
	static const struct {
		const char *filter, *why;
	} bad[] = {{"prev_comm ~ \"*sh\"", "pattern"}, {"prev_comm ~ \"a?\"", "pattern"},
		{"prev_comm ~ \"!a*\"", "pattern"}, {"text == \"a\"", "type"}, {"nothing == 1", "nothing"},
		{"prev_pid", "operator"}, {"prev_pid == ", "number"}, {"prev_pid == 1x", "number"},
		{"(prev_pid == 1", "parenthesis"}, {"prev_pid == 1)", "not known"},
		{"prev_comm == \"bash", "quote"}, {"prev_comm == bash", "type"},
		{"prev_pid == \"1\"", "type"}, {"prev_comm == \"a name that is too long\"", "bytes"},
		{"", "field"}};
	struct fr_bpf_filter f;
	char why[128];

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		assert_int_equal(compile(bad[i].filter, &f, why, sizeof(why)), -EOPNOTSUPP);
		if (!strstr(why, bad[i].why))
			fail_msg("%s: %s", bad[i].filter, why);
	}
}

/* Write PIECE so often that the result is larger than any limit. */
static char *repeat(const char *piece, unsigned times, const char *last)
{
	char *s = calloc(times + 1, strlen(piece) + strlen(last) + 1);

	assert_non_null(s);
	for (unsigned i = 0; i < times; i++)
		strcat(s, piece);
	return strcat(s, last);
}

TEST(long_and_deep_filters)
{
	_cleanup_free_ char *many = repeat("prev_pid == 1 || ", 31, "prev_pid == 1"),
			    *too_many = repeat("prev_pid == 1 || ", 32, "prev_pid == 1"),
			    *deep = repeat("(", 10000, "prev_pid == 1"),
			    *not = repeat("!", 10000, "prev_pid == 1");
	struct fr_bpf_filter f;
	char why[128];

	assert_int_equal(compile(many, &f, why, sizeof(why)), 0);
	assert_int_equal(f.n, 32);
	assert_int_equal(compile(too_many, &f, why, sizeof(why)), -EOPNOTSUPP);
	assert_int_equal(compile(deep, &f, why, sizeof(why)), -EOPNOTSUPP);
	assert_int_equal(compile(not, &f, why, sizeof(why)), -EOPNOTSUPP);
}
