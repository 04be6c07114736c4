/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Returns the name of a C++ or Rust function as a person writes it, without
   parameters, as perf does. Returns NULL if NAME is not mangled, if the result
   is longer than 4095 bytes, or if there is no memory. The caller frees the result. */
char *fr_demangle(const char *name);
