/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Writes the parts of the page: text, and bytes in base64. Any program may have written a name, so a text has
   no control characters and no invalid UTF-8, and cannot end the element that it is in. Errors are seen by
   ferror(). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FR_PAGE_NAME_MAX 400 /* bytes: names of C++ functions can have thousands */

/* Writes text of HTML. Ends of lines stay; other control characters and invalid UTF-8 become U+FFFD. */
void fr_page_html(FILE *out, const char *text);
/* Writes a name as a string of JSON. One of more than FR_PAGE_NAME_MAX bytes is cut, and ends in "…". */
void fr_page_name(FILE *out, const char *name, size_t len);
/* Writes base64, without quotes. */
void fr_page_base64(FILE *out, const void *data, size_t len);

/* These two are in page.c. The first one writes the page up to its title, with the policy and the style. If
   HAS_SCRIPT is true, the program of the page may run. The header is still open. */
void fr_page_head(FILE *out, const char *title, bool has_script);
/* Writes the explanation TEXT, which changes. Each line is an element, so that the rest of a long one can be
   indented. */
void fr_page_lines(FILE *out, char *text);
