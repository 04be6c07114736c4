/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Compiles the user's filter of a tracepoint for BPF programs. Private to this folder. */

#include "bpf/tracepoint.h"
#include "perfdata/tracepoint_format.h"

#include <stddef.h>

/* Compiles TEXT, a filter in the kernel's syntax, which the kernel has accepted for the tracepoint with the
   format F. Returns 0; or -EOPNOTSUPP, and WHY says which part of the filter the programs cannot evaluate. */
int fr_bpf_filter_compile(const char *text, const struct fr_tracepoint_format *f, struct fr_bpf_filter *ret,
	char *why, size_t why_size);
