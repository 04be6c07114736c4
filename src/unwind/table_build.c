// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/table_build.h"
#include "unwind/grow.h"
#include "unwind/table_rule.h"
#include "base/cleanup.h"

#include <errno.h>

#define ROWS_MAX (8u << 20) /* 32 MiB: half of the memory for all tables */
/* The pages of an object must fit into a chunk. This is 8 GiB of code. */
#define PAGES_MAX (FR_UNWIND_CHUNK_BYTES / (uint32_t)sizeof(struct fr_unwind_page))
#define PAGE_MASK ((1u << FR_UNWIND_PAGE_BITS) - 1)

#define HASH_BITS 16
#define HASH_SLOTS (1u << HASH_BITS)
/* A file can choose its rules so that they have the same hash. This bounds the time. With a hash table that
   is half full, no honest file needs so many probes. */
#define PROBES_MAX 256

struct builder {
	struct fr_unwind_table t;
	size_t rows_cap;
	size_t pages_cap, rules_cap;
	uint16_t rule;		    /* of the last row */
	uint16_t slots[HASH_SLOTS]; /* index of a rule; 0: free */
};

static uint32_t hash_rule(const struct fr_unwind_rule *rule)
{
	uint64_t v[3], h = 0;

	_Static_assert(sizeof(v) == sizeof(*rule), "a rule has no padding");
	memcpy(v, rule, sizeof(v));
	for (unsigned i = 0; i < FR_ARRAY_SIZE(v); i++) {
		h = (h ^ v[i]) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	return (uint32_t)(h & (HASH_SLOTS - 1));
}

/* Finds the index of RULE, or adds the rule. Returns 0 if there is no room: this is the rule for "no rule".
   Returns -ENOMEM. */
static int find_rule(struct builder *b, const struct fr_unwind_rule *rule)
{
	uint32_t at = hash_rule(rule);
	unsigned probes = 0;
	int r;

	for (; b->slots[at] != 0; at = (at + 1) & (HASH_SLOTS - 1)) {
		if (memcmp(&b->t.rules[b->slots[at]], rule, sizeof(*rule)) == 0)
			return b->slots[at];
		if (++probes == PROBES_MAX)
			return 0;
	}
	r = unwind_grow(
		(void **)&b->t.rules, sizeof(*rule), b->t.n_rules, FR_UNWIND_RULES_MAX, &b->rules_cap);
	if (r < 0)
		return r == -E2BIG ? 0 : r;
	b->slots[at] = (uint16_t)b->t.n_rules;
	b->t.rules[b->t.n_rules] = *rule;
	return (int)b->t.n_rules++;
}

static int append_row(struct builder *b, uint32_t pc, uint16_t rule)
{
	int r = unwind_grow((void **)&b->t.rows, sizeof(*b->t.rows), b->t.n_rows, ROWS_MAX, &b->rows_cap);

	if (r < 0)
		return r;
	b->t.rows[b->t.n_rows++] = (struct fr_unwind_row){(uint16_t)pc, rule};
	b->t.pages[b->t.n_pages - 1].n_rows++;
	return 0;
}

/* Adds pages until the last one is NUMBER. A page that begins with a rule gets a row for it. */
static int enter_page(struct builder *b, uint64_t number)
{
	int r = 0;

	if (b->t.n_pages == 0)
		b->t.first_page = (uint32_t)number;
	while (r == 0 && b->t.first_page + (uint64_t)b->t.n_pages <= number) {
		r = unwind_grow(
			(void **)&b->t.pages, sizeof(*b->t.pages), b->t.n_pages, PAGES_MAX, &b->pages_cap);
		if (r < 0)
			return r;
		b->t.pages[b->t.n_pages++] = (struct fr_unwind_span){(uint32_t)b->t.n_rows, 0};
		if (b->rule != 0 && b->t.first_page + (uint64_t)b->t.n_pages <= number)
			r = append_row(b, 0, b->rule);
	}
	return r;
}

/* From the address PC on, RULE is valid. PC is greater than in the last call. */
static int set_rule(struct builder *b, uint64_t pc, uint16_t rule)
{
	uint32_t low = (uint32_t)(pc & PAGE_MASK);
	int r;

	if (rule == b->rule)
		return 0;
	/* If the code ends with a page, the next page is not needed. */
	r = enter_page(b, rule == 0 ? (pc - 1) >> FR_UNWIND_PAGE_BITS : pc >> FR_UNWIND_PAGE_BITS);
	if (r == 0 && low != 0 && b->t.pages[b->t.n_pages - 1].n_rows == 0)
		r = append_row(b, 0, b->rule);
	if (r == 0 && (rule != 0 || low != 0))
		r = append_row(b, low, rule);
	else if (r == 0 && b->t.pages[b->t.n_pages - 1].n_rows == 0)
		r = append_row(b, 0, b->rule);
	b->rule = rule;
	return r;
}

static int add_row(void *arg, uint64_t pc, const struct cfi_cie *cie, const struct cfi_state *s)
{
	struct builder *b = arg;
	struct fr_unwind_rule rule;
	int index = s && unwind_rule_make(cie, s, &rule) ? find_rule(b, &rule) : 0;

	if (index < 0)
		return index;
	b->t.skipped += index == 0;
	return set_rule(b, pc, (uint16_t)index);
}

static int add_entries(struct builder *b, const struct cfi_entries *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < e->n_fdes; i++) {
		const struct cfi_fde *fde = &e->fdes[i];

		r = cfi_run_fde(fde, &e->cies[fde->cie], add_row, b);
		if (r == 0 && (i + 1 == e->n_fdes || e->fdes[i + 1].begin > fde->end))
			r = set_rule(b, fde->end, 0);
	}
	return r;
}

/* Gives back the memory that was reserved for more. */
static void shrink(struct fr_unwind_table *t)
{
	void *rows = reallocarray(t->rows, t->n_rows, sizeof(*t->rows));
	void *rules = reallocarray(t->rules, t->n_rules, sizeof(*t->rules));
	void *pages = reallocarray(t->pages, t->n_pages, sizeof(*t->pages));

	t->rows = rows ?: t->rows;
	t->rules = rules ?: t->rules;
	t->pages = pages ?: t->pages;
}

int unwind_table_build(const struct cfi_entries *e, struct fr_unwind_table *ret)
{
	static const struct fr_unwind_rule none = {.kind = FR_UNWIND_NONE};
	_cleanup_free_ struct builder *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->t.skipped = e->skipped;
	r = unwind_grow((void **)&b->t.rules, sizeof(none), 0, 1, &b->rules_cap);
	if (r == 0) {
		b->t.rules[b->t.n_rules++] = none;
		r = add_entries(b, e);
	}
	if (r == 0 && b->t.n_rows == 0)
		r = 1;
	if (r != 0) {
		fr_unwind_table_deinit(&b->t);
		return r;
	}
	shrink(&b->t);
	*ret = b->t;
	return 0;
}
