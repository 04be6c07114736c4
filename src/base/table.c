// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/table.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_COLUMNS 16

struct fr_table {
	size_t n_columns, n_cells;
	bool failed; /* no memory */
	bool right[MAX_COLUMNS];
	char **cells; /* first the headings, and after them one row after the other */
};

/* Adds a cell with TEXT. From now on, the table owns TEXT, which is NULL if there is no memory. */
static void add_cell(struct fr_table *t, char *text)
{
	/* The room doubles when the number is a power of two. */
	const bool is_full = t && (t->n_cells & (t->n_cells - 1)) == 0;
	char **cells = !t	 ? NULL
		       : is_full ? reallocarray(t->cells, FR_MAX(2 * t->n_cells, (size_t)1), sizeof(*cells))
				 : t->cells;

	if (cells)
		t->cells = cells;
	if (!cells || !text) {
		if (t)
			t->failed = true;
		free(text);
		return;
	}
	fr_utf8_sanitize(text);
	t->cells[t->n_cells++] = text;
}

struct fr_table *fr_table_new(const char *columns)
{
	struct fr_table *t = calloc(1, sizeof(*t));

	while (t && *columns && t->n_columns < MAX_COLUMNS) {
		const bool right = *columns == '>';
		const size_t len = strcspn(columns, "|");

		add_cell(t, strndup(columns + right, len - right));
		t->right[t->n_columns++] = right;
		columns += len + (columns[len] == '|');
	}
	return t;
}

void fr_table_cell(struct fr_table *t, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	add_cell(t, vasprintf(&text, fmt, ap) < 0 ? NULL : text);
	va_end(ap);
}

void fr_table_texts(struct fr_table *t, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, t);
	while ((text = va_arg(ap, const char *)))
		add_cell(t, strdup(text));
	va_end(ap);
}

size_t fr_table_rows(const struct fr_table *t)
{
	return t ? t->n_cells / t->n_columns - 1 : 0;
}

/* Returns the number of characters of a UTF-8 text: all bytes except the continuation bytes count. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void print_row(const struct fr_table *t, size_t row, const size_t *widths)
{
	for (size_t c = 0; c < t->n_columns; c++) {
		const char *s = t->cells[row * t->n_columns + c];
		const int blanks = (int)(widths[c] - width_of(s));

		if (t->right[c])
			printf("%*s%s", blanks, "", s);
		else
			printf("%s%*s", s, c + 1 < t->n_columns ? blanks : 0, "");
		fputs(c + 1 < t->n_columns ? "  " : "\n", stdout);
	}
}

static void free_table(struct fr_table *t)
{
	for (size_t i = 0; t && i < t->n_cells; i++)
		free(t->cells[i]);
	if (t)
		free(t->cells);
	free(t);
}

int fr_table_print(struct fr_table *t, bool legend, const char *bold, const char *normal)
{
	size_t widths[MAX_COLUMNS] = {0};

	if (!t || t->failed) {
		free_table(t);
		return -ENOMEM;
	}
	for (size_t i = legend ? 0 : t->n_columns; i < t->n_cells; i++)
		widths[i % t->n_columns] = FR_MAX(widths[i % t->n_columns], width_of(t->cells[i]));
	if (legend) {
		fputs(bold, stdout);
		print_row(t, 0, widths);
		fputs(normal, stdout);
	}
	for (size_t row = 1; row <= fr_table_rows(t); row++)
		print_row(t, row, widths);
	free_table(t);
	return 0;
}
