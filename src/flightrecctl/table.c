// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"

#include <stdarg.h>
#include <string.h>

#define MAX_COLUMNS 16

struct ctl_table {
	size_t n_columns, n_cells, cap;
	bool right[MAX_COLUMNS];
	char **cells; /* the headings first */
};

static void add(struct ctl_table *t, char *text)
{
	if (text && t->n_cells == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		char **cells = reallocarray(t->cells, cap, sizeof(*cells));

		if (!cells) {
			free(text);
			return;
		}
		t->cells = cells;
		t->cap = cap;
	}
	if (text) {
		ctl_clean(text);
		t->cells[t->n_cells++] = text;
	}
}

struct ctl_table *ctl_table_new(const char *columns)
{
	struct ctl_table *t = calloc(1, sizeof(*t));

	while (t && *columns && t->n_columns < MAX_COLUMNS) {
		size_t len;

		t->right[t->n_columns] = *columns == '>';
		columns += *columns == '>';
		len = strcspn(columns, "|");
		add(t, strndup(columns, len));
		t->n_columns++;
		columns += len + (columns[len] == '|');
	}
	return t;
}

void ctl_table_cell(struct ctl_table *t, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	if (!t)
		return;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n >= 0)
		add(t, text);
}

size_t ctl_table_rows(const struct ctl_table *t)
{
	return t && t->n_columns ? t->n_cells / t->n_columns - 1 : 0;
}

/* Characters, not bytes: continuation bytes of UTF-8 take no room. */
static size_t width(const char *s)
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
		int blanks = (int)(widths[c] - width(s));

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

	if (!t)
		return;
	for (size_t i = legend ? 0 : t->n_columns; i < t->n_cells; i++)
		widths[i % t->n_columns] = FR_MAX(widths[i % t->n_columns], width(t->cells[i]));
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
