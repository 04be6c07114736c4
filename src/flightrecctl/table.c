// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_COLUMNS 16

struct ctl_table {
	size_t n_columns, n_cells;
	bool right[MAX_COLUMNS];
	char **cells; /* first the headings, and after them one row after the other */
};

/* Adds a cell with TEXT. From now on, the table owns TEXT. If TEXT is NULL, there is no memory, so the
   function ends the program. */
static void add_cell(struct ctl_table *t, char *text)
{
	t->cells = reallocarray(t->cells, t->n_cells + 1, sizeof(*t->cells));
	if (!t->cells || !text)
		exit(ctl_fail(NULL, -ENOMEM));
	ctl_replace_control_characters(text);
	t->cells[t->n_cells++] = text;
}

struct ctl_table *ctl_table_new(const char *columns)
{
	struct ctl_table *t = calloc(1, sizeof(*t));

	if (!t)
		exit(ctl_fail(NULL, -ENOMEM));
	while (*columns && t->n_columns < MAX_COLUMNS) {
		const bool right = *columns == '>';
		const size_t len = strcspn(columns, "|");

		add_cell(t, strndup(columns + right, len - right));
		t->right[t->n_columns++] = right;
		columns += len + (columns[len] == '|');
	}
	return t;
}

void ctl_table_cell(struct ctl_table *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_cell(t, ctl_vformat(fmt, ap));
	va_end(ap);
}

void ctl_table_texts(struct ctl_table *t, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, t);
	while ((text = va_arg(ap, const char *)))
		add_cell(t, strdup(text));
	va_end(ap);
}

size_t ctl_table_rows(const struct ctl_table *t)
{
	return t->n_cells / t->n_columns - 1;
}

/* Returns the number of characters of a UTF-8 text: all bytes except the continuation bytes count. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void print_row(const struct ctl_table *t, size_t row, const size_t *widths)
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

void ctl_table_print(struct ctl_table *t, bool legend)
{
	size_t widths[MAX_COLUMNS] = {0};

	for (size_t i = legend ? 0 : t->n_columns; i < t->n_cells; i++)
		widths[i % t->n_columns] = FR_MAX(widths[i % t->n_columns], width_of(t->cells[i]));
	if (legend) {
		fputs(ctl_colour(CTL_BOLD), stdout);
		print_row(t, 0, widths);
		fputs(ctl_colour(CTL_NORMAL), stdout);
	}
	for (size_t row = 1; row <= ctl_table_rows(t); row++)
		print_row(t, row, widths);
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}
