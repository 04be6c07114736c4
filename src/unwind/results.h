/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "bpf/unwind.h"

/* Names of the results of a walk, for status and metrics ("no-table"), and explanations for people. Both
   functions return NULL for an unknown result. */
const char *fr_unwind_result_name(enum fr_unwind_result result);
const char *fr_unwind_result_explain(enum fr_unwind_result result);
