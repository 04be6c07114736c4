/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Tables for people, on standard output. Not thread-safe. Control characters in cells become '?', because the
   texts can come from other programs and machines. */

#include <stdbool.h>
#include <stddef.h>

struct fr_table;
/* Creates a table. COLUMNS has the headings, with '|' between them. If a heading begins with '>', its column
   is aligned to the right. If there is no memory, fr_table_print() says so. */
struct fr_table *fr_table_new(const char *columns);
void fr_table_cell(struct fr_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a cell for each text. NULL ends the texts. */
void fr_table_texts(struct fr_table *t, ...) __attribute__((sentinel));
size_t fr_table_rows(const struct fr_table *t);
/* Prints the table, without blanks at the ends of lines, and frees T. If LEGEND is true, also prints the
   headings, between the sequences BOLD and NORMAL. Returns 0; or -ENOMEM, without any output. */
int fr_table_print(struct fr_table *t, bool legend, const char *bold, const char *normal);
