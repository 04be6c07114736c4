/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Writes JSON piece by piece, for files that are too large for a tree in memory. */

#include <stdio.h>

/* Writes TEXT as a string of JSON, with its quotes. Bytes that are not UTF-8 become U+FFFD. It can also stand
   in a <script> of HTML: "<" is written as \u003c. */
void fr_json_out_text(FILE *out, const char *text);
