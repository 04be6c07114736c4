// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The syntax of filters (kernel/trace/trace_events_filter.c):
 *
 *   either:  both { "||" both }
 *   both:    one { "&&" one }
 *   one:     "!" one  |  "(" either ")"  |  FIELD OPERATOR VALUE
 *
 * First the text becomes a tree. Then the code of a node is made when the code is known that follows each of
 * its two results. So a predicate only refers to predicates that are made already, and there are no loops.
 */
#include "capture/bpf_filter.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32u
#define NODES_MAX (4 * FR_BPF_PREDICATES_MAX)

struct node {
	enum { LEAF, NOT, AND, OR } kind;
	uint8_t left, right; /* nodes; for a leaf, `left` is its predicate */
};

struct compiler {
	const char *at;
	const struct fr_tracepoint_format *format;
	struct node nodes[NODES_MAX];
	uint32_t n_nodes, depth;
	struct fr_bpf_predicate leaves[FR_BPF_PREDICATES_MAX];
	uint32_t n_leaves;
	struct fr_bpf_filter *out;
	char *why;
	size_t why_size;
};

static int __attribute__((format(printf, 2, 3))) refuse(struct compiler *c, const char *text, ...)
{
	va_list args;

	va_start(args, text);
	vsnprintf(c->why, c->why_size, text, args);
	va_end(args);
	return -EOPNOTSUPP;
}

static bool skip_token(struct compiler *c, const char *token)
{
	c->at += strspn(c->at, " \t\n");
	if (strncmp(c->at, token, strlen(token)) != 0)
		return false;
	c->at += strlen(token);
	return true;
}

/* Returns the index of the new node, or a negative errno. */
static int add_node(struct compiler *c, unsigned kind, int left, int right)
{
	if (left < 0 || right < 0)
		return left < 0 ? left : right;
	if (c->n_nodes == NODES_MAX)
		return refuse(c, "it is too long");
	c->nodes[c->n_nodes] = (struct node){kind, (uint8_t)left, (uint8_t)right};
	return (int)c->n_nodes++;
}

/* Copies the word or the quoted text at C->at to RET. Returns its length, or a negative errno. */
static int take_word(struct compiler *c, char *ret, size_t size, bool *ret_quoted)
{
	const char *begin, *end;

	c->at += strspn(c->at, " \t\n");
	*ret_quoted = *c->at == '"' || *c->at == '\'';
	if (*ret_quoted) {
		begin = c->at + 1;
		end = strchr(begin, *c->at);
		if (!end)
			return refuse(c, "it has a quote without an end");
		c->at = end + 1;
	} else {
		begin = c->at;
		end = begin + strcspn(begin, " \t\n()&|!=<>~");
		c->at = end;
	}
	if ((size_t)(end - begin) >= size)
		return refuse(c, "it has a word of more than %zu bytes", size - 1);
	memcpy(ret, begin, (size_t)(end - begin));
	ret[end - begin] = 0;
	return (int)(end - begin);
}

static int parse_number(struct compiler *c, const struct fr_field *f, const char *word, uint64_t *ret)
{
	const unsigned shift = 64 - 8 * f->bytes;
	char *end;

	errno = 0;
	*ret = f->is_signed ? (uint64_t)strtoll(word, &end, 0) : strtoull(word, &end, 0);
	if (errno || !*word || *end)
		return refuse(c, "\"%s\" is not a number", word);
	/* as the kernel does: only the bits that the field has */
	*ret = f->is_signed ? (uint64_t)((int64_t)(*ret << shift) >> shift) : *ret << shift >> shift;
	return 0;
}

/* Sets the value and the mask of P so that a text is equal to WORD; or, if WORD ends with '*', begins with
   it. */
static int parse_text(
	struct compiler *c, const struct fr_field *f, bool is_glob, char *word, struct fr_bpf_predicate *p)
{
	size_t len = strlen(word), compared = FR_MIN(len + 1, (size_t)f->bytes);

	if (is_glob && len && word[len - 1] == '*') {
		compared = --len;
		word[len] = 0;
	}
	if (is_glob && (word[0] == '!' || strpbrk(word, "*?[\\")))
		return refuse(c, "a pattern can only have one *, at its end");
	if (f->bytes > sizeof(p->value))
		return refuse(c, "the text %s has more than %zu bytes", f->name, sizeof(p->value));
	/* A text of the whole field's length has no NUL, and never occurs. */
	if (len > f->bytes)
		return refuse(c, "the field %s has only %u bytes", f->name, f->bytes);
	p->op = FR_BPF_TEXT;
	memcpy(p->value, word, len);
	memset(p->mask, 0xff, compared);
	return 0;
}

/* Reads an operator. *RET_NOT: its result is inverted. Returns whether there is one. */
static bool take_operator(struct compiler *c, uint8_t *ret, bool *ret_not, bool *ret_glob)
{
	static const struct {
		const char *text;
		uint8_t op;
		bool is_not, is_glob;
	} operators[] = {{"==", FR_BPF_EQ, false, false}, {"!=", FR_BPF_EQ, true, false},
		{"<=", FR_BPF_LE, false, false}, {">=", FR_BPF_GE, false, false},
		{"<", FR_BPF_LT, false, false}, {">", FR_BPF_GT, false, false},
		{"&", FR_BPF_AND, false, false}, {"~", FR_BPF_EQ, false, true}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(operators); i++)
		if (skip_token(c, operators[i].text)) {
			*ret = operators[i].op;
			*ret_not = operators[i].is_not;
			*ret_glob = operators[i].is_glob;
			return true;
		}
	return false;
}

/* Finds the field NAME as the kernel does: first the tracepoint's own fields. Returns whether there is one.
 */
static bool find_field(const struct compiler *c, const char *name, struct fr_field *ret, uint8_t *ret_source)
{
	static const struct {
		const char *name;
		uint8_t source;
		struct fr_field field;
	} common[] = {
		{"CPU", FR_BPF_CPU, {"CPU", 0, 4, true, FR_FIELD_NUMBER}},
		{"cpu", FR_BPF_CPU, {"cpu", 0, 4, true, FR_FIELD_NUMBER}},
		{"COMM", FR_BPF_COMM, {"COMM", 0, 16, false, FR_FIELD_TEXT}},
		{"comm", FR_BPF_COMM, {"comm", 0, 16, false, FR_FIELD_TEXT}},
		{"common_type", FR_BPF_RAW, {"common_type", 0, 2, false, FR_FIELD_NUMBER}},
		{"common_pid", FR_BPF_RAW, {"common_pid", 4, 4, true, FR_FIELD_NUMBER}},
	};
	const struct fr_field *own = fr_tracepoint_format_find(c->format, name);

	*ret_source = FR_BPF_RAW;
	if (own) {
		*ret = *own;
		return true;
	}
	for (size_t i = 0; i < FR_ARRAY_SIZE(common); i++)
		if (!strcmp(common[i].name, name)) {
			*ret = common[i].field;
			*ret_source = common[i].source;
			return true;
		}
	return false;
}

static int parse_predicate(struct compiler *c)
{
	struct fr_bpf_predicate *p = &c->leaves[c->n_leaves];
	char name[64], value[128];
	bool is_not, is_glob, is_quoted;
	struct fr_field f;
	int r, leaf;

	if (c->n_leaves == FR_BPF_PREDICATES_MAX)
		return refuse(c, "it has more than %u comparisons", FR_BPF_PREDICATES_MAX);
	r = take_word(c, name, sizeof(name), &is_quoted);
	if (r < 0)
		return r;
	*p = (struct fr_bpf_predicate){0};
	if (!find_field(c, name, &f, &p->source))
		return refuse(c, "the field \"%s\" is not known here", name);
	if (!take_operator(c, &p->op, &is_not, &is_glob))
		return refuse(c, "the operator after %s is not known here", name);
	r = take_word(c, value, sizeof(value), &is_quoted);
	if (r < 0)
		return r;
	if (f.offset + f.bytes > FR_BPF_RAW_MAX)
		return refuse(c, "the field %s is too far from the first one", name);
	p->offset = (uint16_t)f.offset;
	if (f.kind == FR_FIELD_TEXT && is_quoted && p->op == FR_BPF_EQ) {
		r = parse_text(c, &f, is_glob, value, p);
	} else if (f.kind == FR_FIELD_NUMBER && !is_quoted && !is_glob) {
		p->shift = (uint8_t)(64 - 8 * f.bytes);
		p->is_signed = f.is_signed;
		r = parse_number(c, &f, value, &p->value[0]);
	} else {
		r = refuse(c, "the type of the field %s is not known here", name);
	}
	if (r < 0)
		return r;
	leaf = add_node(c, LEAF, (int)c->n_leaves++, 0);
	return is_not ? add_node(c, NOT, leaf, 0) : leaf;
}

static int parse_either(struct compiler *c);

static int parse_one(struct compiler *c)
{
	int r;

	if (c->depth == DEPTH_MAX)
		return refuse(c, "it has too many parentheses");
	c->depth++;
	if (skip_token(c, "!")) {
		r = add_node(c, NOT, parse_one(c), 0);
	} else if (skip_token(c, "(")) {
		r = parse_either(c);
		if (r >= 0 && !skip_token(c, ")"))
			r = refuse(c, "a parenthesis is missing");
	} else {
		r = parse_predicate(c);
	}
	c->depth--;
	return r;
}

static int parse_both(struct compiler *c)
{
	int r = parse_one(c);

	while (r >= 0 && skip_token(c, "&&"))
		r = add_node(c, AND, r, parse_one(c));
	return r;
}

static int parse_either(struct compiler *c)
{
	int r = parse_both(c);

	while (r >= 0 && skip_token(c, "||"))
		r = add_node(c, OR, r, parse_both(c));
	return r;
}

/* Makes the predicates of the node N, which go on at ON_TRUE or ON_FALSE. Returns the first one. */
static uint8_t make_node(struct compiler *c, uint8_t n, uint8_t on_true, uint8_t on_false)
{
	const struct node *node = &c->nodes[n];
	struct fr_bpf_predicate *p;

	switch (node->kind) {
	case NOT:
		return make_node(c, node->left, on_false, on_true);
	case AND:
		return make_node(c, node->left, make_node(c, node->right, on_true, on_false), on_false);
	case OR:
		return make_node(c, node->left, on_true, make_node(c, node->right, on_true, on_false));
	case LEAF:
		break;
	}
	p = &c->out->predicates[c->out->n];
	*p = c->leaves[node->left];
	p->on_true = on_true;
	p->on_false = on_false;
	return (uint8_t)c->out->n++;
}

int fr_bpf_filter_compile(const char *text, const struct fr_tracepoint_format *f, struct fr_bpf_filter *ret,
	char *why, size_t why_size)
{
	struct compiler c = {.at = text, .format = f, .out = ret, .why = why, .why_size = why_size};
	int root = parse_either(&c);

	if (root < 0)
		return root;
	if (c.at[strspn(c.at, " \t\n")])
		return refuse(&c, "\"%.40s\" is not known here", c.at);
	*ret = (struct fr_bpf_filter){0};
	ret->first = make_node(&c, (uint8_t)root, FR_BPF_ACCEPT, FR_BPF_REJECT);
	return 0;
}
