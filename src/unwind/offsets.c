// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/offsets.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define SEGMENTS_MAX 64
#define PHNUM_MAX 1024
#define PAGES_MAX (FR_UNWIND_CHUNK_BYTES / sizeof(struct fr_unwind_page))
#define PAGE_BYTES (1ULL << FR_UNWIND_PAGE_BITS)

/* The table in the making. From the last row on, RULE holds. */
struct build {
	struct fr_buf rows, pages;
	uint32_t first_page, n_pages;
	uint32_t rule;
};

static int begin_page(struct build *b)
{
	const struct fr_unwind_span span = {(uint32_t)(b->rows.len / sizeof(struct fr_unwind_row)), 0};

	b->n_pages++;
	return fr_buf_append(&b->pages, &span, sizeof(span));
}

static int add_row(struct build *b, uint64_t offset, uint32_t rule)
{
	struct fr_unwind_span *span = (struct fr_unwind_span *)(void *)b->pages.data + b->n_pages - 1;
	const struct fr_unwind_row row = {(uint16_t)offset, (uint16_t)rule};
	int r = fr_buf_append(&b->rows, &row, sizeof(row));

	span->n_rows += r == 0;
	return r;
}

/* Makes pages until OFFSET is in the last one. The rule holds at the begin of each. A page without any rule
   has no row. */
static int go_to(struct build *b, uint64_t offset)
{
	const uint64_t page = offset >> FR_UNWIND_PAGE_BITS;
	int r = 0;

	while (r == 0 && b->first_page + (uint64_t)b->n_pages <= page) {
		r = begin_page(b);
		if (r == 0 && (b->rule || b->first_page + (uint64_t)b->n_pages > page))
			r = add_row(b, 0, b->rule);
	}
	return r;
}

static int put(struct build *b, uint64_t offset, uint32_t rule)
{
	struct fr_unwind_row *last;
	int r = go_to(b, offset);

	if (r < 0 || rule == b->rule)
		return r;
	b->rule = rule;
	last = (struct fr_unwind_row *)(void *)(b->rows.data + b->rows.len) - 1;
	if (last->pc != (uint16_t)offset)
		return add_row(b, offset, rule);
	last->rule = (uint16_t)rule;
	return 0;
}

static uint32_t rule_at(const struct fr_unwind_table *t, uint64_t address)
{
	return (uint32_t)(fr_unwind_table_find(t, address) - t->rules);
}

/* Puts the rows of page I of T that are behind the first address of S. */
static int put_page(
	struct build *b, const struct fr_unwind_table *t, uint32_t i, const struct fr_unwind_segment *s)
{
	const struct fr_unwind_span *span = &t->pages[i];
	const uint64_t page = (uint64_t)(t->first_page + i) << FR_UNWIND_PAGE_BITS;
	int r = 0;

	if (!span->n_rows && page > s->address && page - s->address < s->bytes)
		return put(b, page - s->address + s->offset, 0);
	for (uint32_t k = 0; r == 0 && k < span->n_rows; k++) {
		const struct fr_unwind_row *row = &t->rows[span->first_row + k];
		const uint64_t address = page + row->pc;

		if (address > s->address && address - s->address < s->bytes)
			r = put(b, address - s->address + s->offset, row->rule);
	}
	return r;
}

static int put_segment(struct build *b, const struct fr_unwind_table *t, const struct fr_unwind_segment *s)
{
	const uint64_t first = s->address >> FR_UNWIND_PAGE_BITS;
	const uint64_t last = (s->address + s->bytes - 1) >> FR_UNWIND_PAGE_BITS;
	int r = put(b, s->offset, rule_at(t, s->address));

	for (uint32_t i = 0; r == 0 && i < t->n_pages; i++)
		if (t->first_page + (uint64_t)i >= first && t->first_page + (uint64_t)i <= last)
			r = put_page(b, t, i, s);
	return r < 0 ? r : put(b, s->offset + s->bytes, 0);
}

static int rebuild(struct fr_unwind_table *t, const struct fr_unwind_segment *s, size_t n)
{
	const uint64_t end = s[n - 1].offset + s[n - 1].bytes;
	struct build b = {.first_page = (uint32_t)(s[0].offset >> FR_UNWIND_PAGE_BITS)};
	int r = (end >> FR_UNWIND_PAGE_BITS) - b.first_page >= PAGES_MAX ? -E2BIG : 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = put_segment(&b, t, &s[i]);
	if (r < 0) {
		fr_buf_deinit(&b.rows);
		fr_buf_deinit(&b.pages);
		return r;
	}
	free(t->rows);
	free(t->pages);
	t->rows = (void *)b.rows.data;
	t->pages = (void *)b.pages.data;
	t->n_rows = b.rows.len / sizeof(*t->rows);
	t->first_page = b.first_page;
	t->n_pages = b.n_pages;
	return 0;
}

int fr_unwind_offsets_apply_segments(struct fr_unwind_table *t, const struct fr_unwind_segment *s, size_t n)
{
	const uint64_t shift = n ? s[0].address - s[0].offset : 0;
	bool is_same = true;

	if (!n)
		return -ENOEXEC;
	for (size_t i = 0; i < n; i++)
		is_same = is_same && s[i].address - s[i].offset == shift;
	if (!is_same || shift % PAGE_BYTES || (shift >> FR_UNWIND_PAGE_BITS) > t->first_page)
		return rebuild(t, s, n);
	t->first_page -= (uint32_t)(shift >> FR_UNWIND_PAGE_BITS);
	return 0;
}

static int compare_offsets(const void *a, const void *b)
{
	const struct fr_unwind_segment *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Reads the executable segments. Returns their number, or a negative errno. */
static int read_segments(int fd, struct fr_unwind_segment *ret, size_t max)
{
	Elf64_Phdr *p = NULL;
	_cleanup_free_ Elf64_Phdr *headers = NULL;
	Elf64_Ehdr e;
	ssize_t len;
	int n = 0;

	len = fr_pread_all(fd, &e, sizeof(e), 0);
	if (len < 0)
		return (int)len;
	if (len < (ssize_t)sizeof(e) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
		e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(*p) || e.e_phnum > PHNUM_MAX ||
		e.e_phoff > INT64_MAX / 2)
		return -ENOEXEC;
	headers = calloc(e.e_phnum + 1U, sizeof(*headers));
	if (!headers)
		return -ENOMEM;
	len = fr_pread_all(fd, headers, e.e_phnum * sizeof(*headers), (off_t)e.e_phoff);
	if (len < 0)
		return (int)len;
	for (p = headers; (char *)(p + 1) <= (char *)headers + len && (size_t)n < max; p++)
		if (p->p_type == PT_LOAD && p->p_flags & PF_X && p->p_filesz)
			ret[n++] = (struct fr_unwind_segment){p->p_vaddr, p->p_offset, p->p_filesz};
	return n;
}

int fr_unwind_offsets_apply(struct fr_unwind_table *t, int fd)
{
	struct fr_unwind_segment s[SEGMENTS_MAX];
	const int n = read_segments(fd, s, SEGMENTS_MAX);
	uint64_t end = 0;

	if (n < 0)
		return n;
	qsort(s, (size_t)n, sizeof(*s), compare_offsets);
	for (int i = 0; i < n; i++) {
		const uint64_t max = (uint64_t)1 << (FR_UNWIND_PAGE_BITS + 31);

		if (s[i].offset < end || s[i].offset > max || s[i].bytes > max ||
			s[i].address > UINT64_MAX - s[i].bytes)
			return -ENOEXEC;
		end = s[i].offset + s[i].bytes;
	}
	return fr_unwind_offsets_apply_segments(t, s, (size_t)n);
}
