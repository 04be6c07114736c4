/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Collects and summarizes the output of libbpf, which includes the verifier's log. Before the first call of
   fr_bpf_log_begin(), libbpf prints to standard error. */

#include "base/cleanup.h"

#include <stddef.h>

/* The largest number of bytes in a log. If libbpf prints more, the oldest text is dropped, because the reason
   of a failure is at the end. */
#define FR_BPF_LOG_SIZE (64 * 1024)

struct fr_bpf_log {
	char *text; /* NUL-terminated; NULL: nothing was printed */
	size_t len;
	struct fr_bpf_log *outer; /* the log that this thread began before this log, and that has not
				     ended; NULL: none */
};

/* From fr_bpf_log_begin() to fr_bpf_log_end(), LOG (zero-initialised) gets the text that libbpf prints on
   this thread, except libbpf's debug messages. If a thread has begun several logs, only the last log gets the
   text, until that log ends. If a thread has begun no log, the text is dropped. fr_bpf_log_end() ends the
   last log, and frees its text. */
void fr_bpf_log_begin(struct fr_bpf_log *log);
void fr_bpf_log_end(struct fr_bpf_log *log);
#define _cleanup_bpf_log_ _cleanup_(fr_bpf_log_end)

struct fr_bpf_log_summary {
	char program[64]; /* the program that the verifier rejected; empty: the failure has another reason */
	char reason[256]; /* "R1 invalid mem access 'scalar'", or libbpf's last message; may be empty */
	char source[160]; /* the line of source code that the reason is about; may be empty */
};
/* Summarizes TEXT, the text of a log. TEXT can have any content; NULL is allowed. */
void fr_bpf_log_summarize(const char *text, struct fr_bpf_log_summary *ret);
