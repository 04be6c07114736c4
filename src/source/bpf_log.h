/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Collects and summarizes the output of libbpf, which includes the verifier's log. Without this, libbpf
   prints to standard error. */

#include "base/cleanup.h"

#include <stddef.h>

/* A longer log loses its beginning, because the end has the reason. */
#define FR_BPF_LOG_SIZE (64 * 1024)

struct fr_bpf_log {
	char *text; /* NUL-terminated; NULL: nothing was printed */
	size_t len;
	struct fr_bpf_log *outer; /* the log to which the warnings go after the end of this one */
};

/* From fr_bpf_log_begin() to fr_bpf_log_end(), LOG (zero-initialised) gets the warnings of libbpf on this
   thread. Without a log, they are dropped. Logs nest. fr_bpf_log_end() frees the text. */
void fr_bpf_log_begin(struct fr_bpf_log *log);
void fr_bpf_log_end(struct fr_bpf_log *log);
#define _cleanup_bpf_log_ _cleanup_(fr_bpf_log_end)

struct fr_bpf_log_summary {
	char program[64]; /* the program that the verifier rejected; empty: another failure */
	char reason[256]; /* "R1 invalid mem access 'scalar'", or libbpf's last message; may be empty */
	char source[160]; /* the line of source code that the reason is about; may be empty */
};
/* Summarizes any TEXT; NULL is allowed. */
void fr_bpf_log_summarize(const char *text, struct fr_bpf_log_summary *ret);
